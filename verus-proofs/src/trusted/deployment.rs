//! What the guarantee is relative to.
//! A *deployment* is everything that a receipt's id hashes: the weights (by content), model configuration,
//! dtypes, quantisation, schedule classes (splits, split-K, reduction orders), certificates, block size,
//! backend and device kind, tensor-parallel degree, and the versions of Triton, driver and pyvosti. In the
//! theorems it is a type `D` (which model, kernels and sampler) with a value of `D::Weights`.
//! Everything else is *free*, and must not change a bit: pool sizes, token budget, number of sequences,
//! prefix cache on or off, graph padding, arrival order, other requests, salts. None of it occurs in
//! `same_request` (theorem.rs): the theorems hold whatever it is, in either execution.
use vstd::prelude::*;

verus! {

/// A token id.
pub type Token = int;
/// Separates tenants: a request is served from cached blocks of its own salt only.
pub type Salt = int;

/// What a user sends. `logits_from`: the first position whose row of logits is wanted.
pub struct Request {
    pub prompt: Seq<Token>, pub salt: Salt, pub logits_from: nat, pub max_tokens: nat, pub stop: Set<Token>,
}

impl Request {
    /// Generation ends with `tokens` (prompt and output): by their number, or the last is a stop token.
    pub open spec fn ends(self, tokens: Seq<Token>) -> bool {
        &&& tokens.len() > self.prompt.len()
        &&& tokens.len() >= self.prompt.len() + self.max_tokens || self.stop.contains(tokens.last())
    }
}

/// The KV memory: for each group `g` of layers, `num_blocks[g]` blocks of `block_size` positions. In it a row
/// sees the last `windows[g]` positions, its own among them; 0: all positions up to its own.
pub struct Shape { pub block_size: nat, pub num_blocks: Seq<nat>, pub windows: Seq<nat> }
/// The place of one position's KV in the memory of one group of layers.
pub struct Slot { pub group: int, pub block: int, pub offset: int }

/// The first position that a row at position `p` sees.
pub open spec fn first_seen(window: nat, p: int) -> int { if 0 < window <= p { p - window + 1 } else { 0 } }

impl Shape {
    pub open spec fn groups(self) -> nat { self.windows.len() }
    /// Where `table`, a block table of group `group`, puts `position`.
    pub open spec fn slot(self, group: int, table: Seq<int>, position: int) -> Slot {
        let size = self.block_size as int;
        Slot { group, block: table[position / size], offset: position % size }
    }
    /// The table has a place for positions `0..end`, and names blocks of the pool only.
    pub open spec fn covers(self, group: int, table: Seq<int>, end: nat) -> bool {
        &&& end <= table.len() * self.block_size
        &&& forall|i: int| 0 <= i < table.len() ==> 0 <= #[trigger] table[i] < self.num_blocks[group]
    }
}

} // verus!
