//! Full blocks by the token prefix that ends in them: a tree, looked up one block at a time.
//!
//! A registered block is a *node*: a unique id, the id of its parent (0: the root), a salt, and
//! its own tokens. A hash of (parent, salt, tokens) picks a bucket, whose nodes are chained
//! through an array; only equality of all three makes a match. Ids are never used twice: once a
//! node is gone, no lookup can reach its children, which wait to be evicted themselves.
use vstd::prelude::*;

mod exec;
mod exec_update;
mod hash;
mod inv;
pub(crate) mod proof;
mod proof_arrays;
pub(crate) mod proof_hits;
mod spec;
#[cfg(test)]
mod tests;

pub use spec::*;

verus! {

/// Arrays by block, and the hash table's buckets.
pub struct PrefixTree {
    block_size: usize,
    /// By block: its node's id, 0 when it is not registered.
    id: Vec<u64>,
    parent: Vec<u64>,
    salt: Vec<u64>,
    /// By block: the next one in its bucket, [`NONE`] at the end.
    chain: Vec<u32>,
    /// By block: its bucket.
    bucket: Vec<u32>,
    /// `block_size` tokens a block.
    tokens: Vec<u32>,
    /// By bucket: its first block or [`NONE`].
    heads: Vec<u32>,
    /// Number of buckets, a power of two, less one.
    mask: u64,
    next_id: u64,
    state: Ghost<TreeView>,
    /// By bucket: its blocks.
    chains: Ghost<Seq<Seq<u32>>>,
}

/// End of a chain.
pub const NONE: u32 = u32::MAX;

} // verus!
