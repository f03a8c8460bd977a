//! The engine as an abstract state machine over tokens. `state`, `blocks`: its words, used in the
//! theorems; `plans`, `steps`, `traces`: what it may do; `inv`: what holds of it.
pub mod blocks;
pub mod inv;
pub mod plans;
pub mod state;
pub mod steps;
pub mod traces;
pub use self::{blocks::*, inv::*, plans::*, state::*, steps::*, traces::*};
