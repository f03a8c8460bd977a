//! The blocks of one layer group: who holds each, and which free one is taken next.
//!
//! Blocks `0..n` are counted by their holders. Those without a holder form one queue, a doubly
//! linked list threaded through two arrays: blocks of no further use at the front, then the
//! reusable ones, least recently used first. Taking from the front is LRU by logical clock.
use vstd::prelude::*;

mod exec;
mod inv;
pub(crate) mod proof;
mod proof_ring;
mod spec;
#[cfg(test)]
mod tests;

pub use spec::*;

verus! {

/// Reference counts and the queue of free blocks.
pub struct BlockPool {
    /// By block: number of holders.
    refs: Vec<u32>,
    /// By block: the next one in the queue. The entry past the last block is the list's head:
    /// the ring is closed, so that linking has no special cases.
    next: Vec<u32>,
    /// By block: the one before it in the queue.
    prev: Vec<u32>,
    /// Length of the queue.
    free: u32,
    /// How many blocks at its front are of no further use.
    plain: u32,
    state: Ghost<PoolView>,
}

} // verus!
