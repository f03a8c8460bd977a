//! Steps in a row: for the proofs that code refines the machine.
use crate::model::*;
use crate::proofs::engine::*;
use vstd::prelude::*;

verus! {

pub proof fn lemma_reaches_self(e: Engine)
    ensures
        reaches(e, e),
{
    let none = Seq::<Step>::empty();
    assert(runs(e, none) && run(e, none) == e);
}

/// One step more.
pub proof fn lemma_reaches_step(e: Engine, middle: Engine, step: Step)
    requires
        reaches(e, middle),
        enabled(middle, step),
    ensures
        reaches(e, after(middle, step)),
{
    let steps = choose|steps: Seq<Step>| #[trigger] runs(e, steps) && run(e, steps) == middle;
    let more = steps.push(step);
    assert(more.drop_last() =~= steps);
    assert(runs(e, more) && run(e, more) == after(middle, step));
}

pub proof fn lemma_reaches_trans(e: Engine, middle: Engine, e2: Engine)
    requires
        reaches(e, middle),
        reaches(middle, e2),
    ensures
        reaches(e, e2),
{
    let steps = choose|steps: Seq<Step>| #[trigger] runs(middle, steps) && run(middle, steps) == e2;
    lemma_append(e, middle, steps);
}

proof fn lemma_append(e: Engine, middle: Engine, steps: Seq<Step>)
    requires
        reaches(e, middle),
        runs(middle, steps),
    ensures
        reaches(e, run(middle, steps)),
    decreases steps.len(),
{
    if steps.len() > 0 {
        lemma_append(e, middle, steps.drop_last());
        lemma_reaches_step(e, run(middle, steps.drop_last()), steps.last());
    }
}

/// The invariant holds wherever the engine gets.
pub proof fn lemma_reaches_inv(e: Engine, e2: Engine)
    requires
        inv(e),
        reaches(e, e2),
    ensures
        inv(e2),
{
    let steps = choose|steps: Seq<Step>| #[trigger] runs(e, steps) && run(e, steps) == e2;
    lemma_run_inv(e, steps);
}

proof fn lemma_run_inv(e: Engine, steps: Seq<Step>)
    requires
        inv(e),
        runs(e, steps),
    ensures
        inv(run(e, steps)),
    decreases steps.len(),
{
    if steps.len() > 0 {
        let before = run(e, steps.drop_last());
        lemma_run_inv(e, steps.drop_last());
        lemma_step(before, steps.last(), after(before, steps.last()));
    }
}

} // verus!
