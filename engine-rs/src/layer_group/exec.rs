//! The operations of a layer group.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof::*;
#[cfg(verus_only)]
use super::proof_content::*;
#[cfg(verus_only)]
use super::proof_steps::*;
#[cfg(verus_only)]
use super::proof_writes::*;
#[cfg(verus_only)]
use super::spec::*;
use super::{BlockTables, LayerGroup, NO_ANCHOR};
use crate::block_pool::BlockPool;
#[cfg(verus_only)]
use crate::prefix_tree::block_of;
use crate::prefix_tree::PrefixTree;
use vstd::prelude::*;

verus! {

impl LayerGroup {
    /// All tables empty, all blocks free. `window`: how many positions, its own included, a row
    /// sees, or 0. `prefix_cache`: register full blocks for reuse.
    pub fn new(
        num_blocks: u32,
        block_size: u32,
        seats: u32,
        row_len: u32,
        window: u32,
        prefix_cache: bool,
    ) -> (g: Self)
        requires
            num_blocks >= 1,
            block_size >= 1,
            num_blocks * block_size < 0xffff_ffff,
            seats * row_len <= 0xffff_ffff,
        ensures
            g.created(num_blocks, block_size, seats, row_len, window, prefix_cache),
    {
        Self::with_buckets(
            num_blocks,
            block_size,
            seats,
            row_len,
            window,
            prefix_cache,
            mask_for(num_blocks),
        )
    }

    /// As `new`, with `mask + 1` buckets in the prefix tree: tests force collisions with 0.
    pub(crate) fn with_buckets(
        num_blocks: u32,
        block_size: u32,
        seats: u32,
        row_len: u32,
        window: u32,
        prefix_cache: bool,
        mask: u32,
    ) -> (g: Self)
        requires
            num_blocks >= 1,
            block_size >= 1,
            num_blocks * block_size < 0xffff_ffff,
            seats * row_len <= 0xffff_ffff,
            mask < 0xffff_ffff,
        ensures
            g.created(num_blocks, block_size, seats, row_len, window, prefix_cache),
    {
        let size = block_size as usize;
        let ghost slots = Seq::new(size as nat, |o: int| None::<Seq<u32>>);
        let content = Ghost(Seq::new(num_blocks as nat, |b: int| slots));
        let g = LayerGroup {
            pool: BlockPool::new(num_blocks),
            tree: PrefixTree::new(num_blocks, size, mask),
            tables: BlockTables::new(seats, row_len),
            freed: vec![0; seats as usize],
            sealed: vec![0; seats as usize],
            anchor: vec![0; seats as usize],
            block_size: size,
            window: window as usize,
            prefix_cache,
            content,
        };
        proof {
            g.pool.lemma_view_ok();
            assert forall|s: int| 0 <= s < seats implies (#[trigger] g.seat(s)).kv.len() == 0 by {
                assert(g.state().rows[s].len() * g.state().size == 0) by (nonlinear_arith)
                    requires
                        g.state().rows[s].len() == 0,
                ;
            }
        }
        g
    }

    /// Number of leading full blocks of `tokens`, at most `max_blocks`, that `attach` would find.
    pub fn lookup(&self, salt: u64, tokens: &Vec<u32>, max_blocks: usize) -> (k: usize)
        requires
            self.inv(),
        ensures
            k == self.hit(salt, tokens@, max_blocks as int),
            k <= max_blocks,
            k * self.block_size() <= tokens@.len(),
    {
        if !self.prefix_cache {
            return 0;
        }
        let size = self.block_size;
        let mut k: usize = 0;
        let mut start: usize = 0;
        let mut parent: u64 = 0;
        while k < max_blocks && tokens.len() - start >= size
            invariant
                self.inv(),
                self.prefix_cache,
                size == self.block_size,
                k <= max_blocks,
                start == k * size,
                start <= tokens@.len(),
                self.tree.view().hit(size as int, salt, tokens@, 0, 0, max_blocks as int)
                    == self.tree.view().hit(
                    size as int,
                    salt,
                    tokens@,
                    parent,
                    k as int,
                    max_blocks as int,
                ),
            decreases max_blocks - k,
        {
            proof {
                lemma_block_end(k as int, k + 1, size as int);
            }
            match self.tree.find(parent, salt, tokens.as_slice(), start) {
                None => {
                    return k;
                },
                Some(b) => {
                    parent = self.tree.id(b);
                    k += 1;
                    start += size;
                },
            }
        }
        k
    }

    /// Empties the prefix tree. Tables stay; the seats that hold blocks register no more.
    pub fn reset(&mut self)
        requires
            old(self).inv(),
        ensures
            final(self).same_but(old(self), -1),
            forall|b: int| #[trigger] final(self).cached(b) is None,
            forall|t: u64| #[trigger] final(self).rooted(t),
            final(self).num_free() == old(self).num_free(),
            final(self).num_cached() == 0,
            final(self).updates() == old(self).updates(),
    {
        let ghost st = self.state();
        self.pool.forget();
        self.tree.reset();
        let ghost emptied = *self;
        let seats = self.anchor.len();
        let mut s: usize = 0;
        while s < seats
            invariant
                seats == st.anchor.len() == st.rows.len() == self.anchor@.len(),
                s <= seats,
                self.tables.inv(),
                self.tables.rows() == st.rows,
                *self == (LayerGroup { anchor: self.anchor, ..emptied }),
                emptied.tables.inv(),
                emptied.tables.rows() == st.rows,
                forall|t: int| 0 <= t < s ==> #[trigger] self.anchor@[t] == st.reset().anchor[t],
            decreases seats - s,
        {
            let anchor = if self.tables.len(s) > 0 {
                NO_ANCHOR
            } else {
                0
            };
            self.anchor.set(s, anchor);
            s += 1;
        }
    }

    pub fn table_len(&self, seat: usize) -> (n: usize)
        requires
            self.inv(),
            seat < self.seats(),
        ensures
            n == self.seat(seat as int).table.len(),
    {
        self.tables.len(seat)
    }

    pub fn table_entry(&self, seat: usize, i: usize) -> (b: u32)
        requires
            self.inv(),
            seat < self.seats(),
            i < self.seat(seat as int).table.len(),
        ensures
            b == self.seat(seat as int).table[i as int],
            b < self.num_blocks(),
    {
        self.tables.get(seat, i)
    }

    /// Blocks that nobody holds, those in the prefix tree included.
    pub fn count_free(&self) -> (n: u32)
        requires
            self.inv(),
        ensures
            n == self.num_free(),
    {
        self.pool.free()
    }

    /// Blocks that nobody holds and the prefix tree can still give back.
    pub fn count_cached(&self) -> (n: u32)
        requires
            self.inv(),
        ensures
            n == self.num_cached(),
    {
        self.pool.reusable()
    }

    /// Blocks of the pool.
    pub fn count_blocks(&self) -> (n: u32)
        requires
            self.inv(),
        ensures
            n == self.num_blocks(),
    {
        self.pool.total()
    }

    /// Logs the whole table of `seat` once more, for a caller that may have lost updates.
    pub fn relog(&mut self, seat: usize)
        requires
            old(self).inv(),
            seat < old(self).seats(),
        ensures
            final(self).same_but(old(self), -1),
            final(self).same_cached(old(self)),
            final(self).num_free() == old(self).num_free(),
            final(self).num_cached() == old(self).num_cached(),
            final(self).updates() == old(self).updates() + appended(
                seat as int,
                old(self).seat(seat as int).table,
                0,
                old(self).seat(seat as int).table.len() as int,
            ),
    {
        let ghost was = *self;
        let len = self.tables.len(seat);
        let mut i: usize = 0;
        while i < len
            invariant
                was.inv(),
                seat < was.tables.rows().len(),
                i <= len == was.tables.rows()[seat as int].len(),
                self.tables.inv(),
                self.tables.rows() == was.tables.rows(),
                self.tables.row_len() == was.tables.row_len(),
                *self == (LayerGroup { tables: self.tables, ..was }),
                self.updates() == was.updates() + appended(
                    seat as int,
                    was.tables.rows()[seat as int],
                    0,
                    i as int,
                ),
            decreases len - i,
        {
            self.tables.relog(seat, i);
            i += 1;
        }
    }

    /// Table entries appended since the last call, in order: `(seats, indices, blocks)`.
    pub fn take_updates(&mut self) -> (u: (Vec<u32>, Vec<u32>, Vec<u32>))
        requires
            old(self).inv(),
        ensures
            final(self).same_but(old(self), -1),
            final(self).same_cached(old(self)),
            final(self).num_free() == old(self).num_free(),
            final(self).num_cached() == old(self).num_cached(),
            final(self).updates().len() == 0,
            u.0@.len() == old(self).updates().len(),
            u.1@.len() == old(self).updates().len(),
            u.2@.len() == old(self).updates().len(),
            forall|i: int|
                0 <= i < u.0@.len() ==> {
                    &&& u.0@[i] == (#[trigger] old(self).updates()[i]).seat
                    &&& u.1@[i] == old(self).updates()[i].index
                    &&& u.2@[i] == old(self).updates()[i].block
                },
    {
        self.tables.take_log()
    }
}

/// Buckets for `n` blocks, less one: a power of two, `n` or more, and no more than that takes.
fn mask_for(n: u32) -> (mask: u32)
    ensures
        mask <= 0x7fff_ffff,
        n <= mask + 1 || mask >= 0x4000_0000,
        mask + 1 < 2 * n || mask == 0,
{
    let mut mask: u32 = 0;
    while mask + 1 < n && mask < 0x4000_0000
        invariant
            mask <= 0x7fff_ffff,
            mask + 1 < 2 * n || mask == 0,
        decreases 0x7fff_ffff - mask,
    {
        mask = mask * 2 + 1;
    }
    mask
}

} // verus!
