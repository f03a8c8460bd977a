//! Taking blocks that hold what is wanted: of the prefix tree, or of another seat.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof::*;
#[cfg(verus_only)]
use super::proof_commit::*;
#[cfg(verus_only)]
use super::proof_content::*;
#[cfg(verus_only)]
use super::proof_steps::*;
#[cfg(verus_only)]
use super::proof_writes::*;
#[cfg(verus_only)]
use super::spec::*;
use super::{LayerGroup, NO_ANCHOR};
#[cfg(verus_only)]
use crate::prefix_tree::block_of;
#[cfg(verus_only)]
use crate::prefix_tree::proof::*;
use vstd::prelude::*;

verus! {

impl LayerGroup {
    /// Appends to the empty table of `seat` the registered blocks that hold leading full blocks
    /// of `tokens` under `salt`, at most `max_blocks`; returns how many.
    pub fn attach(&mut self, seat: usize, salt: u64, tokens: &Vec<u32>, max_blocks: usize) -> (k:
        usize)
        requires
            old(self).inv(),
            seat < old(self).seats(),
            old(self).seat(seat as int).table.len() == 0,
        ensures
            final(self).same_but(old(self), seat as int),
            final(self).same_cached(old(self)),
            k == old(self).hit(salt, tokens@, min(max_blocks as int, old(self).row_len() as int)),
            k <= max_blocks,
            k <= final(self).row_len(),
            k * final(self).block_size() <= tokens@.len(),
            final(self).seat(seat as int).table.len() == k,
            final(self).seat(seat as int).sealed == k,
            final(self).seat(seat as int).freed == 0,
            holds(final(self).seat(seat as int), tokens@, k * final(self).block_size()),
            forall|i: int|
                0 <= i < k ==> old(self).cached(
                    #[trigger] final(self).seat(seat as int).table[i] as int,
                ) == Some((salt, tokens@.take((i + 1) * old(self).block_size()))),
            final(self).prefix_cache() ==> final(self).findable(seat as int, salt, tokens@),
            final(self).num_free() + k >= old(self).num_free() >= final(self).num_free(),
            final(self).updates() == old(self).updates() + appended(
                seat as int,
                final(self).seat(seat as int).table,
                0,
                k as int,
            ),
    {
        if !self.prefix_cache {
            return 0;
        }
        let ghost was = *self;
        let ghost st = self.state();
        let ghost s = seat as int;
        let size = self.block_size;
        let row_len = self.tables.max_len();
        let max = if max_blocks <= row_len {
            max_blocks
        } else {
            row_len
        };
        let mut k: usize = 0;
        let mut start: usize = 0;
        let mut parent: u64 = 0;
        let mut found = true;
        assert(k * size == 0) by (nonlinear_arith)
            requires
                k == 0,
        ;
        while found && k < max && tokens.len() - start >= size
            invariant
                st == was.state(),
                s == seat,
                size == st.size,
                max == min(max_blocks as int, st.row_len),
                self.touched(&was, s),
                self.state().tree == st.tree,
                self.state().content == st.content,
                k <= max,
                start == k * size,
                start <= tokens@.len(),
                self.state().rows[s].len() == k,
                self.state().sealed[s] == k,
                self.state().freed[s] == 0,
                parent < st.tree.prefixes.len(),
                st.tree.prefixes[parent as int] == tokens@.take(start as int),
                parent == self.state().anchor[s],
                on_the_way(self.state(), s, salt, tokens@),
                attached(st, self.state().rows[s], salt, tokens@, k as int),
                st.tree.hit(size as int, salt, tokens@, 0, 0, max as int) == if found {
                    st.tree.hit(size as int, salt, tokens@, parent, k as int, max as int)
                } else {
                    k as int
                },
                self.state().pool.order.len() + k >= st.pool.order.len(),
                st.pool.order.len() >= self.state().pool.order.len(),
                self.updates() == was.updates() + appended(s, self.state().rows[s], 0, k as int),
            decreases
                    max - k,
                    if found {
                        1int
                    } else {
                        0int
                    },
        {
            proof {
                lemma_next_block(tokens@, size as int, k as int);
            }
            match self.tree.find(parent, salt, tokens.as_slice(), start) {
                None => {
                    found = false;
                },
                Some(b) => {
                    let ghost before = self.state();
                    proof {
                        lemma_node_anchors(before, b as int);
                        lemma_appended(s, before.rows[s], b, 0);
                    }
                    parent = self.tree.id(b);
                    self.push_held(seat, b, parent);
                    proof {
                        self.tree.lemma_view_ok();
                        lemma_walk_on(st.tree, size as int, b as int, salt, tokens@, k as int);
                        lemma_acquire_len(before.pool, b, (s, k as int));
                        assert(self.updates() =~= was.updates() + appended(
                            s,
                            self.state().rows[s],
                            0,
                            k + 1,
                        ));
                    }
                    k += 1;
                    start += size;
                },
            }
        }
        proof {
            lemma_others(st, self.state(), s);
            lemma_attached_holds(self.state(), self.state().rows[s], salt, tokens@, k as int);
        }
        k
    }

    /// Appends the first `k` blocks of `from`'s table to the empty table of `seat`.
    pub fn share(&mut self, seat: usize, from: usize, k: usize)
        requires
            old(self).inv(),
            seat < old(self).seats(),
            from < old(self).seats(),
            from != seat,
            old(self).seat(seat as int).table.len() == 0,
            k <= old(self).seat(from as int).sealed,
            k > 0 ==> old(self).seat(from as int).freed == 0,
        ensures
            final(self).same_but(old(self), seat as int),
            final(self).same_cached(old(self)),
            final(self).seat(seat as int).table == old(self).seat(from as int).table.take(k as int),
            final(self).seat(seat as int).sealed == k,
            final(self).seat(seat as int).freed == 0,
            final(self).seat(seat as int).kv == old(self).seat(from as int).kv.take(
                k * old(self).block_size(),
            ),
            final(self).num_free() == old(self).num_free(),
            final(self).num_cached() == old(self).num_cached(),
            final(self).updates() == old(self).updates() + appended(
                seat as int,
                final(self).seat(seat as int).table,
                0,
                k as int,
            ),
    {
        let ghost was = *self;
        let ghost st = self.state();
        let ghost s = seat as int;
        let sealed = self.sealed[from];
        let mut i: usize = 0;
        while i < k
            invariant
                st == was.state(),
                s == seat,
                from < st.rows.len(),
                from != seat,
                i <= k <= sealed,
                sealed == st.sealed[from as int],
                self.touched(&was, s),
                self.state().tree == st.tree,
                self.state().content == st.content,
                self.state().rows[s] == st.rows[from as int].take(i as int),
                self.state().sealed[s] == i,
                self.state().freed[s] == 0,
                k > 0 ==> st.freed[from as int] == 0,
                self.state().pool.order == st.pool.order,
                self.state().pool.plain == st.pool.plain,
                self.updates() == was.updates() + appended(s, self.state().rows[s], 0, i as int),
            decreases k - i,
        {
            let b = self.tables.get(from, i);
            let ghost before = self.state();
            let id = self.tree.id(b);
            let anchor = if id != 0 {
                proof {
                    lemma_node_anchors(before, b as int);
                }
                id
            } else if i + 1 == sealed {
                self.anchor[from]
            } else {
                NO_ANCHOR
            };
            self.push_held(seat, b, anchor);
            i += 1;
        }
        proof {
            lemma_others(st, self.state(), s);
            lemma_kv_prefix(st.content, self.state().rows[s], st.rows[from as int], st.size, 0);
            lemma_none_freed(self.state(), s);
            if k > 0 {
                lemma_none_freed(st, from as int);
            } else {
                let held = self.state().rows[s].len();
                assert(k * st.size == 0 && held * st.size == 0) by (nonlinear_arith)
                    requires
                        k == 0,
                        held == 0,
                ;
                assert(self.seat(s).kv =~= was.seat(from as int).kv.take(k * st.size));
            }
        }
    }
}

} // verus!
