//! A sequence loses its seat: preempted, finished, or aborted.
use super::*;
use vstd::prelude::*;

verus! {

/// Entry `i` changed, and the tables of its seat; the queue and the cache are the same.
pub open spec fn left(a: Scheduler, b: Scheduler, i: int) -> bool {
    &&& used(a, i) && b.only_seq(&a, i)
    &&& entries_of(a.queue@, i) == 0
    &&& same_names(a, b)
    &&& same_tables(a, b, a.seqs@[i].seat as int)
    &&& same_cache(a.groups@, b.groups@)
    &&& b.queue == a.queue && b.plans == a.plans && b.draft == a.draft
}

/// What a machine of `a` gets to by a step that changes sequence `i` alone is one of `b`.
pub proof fn lemma_left(a: Scheduler, b: Scheduler, l: Link, e2: model::Engine, i: int, seat: int)
    requires
        a.inv(),
        linked(a, l),
        model::inv(e2),
        b.only_seq(&a, i),
        same_names(a, b),
        same_tables(a, b, seat),
        same_cache(a.groups@, b.groups@),
        b.queue == a.queue && b.plans == a.plans && b.draft == a.draft,
        used(a, i),
        a.seqs@[i].live() ==> seat == a.seqs@[i].seat,
        !a.seqs@[i].live() ==> seat == -1,
        e2 == (model::Engine { seqs: e2.seqs, ..l.engine }),
        same_others(l.engine, e2, l.id(a, i)),
        if used(b, i) {
            b.seqs@[i].generation == a.seqs@[i].generation && seq_linked(b, l.with(e2), i)
        } else {
            !e2.has(l.id(a, i)) && entries_of(a.queue@, i) == 0
        },
    ensures
        linked(b, l.with(e2)),
{
    lemma_same_cache(a.groups@, b.groups@, e2);
    lemma_relinked(a, b, l, e2, i, seat);
}

pub proof fn lemma_preempt_refines(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        left(a, b, i),
        a.seqs@[i].phase is Running,
        b.seqs@[i] == (Sequence { phase: Phase::Waiting, computed: 0, planned: 0, ..a.seqs@[i] }),
    ensures
        refines(a, b),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies exists|e: model::Engine| #[trigger]
        arrives(b, l, e) by {
        let id = l.id(a, i);
        let step = model::Step::Preempt { id };
        let e2 = model::after(l.engine, step);
        lemma_id(a, l, i);
        lemma_not_flying(a, l, i);
        lemma_silent_step(l.engine, step);
        assert(e2.seqs[id].tables =~= tables_of(b.groups@, b.seqs@[i]));
        assert(e2.seqs[id].freed =~= freed_of(b.groups@, b.seqs@[i]));
        assert(seq_linked(b, l.with(e2), i));
        lemma_left(a, b, l, e2, i, a.seqs@[i].seat as int);
        assert(arrives(b, l, e2));
    }
}

pub proof fn lemma_finish_refines(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        left(a, b, i),
        a.seqs@[i].phase is Draining,
        b.seqs@[i].phase is Free,
    ensures
        refines(a, b),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies exists|e: model::Engine| #[trigger]
        arrives(b, l, e) by {
        let step = model::Step::Finish { id: l.id(a, i) };
        let e2 = model::after(l.engine, step);
        lemma_not_flying(a, l, i);
        lemma_silent_step(l.engine, step);
        lemma_left(a, b, l, e2, i, a.seqs@[i].seat as int);
        assert(arrives(b, l, e2));
    }
}

/// A running sequence was given up, and keeps its seat for now; one that waited is gone.
pub proof fn lemma_abort_takes(a: Scheduler, b: Scheduler, l: Link, i: int)
    requires
        a.inv(),
        linked(a, l),
        used(a, i),
        b == (Scheduler { seqs: b.seqs, ..a }),
        b.only_seq(&a, i),
        if a.seqs@[i].phase is Running {
            b.seqs@[i] == (Sequence { phase: Phase::Draining, ..a.seqs@[i] })
        } else {
            a.seqs@[i].phase is Waiting && b.seqs@[i].phase is Dropped && b.seqs@[i].generation
                == a.seqs@[i].generation
        },
    ensures
        takes(b, l, model::Step::Abort { id: l.id(a, i) }),
{
    let id = l.id(a, i);
    let step = model::Step::Abort { id };
    let m = l.with(model::after(l.engine, step));
    lemma_id(a, l, i);
    lemma_step_inv(l.engine, step);
    if a.seqs@[i].phase is Running {
        assert(m.engine.seqs[id].tables =~= tables_of(b.groups@, b.seqs@[i]));
        assert(m.engine.seqs[id].freed =~= freed_of(b.groups@, b.seqs@[i]));
        lemma_left(a, b, l, m.engine, i, a.seqs@[i].seat as int);
        lemma_arrived(b, m);
    } else {
        assert forall|k: int| 0 <= k < a.queue@.len() implies (#[trigger] a.queue@[k]).seq != i by {
            assert(a.seqs@[a.queue@[k].seq as int].live());
        }
        lemma_entries_none(a.queue@, i);
        lemma_not_flying(a, l, i);
        let finish = model::Step::Finish { id };
        let e2 = model::after(m.engine, finish);
        assert(!m.engine.in_flight(id));
        lemma_silent_step(m.engine, finish);
        lemma_left(a, b, l, e2, i, -1);
        assert(arrives(b, m, e2));
    }
}

/// What is cached is forgotten.
pub proof fn lemma_reset_takes(a: Scheduler, b: Scheduler, l: Link)
    requires
        a.inv(),
        linked(a, l),
        b == (Scheduler { groups: b.groups, ..a }),
        same_tables(a, b, -1),
        all_logged(a.groups@, b.groups@),
        forall|g: int, x: int|
            #![trigger b.groups@[g].cached(x)]
            0 <= g < b.groups@.len() ==> b.groups@[g].cached(x) is None,
    ensures
        takes(b, l, model::Step::Reset),
        linked(b, l.with(model::after(l.engine, model::Step::Reset))),
{
    let m = l.with(model::after(l.engine, model::Step::Reset));
    lemma_step_inv(l.engine, model::Step::Reset);
    lemma_relinked(a, b, l, m.engine, -1, -1);
    lemma_arrived(b, m);
}

/// What is cached is forgotten because the weights are others. No sequence is open.
pub proof fn lemma_load_takes(a: Scheduler, b: Scheduler, l: Link)
    requires
        linked(a, l),
        a.plans@.len() == 0,
        forall|i: int| 0 <= i < a.seqs@.len() ==> !in_use(#[trigger] a.seqs@[i]),
        linked(b, l.with(model::after(l.engine, model::Step::Reset))),
    ensures
        takes(b, l, model::Step::Load { restart: false }),
{
    let load = model::Step::Load { restart: false };
    let (e, m) = (l.engine, l.with(model::after(l.engine, load)));
    assert(m.engine.seqs =~= e.seqs);
    lemma_step_inv(e, load);
    lemma_content_is_free(b, l.with(model::after(e, model::Step::Reset)), m);
    lemma_arrived(b, m);
}

/// What has been written is the machine's alone.
proof fn lemma_content_is_free(b: Scheduler, l: Link, m: Link)
    requires
        linked(b, l),
        model::inv(m.engine),
        m == l.with(model::Engine { content: m.engine.content, ..l.engine }),
    ensures
        linked(b, m),
{
}

} // verus!
