//! What each call of the engine means for the machine.
use super::*;
use vstd::prelude::*;

verus! {

/// A call of the engine, with what was given and returned.
pub ghost enum Call {
    /// A request, which callers know as `name` from now on.
    Add { request: Request, name: u64 },
    /// Another sample of the prompt of `parent`.
    Fork { parent: u64, name: u64 },
    Schedule { plan: Option<Plan> },
    /// The oldest plan's sampled tokens, and what became of their sequences.
    Commit { tokens: Seq<u32>, outcomes: Seq<Outcome> },
    Cancel,
    Abort { name: u64 },
    Reset,
    /// Other weights, while no sequence is open.
    Load,
    /// The call said no, or only looked.
    Nothing,
}

/// How many of the first `k` sequences of a plan are sampled.
pub open spec fn samples_before(plan: model::Plan, k: int) -> int
    decreases k,
{
    if k <= 0 {
        0
    } else {
        samples_before(plan, k - 1) + if plan.chunks[plan.order[k - 1]].sample {
            1int
        } else {
            0int
        }
    }
}

/// The tokens drawn, by sequence: the n-th is that of the n-th sampled sequence of the plan.
pub open spec fn drawn(plan: model::Plan, tokens: Seq<u32>) -> Map<int, Token> {
    Map::new(
        plan.chunks.dom(),
        |id: int| tokens[samples_before(plan, plan.order.index_of(id))] as int,
    )
}

/// The machine takes `step`, and then silent ones. No name is given out, and no table updates.
pub open spec fn steps(a: Link, step: model::Step, b: Link) -> bool {
    &&& model::enabled(a.engine, step)
    &&& model::rearranges(model::after(a.engine, step), b.engine)
    &&& b.names == a.names && b.may == a.may
}

/// A name that none had before, for the machine's next sequence, which `step` adds.
pub open spec fn names(a: Link, step: model::Step, name: u64, b: Link) -> bool {
    &&& model::next(a.engine, step, b.engine)
    &&& !a.names.contains(name)
    &&& b.names == a.names.push(name) && b.may == a.may
}

/// After silent steps the machine schedules the plan that `p` says; without one, it takes no other.
pub open spec fn plans(a: Link, p: Option<Plan>, b: Link) -> bool {
    &&& b.names == a.names
    &&& match p {
        Some(p) => exists|e: model::Engine, plan: model::Plan| #[trigger] planned(a, p, e, plan, b),
        None => model::rearranges(a.engine, b.engine) && b.may == a.may,
    }
}

pub open spec fn planned(a: Link, p: Plan, e: model::Engine, plan: model::Plan, b: Link) -> bool {
    &&& model::rearranges(a.engine, e)
    &&& model::next(e, model::Step::Schedule { plan }, b.engine)
    &&& says(p, plan, a.names, e.shape)
    &&& tables_reach(a, p, plan) && b.may == a.updated(p).may
}

/// What became of a sequence of which `token` was drawn, `s` before and `t` after the commit.
pub open spec fn fate(s: model::Sequence, t: model::Sequence, token: Token) -> Outcome {
    if !s.alive {
        Outcome::Dropped
    } else if t.alive {
        Outcome::Running
    } else if s.request.stop.contains(token) {
        Outcome::Stop
    } else {
        Outcome::Length
    }
}

/// The outcomes are the fates of the oldest plan's sampled sequences, in the order of the batch.
pub open spec fn fates(e: model::Engine, tokens: Seq<u32>, outcomes: Seq<Outcome>) -> bool {
    let plan = e.plans[0];
    let drew = drawn(plan, tokens);
    forall|k: int|
        #![trigger plan.order[k]]
        0 <= k < plan.order.len() && plan.samples(plan.order[k]) ==> outcomes[samples_before(
            plan,
            k,
        )] == fate(
            e.seqs[plan.order[k]],
            model::after_commit(e, drew, plan.order[k]),
            drew[plan.order[k]],
        )
}

/// The call took the machine from `a` to `b`.
pub open spec fn answers(a: Link, call: Call, b: Link) -> bool {
    match call {
        Call::Add { request, name } => names(a, model::Step::Add { request }, name, b),
        Call::Fork { parent, name } => a.names.contains(parent) && names(
            a,
            fork_step(a, parent),
            name,
            b,
        ),
        Call::Schedule { plan } => plans(a, plan, b),
        Call::Commit { tokens, outcomes } => fates(a.engine, tokens, outcomes) && steps(
            a,
            model::Step::Commit { tokens: drawn(a.engine.plans[0], tokens) },
            b,
        ),
        // its updates may have been made, or not
        Call::Cancel => steps(a.forgotten(), model::Step::Cancel, b),
        Call::Abort { name } => a.names.contains(name) && steps(
            a,
            model::Step::Abort { id: a.names.index_of(name) },
            b,
        ),
        Call::Reset => steps(a, model::Step::Reset, b),
        Call::Load => steps(a, model::Step::Load { restart: false }, b),
        Call::Nothing => a == b,
    }
}

/// The machine that `takes` speaks of.
pub proof fn lemma_steps(s: Scheduler, a: Link, step: model::Step) -> (b: Link)
    requires
        takes(s, a, step),
    ensures
        linked(s, b),
        steps(a, step, b),
{
    let m = a.with(model::after(a.engine, step));
    let e = choose|e: model::Engine| #[trigger] arrives(s, m, e);
    m.with(e)
}

/// The machine that `schedules` or `refines` speaks of.
pub proof fn lemma_plans(a: Scheduler, b: Scheduler, l: Link, p: Option<Plan>) -> (m: Link)
    requires
        linked(a, l),
        p is None ==> refines(a, b),
        p matches Some(p) ==> schedules(b, l, p),
    ensures
        linked(b, m),
        plans(l, p, m),
{
    match p {
        Some(p) => {
            let (e, plan) = choose|e: model::Engine, plan: model::Plan| #[trigger]
                goes_out(b, l, p, e, plan);
            let m = l.updated(p).with(model::after(e, model::Step::Schedule { plan }));
            assert(planned(l, p, e, plan, m));
            m
        },
        None => {
            let e = choose|e: model::Engine| #[trigger] arrives(b, l, e);
            l.with(e)
        },
    }
}

} // verus!
