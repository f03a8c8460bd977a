//! Making blocks nodes, and taking them out.
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
    /// Makes block `b` a node with the tokens from `start`, and returns its id; `None`, and nothing
    /// changed, when all ids have been given.
    pub fn register(&mut self, b: u32, parent: u64, salt: u64, tokens: &[u32], start: usize) -> (r:
        Option<u64>)
        requires
            old(self).inv(),
            b < old(self).view().nodes.len(),
            old(self).view().nodes[b as int] is None,
            parent < old(self).view().prefixes.len(),
            start + old(self).block_size() <= tokens@.len(),
            !old(self).view().has(
                parent,
                salt,
                tokens@.subrange(start as int, start + old(self).block_size()),
            ),
        ensures
            final(self).inv(),
            final(self).block_size() == old(self).block_size(),
            r is None <==> old(self).view().prefixes.len() == u64::MAX,
            r is None ==> *final(self) == *old(self),
            r matches Some(id) ==> id == old(self).view().prefixes.len() && final(self).view()
                == old(self).view().register(
                b,
                parent,
                salt,
                tokens@.subrange(start as int, start + old(self).block_size()),
            ),
    {
        if self.next_id == u64::MAX {
            return None;
        }
        let ghost was = *self;
        let ghost toks = tokens@.subrange(start as int, start + self.block_size());
        let id = self.next_id;
        let k = bucket(self.mask, parent, salt, tokens, start, self.block_size);
        let i = b as usize;
        self.copy_tokens(b, tokens, start);
        let ghost copied = *self;
        self.id.set(i, id);
        self.parent.set(i, parent);
        self.salt.set(i, salt);
        self.bucket.set(i, k as u32);
        self.chain.set(i, self.heads[k as usize]);
        self.heads.set(k as usize, b);
        self.next_id = id + 1;
        self.state = Ghost(was.state@.register(b, parent, salt, toks));
        self.chains = Ghost(was.chains@.update(k as int, seq![b] + was.chains@[k as int]));
        proof {
            lemma_register_view(was.state@, self.block_size as int, b, parent, salt, toks);
            assert forall|c: int|
                0 <= c < was.state@.nodes.len() && c != b implies #[trigger] self.stored(c)
                == was.stored(c) by {
                assert(copied.stored(c) == was.stored(c));
            }
            assert(copied.stored(b as int) == toks);
            lemma_register(&was, self, b, parent, salt, toks);
        }
        Some(id)
    }

    /// Stores the tokens from `start` as block `b`'s.
    fn copy_tokens(&mut self, b: u32, tokens: &[u32], start: usize)
        requires
            old(self).inv(),
            b < old(self).view().nodes.len(),
            start + old(self).block_size() <= tokens@.len(),
        ensures
            *final(self) == (PrefixTree { tokens: final(self).tokens, ..*old(self) }),
            final(self).tokens@.len() == old(self).tokens@.len(),
            final(self).stored(b as int) == tokens@.subrange(
                start as int,
                start + old(self).block_size(),
            ),
            forall|c: int|
                0 <= c < old(self).view().nodes.len() && c != b ==> #[trigger] final(self).stored(c)
                    == old(self).stored(c),
    {
        let ghost was = *self;
        let ghost n = self.state@.nodes.len() as int;
        let size = self.block_size;
        proof {
            lemma_slice(n, size as int, b as int);
            assert(self.tokens.len() <= usize::MAX && tokens.len() <= usize::MAX);
        }
        let base = b as usize * size;
        let mut o: usize = 0;
        while o < size
            invariant
                o <= size,
                base == b * size,
                size == was.block_size,
                base + size <= was.tokens@.len() <= usize::MAX,
                start + size <= tokens@.len() <= usize::MAX,
                *self == (PrefixTree { tokens: self.tokens, ..was }),
                self.tokens@.len() == was.tokens@.len(),
                forall|j: int|
                    base <= j < base + o ==> #[trigger] self.tokens@[j] == tokens@[start + j
                        - base],
                forall|j: int|
                    0 <= j < was.tokens@.len() && !(base <= j < base + size)
                        ==> #[trigger] self.tokens@[j] == was.tokens@[j],
            decreases size - o,
        {
            self.tokens.set(base + o, tokens[start + o]);
            o += 1;
        }
        proof {
            assert(self.stored(b as int) =~= tokens@.subrange(start as int, start + size));
            assert forall|c: int| 0 <= c < n && c != b implies #[trigger] self.stored(c)
                == was.stored(c) by {
                lemma_slice(n, size as int, c);
                lemma_slices_apart(size as int, b as int, c);
                assert(self.stored(c) =~= was.stored(c));
            }
        }
    }

    /// Block `b` is no node any more.
    pub fn unregister(&mut self, b: u32)
        requires
            old(self).inv(),
            b < old(self).view().nodes.len(),
            old(self).view().nodes[b as int] is Some,
        ensures
            final(self).inv(),
            final(self).block_size() == old(self).block_size(),
            final(self).view() == old(self).view().unregister(b),
    {
        let ghost was = *self;
        let k = self.bucket[b as usize] as usize;
        let ghost chain = self.chains@[k as int];
        let ghost at = chain.index_of(b);
        let ghost mut i: int = 0;
        proof {
            assert(chain[at] == b);
            assert(self.bucket_ok(k as int));
            assert(chain[0] == self.heads@[k as int]);
        }
        let after = self.chain[b as usize];
        let mut c = self.heads[k];
        if c == b {
            self.heads.set(k, after);
        } else {
            loop
                invariant_except_break
                    c == chain[i],
                    0 <= i < at,
                invariant
                    *self == was,
                    was.inv(),
                    was.bucket_ok(k as int),
                    k < was.chains@.len(),
                    chain == was.chains@[k as int],
                    at < chain.len(),
                    chain[at] == b,
                ensures
                    c == chain[at - 1],
                    at > 0,
                decreases at - i,
            {
                let d = self.chain[c as usize];
                if d == b {
                    break;
                }
                c = d;
                proof {
                    i = i + 1;
                }
            }
            self.chain.set(c as usize, after);
        }
        self.id.set(b as usize, 0);
        self.state = Ghost(was.state@.unregister(b));
        self.chains = Ghost(was.chains@.update(k as int, chain.remove(at)));
        proof {
            lemma_unregister(&was, self, b, at);
        }
    }

    /// No block is a node any more.
    pub fn reset(&mut self)
        requires
            old(self).inv(),
        ensures
            final(self).inv(),
            final(self).block_size() == old(self).block_size(),
            final(self).view() == old(self).view().reset(),
    {
        let size = self.id.len();
        let buckets = self.heads.len();
        self.id = vec![0; size];
        self.heads = vec![NONE; buckets];
        self.state = Ghost(self.state@.reset());
        self.chains = Ghost(Seq::new(buckets as nat, |k: int| Seq::<u32>::empty()));
    }
}

} // verus!
