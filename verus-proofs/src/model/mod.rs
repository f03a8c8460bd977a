//! The engine as an abstract state machine over tokens: `state`, `plans`, `steps`, `inv`.
pub mod inv;
pub mod plans;
pub mod state;
pub mod steps;
