//! The single steps that the operations are made of, each the abstract step of its name.
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
#[cfg(verus_only)]
use crate::prefix_tree::proof_hits::*;
use vstd::prelude::*;

verus! {

impl LayerGroup {
    /// `self` is in the state that the step from `old` leads to, and all else is as it was.
    pub open(super) spec fn stepped(&self, old: &LayerGroup, st: State) -> bool {
        &&& self.inv()
        &&& self.state() == st
        &&& self.prefix_cache == old.prefix_cache
        &&& self.window == old.window
    }

    /// Since `was` nothing changed but seat `s`, up to anchors and content.
    pub open(super) spec fn touched(&self, was: &LayerGroup, s: int) -> bool {
        &&& was.inv() && self.inv()
        &&& self.prefix_cache == was.prefix_cache && self.window == was.window
        &&& 0 <= s < was.state().rows.len()
        &&& self.state().only(was.state(), s)
    }

    /// Appends the sealed block `b`; `anchor` is the node of the prefix that it ends.
    pub(super) fn push_held(&mut self, seat: usize, b: u32, anchor: u64)
        requires
            old(self).inv(),
            seat < old(self).tables.rows().len(),
            old(self).tables.rows()[seat as int].len() < old(self).tables.row_len(),
            old(self).sealed@[seat as int] == old(self).tables.rows()[seat as int].len(),
            old(self).state().shareable(b as int),
            old(self).state().anchors(anchor, b as int),
        ensures
            final(self).stepped(old(self), old(self).state().push_held(seat as int, b, anchor)),
            final(self).updates() == old(self).updates().push(
                TableUpdate {
                    seat: seat as u32,
                    index: old(self).tables.rows()[seat as int].len() as u32,
                    block: b,
                },
            ),
    {
        let ghost st = self.state();
        let ghost len = st.rows[seat as int].len() as int;
        proof {
            self.tables.lemma_bounds();
            lemma_push_held(st, seat as int, b, anchor);
        }
        let sealed = self.sealed[seat] + 1;
        self.sealed.set(seat, sealed);
        self.anchor.set(seat, anchor);
        self.tables.push(seat, b);
        self.pool.acquire(b, Ghost((seat as int, len)));
    }

    /// Appends the first free block, evicting what it held.
    pub(super) fn push_fresh(&mut self, seat: usize)
        requires
            old(self).inv(),
            seat < old(self).tables.rows().len(),
            old(self).tables.rows()[seat as int].len() < old(self).tables.row_len(),
            old(self).pool.view().order.len() > 0,
        ensures
            final(self).stepped(old(self), old(self).state().push_fresh(seat as int)),
            final(self).updates() == old(self).updates().push(
                TableUpdate {
                    seat: seat as u32,
                    index: old(self).tables.rows()[seat as int].len() as u32,
                    block: old(self).pool.view().order[0],
                },
            ),
    {
        let ghost st = self.state();
        let ghost len = st.rows[seat as int].len() as int;
        proof {
            lemma_push_fresh(st, seat as int);
        }
        let (b, registered) = self.pool.alloc(Ghost((seat as int, len)));
        if registered {
            self.tree.unregister(b);
        }
        self.tables.push(seat, b);
    }

    /// Gives back the last block.
    pub(super) fn pop(&mut self, seat: usize)
        requires
            old(self).inv(),
            seat < old(self).tables.rows().len(),
            old(self).tables.rows()[seat as int].len() > 0,
        ensures
            final(self).stepped(old(self), old(self).state().pop(seat as int)),
            final(self).updates() == old(self).updates(),
    {
        let ghost st = self.state();
        let ghost len = st.rows[seat as int].len() - 1;
        proof {
            lemma_pop(st, seat as int);
        }
        let b = self.tables.pop(seat);
        let left = self.tables.len(seat);
        if left > self.freed[seat] {
            if self.sealed[seat] > left {
                self.sealed.set(seat, left);
            }
            self.anchor.set(seat, NO_ANCHOR);
        } else {
            self.tables.clear(seat);
            self.freed.set(seat, 0);
            self.sealed.set(seat, 0);
            self.anchor.set(seat, 0);
        }
        let registered = self.tree.id(b) != 0;
        self.pool.release(b, registered, Ghost((seat as int, len)));
        proof {
            assert(self.sealed@ =~= st.pop(seat as int).sealed);
            assert(self.freed@ =~= st.pop(seat as int).freed);
            assert(self.tables.rows() =~= st.pop(seat as int).rows);
        }
    }

    /// Seals the next block of `seat`, which ends the first `start + block_size` of `tokens`, and
    /// registers it under `salt`, unless another block is already.
    pub(super) fn seal_next(&mut self, seat: usize, salt: u64, tokens: &Vec<u32>, start: usize)
        requires
            old(self).inv(),
            seat < old(self).tables.rows().len(),
            old(self).sealed@[seat as int] < old(self).tables.rows()[seat as int].len(),
            start == old(self).sealed@[seat as int] * old(self).block_size,
            start + old(self).block_size <= tokens@.len(),
            holds(old(self).seat(seat as int), tokens@, start + old(self).block_size),
        ensures
            final(self).inv(),
            final(self).prefix_cache == old(self).prefix_cache,
            final(self).window == old(self).window,
            final(self).updates() == old(self).updates(),
            sealed_next(
                old(self).state(),
                final(self).state(),
                seat as int,
                salt,
                tokens@,
                old(self).prefix_cache,
            ),
    {
        let ghost st = self.state();
        let ghost s = seat as int;
        let ghost size = st.size;
        let sealed = self.sealed[seat];
        let b = self.tables.get(seat, sealed);
        let parent = self.anchor[seat];
        let ghost prefix = tokens@.take(start + size);
        let ghost toks = block_of(tokens@, size, sealed as int);
        proof {
            self.tree.lemma_view_ok();
            if on_the_way(st, s, salt, tokens@) {
                lemma_walk_prefix(st.tree, size, salt, tokens@, sealed as int);
            }
            self.tables.lemma_bounds();
            lemma_next_block(tokens@, size, sealed as int);
            assert(st.freed[s] <= sealed);
            lemma_holds_filled(
                st.content,
                st.rows[s],
                st.freed[s] as int,
                tokens@,
                size,
                start + size,
                sealed as int,
            );
            lemma_filled_last(st.content[b as int], prefix, size);
            assert(st.entry(s, sealed as int) && st.private(s, sealed as int));
            if parent != NO_ANCHOR {
                lemma_holds_less(seat_view(st, s), tokens@, start + size, start as int);
                lemma_anchor_prefix(st, s, tokens@);
            }
        }
        self.sealed.set(seat, sealed + 1);
        if !self.prefix_cache || parent == NO_ANCHOR {
            self.anchor.set(seat, NO_ANCHOR);
            return;
        }
        match self.tree.find(parent, salt, tokens.as_slice(), start) {
            Some(twin) => {
                let id = self.tree.id(twin);
                self.anchor.set(seat, id);
            },
            None => {
                proof {
                    lemma_seal(st, s, NO_ANCHOR);
                }
                match self.tree.register(b, parent, salt, tokens.as_slice(), start) {
                    Some(id) => {
                        proof {
                            let st2 = st.seal(s, NO_ANCHOR);
                            lemma_register_step(st2, b, parent, salt, toks, (s, sealed as int));
                            lemma_set_anchor(st2.register(b, parent, salt, toks), s, id);
                            let now = st2.register(b, parent, salt, toks).set_anchor(s, id);
                            assert(now.anchor =~= st.anchor.update(s, id));
                            assert forall|t: u64|
                                st.tree.rooted(t) && on_the_way(
                                    st,
                                    s,
                                    salt,
                                    tokens@,
                                ) implies #[trigger] now.tree.rooted(t) by {
                                lemma_register_rooted(st.tree, size, b, parent, salt, toks, t);
                            }
                            if on_the_way(st, s, salt, tokens@) {
                                let k = sealed as int;
                                lemma_walk_register(
                                    st.tree,
                                    size,
                                    b,
                                    parent,
                                    salt,
                                    toks,
                                    salt,
                                    tokens@,
                                    k,
                                );
                                assert(now.tree.is_at(b as int, parent, salt, toks));
                                lemma_walk_on(now.tree, size, b as int, salt, tokens@, k);
                            }
                        }
                        self.anchor.set(seat, id);
                    },
                    None => {
                        self.anchor.set(seat, NO_ANCHOR);
                    },
                }
            },
        }
    }
}

} // verus!
