//! Taking fresh blocks, and giving blocks back.
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
use super::LayerGroup;
#[cfg(verus_only)]
use crate::prefix_tree::block_of;
#[cfg(verus_only)]
use crate::prefix_tree::proof::*;
use vstd::prelude::*;

verus! {

impl LayerGroup {
    /// Makes the table of `seat` at least `n` blocks long with fresh blocks, the least recently
    /// used first; `false`, and nothing changed, when too few are free.
    pub fn grow(&mut self, seat: usize, n: usize) -> (ok: bool)
        requires
            old(self).inv(),
            seat < old(self).seats(),
            n <= old(self).row_len(),
        ensures
            ok <==> n <= old(self).seat(seat as int).table.len() + old(self).num_free(),
            !ok ==> *final(self) == *old(self),
            final(self).same_but(old(self), seat as int),
            ok ==> ({
                let v = old(self).seat(seat as int);
                let w = final(self).seat(seat as int);
                let m = v.table.len() as int;
                &&& w.table.len() == if n >= m {
                    n as int
                } else {
                    m
                }
                &&& w.table.take(m) == v.table
                &&& w.sealed == v.sealed
                &&& w.freed == v.freed && w.kept == v.kept
                &&& w.kv.len() == w.table.len() * old(self).block_size()
                &&& v.kv.len() <= w.kv.len()
                &&& w.kv.take(v.kv.len() as int) == v.kv
                &&& final(self).num_free() == old(self).num_free() - (w.table.len() - m)
                &&& final(self).updates() == old(self).updates() + appended(
                    seat as int,
                    w.table,
                    m,
                    w.table.len() as int,
                )
                &&& w.table.len() - m <= old(self).num_free() - old(self).num_cached() ==> {
                    &&& final(self).same_cached(old(self))
                    &&& final(self).num_cached() == old(self).num_cached()
                }
                &&& forall|b: int|
                    (#[trigger] final(self).cached(b)) == old(self).cached(b) || (
                    final(self).cached(b) is None && w.table.skip(m).contains(b as u32))
            }),
    {
        let len = self.tables.len(seat);
        if n > len && n - len > self.pool.free() as usize {
            return false;
        }
        let ghost was = *self;
        let ghost st = self.state();
        let ghost s = seat as int;
        let ghost m = len as int;
        let mut i = len;
        while i < n
            invariant
                st == was.state(),
                s == seat,
                m == st.rows[s].len(),
                m <= i,
                n <= st.row_len,
                i > m ==> i <= n,
                n > m ==> n - m <= st.pool.order.len(),
                self.touched(&was, s),
                self.state().content == st.content,
                self.state().sealed == st.sealed,
                self.state().freed == st.freed,
                self.state().rows[s].len() == i,
                self.state().rows[s].take(m) == st.rows[s],
                self.state().pool.order.len() == st.pool.order.len() - (i - m),
                self.updates() == was.updates() + appended(s, self.state().rows[s], m, i as int),
                evicted(st, self.state(), self.state().rows[s].skip(m)),
                i - m <= st.pool.plain ==> {
                    &&& self.state().tree == st.tree
                    &&& self.state().pool.plain == st.pool.plain - (i - m)
                },
            decreases n - i,
        {
            let ghost before = self.state();
            proof {
                lemma_evicted(st, before, s, m);
            }
            self.push_fresh(seat);
            i += 1;
        }
        proof {
            lemma_others(st, self.state(), s);
            lemma_kv_prefix(st.content, st.rows[s], self.state().rows[s], st.size, st.kept(s));
        }
        true
    }

    /// Empties the table of `seat`. Its registered blocks stay in the prefix tree.
    pub fn release(&mut self, seat: usize)
        requires
            old(self).inv(),
            seat < old(self).seats(),
        ensures
            final(self).same_but(old(self), seat as int),
            final(self).same_cached(old(self)),
            final(self).seat(seat as int).table.len() == 0,
            final(self).seat(seat as int).freed == 0,
            final(self).seat(seat as int).sealed == 0,
            final(self).seat(seat as int).kv.len() == 0,
            final(self).num_free() >= old(self).num_free(),
            final(self).updates() == old(self).updates(),
    {
        let ghost was = *self;
        let ghost st = self.state();
        let ghost s = seat as int;
        let freed = self.freed[seat];
        let mut len = self.tables.len(seat);
        while len > 0
            invariant
                st == was.state(),
                s == seat,
                self.touched(&was, s),
                self.state().tree == st.tree,
                self.state().content == st.content,
                self.state().rows[s].len() == len,
                len > 0 ==> self.state().freed[s] == freed,
                self.state().pool.order.len() >= st.pool.order.len(),
                self.updates() == was.updates(),
            decreases len,
        {
            self.pop(seat);
            len =
            if len > freed + 1 {
                len - 1
            } else {
                0
            };
        }
    }
}

} // verus!
