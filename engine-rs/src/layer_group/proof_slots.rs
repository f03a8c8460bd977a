//! What a caller may conclude from a group's invariant: bounds, private slots, counts.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof::*;
#[cfg(verus_only)]
use super::proof_content::*;
#[cfg(verus_only)]
use super::spec::*;
use super::LayerGroup;
#[cfg(verus_only)]
use crate::block_pool::proof::*;
#[cfg(verus_only)]
use crate::block_pool::Holder;
#[cfg(verus_only)]
use crate::prefix_tree::proof::*;
#[cfg(verus_only)]
use crate::prefix_tree::proof_hits::*;
use vstd::prelude::*;

verus! {

impl LayerGroup {
    /// Bounds of a group and of its seat `s`.
    pub proof fn lemma_bounds(&self, s: int)
        requires
            self.inv(),
            0 <= s < self.seats(),
        ensures
            self.block_size() >= 1,
            self.num_blocks() * self.block_size() < 0xffff_ffff,
            self.num_blocks() < 0xffff_ffff,
            self.num_cached() <= self.num_free() <= self.num_blocks(),
            self.seats() * self.row_len() <= 0xffff_ffff,
            self.row_len() <= usize::MAX,
            self.seat(s).table.len() <= self.row_len(),
            self.seat(s).freed <= self.seat(s).sealed <= self.seat(s).table.len(),
            self.seat(s).kept == self.seat(s).freed * self.block_size(),
            self.seat(s).kept <= self.seat(s).sealed * self.block_size(),
            self.seat(s).kv.len() == self.seat(s).table.len() * self.block_size(),
            forall|i: int|
                0 <= i < self.seat(s).table.len() ==> (#[trigger] self.seat(s).table[i])
                    < self.num_blocks(),
    {
        let st = self.state();
        assert(st.rows[s].len() <= st.row_len);
        assert(0 <= st.freed[s] * st.size <= st.sealed[s] * st.size) by (nonlinear_arith)
            requires
                0 <= st.freed[s] <= st.sealed[s],
                st.size >= 1,
        ;
        self.tables.lemma_bounds();
        lemma_counts(st.pool);
    }

    /// A slot is one of the pool's.
    pub proof fn lemma_slot_in_range(&self, s: int, p: int)
        requires
            self.inv(),
            0 <= s < self.seats(),
            0 <= p < self.seat(s).kv.len(),
        ensures
            0 <= p / self.block_size() as int,
            p / (self.block_size() as int) < self.seat(s).table.len(),
            0 <= slot(self.seat(s), self.block_size(), p) < self.num_blocks() * self.block_size(),
    {
        let st = self.state();
        lemma_place(p, st.size, st.rows[s].len() as int);
        lemma_block_end(st.rows[s][p / st.size] as int, st.n() as int, st.size);
    }

    /// A slot past a seat's sealed blocks is that of no other position of any seat, but for those
    /// given back.
    pub proof fn lemma_slot_private(&self, s: int, p: int, s2: int, p2: int)
        requires
            self.inv(),
            0 <= s < self.seats(),
            0 <= s2 < self.seats(),
            self.seat(s).sealed * self.block_size() <= p < self.seat(s).kv.len(),
            self.seat(s2).kept <= p2 < self.seat(s2).kv.len(),
            (s, p) != (s2, p2),
        ensures
            slot(self.seat(s), self.block_size(), p) != slot(self.seat(s2), self.block_size(), p2),
    {
        let st = self.state();
        let size = st.size;
        let sealed = st.sealed[s] as int;
        assert(0 <= sealed * size) by (nonlinear_arith)
            requires
                sealed >= 0,
                size >= 1,
        ;
        lemma_place(p, size, st.rows[s].len() as int);
        lemma_place(p2, size, st.rows[s2].len() as int);
        let i = p / size;
        let j = p2 / size;
        assert(sealed <= i) by (nonlinear_arith)
            requires
                sealed * size <= p,
                p == i * size + p % size,
                p % size < size,
                size >= 1,
        ;
        assert(st.entry(s, i) && st.private(s, i));
        lemma_kept(p2, size, st.freed[s2] as int);
        assert(st.entry(s2, j));
        assert(st.pool.holders[st.rows[s2][j] as int].contains((s2, j)));
        if st.rows[s][i] != st.rows[s2][j] {
            let (b, c) = (st.rows[s][i] as int, st.rows[s2][j] as int);
            let (o, q) = (p % size, p2 % size);
            assert(b * size + o != c * size + q) by (nonlinear_arith)
                requires
                    b != c,
                    0 <= o < size,
                    0 <= q < size,
            ;
        }
    }

    /// A block past a seat's sealed ones is not cached, and no other entry of any table has it.
    pub proof fn lemma_block_private(&self, s: int, i: int)
        requires
            self.inv(),
            0 <= s < self.seats(),
            self.seat(s).sealed <= i < self.seat(s).table.len(),
        ensures
            self.cached(self.seat(s).table[i] as int) is None,
            forall|t: int, j: int|
                #![trigger self.seat(t).table[j]]
                0 <= t < self.seats() && self.seat(t).freed <= j < self.seat(t).table.len() && (
                    t,
                    j,
                ) != (s, i) ==> self.seat(t).table[j] != self.seat(s).table[i],
    {
    }

    /// Free and referenced blocks are all blocks.
    pub proof fn lemma_total(&self)
        requires
            self.inv(),
        ensures
            self.num_free() + self.referenced().len() == self.num_blocks(),
    {
        let st = self.state();
        lemma_counts(st.pool);
        assert forall|b: int| #[trigger]
            self.referenced().contains(b) <==> held(st.pool).contains(b) by {
            if held(st.pool).contains(b) {
                if forall|h: Holder| !#[trigger] st.pool.holders[b].contains(h) {
                    assert(st.pool.holders[b] =~= Set::<Holder>::empty());
                }
                let h = choose|h: Holder| #[trigger] st.pool.holders[b].contains(h);
                assert(self.lists(h.0, h.1, b));
            }
        }
        assert(self.referenced() =~= held(st.pool));
    }

    /// When all other tables are empty, all blocks but those of seat `s` are free.
    pub proof fn lemma_alone(&self, s: int)
        requires
            self.inv(),
            0 <= s < self.seats(),
            forall|t: int|
                0 <= t < self.seats() && t != s ==> (#[trigger] self.seat(t)).table.len() == 0,
        ensures
            self.num_free() + self.seat(s).table.len() >= self.num_blocks(),
    {
        self.lemma_total();
        let table = self.seat(s).table;
        let f = |b: u32| b as int;
        let mine = table.to_set().map(f);
        table.lemma_cardinality_of_set();
        vstd::set_lib::lemma_map_size_bound(table.to_set(), mine, f);
        assert(self.referenced().subset_of(mine)) by {
            assert forall|b: int| #[trigger] self.referenced().contains(b) implies mine.contains(
                b,
            ) by {
                let (t, i) = choose|t: int, i: int| #[trigger] self.lists(t, i, b);
                assert(self.seat(t).table.len() > 0);
                assert(table[i] == b);
                assert(table.to_set().contains(table[i]));
                assert(mine.contains(f(table[i])));
            }
        }
        vstd::set_lib::lemma_len_subset(self.referenced(), mine);
    }

    /// The next blocks sealed by an empty seat can be found.
    pub proof fn lemma_empty_findable(&self, s: int, salt: u64, toks: Seq<u32>)
        requires
            self.inv(),
            0 <= s < self.seats(),
            self.seat(s).table.len() == 0,
            self.prefix_cache(),
        ensures
            self.findable(s, salt, toks),
    {
    }

    /// Isolation: two groups that have registered the same prefixes of a salt, and have evicted
    /// none of their parents, answer its lookups alike, whatever other salts did.
    pub proof fn lemma_hits_isolated(&self, other: &LayerGroup, salt: u64, toks: Seq<u32>, max: int)
        requires
            self.inv(),
            other.inv(),
            self.block_size() == other.block_size(),
            self.prefix_cache() == other.prefix_cache(),
            self.rooted(salt),
            other.rooted(salt),
            max >= 0,
            forall|prefix: Seq<u32>| #[trigger]
                self.has_cached(salt, prefix) <==> other.has_cached(salt, prefix),
        ensures
            self.hit(salt, toks, max) == other.hit(salt, toks, max),
    {
        let v = self.tree.view();
        let w = other.tree.view();
        self.lemma_has_cached(salt);
        other.lemma_has_cached(salt);
        assert forall|prefix: Seq<u32>| #[trigger]
            has_prefix(v, salt, prefix) <==> has_prefix(w, salt, prefix) by {
            assert(self.has_cached(salt, prefix) <==> other.has_cached(salt, prefix));
        }
        lemma_hits_equal(v, w, self.block_size as int, salt, toks, max);
    }

    proof fn lemma_has_cached(&self, salt: u64)
        requires
            self.inv(),
        ensures
            forall|prefix: Seq<u32>| #[trigger]
                self.has_cached(salt, prefix) <==> has_prefix(self.tree.view(), salt, prefix),
    {
        let v = self.tree.view();
        assert forall|prefix: Seq<u32>| #[trigger]
            self.has_cached(salt, prefix) <==> has_prefix(v, salt, prefix) by {
            if self.has_cached(salt, prefix) {
                let b = choose|b: int| #[trigger] self.cached(b) == Some((salt, prefix));
                assert(v.ends(b, salt, prefix));
            }
            if has_prefix(v, salt, prefix) {
                let b = choose|b: int| #[trigger] v.ends(b, salt, prefix);
                assert(self.cached(b) == Some((salt, prefix)));
            }
        }
    }

    /// What can be found is.
    pub proof fn lemma_findable_hit(&self, s: int, salt: u64, toks: Seq<u32>)
        requires
            self.inv(),
            0 <= s < self.seats(),
            self.findable(s, salt, toks),
            self.seat(s).sealed * self.block_size() <= toks.len(),
        ensures
            self.hit(salt, toks, self.seat(s).sealed as int) == self.seat(s).sealed,
    {
        let k = self.seat(s).sealed as int;
        lemma_walk_hit(self.tree.view(), self.block_size as int, salt, toks, k, k);
    }
}

} // verus!
