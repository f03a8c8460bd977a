//! Sealing blocks as their positions are computed.
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
use vstd::prelude::*;

verus! {

impl LayerGroup {
    /// Ghost only: a plan that writes positions `from..to` of `seat` is about to run, so that
    /// what they hold is unknown.
    #[allow(unused_variables)]  // the specification reads them
    pub fn dirty(&mut self, seat: usize, from: usize, to: usize)
        requires
            old(self).inv(),
            seat < old(self).seats(),
            old(self).seat(seat as int).sealed * old(self).block_size() <= from,
            from <= to <= old(self).seat(seat as int).kv.len(),
        ensures
            final(self).same_but(old(self), seat as int),
            final(self).same_cached(old(self)),
            final(self).seat(seat as int).table == old(self).seat(seat as int).table,
            final(self).seat(seat as int).freed == old(self).seat(seat as int).freed,
            final(self).seat(seat as int).kept == old(self).seat(seat as int).kept,
            final(self).seat(seat as int).sealed == old(self).seat(seat as int).sealed,
            final(self).seat(seat as int).kv.len() == old(self).seat(seat as int).kv.len(),
            forall|p: int|
                0 <= p < old(self).seat(seat as int).kv.len() ==> #[trigger] final(self).seat(
                    seat as int,
                ).kv[p] == if from <= p < to {
                    None
                } else {
                    old(self).seat(seat as int).kv[p]
                },
            final(self).num_free() == old(self).num_free(),
            final(self).num_cached() == old(self).num_cached(),
            final(self).updates() == old(self).updates(),
    {
        let ghost st = self.state();
        let ghost f = |p: int| None::<Seq<u32>>;
        proof {
            lemma_put_all(st, seat as int, from as int, to as int, f);
        }
        self.content = Ghost(st.put_all(seat as int, from as int, to as int, f).content);
    }

    /// Positions `from..to` of `seat` now hold the KV of `tokens[from..to]`: seals the blocks that
    /// this fills, and registers them under `salt`.
    #[allow(unused_variables)]  // the specification reads `from`
    pub fn commit(&mut self, seat: usize, salt: u64, tokens: &Vec<u32>, from: usize, to: usize)
        requires
            old(self).inv(),
            seat < old(self).seats(),
            from <= to <= tokens@.len(),
            to <= old(self).seat(seat as int).kv.len(),
            holds(old(self).seat(seat as int), tokens@, from as int),
            old(self).seat(seat as int).sealed == from as nat / old(self).block_size(),
        ensures
            final(self).same_but(old(self), seat as int),
            holds(final(self).seat(seat as int), tokens@, to as int),
            final(self).seat(seat as int).sealed == to as nat / old(self).block_size(),
            final(self).seat(seat as int).table == old(self).seat(seat as int).table,
            final(self).seat(seat as int).freed == old(self).seat(seat as int).freed,
            final(self).seat(seat as int).kept == old(self).seat(seat as int).kept,
            final(self).seat(seat as int).kv.len() == old(self).seat(seat as int).kv.len(),
            forall|p: int|
                to <= p < old(self).seat(seat as int).kv.len() ==> #[trigger] final(self).seat(
                    seat as int,
                ).kv[p] == old(self).seat(seat as int).kv[p],
            forall|b: int| #[trigger]
                final(self).cached(b) == old(self).cached(b) || exists|i: int|
                    {
                        &&& old(self).seat(seat as int).sealed <= i
                        &&& i < final(self).seat(seat as int).sealed
                        &&& b == #[trigger] old(self).seat(seat as int).table[i]
                        &&& old(self).cached(b) is None
                        &&& final(self).cached(b) == Some(
                            (salt, tokens@.take((i + 1) * old(self).block_size())),
                        )
                    },
            !old(self).prefix_cache() ==> final(self).same_cached(old(self)),
            old(self).findable(seat as int, salt, tokens@) && final(self).ids_left()
                ==> final(self).findable(seat as int, salt, tokens@),
            forall|t: u64|
                old(self).rooted(t) && old(self).findable(seat as int, salt, tokens@)
                    ==> #[trigger] final(self).rooted(t),
            final(self).num_free() == old(self).num_free(),
            final(self).num_cached() == old(self).num_cached(),
            final(self).updates() == old(self).updates(),
    {
        let ghost was = *self;
        let ghost st = self.state();
        let ghost s = seat as int;
        let ghost f = |p: int| Some(tokens@.take(p + 1));
        let size = self.block_size;
        let first = self.sealed[seat];
        proof {
            lemma_quotient(from as int, size as int);
            lemma_put_all(st, s, from as int, to as int, f);
        }
        let mut start = first * size;
        self.content = Ghost(st.put_all(s, from as int, to as int, f).content);
        let ghost written = self.state();
        let ghost mut k: int = first as int;
        while to - start >= size
            invariant
                self.inv(),
                s == seat,
                seat < written.rows.len() == written.sealed.len(),
                size == written.size,
                self.prefix_cache == was.prefix_cache,
                self.window == was.window,
                self.updates() == was.updates(),
                self.state().only(written, s),
                self.state().rows == written.rows,
                self.state().freed == written.freed,
                self.state().content == written.content,
                self.state().pool == written.pool,
                self.state().sealed[s] == k,
                first <= k,
                start == k * size,
                start <= to <= tokens@.len(),
                to <= written.rows[s].len() * size,
                holds(seat_view(self.state(), s), tokens@, to as int),
                registered(written, self.state(), s, first as int, k, salt, tokens@),
                !self.prefix_cache ==> self.state().tree == written.tree,
                forall|t: u64|
                    was.rooted(t) && was.findable(s, salt, tokens@) ==> #[trigger] self.rooted(t),
                was.findable(s, salt, tokens@) && self.ids_left() ==> self.findable(
                    s,
                    salt,
                    tokens@,
                ),
            decreases to - start,
        {
            let ghost before = self.state();
            let ghost prior = *self;
            proof {
                lemma_next_block(tokens@, size as int, k);
                assert(k < written.rows[s].len()) by (nonlinear_arith)
                    requires
                        k * size + size <= written.rows[s].len() * size,
                        size >= 1,
                ;
            }
            self.seal_next(seat, salt, tokens, start);
            start += size;
            proof {
                assert forall|t: u64|
                    was.rooted(t) && was.findable(s, salt, tokens@) implies #[trigger] self.rooted(
                    t,
                ) by {
                    assert(prior.rooted(t));
                    assert(self.state().tree.rooted(t));
                }
                lemma_registered(written, before, self.state(), s, first as int, k, salt, tokens@);
                assert(self.state().sealed =~= written.sealed.update(s, self.state().sealed[s]));
                k = k + 1;
            }
        }
        proof {
            lemma_quotient_is(to as int, size as int, k);
            lemma_others(written, self.state(), s);
            assert forall|t: int| t != seat && 0 <= t < st.rows.len() implies #[trigger] self.seat(
                t,
            ) == was.seat(t) by {
                assert(seat_view(self.state(), t) == seat_view(written, t));
                assert(seat_view(written, t) == seat_view(st, t));
            }
            assert forall|b: int| #[trigger]
                self.cached(b) == was.cached(b) || exists|i: int|
                    {
                        &&& was.seat(s).sealed <= i < self.seat(s).sealed
                        &&& b == #[trigger] was.seat(s).table[i]
                        &&& was.cached(b) is None
                        &&& self.cached(b) == Some((salt, tokens@.take((i + 1) * size)))
                    } by {
                assert(cached_as(written, b) == cached_as(st, b));
                if cached_as(self.state(), b) != cached_as(written, b) {
                    let i = choose|i: int|
                        first <= i < k && b == #[trigger] written.rows[s][i] && cached_as(
                            written,
                            b,
                        ) is None && cached_as(self.state(), b) == Some(
                            (salt, tokens@.take((i + 1) * size)),
                        );
                    assert(b == was.seat(s).table[i]);
                }
            }
        }
    }
}

} // verus!
