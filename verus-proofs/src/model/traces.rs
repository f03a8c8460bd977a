//! Several steps in a row: what one public function of vosti-engine ensures.
use crate::model::state::*;
use crate::model::steps::*;
use vstd::prelude::*;

verus! {

/// The engine after `steps`.
pub open spec fn run(e: Engine, steps: Seq<Step>) -> Engine
    decreases steps.len(),
{
    if steps.len() == 0 {
        e
    } else {
        after(run(e, steps.drop_last()), steps.last())
    }
}

/// Each of `steps` is allowed when its turn comes.
pub open spec fn runs(e: Engine, steps: Seq<Step>) -> bool
    decreases steps.len(),
{
    steps.len() > 0 ==> {
        &&& runs(e, steps.drop_last())
        &&& enabled(run(e, steps.drop_last()), steps.last())
    }
}

/// Neither a user nor the runner sees anything of it: who sits where, on which blocks, and what is
/// cached.
pub open spec fn silent(step: Step) -> bool {
    step is Admit || step is Share || step is Grow || step is Slide || step is Register
        || step is Evict || step is Preempt || step is Finish
}

/// From `e` the engine gets to `e2`, by some steps or none; `quiet`: by silent ones.
pub open spec fn moves(e: Engine, e2: Engine, quiet: bool) -> bool {
    exists|steps: Seq<Step>| #[trigger]
        runs(e, steps) && run(e, steps) == e2 && (quiet ==> all_silent(steps))
}

pub open spec fn all_silent(steps: Seq<Step>) -> bool {
    forall|i: int| 0 <= i < steps.len() ==> silent(#[trigger] steps[i])
}

pub open spec fn reaches(e: Engine, e2: Engine) -> bool {
    moves(e, e2, false)
}

/// Nothing but who sits where, on which blocks, and what is cached may differ.
pub open spec fn rearranges(e: Engine, e2: Engine) -> bool {
    moves(e, e2, true)
}

} // verus!
