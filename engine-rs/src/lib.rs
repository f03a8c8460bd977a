//! Verified scheduler and paged, prefix-sharing KV cache.
// What Verus specifies: vectors rather than slices, `len` rather than `is_empty`, comparisons.
#![allow(clippy::ptr_arg, clippy::len_zero, clippy::manual_range_contains)]
// Ghost types, and readers of a group that its tests use.
#![allow(dead_code)]
// `global` expands to a block.
#![allow(unused_braces)]
use vstd::prelude::*;

mod block_pool;
pub mod engine;
mod layer_group;
mod prefix_tree;
#[allow(unused_imports, clippy::large_enum_variant)] // all of it is ghost code
mod refinement;
mod scheduler;
mod sequence;

pub use scheduler::{ConfigError, EngineError, Outcome, Plan, UNKNOWN_TOKEN};

verus! {
global size_of usize == 8;
}
