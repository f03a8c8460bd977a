//! Choosing the rows of a step: the running sequences, oldest first, then the waiting ones.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
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
            plan matches Some(p) ==> {
                &&& final(self).plan_wf(p)
                &&& p.id == old(self).next_plan
                &&& final(self).plans@ == old(self).plans@.push(
                    PlanRecord { id: p.id, entries: p.seats@.len() as usize },
                )
            },
    {
        if self.next_plan == u64::MAX {
            return None;
        }
        let (left, clear) = self.schedule_running(self.config.max_batched_tokens);
        if clear {
            self.schedule_waiting(left);
        }
        if self.draft == 0 {
            return None;
        }
        let plan = self.emit();
        let ghost before = *self;
        self.close_draft();
        proof {
            self.lemma_same_plan(before, plan);
        }
        Some(plan)
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
            final(self).config == old(self).config,
            final(self).plans == old(self).plans,
            final(self).next_plan == old(self).next_plan,
            final(self).draft_within(final(self).running@.len() as int),
            final(self).draft_rows + r.0 == budget,
    {
        let mut left = budget;
        let mut k: usize = 0;
        let mut clear = true;
        let count = self.running.len();
        while k < self.running.len() && left > 0
            invariant
                self.inv(),
                self.config == old(self).config,
                self.plans == old(self).plans,
                self.next_plan == old(self).next_plan,
                self.draft_within(k as int),
                k <= self.running@.len() <= count,
                left <= budget,
                self.draft_rows + left == budget,
                clear ==> self.running@.len() == count,
            decreases self.running@.len() - k,
        {
            let i = self.running[k];
            assert(self.seqs@[self.running@[k as int] as int].live());
            let running = self.seqs[i as usize].is_running();
            let ghost before = *self;
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
                    if !self.reserve(k, to) {
                        proof {
                            self.lemma_draft_grows(k as int, self.running@.len() as int);
                        }
                        return (left, false);
                    }
                    if self.running.len() < count {
                        clear = false;
                    }
                    let ghost mid = *self;
                    proof {
                        assert(self.running@[k as int] == before.running@[k as int]);
                        self.lemma_not_in_draft(k as int);
                    }
                    self.add_entry(i, n);
                    left -= n;
                    proof {
                        self.lemma_draft_pushed(mid, k as int);
                    }
                } else {
                    proof {
                        self.lemma_draft_grows(k as int, k + 1);
                    }
                }
            } else {
                proof {
                    self.lemma_draft_grows(k as int, k + 1);
                }
            }
            k += 1;
        }
        proof {
            self.lemma_draft_grows(k as int, self.running@.len() as int);
        }
        (left, clear)
    }

    /// Seats for the waiting sequences, first come first served, as far as seats, blocks and budget
    /// go.
    fn schedule_waiting(&mut self, budget: u32)
        requires
            old(self).inv(),
            old(self).draft_within(old(self).running@.len() as int),
            old(self).draft_rows + budget <= u32::MAX,
        ensures
            final(self).inv(),
            final(self).config == old(self).config,
            final(self).plans == old(self).plans,
            final(self).next_plan == old(self).next_plan,
            final(self).draft_within(final(self).running@.len() as int),
    {
        let mut left = budget;
        while left > 0 && self.waiting.len() > 0 && self.free_seats.len() > 0
            invariant
                self.inv(),
                self.config == old(self).config,
                self.plans == old(self).plans,
                self.next_plan == old(self).next_plan,
                self.draft_within(self.running@.len() as int),
                self.draft_rows + left <= u32::MAX,
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
                    self.lemma_draft_kept(before, before.running@.len() as int);
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
                self.lemma_draft_kept(before, before.running@.len() as int);
                assert(self.seqs@[self.running@[k as int] as int].live());
                assert(self.seqs@[i as int].wf(self.config));
            }
            let todo = self.todo(i);
            let n = if todo < left {
                todo
            } else {
                left
            };
            let to = self.seqs[i as usize].planned + n;
            if !self.reserve(k, to) {
                let ghost mid = *self;
                proof {
                    assert(self.running@.len() == k + 1);
                    assert(self.running@.last() == i);
                }
                self.preempt_last();
                proof {
                    self.lemma_draft_kept(mid, k as int);
                }
                return;
            }
            let ghost mid = *self;
            proof {
                assert(self.running@.len() == k + 1);
                self.lemma_not_in_draft(k as int);
            }
            self.add_entry(i, n);
            left -= n;
            proof {
                self.lemma_draft_pushed(mid, k as int);
            }
        }
    }

    /// The parent still computes the prompt that sequence `i` would share.
    fn parent_busy(&self, i: u32) -> bool
        requires
            self.inv(),
            i < self.seqs@.len(),
            self.seqs@[i as int].phase is Waiting,
    {
        let seq = &self.seqs[i as usize];
        assert(seq.wf(self.config));
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
}

} // verus!
