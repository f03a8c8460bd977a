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
                *self == (Scheduler { groups: self.groups, ..before }),
                k <= self.running@.len(),
            decreases self.running@.len() - k,
        {
            assert(self.seqs@[self.running@[k as int] as int].live());
            let seat = self.seqs[self.running[k] as usize].seat;
            let ghost prev = *self;
            self.relog_seat(seat);
            proof {
                lemma_refines_trans(before, prev, *self);
            }
            k += 1;
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
            decreases self.groups@.len() - g,
        {
            let ghost prev = self.groups@;
            assert(group_ok(before.config, self.groups@[g as int]));
            self.groups[g].relog(seat as usize);
            proof {
                assert forall|h: int, s: int|
                    #![trigger self.groups@[h].seat(s)]
                    0 <= h < self.groups@.len() && 0 <= s < before.config.max_seqs && s
                        != -1 implies self.groups@[h].seat(s) == before.groups@[h].seat(s) by {
                    assert(prev[h].seat(s) == before.groups@[h].seat(s));
                }
                lemma_one_group(before.groups@, prev, self.groups@, g as int);
            }
            g += 1;
        }
        proof {
            lemma_same_seats(before, *self);
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
            proof {
                assert(ids@ =~= self.plans@.take(k as int).map_values(|p: PlanRecord| p.id));
            }
        }
        proof {
            assert(self.plans@.take(k as int) =~= self.plans@);
        }
        ids
    }
}

} // verus!
