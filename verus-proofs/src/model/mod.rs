//! The engine as an abstract state machine over tokens. `state`, `blocks`: its words, used in the
//! theorems; `plans`, `steps`: what it may do; `inv`: what holds of it.
pub mod blocks;
pub mod inv;
pub mod plans;
pub mod state;
pub mod steps;
pub use self::{blocks::*, inv::*, plans::*, state::*, steps::*};
