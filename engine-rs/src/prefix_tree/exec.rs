//! Making a tree, and looking blocks up: constant time, but for the length of a bucket.
use super::hash::*;
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof::*;
#[cfg(verus_only)]
use super::proof_arrays::*;
#[cfg(verus_only)]
use super::{Node, TreeView};
use super::{PrefixTree, NONE};
use vstd::prelude::*;

verus! {

impl PrefixTree {
    /// No nodes, for `n` blocks of `block_size` tokens, and `mask + 1` buckets.
    pub fn new(n: u32, block_size: usize, mask: u32) -> (tree: Self)
        requires
            n < NONE,
            mask < NONE,
            block_size >= 1,
            n * block_size <= usize::MAX,
        ensures
            tree.inv(),
            tree.block_size() == block_size,
            tree.view().nodes == Seq::new(n as nat, |b: int| None::<Node>),
            tree.view().prefixes == seq![Seq::<u32>::empty()],
    {
        let size = n as usize;
        let buckets = mask as usize + 1;
        let state = Ghost(
            TreeView {
                nodes: Seq::new(n as nat, |b: int| None::<Node>),
                prefixes: seq![Seq::<u32>::empty()],
            },
        );
        let chains = Ghost(Seq::new(buckets as nat, |k: int| Seq::<u32>::empty()));
        PrefixTree {
            block_size,
            id: vec![0; size],
            parent: vec![0; size],
            salt: vec![0; size],
            chain: vec![NONE; size],
            bucket: vec![0; size],
            tokens: vec![0; size * block_size],
            heads: vec![NONE; buckets],
            mask: mask as u64,
            next_id: 1,
            state,
            chains,
        }
    }

    /// The id of block `b`'s node, 0 when it is not registered.
    pub fn id(&self, b: u32) -> (id: u64)
        requires
            self.inv(),
            b < self.view().nodes.len(),
        ensures
            self.view().nodes[b as int] is None <==> id == 0,
            self.view().nodes[b as int] matches Some(x) ==> id == x.id,
    {
        proof {
            assert(self.node_stored(b as int));
        }
        self.id[b as usize]
    }

    /// The block registered under `parent` and `salt` with the tokens from `start`.
    pub fn find(&self, parent: u64, salt: u64, tokens: &[u32], start: usize) -> (r: Option<u32>)
        requires
            self.inv(),
            start + self.block_size() <= tokens@.len(),
        ensures
            ({
                let toks = tokens@.subrange(start as int, start + self.block_size());
                &&& r is Some <==> self.view().has(parent, salt, toks)
                &&& r matches Some(b) ==> self.view().is_at(b as int, parent, salt, toks)
                    && self.view().find(parent, salt, toks) == b
            }),
    {
        let ghost toks = tokens@.subrange(start as int, start + self.block_size());
        let k = bucket(self.mask, parent, salt, tokens, start, self.block_size) as usize;
        let ghost chain = self.chains@[k as int];
        let ghost mut i: int = 0;
        let mut b = self.heads[k];
        proof {
            assert(self.bucket_ok(k as int));
        }
        while b != NONE
            invariant
                self.inv(),
                self.bucket_ok(k as int),
                k < self.chains@.len(),
                start + self.block_size() <= tokens@.len(),
                toks == tokens@.subrange(start as int, start + self.block_size()),
                chain == self.chains@[k as int],
                0 <= i <= chain.len(),
                b == entry(chain, i),
                forall|j: int|
                    0 <= j < i ==> !self.state@.is_at(
                        #[trigger] chain[j] as int,
                        parent,
                        salt,
                        toks,
                    ),
            decreases chain.len() - i,
        {
            proof {
                assert(chain[i] == b);
            }
            if self.matches(b, parent, salt, tokens, start) {
                proof {
                    lemma_find(self.state@, self.block_size as int, b as int, parent, salt, toks);
                }
                return Some(b);
            }
            b = self.chain[b as usize];
            proof {
                i = i + 1;
            }
        }
        proof {
            assert forall|b: int| !#[trigger] self.state@.is_at(b, parent, salt, toks) by {
                if self.state@.is_at(b, parent, salt, toks) {
                    assert(self.node_stored(b));
                    let j = chain.index_of(b as u32);
                    assert(chain[j] == b as u32);
                }
            }
            assert(!self.state@.has(parent, salt, toks));
        }
        None
    }

    /// Block `b` is the node with this key.
    fn matches(&self, b: u32, parent: u64, salt: u64, tokens: &[u32], start: usize) -> (r: bool)
        requires
            self.inv(),
            b < self.view().nodes.len(),
            self.view().nodes[b as int] is Some,
            start + self.block_size() <= tokens@.len(),
        ensures
            r <==> self.view().is_at(
                b as int,
                parent,
                salt,
                tokens@.subrange(start as int, start + self.block_size()),
            ),
    {
        let ghost toks = tokens@.subrange(start as int, start + self.block_size());
        let i = b as usize;
        proof {
            assert(self.node_stored(b as int));
            lemma_slice(self.state@.nodes.len() as int, self.block_size as int, b as int);
            assert(self.tokens.len() <= usize::MAX && tokens.len() <= usize::MAX);
        }
        if self.parent[i] != parent || self.salt[i] != salt {
            return false;
        }
        let base = i * self.block_size;
        let mut o: usize = 0;
        while o < self.block_size
            invariant
                self.node_stored(b as int),
                self.state@.nodes[b as int] is Some,
                o <= self.block_size,
                base == b * self.block_size,
                base + self.block_size <= self.tokens@.len() <= usize::MAX,
                start + self.block_size <= tokens@.len() <= usize::MAX,
                toks == tokens@.subrange(start as int, start + self.block_size),
                forall|j: int| 0 <= j < o ==> #[trigger] self.stored(b as int)[j] == toks[j],
            decreases self.block_size - o,
        {
            if self.tokens[base + o] != tokens[start + o] {
                proof {
                    assert(self.stored(b as int)[o as int] != toks[o as int]);
                }
                return false;
            }
            o += 1;
        }
        proof {
            assert(self.stored(b as int) =~= toks);
        }
        true
    }
}

} // verus!
