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

/// An execution under way, and the kinds of steps that it has taken.
pub struct Walk {
    pub run: Run,
    pub kinds: Set<int>,
}

impl Walk {
    pub open spec fn ok(self) -> bool {
        self.run.len() > 0 && witnessed(self.run, self.kinds)
    }

    pub open spec fn engine(self) -> Engine {
        self.run.last().engine
    }

    /// How many plans in flight are executed.
    pub open spec fn ran(self) -> nat {
        self.run.last().ran.len()
    }
}

/// One more step of the system.
proof fn lemma_push(w: Walk, s2: System<Toy>) -> (v: Walk)
    requires
        w.ok(),
        system_next(w.run.last(), s2),
    ensures
        v.ok(),
        v == (Walk { run: w.run.push(s2), ..w }),
{
    reveal(witnessed);
    let y = w.run.push(s2);
    assert forall|i: int| 0 <= i < y.len() - 1 implies system_next(#[trigger] y[i], y[i + 1]) by {
        if i < w.run.len() - 1 {
            assert(system_next(w.run[i], w.run[i + 1]));
        }
    }
    assert forall|k: int| #[trigger] w.kinds.contains(k) implies exists|i: int| #[trigger]
        moves(y, i, k) by {
        let i = choose|i: int| #[trigger] moves(w.run, i, k);
        assert(moves(y, i, k));
    }
    Walk { run: y, ..w }
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
pub proof fn lemma_move(w: Walk, step: Step) -> (v: Walk)
    requires
        w.ok(),
        enabled(w.engine(), step),
        step matches Step::Commit { tokens } ==> w.ran() > 0 && drew(w.run.last(), tokens),
    ensures
        v.ok(),
        v.engine() == after(w.engine(), step),
        v.ran() == ran_after(w.run.last(), step),
        v.kinds == w.kinds.insert(kind(step)),
{
    let s = w.run.last();
    let s2 = moved::<Toy>(s, step, 0, 0);
    assert(engine_moves(s, step, 0, 0, s2));
    assert(can_move(s, step));
    let v = lemma_push(w, s2);
    assert(moves(v.run, w.run.len() - 1, kind(step)));
    reveal(witnessed);
    Walk { kinds: w.kinds.insert(kind(step)), ..v }
}

/// The device executes the next plan (with three rows of padding).
pub proof fn lemma_device(w: Walk) -> (v: Walk)
    requires
        w.ok(),
        w.ran() < w.engine().plans.len(),
    ensures
        v.ok(),
        v.engine() == w.engine(),
        v.ran() == w.ran() + 1,
        v.kinds == w.kinds,
        device_step(w.run.last(), v.run.last()),
{
    let s = w.run.last();
    let run = ideal::<Toy>(s.weights, s.engine.shape, device_plan(s), 3, s.memory);
    let s2 = System { memory: run.after, ran: s.ran.push(outcome(s, run.logits)), ..s };
    assert(executes(s, run, s2));
    lemma_push(w, s2)
}

/// The oldest plan, executed, is committed with the tokens that it drew.
pub proof fn lemma_commit_drawn(w: Walk) -> (v: (Walk, Map<int, Token>))
    requires
        w.ok(),
        w.ran() > 0,
        w.engine().plans.len() > 0,
    ensures
        v.0.ok(),
        v.0.engine() == commit(w.engine(), v.1),
        v.0.ran() == w.ran() - 1,
        v.0.kinds == w.kinds.insert(6),
{
    let s = w.run.last();
    let tokens = Map::new(
        s.engine.plans[0].chunks.dom(),
        |id: int| s.ran[0].draws[id].tokens.last(),
    );
    (lemma_move(w, Step::Commit { tokens }), tokens)
}

} // verus!
