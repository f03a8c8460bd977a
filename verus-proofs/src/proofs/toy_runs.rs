//! Executions of the toy system, built move by move.
use crate::model::*;
use crate::proofs::ideal::*;
use crate::proofs::system_inv::*;
use crate::proofs::toy::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

pub type Run = Seq<System<Toy>>;

/// A number for each kind of step; `executed_kind` is the device's.
pub open spec fn kind(step: Step) -> int {
    match step {
        Step::Add { .. } => 0,
        Step::Fork { .. } => 1,
        Step::Admit { .. } => 2,
        Step::Share { .. } => 3,
        Step::Grow { .. } => 4,
        Step::Schedule { .. } => 5,
        Step::Commit { .. } => 6,
        Step::Cancel => 7,
        Step::Register { .. } => 8,
        Step::Evict { .. } => 9,
        Step::Preempt { .. } => 10,
        Step::Abort { .. } => 11,
        Step::Finish { .. } => 12,
        Step::Reset => 13,
        Step::Load { .. } => 14,
        Step::Slide { .. } => 15,
    }
}

/// Move `i` of the execution is of kind `k`.
pub open spec fn moves(x: Run, i: int, k: int) -> bool {
    0 <= i < x.len() - 1 && engine_step(x[i], x[i + 1], k)
}

pub open spec fn device_step(s: System<Toy>, s2: System<Toy>) -> bool {
    exists|x: Execution<Toy>| executes(s, x, s2)
}

pub open spec fn engine_step(s: System<Toy>, s2: System<Toy>, k: int) -> bool {
    exists|step: Step, initial: int, weights: int| #[trigger]
        engine_moves(s, step, initial, weights, s2) && kind(step) == k
}

/// A faithful execution that has taken every kind of step in `kinds`.
#[verifier::opaque]
pub open spec fn witnessed(x: Run, kinds: Set<int>) -> bool {
    &&& runner_faithful(x)
    &&& forall|k: int| #[trigger] kinds.contains(k) ==> exists|i: int| #[trigger] moves(x, i, k)
}

pub proof fn lemma_push(x: Run, s2: System<Toy>, kinds: Set<int>)
    requires
        witnessed(x, kinds),
        x.len() > 0,
        system_next(x.last(), s2),
    ensures
        witnessed(x.push(s2), kinds),
{
    reveal(witnessed);
    let y = x.push(s2);
    assert forall|i: int| 0 <= i < y.len() - 1 implies system_next(#[trigger] y[i], y[i + 1]) by {
        if i < x.len() - 1 {
            assert(system_next(x[i], x[i + 1]));
        }
    }
    assert forall|k: int| #[trigger] kinds.contains(k) implies exists|i: int| #[trigger]
        moves(y, i, k) by {
        let i = choose|i: int| #[trigger] moves(x, i, k);
        assert(moves(y, i, k));
    }
}

/// How many plans in flight are executed after a step.
pub open spec fn ran_after(s: System<Toy>, step: Step) -> int {
    match step {
        Step::Commit { .. } => s.ran.len() - 1,
        Step::Cancel => if s.ran.len() < s.engine.plans.len() {
            s.ran.len() as int
        } else {
            s.ran.len() - 1
        },
        _ => s.ran.len() as int,
    }
}

/// One more engine step.
pub proof fn lemma_move(x: Run, step: Step, kinds: Set<int>) -> (y: Run)
    requires
        witnessed(x, kinds),
        x.len() > 0,
        enabled(x.last().engine, step),
        step matches Step::Commit { tokens } ==> x.last().ran.len() > 0 && drew(
            x.last(),
            tokens,
        ),
    ensures
        y.len() > 0,
        y.last().engine == after(x.last().engine, step),
        y.last().ran.len() == ran_after(x.last(), step),
        witnessed(y, kinds.insert(kind(step))),
{
    let s2 = moved::<Toy>(x.last(), step, 0, 0);
    let y = x.push(s2);
    assert(engine_moves(x.last(), step, 0, 0, s2));
    assert(can_move(x.last(), step));
    lemma_push(x, s2, kinds);
    let i = x.len() - 1;
    assert(engine_step(x.last(), s2, kind(step)));
    assert(moves(y, i, kind(step)));
    reveal(witnessed);
    y
}

/// The device executes the next plan (with three rows of padding).
pub proof fn lemma_device(x: Run, kinds: Set<int>) -> (y: Run)
    requires
        witnessed(x, kinds),
        x.len() > 0,
        x.last().ran.len() < x.last().engine.plans.len(),
    ensures
        y.len() > 0,
        y.last().engine == x.last().engine,
        y.last().ran.len() == x.last().ran.len() + 1,
        witnessed(y, kinds),
        device_step(x.last(), y.last()),
{
    let s = x.last();
    let run = ideal::<Toy>(s.weights, s.engine.shape, device_plan(s), 3, s.memory);
    let s2 = System { memory: run.after, ran: s.ran.push(outcome(s, run.logits)), ..s };
    assert(executes(s, run, s2));
    lemma_push(x, s2, kinds);
    x.push(s2)
}

/// The tokens to commit.
pub open spec fn drawn_tokens(s: System<Toy>) -> Map<int, Token> {
    Map::new(
        s.engine.plans[0].chunks.dom(),
        |id: int| s.ran[0].draws[id].tokens.last(),
    )
}

} // verus!
