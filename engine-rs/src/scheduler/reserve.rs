//! Blocks for the rows of a step.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// Tables of running sequence `i` cover `to` positions.
    pub open spec fn covers(&self, i: int, to: int) -> bool {
        forall|g: int|
            0 <= g < self.groups@.len() ==> to <= (#[trigger] self.groups@[g]).seat(
                self.seqs@[i].seat as int,
            ).table.len() * self.config.block_size
    }

    /// What filling the draft leaves alone.
    pub open spec fn same_plans(&self, o: &Self) -> bool {
        &&& self.config == o.config
        &&& self.plans == o.plans
        &&& self.next_plan == o.next_plan
    }

    /// What giving seats, taking them and growing tables leaves alone.
    pub open spec fn same_work(&self, o: &Self) -> bool {
        &&& self.same_plans(o)
        &&& self.queue == o.queue
        &&& self.draft == o.draft
        &&& self.draft_rows == o.draft_rows
    }

    /// Longer tables for running sequence `i`, in free blocks only.
    pub(super) fn grow(&mut self, i: u32, to: u32) -> (ok: bool)
        requires
            old(self).inv(),
            i < old(self).seqs@.len(),
            old(self).seqs@[i as int].phase is Running,
            to < old(self).seqs@[i as int].max_len,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            !ok ==> !old(self).alone(i as int),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            final(self).still_see(old(self)),
            ok ==> final(self).covers(i as int, to as int),
    {
        let ghost before = *self;
        let seat = self.seqs[i as usize].seat;
        let blocks = blocks_for(to, self.config.block_size);
        assert(before.seqs@[i as int].wf(before.config));
        let ok = grow_all(Ghost(self.config), &mut self.groups, seat, blocks);
        proof {
            lemma_grew(before, *self, i as int);
            lemma_grow_refines(before, *self, i as int);
            before.lemma_still_see(*self, i as int, seat as int);
            if !ok && before.alone(i as int) {
                before.lemma_alone_fits(i as int, to, blocks as int);
                let g = choose|g: int|
                    0 <= g < before.groups@.len() && lacks(
                        #[trigger] before.groups@[g],
                        seat as int,
                        blocks as int,
                    );
                assert(group_ok(before.config, before.groups@[g]));
            }
            if ok {
                assert forall|g: int| 0 <= g < self.groups@.len() implies to <= (
                #[trigger] self.groups@[g]).seat(seat as int).table.len()
                    * self.config.block_size by {
                    lemma_mul_le(
                        blocks as nat,
                        self.groups@[g].seat(seat as int).table.len(),
                        self.config.block_size as nat,
                    );
                }
            }
        }
        ok
    }

    /// Blocks for the `k`-th running sequence up to position `to`; the youngest others are
    /// preempted for it while they have nothing in flight.
    pub(super) fn reserve(&mut self, k: usize, to: u32) -> (ok: bool)
        requires
            old(self).inv(),
            k < old(self).running@.len(),
            old(self).seqs@[old(self).running@[k as int] as int].phase is Running,
            to < old(self).seqs@[old(self).running@[k as int] as int].max_len,
            old(self).draft_within(k as int),
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).same_work(old(self)),
            final(self).still_see(old(self)),
            final(self).draft_within(k as int),
            k < final(self).running@.len() <= old(self).running@.len(),
            final(self).running@ == old(self).running@.take(final(self).running@.len() as int),
            final(self).running@.len() == old(self).running@.len() ==> final(self).waiting == old(
                self,
            ).waiting,
            final(self).seqs@.len() == old(self).seqs@.len(),
            final(self).seqs@[old(self).running@[k as int] as int] == old(self).seqs@[old(
                self,
            ).running@[k as int] as int],
            ok ==> final(self).covers(final(self).running@[k as int] as int, to as int),
            k == 0 && old(self).idle() ==> ok,
            old(self).settled() ==> final(self).settled(),
    {
        let ghost before = *self;
        let i = self.running[k];
        proof {
            assert(self.running@.take(self.running@.len() as int) =~= self.running@);
            assert(self.seqs@[self.running@[k as int] as int].live());
            lemma_refines_self(*self);
        }
        loop
            invariant
                self.inv(),
                refines(before, *self),
                self.same_work(&before),
                self.still_see(&before),
                self.draft_within(k as int),
                k < self.running@.len() <= before.running@.len(),
                self.running@ == before.running@.take(self.running@.len() as int),
                self.running@.len() == before.running@.len() ==> self.waiting == before.waiting,
                i == before.running@[k as int],
                i < self.seqs@.len(),
                self.seqs@.len() == before.seqs@.len(),
                self.seqs@[i as int] == before.seqs@[i as int],
                self.seqs@[i as int].phase is Running,
                to < self.seqs@[i as int].max_len,
                before == *old(self),
                before.settled() ==> self.settled(),
            decreases self.running@.len(),
        {
            let ghost tried = *self;
            let grown = self.grow(i, to);
            proof {
                lemma_refines_trans(before, tried, *self);
            }
            if grown {
                return true;
            }
            let last = self.running.len() - 1;
            if last == k {
                proof {
                    if k == 0 {
                        assert(self.running@ =~= seq![i]);
                    }
                }
                return false;
            }
            let y = self.running[last] as usize;
            assert(self.seqs@[self.running@[last as int] as int].live());
            let idle = self.seqs[y].is_running() && self.seqs[y].in_flight == 0;
            if !idle {
                return false;
            }
            let ghost prev = *self;
            proof {
                assert(self.running@[last as int] != self.running@[k as int]);
            }
            self.preempt_last();
            proof {
                lemma_refines_trans(before, prev, *self);
                assert(self.running@ =~= before.running@.take(self.running@.len() as int));
                self.lemma_draft_kept(prev, k as int, k as int);
                let y = prev.running@.last() as int;
                prev.lemma_still_see(*self, y, prev.seqs@[y].seat as int);
                if before.settled() {
                    prev.lemma_settled_kept(*self, prev.running@.last() as int);
                }
            }
        }
    }

    /// Nothing is in flight, and nothing that is over holds a seat.
    pub open spec fn idle(&self) -> bool {
        self.queue@.len() == 0 && self.settled()
    }

    /// The only sequence with a seat.
    pub open spec fn alone(&self, i: int) -> bool {
        self.running@ == seq![i as u32]
    }
}

} // verus!
