//! Choosing the rows of a step: the running sequences, oldest first, then the waiting ones.
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
    /// Makes the next plan, or none when nothing can be computed now.
    pub fn schedule(&mut self) -> (plan: Option<Plan>)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            final(self).draft == 0,
            final(self).config == old(self).config,
            plan is None ==> final(self).plans == old(self).plans,
            plan is None ==> refines(*old(self), *final(self)),
            plan matches Some(p) ==> forall|l: Link| #[trigger]
                linked(*old(self), l) ==> schedules(*final(self), l, p),
            progressed(*old(self), *final(self), plan is Some),
            old(self).settled() ==> final(self).settled(),
            plan is Some ==> final(self).slid_since(old(self)),
            plan matches Some(p) ==> {
                &&& final(self).plan_wf(p)
                &&& p.id == old(self).next_plan
                &&& final(self).plans@ == old(self).plans@.push(
                    PlanRecord { id: p.id, entries: p.seats@.len() as usize },
                )
            },
    {
        proof {
            lemma_refines_self(*self);
        }
        if self.next_plan == u64::MAX {
            return None;
        }
        self.choose_rows();
        if self.draft == 0 {
            return None;
        }
        let ghost chosen = *self;
        let plan = self.emit();
        let ghost before = *self;
        self.close_draft();
        proof {
            self.lemma_same_plan(before, plan);
            lemma_schedules(*old(self), chosen, before, *self, plan);
            chosen.lemma_slid_since(before, *self, *old(self));
        }
        Some(plan)
    }

    /// Gives back what no later row sees, then fills the draft: rows of running sequences, then of
    /// waiting ones.
    fn choose_rows(&mut self)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).same_plans(old(self)),
            old(self).settled() ==> final(self).settled(),
            final(self).slid_since(old(self)),
            old(self).idle() && unfinished(*old(self)) ==> final(self).draft > 0,
            old(self).eldest_ready() && final(self).draft > 0 ==> final(self).eldest_served(
                *old(self),
            ),
    {
        self.slide_running();
        let ghost slid = *self;
        let (left, clear) = self.schedule_running(self.config.max_batched_tokens);
        proof {
            lemma_refines_trans(*old(self), slid, *self);
            assert(slid.see_their_blocks(self.running@.len() as int));
            reveal(Scheduler::slid_since);
            if old(self).idle() && unfinished(*old(self)) && old(self).running@.len() == 0 {
                let i = choose|i: int|
                    0 <= i < old(self).seqs@.len() && ((#[trigger] old(
                        self,
                    ).seqs@[i]).phase is Waiting || old(self).seqs@[i].phase is Running);
                if old(self).seqs@[i].phase is Running {
                    assert(old(self).seqs@[i].live());
                    assert(old(self).running@.contains(i as u32));
                }
                assert(self.someone_waits());
            }
        }
        if clear {
            let ghost before = *self;
            self.schedule_waiting(left);
            proof {
                lemma_refines_trans(*old(self), before, *self);
                assert forall|k: int| 0 <= k < before.running@.len() implies (
                #[trigger] self.running@[k]) == before.running@[k] by {
                    assert(self.running@.take(before.running@.len() as int)[k] == self.running@[k]);
                }
                if old(self).eldest_ready() {
                    before.lemma_still_served(*self, *old(self));
                }
            }
        }
    }

    /// The draft becomes the newest plan in flight.
    fn close_draft(&mut self)
        requires
            old(self).inv(),
            old(self).next_plan < u64::MAX,
        ensures
            final(self).inv(),
            *final(self) == (Scheduler {
                plans: final(self).plans,
                draft: 0,
                draft_rows: 0,
                next_plan: (old(self).next_plan + 1) as u64,
                ..*old(self)
            }),
            final(self).still_see(old(self)),
            final(self).plans@ == old(self).plans@.push(
                PlanRecord { id: old(self).next_plan, entries: old(self).draft },
            ),
    {
        let ghost before = *self;
        self.plans.push_back(PlanRecord { id: self.next_plan, entries: self.draft });
        self.draft = 0;
        self.draft_rows = 0;
        self.next_plan += 1;
        proof {
            lemma_entries_in_push(
                before.plans@,
                PlanRecord { id: before.next_plan, entries: before.draft },
            );
            assert(span(self.queue@, self.queue@.len() as int) == 0);
            before.lemma_still_see(*self, -1, -1);
        }
    }

    /// A running sequence has rows to plan, and neither it nor one after it is in the draft.
    pub open spec fn left_out(&self) -> bool {
        exists|k: int|
            0 <= k < self.running@.len() && #[trigger] self.draft_within(k) && {
                let s = self.seqs@[self.running@[k] as int];
                s.phase is Running && s.planned < goal(s)
            }
    }

    /// Rows for the running sequences, oldest first; returns what is left of the budget, and
    /// whether each could have its rows. Where one cannot get blocks, those after it get no rows,
    /// so that they can be preempted.
    fn schedule_running(&mut self, budget: u32) -> (r: (u32, bool))
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).same_plans(old(self)),
            final(self).draft_within(final(self).running@.len() as int),
            final(self).draft_rows + r.0 == budget,
            final(self).running@.len() <= old(self).running@.len(),
            final(self).running@ == old(self).running@.take(final(self).running@.len() as int),
            final(self).still_see(old(self)),
            r.1 ==> final(self).running@.len() == old(self).running@.len(),
            !r.1 ==> final(self).left_out() || final(self).running@.len() < old(
                self,
            ).running@.len(),
            old(self).settled() ==> final(self).settled(),
            old(self).running@.len() == 0 ==> *final(self) == *old(self) && r == (budget, true),
            old(self).eldest_ready() && final(self).draft > 0 ==> final(self).eldest_served(
                *old(self),
            ),
            old(self).idle() && old(self).running@.len() > 0 && budget > 0 ==> final(self).draft
                > 0,
            old(self).eldest_ready() && final(self).draft == 0 && budget > 0 ==> !r.1,
    {
        let mut left = budget;
        let mut k: usize = 0;
        let mut clear = true;
        let count = self.running.len();
        proof {
            lemma_refines_self(*self);
            if self.idle() && count > 0 {
                self.lemma_idle_runs(0);
            }
        }
        while k < self.running.len() && left > 0
            invariant
                self.inv(),
                refines(*old(self), *self),
                self.same_plans(old(self)),
                self.draft_within(k as int),
                k <= self.running@.len() <= count,
                left <= budget,
                self.draft_rows + left == budget,
                self.running@ == old(self).running@.take(self.running@.len() as int),
                self.still_see(old(self)),
                clear <==> self.running@.len() == count,
                old(self).settled() ==> self.settled(),
                count == old(self).running@.len(),
                k == 0 ==> *self == *old(self) && left == budget && clear,
                old(self).idle() && count > 0 ==> old(self).eldest_ready(),
                k > 0 ==> self.running@[0] == old(self).running@[0],
                k > 0 && old(self).eldest_ready() ==> self.draft > 0 && self.eldest_served(
                    *old(self),
                ),
            decreases self.running@.len() - k,
        {
            let i = self.running[k];
            assert(self.seqs@[self.running@[k as int] as int].live());
            let running = self.seqs[i as usize].is_running();
            let ghost before = *self;
            proof {
                if k == 0 && self.idle() {
                    self.lemma_idle_runs(0);
                }
                if k == 0 && self.eldest_ready() {
                    self.lemma_has_rows(i as int);
                }
            }
            if running {
                assert(self.seqs@[i as int].wf(self.config));
                let todo = self.todo(i);
                let n = if todo < left {
                    todo
                } else {
                    left
                };
                if n > 0 {
                    let to = self.seqs[i as usize].planned + n;
                    let reserved = self.reserve(k, to);
                    let ghost mid = *self;
                    proof {
                        lemma_refines_trans(*old(self), before, mid);
                    }
                    if !reserved {
                        proof {
                            assert(self.draft_within(k as int));
                            self.lemma_draft_kept(*self, k as int, self.running@.len() as int);
                        }
                        return (left, false);
                    }
                    if self.running.len() < count {
                        clear = false;
                    }
                    proof {
                        assert(self.running@[k as int] == before.running@[k as int]);
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
                        if k > 0 && old(self).eldest_ready() {
                            assert(self.queue@.drop_last()[old(self).queue@.len() as int]
                                == mid.queue@[old(self).queue@.len() as int]);
                            assert(mid.queue == before.queue);
                        }
                    }
                } else {
                    proof {
                        self.lemma_draft_kept(*self, k as int, k + 1);
                    }
                }
            } else {
                proof {
                    self.lemma_draft_kept(*self, k as int, k + 1);
                }
            }
            k += 1;
        }
        proof {
            self.lemma_draft_kept(*self, k as int, self.running@.len() as int);
        }
        (left, clear)
    }
}

} // verus!
