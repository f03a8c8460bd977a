//! Giving back what the window has left.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof::*;
#[cfg(verus_only)]
use super::proof_slide::*;
#[cfg(verus_only)]
use super::proof_steps::*;
#[cfg(verus_only)]
use super::spec::*;
use super::LayerGroup;
use vstd::prelude::*;

verus! {

impl LayerGroup {
    /// How many positions, its own included, a row sees; 0: all up to its own.
    pub fn count_window(&self) -> (n: usize)
        ensures
            n == self.window(),
    {
        self.window
    }

    /// Whether `seat` has given any block back.
    pub fn has_slid(&self, seat: usize) -> (slid: bool)
        requires
            self.inv(),
            seat < self.seats(),
        ensures
            slid == (self.seat(seat as int).freed > 0),
    {
        self.freed[seat] > 0
    }

    /// Gives back the first `n` blocks of `seat`, but not its last sealed one. They stay in its
    /// table, and in the prefix tree if they are registered.
    pub fn slide(&mut self, seat: usize, n: usize)
        requires
            old(self).inv(),
            seat < old(self).seats(),
        ensures
            final(self).same_but(old(self), seat as int),
            final(self).same_cached(old(self)),
            final(self).num_free() >= old(self).num_free(),
            final(self).updates() == old(self).updates(),
            slid(old(self).seat(seat as int), final(self).seat(seat as int), n as nat),
    {
        let ghost was = *self;
        let ghost st = self.state();
        let ghost s = seat as int;
        while self.freed[seat] < n && self.freed[seat] + 1 < self.sealed[seat]
            invariant
                st == was.state(),
                s == seat,
                self.touched(&was, s),
                self.updates() == was.updates(),
                self.state() == (State { freed: self.freed@, pool: self.state().pool, ..st }),
                self.state().pool.order.len() >= st.pool.order.len(),
                st.freed[s] <= self.freed@[s],
                self.freed@[s] <= n || self.freed@[s] == st.freed[s],
            decreases self.sealed@[s] - self.freed@[s],
        {
            let ghost before = self.state();
            self.slide_one(seat);
            proof {
                assert(before.slide(s).freed =~= st.freed.update(s, self.freed@[s]));
            }
        }
        proof {
            lemma_others(st, self.state(), s);
            lemma_slid_view(st, self.state(), s);
        }
    }

    /// Gives back the first block.
    fn slide_one(&mut self, seat: usize)
        requires
            old(self).inv(),
            seat < old(self).freed@.len(),
            old(self).freed@[seat as int] + 1 < old(self).sealed@[seat as int],
        ensures
            final(self).stepped(old(self), old(self).state().slide(seat as int)),
            final(self).updates() == old(self).updates(),
            final(self).state().pool.order.len() >= old(self).state().pool.order.len(),
    {
        let ghost st = self.state();
        let first = self.freed[seat];
        proof {
            lemma_slide(st, seat as int);
            assert(st.rows[seat as int].len() >= st.sealed[seat as int]);
        }
        let b = self.tables.get(seat, first);
        self.freed.set(seat, first + 1);
        let registered = self.tree.id(b) != 0;
        self.pool.release(b, registered, Ghost((seat as int, first as int)));
    }
}

} // verus!
