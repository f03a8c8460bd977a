//! The scheduler: which rows the next step computes, and what a committed or cancelled step means.
mod abort;
mod admit;
mod attach;
mod cancel;
mod commit;
mod create;
mod draft;
mod emit;
mod error;
mod forget;
mod fork;
mod frame;
mod inv;
mod load;
mod plan;
mod plans;
mod progress;
mod proof;
mod proof_admit;
mod proof_commit;
mod proof_emit;
mod proof_lists;
mod proof_plan;
mod proof_requests;
mod proof_reserve;
mod proof_seats;
mod relog;
mod requests;
mod reserve;
mod retire;
mod rows;
mod schedule;
mod seats;
mod seen;
mod share;
mod slide;
mod spec;
mod tables;
mod waiting;

pub use attach::*;
pub use commit::*;
pub use create::*;
pub use error::*;
pub use plan::*;
pub use requests::*;
pub use spec::*;
pub use tables::*;
#[cfg(verus_only)]
pub use {
    admit::*, cancel::*, draft::*, emit::*, forget::*, frame::*, inv::*, plans::*, progress::*,
    proof::*, proof_admit::*, proof_commit::*, proof_emit::*, proof_lists::*, proof_plan::*,
    proof_requests::*, proof_reserve::*, proof_seats::*, relog::*, reserve::*, retire::*, rows::*,
    schedule::*, seats::*, seen::*, share::*, slide::*, waiting::*,
};
