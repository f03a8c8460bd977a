//! A cancelled plan may have taken block table updates with it that its runner never applied: they
//! are given out again with the next plan.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// Every entry of every table that is in use goes out with the next plan.
    pub fn relog(&mut self)
        requires
            old(self).inv(),
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            final(self).groups@.len() == old(self).groups@.len(),
            forall|t: Tables| #[trigger]
                mirrors(final(self).groups@, t) <==> t.len() == final(self).groups@.len(),
    {
        let ghost before = *self;
        let mut k: usize = 0;
        proof {
            lemma_refines_self(*self);
        }
        while k < self.running.len()
            invariant
                self.inv(),
                refines(before, *self),
                self.groups@.len() == before.groups@.len(),
                *self == (Scheduler { groups: self.groups, ..before }),
                k <= self.running@.len(),
                forall|m: int|
                    0 <= m < k ==> self.relogged(
                        self.seqs@[(#[trigger] self.running@[m]) as int].seat as int,
                    ),
            decreases self.running@.len() - k,
        {
            assert(self.seqs@[self.running@[k as int] as int].live());
            let seat = self.seqs[self.running[k] as usize].seat;
            let ghost prev = *self;
            self.relog_seat(seat);
            proof {
                lemma_refines_trans(before, prev, *self);
                assert forall|m: int| 0 <= m < k + 1 implies self.relogged(
                    self.seqs@[(#[trigger] self.running@[m]) as int].seat as int,
                ) by {
                    assert(self.seqs@[self.running@[m] as int].live());
                    let s = self.seqs@[self.running@[m] as int].seat as int;
                    if m < k {
                        assert(prev.relogged(s));
                        prev.lemma_still_relogged(*self, s);
                    }
                }
            }
            k += 1;
        }
        proof {
            self.lemma_all_relogged();
        }
    }

    /// Whatever a runner's tables hold, the next updates make the tables of this seat of it.
    pub open spec fn relogged(&self, s: int) -> bool {
        forall|g: int, t: spec_fn(int, int) -> int|
            0 <= g < self.groups@.len() ==> #[trigger] mirrors_seat(self.groups@[g], t, s)
    }

    proof fn lemma_still_relogged(&self, b: Scheduler, s: int)
        requires
            self.inv(),
            0 <= s < self.config.max_seqs,
            self.relogged(s),
            all_logged(self.groups@, b.groups@),
        ensures
            b.relogged(s),
    {
        assert forall|g: int, t: spec_fn(int, int) -> int|
            0 <= g < b.groups@.len() implies #[trigger] mirrors_seat(b.groups@[g], t, s) by {
            assert(logged(self.groups@[g], b.groups@[g]));
            assert(mirrors_seat(self.groups@[g], t, s));
        }
    }

    /// A seat that is not free has a sequence.
    proof fn lemma_seat_taken(&self, s: u32) -> (m: int)
        requires
            self.inv(),
            s < self.config.max_seqs,
            !self.free_seats@.contains(s),
        ensures
            0 <= m < self.running@.len(),
            self.seqs@[self.running@[m] as int].seat == s,
    {
        let taken = Seq::new(
            self.running@.len(),
            |m: int| self.seqs@[self.running@[m] as int].seat,
        );
        let all = self.free_seats@ + taken;
        let (free, last) = (self.free_seats@.len() as int, all[all.len() - 1]);
        if s != last {
            lemma_all_but_one(all.drop_last(), self.config.max_seqs as int, last, s);
        }
        let k = if s == last {
            all.len() - 1
        } else {
            all.drop_last().index_of(s)
        };
        assert(k < free ==> self.free_seats@.contains(self.free_seats@[k]));
        k - free
    }

    /// Seats without a sequence have no table.
    proof fn lemma_all_relogged(&self)
        requires
            self.inv(),
            forall|m: int|
                0 <= m < self.running@.len() ==> self.relogged(
                    self.seqs@[(#[trigger] self.running@[m]) as int].seat as int,
                ),
        ensures
            forall|t: Tables| #[trigger]
                mirrors(self.groups@, t) <==> t.len() == self.groups@.len(),
    {
        assert forall|t: Tables| t.len() == self.groups@.len() implies #[trigger] mirrors(
            self.groups@,
            t,
        ) by {
            assert forall|g: int, s: int|
                0 <= g < self.groups@.len() && 0 <= s
                    < self.groups@[g].seats() implies #[trigger] mirrors_seat(
                self.groups@[g],
                t[g],
                s,
            ) by {
                assert(group_ok(self.config, self.groups@[g]));
                if self.free_seats@.contains(s as u32) {
                    let k = self.free_seats@.index_of(s as u32);
                    assert(self.groups@[g].seat(self.free_seats@[k] as int).table.len() == 0);
                } else {
                    let m = self.lemma_seat_taken(s as u32);
                    assert(self.relogged(self.seqs@[self.running@[m] as int].seat as int));
                }
            }
        }
    }

    fn relog_seat(&mut self, seat: u32)
        requires
            old(self).inv(),
            seat < old(self).config.max_seqs,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            final(self).relogged(seat as int),
            all_logged(old(self).groups@, final(self).groups@),
    {
        let ghost before = *self;
        let mut g: usize = 0;
        while g < self.groups.len()
            invariant
                g <= self.groups@.len(),
                seat < before.config.max_seqs,
                *self == (Scheduler { groups: self.groups, ..before }),
                groups_frame(before.config, before.groups@, self.groups@, -1),
                same_cache(before.groups@, self.groups@),
                forall|h: int, t: spec_fn(int, int) -> int|
                    0 <= h < g ==> #[trigger] mirrors_seat(self.groups@[h], t, seat as int),
            decreases self.groups@.len() - g,
        {
            let ghost prev = self.groups@;
            self.groups[g].relog(seat as usize);
            proof {
                lemma_relogged(prev[g as int], self.groups@[g as int], seat);
                lemma_next_cached(before.config, before.groups@, prev, self.groups@, g as int, -1);
            }
            g += 1;
        }
        proof {
            lemma_one_seat(before, *self, -1);
            lemma_unseen(before, *self);
        }
    }

    /// Ids of the plans in flight, oldest first.
    pub fn plan_ids(&self) -> (ids: Vec<u64>)
        ensures
            ids@ == self.plans@.map_values(|p: PlanRecord| p.id),
    {
        let mut ids: Vec<u64> = Vec::with_capacity(self.plans.len());
        let mut k: usize = 0;
        while k < self.plans.len()
            invariant
                k <= self.plans@.len(),
                ids@ == self.plans@.take(k as int).map_values(|p: PlanRecord| p.id),
            decreases self.plans@.len() - k,
        {
            ids.push(self.plans[k].id);
            k += 1;
        }
        ids
    }
}

} // verus!
