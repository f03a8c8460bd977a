//! One sequence: its tokens, how far its KV is computed and planned, and where it sits.
mod spec;

pub use spec::*;
