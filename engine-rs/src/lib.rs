//! Verified scheduler and paged, prefix-sharing KV cache.
// What Verus specifies: vectors rather than slices, `len` rather than `is_empty`, comparisons.
#![allow(clippy::ptr_arg, clippy::len_zero, clippy::manual_range_contains)]
// `global` expands to a block.
#![allow(unused_braces)]
use vstd::prelude::*;

pub mod block_pool;
pub mod engine;
pub mod layer_group;
pub mod prefix_tree;
pub mod scheduler;
pub mod sequence;

verus! {
global size_of usize == 8;
}
