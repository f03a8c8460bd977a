//! What it is for the scheduler's code to follow the machine.
use super::*;
use vstd::prelude::*;

verus! {

/// By silent steps the machine of `l` gets to `e`, which is linked with `b`.
pub open spec fn arrives(b: Scheduler, l: Link, e: model::Engine) -> bool {
    linked(b, l.with(e)) && model::rearranges(l.engine, e)
}

/// The code went from `a` to `b`: every machine linked with `a` gets to one linked with `b`, by
/// silent steps.
pub open spec fn refines(a: Scheduler, b: Scheduler) -> bool {
    forall|l: Link| #[trigger] linked(a, l) ==> exists|e: model::Engine| #[trigger] arrives(b, l, e)
}

/// The machine may take `step`, and then gets to one linked with `b`, by silent steps.
pub open spec fn takes(b: Scheduler, l: Link, step: model::Step) -> bool {
    &&& model::enabled(l.engine, step)
    &&& exists|e: model::Engine| #[trigger] arrives(b, l.with(model::after(l.engine, step)), e)
}

/// The machine may add request `r`, which callers know as `name`, a name never used before.
pub open spec fn enters(b: Scheduler, l: Link, name: u64, r: Request) -> bool {
    &&& model::admissible(l.engine, r)
    &&& !l.names.contains(name)
    &&& linked(b, Link { engine: model::added(l.engine, r), names: l.names.push(name), ..l })
}

/// The step that forks the sequence that callers know as `parent`: of its prompt the last row's
/// logits are wanted.
pub open spec fn fork_step(l: Link, parent: u64) -> model::Step {
    let id = l.names.index_of(parent);
    let logits_from = (l.engine.seqs[id].request.prompt.len() - 1) as nat;
    model::Step::Fork { parent: id, logits_from }
}

/// The machine after that, if callers know the new sequence as `name`.
pub open spec fn forked(l: Link, parent: u64, name: u64) -> Link {
    Link { engine: model::after(l.engine, fork_step(l, parent)), names: l.names.push(name), ..l }
}

/// The machine may fork sequence `parent`; `name` was never used before.
pub open spec fn forks(b: Scheduler, l: Link, parent: u64, name: u64) -> bool {
    &&& l.names.contains(parent)
    &&& model::enabled(l.engine, fork_step(l, parent))
    &&& !l.names.contains(name)
    &&& linked(b, forked(l, parent, name))
}

/// By no step at all.
pub proof fn lemma_arrived(b: Scheduler, l: Link)
    requires
        linked(b, l),
    ensures
        arrives(b, l, l.engine),
{
    lemma_stays(l.engine);
}

pub proof fn lemma_refines_self(a: Scheduler)
    ensures
        refines(a, a),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies exists|e: model::Engine| #[trigger]
        arrives(a, l, e) by {
        lemma_arrived(a, l);
    }
}

/// The machine sees nothing of what changed.
pub proof fn lemma_unseen(a: Scheduler, b: Scheduler)
    requires
        a.seqs_ok(),
        a.queue_ok(),
        same_but(a, b, -1, -1),
        same_cache(a.groups@, b.groups@),
        same_flights(a, b),
    ensures
        refines(a, b),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies exists|e: model::Engine| #[trigger]
        arrives(b, l, e) by {
        lemma_relinked(a, b, l, l.engine, -1, -1);
        lemma_arrived(b, l);
    }
}

pub proof fn lemma_arrives_later(b: Scheduler, c: Scheduler, l: Link, e: model::Engine)
    requires
        arrives(b, l, e),
        refines(b, c),
    ensures
        exists|e: model::Engine| #[trigger] arrives(c, l, e),
{
    let m = l.with(e);
    let e2 = choose|e2: model::Engine| #[trigger] arrives(c, m, e2);
    lemma_moves_trans(l.engine, e, e2, true);
    assert(arrives(c, l, e2));
}

pub proof fn lemma_refines_trans(a: Scheduler, b: Scheduler, c: Scheduler)
    requires
        refines(a, b),
        refines(b, c),
    ensures
        refines(a, c),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies exists|e: model::Engine| #[trigger]
        arrives(c, l, e) by {
        let e = choose|e: model::Engine| #[trigger] arrives(b, l, e);
        lemma_arrives_later(b, c, l, e);
    }
}

pub proof fn lemma_takes_later(b: Scheduler, c: Scheduler, l: Link, step: model::Step)
    requires
        takes(b, l, step),
        refines(b, c),
    ensures
        takes(c, l, step),
{
    let m = l.with(model::after(l.engine, step));
    let e = choose|e: model::Engine| #[trigger] arrives(b, m, e);
    lemma_arrives_later(b, c, m, e);
}

} // verus!
