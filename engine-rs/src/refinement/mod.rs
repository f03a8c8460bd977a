//! The engine's code follows the machine of vosti-spec, step by step. `theorem`: what this means;
//! `calls`: what each call does; `relation`: how the two states are tied.
mod admit_refines;
mod calls;
mod cancel_refines;
mod commit_entries;
mod commit_refines;
mod enter_refines;
mod flight;
mod frame;
mod grow_refines;
mod leave_refines;
mod mirror;
mod plan_refines;
mod plan_says;
mod relation;
mod simulation;
mod slide_refines;
mod system_refines;
mod theorem;

use crate::{layer_group::*, scheduler::*, sequence::*};
use vosti_spec::{model, proofs::traces::*, trusted::deployment::*};

pub use {
    admit_refines::*, calls::*, cancel_refines::*, commit_entries::*, commit_refines::*,
    enter_refines::*, flight::*, frame::*, grow_refines::*, leave_refines::*, mirror::*,
    plan_refines::*, plan_says::*, relation::*, simulation::*, slide_refines::*, system_refines::*,
    theorem::*,
};
