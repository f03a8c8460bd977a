//! Verified scheduler and paged, prefix-sharing KV cache.
use vstd::prelude::*;

pub mod block_pool;
pub mod layer_group;
pub mod prefix_tree;

verus! {
global size_of usize == 8;
}
