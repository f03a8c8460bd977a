//! Seats for the waiting sequences.
use super::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// Seats for the waiting sequences, first come first served, as far as seats, blocks and budget
    /// go.
    pub(super) fn schedule_waiting(&mut self, budget: u32)
        requires
            old(self).inv(),
            old(self).draft_within(old(self).running@.len() as int),
            old(self).draft_rows + budget <= u32::MAX,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).same_plans(old(self)),
            final(self).draft_within(final(self).running@.len() as int),
            old(self).settled() ==> final(self).settled(),
            final(self).draft - old(self).draft == final(self).running@.len() - old(
                self,
            ).running@.len(),
            final(self).follows(old(self)),
            final(self).still_see(old(self)),
            old(self).idle() && old(self).running@.len() == 0 && old(self).someone_waits() && budget
                > 0 ==> final(self).draft > 0,
    {
        let mut left = budget;
        proof {
            assert(self.running@.take(self.running@.len() as int) =~= self.running@);
            assert(self.queue@.take(self.queue@.len() as int) =~= self.queue@);
            lemma_refines_self(*self);
        }
        while left > 0 && self.waiting.len() > 0 && self.free_seats.len() > 0
            invariant
                self.inv(),
                refines(*old(self), *self),
                self.same_plans(old(self)),
                self.draft_within(self.running@.len() as int),
                self.draft_rows + left <= u32::MAX,
                old(self).settled() ==> self.settled(),
                self.draft - old(self).draft == self.running@.len() - old(self).running@.len(),
                self.running@.len() >= old(self).running@.len(),
                self.follows(old(self)),
                self.still_see(old(self)),
                old(self).idle() && old(self).running@.len() == 0 && old(self).someone_waits()
                    && budget > 0 ==> self.draft > 0 || self.empty_but_waiting() && left == budget,
            decreases self.waiting@.len(), left,
        {
            let i = self.waiting[0];
            let ghost before = *self;
            assert(i == self.waiting@[0]);
            assert(self.seqs@[self.waiting@[0] as int].wf(self.config));
            let dropped = matches!(self.seqs[i as usize].phase, Phase::Dropped);
            if dropped {
                self.forget_front();
                proof {
                    lemma_refines_trans(*old(self), before, *self);
                    let n = before.running@.len() as int;
                    self.lemma_draft_kept(before, n, n);
                    before.lemma_still_see(*self, i as int, -1);
                    if before.settled() {
                        before.lemma_settled_kept(*self, i as int);
                    }
                    if before.empty_but_waiting() {
                        let j = choose|j: int|
                            0 <= j < before.seqs@.len() && (
                            #[trigger] before.seqs@[j]).phase is Waiting;
                        assert(self.seqs@[j].phase is Waiting);
                    }
                }
                continue;
            }
            if self.parent_busy(i) {
                return;
            }
            self.admit();
            let k = self.running.len() - 1;
            proof {
                assert(self.running@[k as int] == i);
                let n = before.running@.len() as int;
                self.lemma_draft_kept(before, n, n);
                assert(self.seqs@[self.running@[k as int] as int].live());
                assert(self.seqs@[i as int].wf(self.config));
                if before.settled() {
                    before.lemma_settled_kept(*self, i as int);
                }
                self.lemma_follows(before, *old(self));
                lemma_refines_trans(*old(self), before, *self);
            }
            let ghost seated = *self;
            let todo = self.todo(i);
            let n = if todo < left {
                todo
            } else {
                left
            };
            let to = self.seqs[i as usize].planned + n;
            let reserved = self.reserve(k, to);
            let ghost mid = *self;
            proof {
                lemma_refines_trans(*old(self), seated, mid);
            }
            if !reserved {
                proof {
                    assert(self.running@.len() == k + 1);
                    assert(self.running@.last() == i);
                }
                self.preempt_last();
                proof {
                    lemma_refines_trans(*old(self), mid, *self);
                    self.lemma_draft_kept(mid, k as int, k as int);
                    mid.lemma_still_see(*self, i as int, mid.seqs@[i as int].seat as int);
                    assert(self.running@ =~= before.running@);
                    if mid.settled() {
                        mid.lemma_settled_kept(*self, i as int);
                    }
                }
                return;
            }
            proof {
                assert(self.running@.len() == k + 1);
                self.lemma_not_in_draft(k as int);
            }
            self.add_entry(i, n);
            left -= n;
            proof {
                lemma_refines_trans(*old(self), mid, *self);
                self.lemma_draft_pushed(mid, k as int);
                if mid.settled() {
                    mid.lemma_settled_kept(*self, i as int);
                }
                assert(mid.running@ =~= seated.running@);
                assert(self.queue@.take(old(self).queue@.len() as int) =~= seated.queue@.take(
                    old(self).queue@.len() as int,
                )) by {
                    assert(self.queue@.drop_last() == seated.queue@);
                    assert forall|a: int|
                        0 <= a < seated.queue@.len() implies #[trigger] self.queue@[a]
                        == seated.queue@[a] by {
                        assert(self.queue@.drop_last()[a] == self.queue@[a]);
                    }
                }
            }
        }
    }

    /// Sequence `i` is a fork that has yet to start, and its parent still computes the prompt that
    /// they share.
    pub open spec fn waits_for_parent(&self, i: int) -> bool {
        let s = self.seqs@[i];
        match s.parent {
            Some((j, generation)) => {
                let parent = self.seqs@[j as int];
                &&& j < self.seqs@.len() && parent.phase is Running
                &&& parent.generation == generation && parent.computed < s.prompt_len
                &&& s.len() == s.prompt_len
            },
            None => false,
        }
    }

    /// The parent still computes the prompt that sequence `i` would share.
    pub(super) fn parent_busy(&self, i: u32) -> (busy: bool)
        requires
            self.inv(),
            i < self.seqs@.len(),
            self.seqs@[i as int].phase is Waiting,
        ensures
            busy == self.waits_for_parent(i as int),
            busy ==> self.running@.len() > 0,
    {
        let seq = &self.seqs[i as usize];
        match seq.parent {
            Some((j, generation)) => {
                if j as usize >= self.seqs.len() {
                    return false;
                }
                let parent = &self.seqs[j as usize];
                let running = parent.is_running();
                running && parent.generation == generation && parent.computed < seq.prompt_len
                    && seq.tokens.len() == seq.prompt_len as usize
            },
            None => false,
        }
    }

    /// Some sequence waits.
    pub open spec fn someone_waits(&self) -> bool {
        exists|i: int| 0 <= i < self.seqs@.len() && (#[trigger] self.seqs@[i]).phase is Waiting
    }

    /// Nothing has a seat, and some sequence waits.
    pub open spec fn empty_but_waiting(&self) -> bool {
        self.idle() && self.running@.len() == 0 && self.someone_waits()
    }

    /// Running list and queue only grew at the end.
    pub open spec fn follows(&self, o: &Self) -> bool {
        &&& self.running@.len() >= o.running@.len()
        &&& self.running@.take(o.running@.len() as int) == o.running@
        &&& self.queue@.len() >= o.queue@.len()
        &&& self.queue@.take(o.queue@.len() as int) == o.queue@
    }

    pub(super) proof fn lemma_follows(&self, before: Scheduler, o: Scheduler)
        requires
            before.follows(&o),
            self.queue == before.queue,
            exists|i: u32| self.running@ == #[trigger] before.running@.push(i),
        ensures
            self.follows(&o),
    {
        assert(self.running@.take(o.running@.len() as int) =~= before.running@.take(
            o.running@.len() as int,
        ));
    }

    /// What only grew at the end still serves the eldest first.
    pub(super) proof fn lemma_still_served(&self, b: Scheduler, o: Scheduler)
        requires
            self.eldest_served(o),
            b.follows(self),
        ensures
            b.eldest_served(o),
    {
    }
}

} // verus!
