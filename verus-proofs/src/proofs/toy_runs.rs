//! Executions of the toy system, built move by move.
use vstd::prelude::*;
use crate::trusted::deployment::*;
use crate::trusted::reference::*;
use crate::trusted::runner::*;
use crate::model::plans::*;
use crate::model::state::*;
use crate::model::steps::*;
use crate::proofs::ideal::*;
use crate::proofs::toy::*;

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
    }
}

/// Move `i` of the execution is of kind `k`.
pub open spec fn moves(x: Run, i: int, k: int) -> bool {
    0 <= i < x.len() - 1 && engine_step(x[i], x[i + 1], k)
}

pub open spec fn device_step(s: System<Toy>, s2: System<Toy>) -> bool {
    exists|
        padding: nat,
        memory: spec_fn(Slot) -> Seq<Token>,
        logits: Seq<Seq<(int, Seq<Token>)>>,
    |
        executes(s, padding, memory, logits, s2)
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

/// The system after one engine step (Add, Fork and Load with state and weights 0).
pub open spec fn moved(s: System<Toy>, step: Step) -> System<Toy> {
    let engine = after(s.engine, step);
    let id = s.engine.next_id;
    match step {
        Step::Add { .. } | Step::Fork { .. } => System {
            engine,
            log: s.log.insert(id, new_record::<Toy>(s.weights, engine.seqs[id].request, 0)),
            ..s
        },
        Step::Commit { .. } => System {
            engine,
            ran: s.ran.drop_first(),
            log: Map::new(s.log.dom(), |id: int| given(s, id)),
            ..s
        },
        Step::Cancel => System {
            engine,
            ran: s.ran.take(
                if s.ran.len() < s.engine.plans.len() {
                    s.ran.len() as int
                } else {
                    s.ran.len() - 1
                },
            ),
            ..s
        },
        Step::Load { .. } => System {
            engine,
            weights: 0,
            log: Map::new(
                s.log.dom(),
                |id: int|
                    if s.engine.has(id) {
                        new_record::<Toy>(0, s.log[id].request, s.log[id].initial)
                    } else {
                        s.log[id]
                    },
            ),
            ..s
        },
        _ => System { engine, ..s },
    }
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

/// One more engine step.
pub proof fn lemma_move(x: Run, step: Step, kinds: Set<int>) -> (y: Run)
    requires
        witnessed(x, kinds),
        x.len() > 0,
        enabled(x.last().engine, step),
        step matches Step::Commit { tokens } ==> x.last().ran.len() > 0 && faithful_tokens(
            x.last(),
            tokens,
        ),
    ensures
        y.len() > 0,
        y.last().engine == after(x.last().engine, step),
        y.last().ran == moved(x.last(), step).ran,
        witnessed(y, kinds.insert(kind(step))),
{
    let s2 = moved(x.last(), step);
    let y = x.push(s2);
    assert(engine_moves(x.last(), step, 0, 0, s2));
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
    let plan = device_plan(s);
    let memory = ideal_memory::<Toy>(s.weights, s.engine.shape, s.memory, plan);
    let logits = ideal_logits::<Toy>(s.weights, s.engine.shape, s.memory, plan);
    let s2 = System { memory, ran: s.ran.push(outcome(s, logits)), ..s };
    assert(executes(s, 3, memory, logits, s2));
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
