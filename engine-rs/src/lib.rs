//! Verified scheduler and paged, prefix-sharing KV cache.
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
