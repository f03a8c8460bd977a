//! How the arrays represent the abstract tree.
#[cfg(verus_only)]
use super::hash::*;
use super::PrefixTree;
#[cfg(verus_only)]
use super::{Node, TreeView, NONE};
use vstd::prelude::*;

verus! {

/// A chain's entry `i`, [`NONE`] past its end.
pub open spec fn entry(chain: Seq<u32>, i: int) -> u32 {
    if 0 <= i < chain.len() {
        chain[i]
    } else {
        NONE
    }
}

/// `head` and `next` lead through the chain.
pub open spec fn chain_ok(chain: Seq<u32>, head: u32, next: Seq<u32>) -> bool {
    &&& head == entry(chain, 0)
    &&& forall|i: int|
        0 <= i < chain.len() ==> next[#[trigger] chain[i] as int] == entry(chain, i + 1)
}

/// A chain's blocks are distinct nodes of bucket `k`.
pub open spec fn members_ok(
    chain: Seq<u32>,
    nodes: Seq<Option<Node>>,
    bucket: Seq<u32>,
    k: int,
) -> bool {
    &&& forall|i: int|
        0 <= i < chain.len() ==> (#[trigger] chain[i]) < nodes.len()
            && nodes[chain[i] as int] is Some && bucket[chain[i] as int] == k
    &&& forall|i: int, j: int|
        #![trigger chain[i], chain[j]]
        0 <= i < j < chain.len() ==> chain[i] != chain[j]
}

/// Where a key hashes to.
pub open spec fn key_bucket(mask: u64, x: Node) -> u64 {
    bucket_of(mask, x.parent, x.salt, x.toks)
}

impl PrefixTree {
    pub open(super) spec fn inv(&self) -> bool {
        &&& self.state@.ok(self.block_size as int)
        &&& self.sizes_ok()
        &&& self.next_id == self.state@.prefixes.len()
        &&& forall|b: int| 0 <= b < self.state@.nodes.len() ==> #[trigger] self.node_stored(b)
        &&& forall|k: int| 0 <= k < self.chains@.len() ==> #[trigger] self.bucket_ok(k)
        &&& self.chains_complete()
    }

    /// What the invariant says of the abstract tree.
    pub proof fn lemma_view_ok(&self)
        requires
            self.inv(),
        ensures
            self.view().ok(self.block_size() as int),
            self.view().nodes.len() < NONE,
            self.view().prefixes.len() <= u64::MAX,
    {
    }

    pub open(super) spec fn sizes_ok(&self) -> bool {
        let n = self.state@.nodes.len();
        &&& n < NONE
        &&& self.block_size >= 1
        &&& self.id@.len() == n
        &&& self.parent@.len() == n
        &&& self.salt@.len() == n
        &&& self.chain@.len() == n
        &&& self.bucket@.len() == n
        &&& self.tokens@.len() == n * self.block_size
        &&& self.heads@.len() == self.chains@.len()
        &&& self.heads@.len() == self.mask + 1
        &&& self.mask < NONE
    }

    /// The tokens stored for block `b`.
    pub open(super) spec fn stored(&self, b: int) -> Seq<u32> {
        self.tokens@.subrange(b * self.block_size, b * self.block_size + self.block_size)
    }

    /// Block `b`'s entries of the arrays are its node.
    pub open(super) spec fn node_stored(&self, b: int) -> bool {
        match self.state@.nodes[b] {
            None => self.id@[b] == 0,
            Some(x) => {
                &&& self.id@[b] == x.id
                &&& self.parent@[b] == x.parent
                &&& self.salt@[b] == x.salt
                &&& self.stored(b) == x.toks
                &&& self.bucket@[b] == key_bucket(self.mask, x)
            },
        }
    }

    /// Bucket `k` is a chain of its nodes.
    pub open(super) spec fn bucket_ok(&self, k: int) -> bool {
        &&& chain_ok(self.chains@[k], self.heads@[k], self.chain@)
        &&& members_ok(self.chains@[k], self.state@.nodes, self.bucket@, k)
    }

    /// Every node is in the chain of its bucket.
    pub open(super) spec fn chains_complete(&self) -> bool {
        forall|b: int|
            0 <= b < self.state@.nodes.len() && (#[trigger] self.state@.nodes[b]) is Some
                ==> self.bucket@[b] < self.chains@.len()
                && self.chains@[self.bucket@[b] as int].contains(b as u32)
    }
}

} // verus!
