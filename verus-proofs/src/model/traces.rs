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

/// From `e` the engine gets to `e2`, by some steps or none.
pub open spec fn reaches(e: Engine, e2: Engine) -> bool {
    exists|steps: Seq<Step>| #[trigger] runs(e, steps) && run(e, steps) == e2
}

} // verus!
