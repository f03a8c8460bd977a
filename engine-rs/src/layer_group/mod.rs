//! One group of layers: its block pool, its prefix tree, and a block table per seat.
//!
//! A *seat* is a row of the block tables, held by one running sequence. Entry `i` of a seat's
//! table is the block that holds the KV of positions `i * block_size ..`. The first `sealed`
//! entries are full blocks whose KV is committed; they may be shared and registered in the prefix
//! tree. All later entries have exactly one holder: only that seat writes them. In a group with a
//! window the first `freed` entries are given back once no later row sees their positions: they
//! stay in the table, so that all others keep their places, but the seat does not hold them.
use crate::block_pool::BlockPool;
use crate::prefix_tree::PrefixTree;
use vstd::prelude::*;

mod exec;
mod exec_attach;
mod exec_commit;
mod exec_hold;
mod exec_slide;
mod exec_steps;
mod inv;
mod proof;
mod proof_commit;
mod proof_content;
mod proof_slide;
mod proof_slots;
mod proof_steps;
mod proof_writes;
mod spec;
mod steps;
mod tables;
#[cfg(test)]
mod tests;

#[cfg(verus_only)]
pub use inv::State;
#[cfg(verus_only)]
pub use proof_slide::slid;
#[cfg(verus_only)]
pub use spec::*;
pub use tables::BlockTables;

verus! {

/// Anchor of a seat whose further blocks are not to be registered.
pub const NO_ANCHOR: u64 = u64::MAX;

/// Pool, prefix tree and block tables of one group of layers.
pub struct LayerGroup {
    pool: BlockPool,
    tree: PrefixTree,
    tables: BlockTables,
    /// By seat: number of leading entries that it has given back.
    freed: Vec<usize>,
    /// By seat: number of leading blocks that are full and committed.
    sealed: Vec<usize>,
    /// By seat: node id of the prefix held by the sealed blocks, or [`NO_ANCHOR`].
    anchor: Vec<u64>,
    block_size: usize,
    /// How many positions, its own included, a row sees; 0: all up to its own.
    window: usize,
    prefix_cache: bool,
    /// By block and offset: the token prefix, this position included, whose KV belongs there.
    content: Ghost<Seq<Seq<Option<Seq<u32>>>>>,
}

} // verus!
