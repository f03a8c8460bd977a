//! Choosing the rows of a step: the running sequences, oldest first, then the waiting ones.
use super::*;
use crate::layer_group::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Sequence `i` is one of the first `k` of the list.
pub open spec fn among(list: Seq<u32>, k: int, i: u32) -> bool {
    exists|m: int| 0 <= m < k && #[trigger] list[m] == i
}

impl Scheduler {
    /// The entries of the plan being made name only sequences among the first `k` running ones.
    pub open spec fn draft_within(&self, k: int) -> bool {
        &&& 0 <= k <= self.running@.len()
        &&& forall|a: int| #![trigger self.queue@[a]] self.in_draft(a)
            ==> among(self.running@, k, self.queue@[a].seq)
    }

    /// Tables of running sequence `i` cover `to` positions.
    pub open spec fn covers(&self, i: int, to: int) -> bool {
        forall|g: int| 0 <= g < self.groups@.len() ==> to <= (#[trigger] self.groups@[g]).seat(
            self.seqs@[i].seat as int,
        ).table.len() * self.config.block_size
    }

    /// What growing tables leaves alone.
    pub open spec fn same_work(&self, o: &Self) -> bool {
        &&& self.config == o.config
        &&& self.queue == o.queue
        &&& self.plans == o.plans
        &&& self.draft == o.draft
        &&& self.draft_rows == o.draft_rows
        &&& self.next_plan == o.next_plan
    }

    /// Longer tables for running sequence `i`, in free blocks only.
    fn grow(&mut self, i: u32, to: u32) -> (ok: bool)
        requires
            old(self).inv(),
            i < old(self).seqs@.len(),
            old(self).seqs@[i as int].phase is Running,
            to < old(self).config.max_model_len,
        ensures
            final(self).inv(),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            ok ==> final(self).covers(i as int, to as int),
    {
        let ghost before = *self;
        let seat = self.seqs[i as usize].seat;
        let blocks = blocks_for(to, self.config.block_size);
        assert(before.seqs@[i as int].live());
        let ok = grow_all(&self.config, &mut self.groups, seat, blocks);
        proof {
            lemma_grew(before, *self, i as int);
            if ok {
                assert forall|g: int| 0 <= g < self.groups@.len() implies to
                    <= (#[trigger] self.groups@[g]).seat(seat as int).table.len() * self.config.block_size by {
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

    /// Blocks for the `k`-th running sequence up to position `to`; the youngest others are preempted for
    /// it while they have nothing in flight.
    fn reserve(&mut self, k: usize, to: u32) -> (ok: bool)
        requires
            old(self).inv(),
            k < old(self).running@.len(),
            old(self).seqs@[old(self).running@[k as int] as int].phase is Running,
            to < old(self).config.max_model_len,
            old(self).draft_within(k as int),
        ensures
            final(self).inv(),
            final(self).same_work(old(self)),
            final(self).draft_within(k as int),
            k < final(self).running@.len() <= old(self).running@.len(),
            final(self).running@ == old(self).running@.take(final(self).running@.len() as int),
            final(self).running@.len() == old(self).running@.len() ==> final(self).waiting
                == old(self).waiting,
            final(self).seqs@.len() == old(self).seqs@.len(),
            final(self).seqs@[old(self).running@[k as int] as int]
                == old(self).seqs@[old(self).running@[k as int] as int],
            ok ==> final(self).covers(final(self).running@[k as int] as int, to as int),
    {
        let ghost before = *self;
        let i = self.running[k];
        proof {
            assert(self.running@.take(self.running@.len() as int) =~= self.running@);
            assert(self.seqs@[self.running@[k as int] as int].live());
        }
        loop
            invariant
                self.inv(),
                self.same_work(&before),
                self.draft_within(k as int),
                k < self.running@.len() <= before.running@.len(),
                self.running@ == before.running@.take(self.running@.len() as int),
                self.running@.len() == before.running@.len() ==> self.waiting == before.waiting,
                i == before.running@[k as int],
                i < self.seqs@.len(),
                self.seqs@.len() == before.seqs@.len(),
                self.seqs@[i as int] == before.seqs@[i as int],
                self.seqs@[i as int].phase is Running,
                to < self.config.max_model_len,
                before == *old(self),
            decreases self.running@.len(),
        {
            if self.grow(i, to) {
                return true;
            }
            let last = self.running.len() - 1;
            if last == k {
                return false;
            }
            let y = self.running[last] as usize;
            assert(self.seqs@[self.running@[last as int] as int].live());
            let idle = match self.seqs[y].phase {
                Phase::Running => self.seqs[y].in_flight == 0,
                _ => false,
            };
            if !idle {
                return false;
            }
            let ghost prev = *self;
            proof {
                assert(self.running@[last as int] != self.running@[k as int]);
            }
            self.preempt_last();
            proof {
                assert(self.running@ =~= before.running@.take(self.running@.len() as int));
                self.lemma_draft_kept(prev, k as int);
            }
        }
    }

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
                &&& final(self).plans@ == old(self).plans@.push(PlanRecord { id: p.id, entries: p.seats@.len() as usize })
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
            *final(self) == (Scheduler { plans: final(self).plans, draft: 0, draft_rows: 0,
                next_plan: (old(self).next_plan + 1) as u64, ..*old(self) }),
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
            lemma_entries_in_push(before.plans@, PlanRecord { id: before.next_plan, entries: before.draft });
            assert(span(self.queue@, self.queue@.len() as int) == 0);
        }
    }

    /// Rows for the running sequences, oldest first; returns what is left of the budget, and whether each could
    /// have its rows. Where one cannot get blocks, those after it get no rows, so that they can be preempted.
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
            let running = match self.seqs[i as usize].phase {
                Phase::Running => true,
                _ => false,
            };
            let ghost before = *self;
            if running {
                assert(self.seqs@[i as int].wf(self.config));
                let todo = self.todo(i);
                let n = if todo < left { todo } else { left };
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

    /// Seats for the waiting sequences, first come first served, as far as seats, blocks and budget go.
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
            let dropped = match self.seqs[i as usize].phase {
                Phase::Dropped => true,
                _ => false,
            };
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
            let n = if todo < left { todo } else { left };
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

    /// An aborted sequence at the front of the waiting queue leaves it.
    fn forget_front(&mut self)
        requires
            old(self).inv(),
            old(self).waiting@.len() > 0,
            old(self).seqs@[old(self).waiting@[0] as int].phase is Dropped,
        ensures
            final(self).inv(),
            final(self).waiting@ == old(self).waiting@.drop_first(),
            final(self).running == old(self).running,
            final(self).same_work(old(self)),
            final(self).groups == old(self).groups,
    {
        let ghost before = *self;
        if let Some(i) = self.waiting.pop_front() {
            proof {
                assert(before.waiting@[0] == i);
                assert(self.waiting@ =~= before.waiting@.drop_first());
            }
            self.free_entry(i);
            proof {
                lemma_forgot(before, *self, i as int);
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
                let running = match parent.phase {
                    Phase::Running => true,
                    _ => false,
                };
                running && parent.generation == generation && parent.computed < seq.prompt_len
                    && seq.tokens.len() == seq.prompt_len as usize
            },
            None => false,
        }
    }

    pub proof fn lemma_draft_grows(&self, k: int, m: int)
        requires
            self.draft_within(k),
            k <= m <= self.running@.len(),
        ensures
            self.draft_within(m),
    {
        assert forall|a: int| #![trigger self.queue@[a]] self.in_draft(a)
            implies among(self.running@, m, self.queue@[a].seq) by {
            let i = self.queue@[a].seq;
            let x = choose|x: int| 0 <= x < k && #[trigger] self.running@[x] == i;
            assert(self.running@[x] == i);
        }
    }

    /// The first `k` running sequences are the same, and so is the draft.
    proof fn lemma_draft_kept(&self, o: Scheduler, k: int)
        requires
            o.draft_within(k),
            self.queue == o.queue,
            self.draft == o.draft,
            k <= self.running@.len(),
            k <= o.running@.len(),
            forall|m: int| 0 <= m < k ==> self.running@[m] == o.running@[m],
        ensures
            self.draft_within(k),
    {
        assert forall|a: int| #![trigger self.queue@[a]] self.in_draft(a)
            implies among(self.running@, k, self.queue@[a].seq) by {
            let i = o.queue@[a].seq;
            assert(o.in_draft(a));
            let x = choose|x: int| 0 <= x < k && #[trigger] o.running@[x] == i;
            assert(self.running@[x] == o.running@[x]);
        }
    }

    proof fn lemma_not_in_draft(&self, k: int)
        requires
            self.running_ok(),
            self.draft_within(k),
            0 <= k < self.running@.len(),
        ensures
            forall|a: int| #![trigger self.queue@[a]] self.in_draft(a) ==> self.queue@[a].seq != self.running@[k],
    {
        assert forall|a: int| #![trigger self.queue@[a]] self.in_draft(a)
            implies self.queue@[a].seq != self.running@[k] by {
            let i = self.queue@[a].seq;
            let x = choose|x: int| 0 <= x < k && #[trigger] self.running@[x] == i;
            assert(self.running@[x] != self.running@[k]);
        }
    }

    /// The draft got one more entry, of the `k`-th running sequence.
    proof fn lemma_draft_pushed(&self, o: Scheduler, k: int)
        requires
            o.draft_within(k),
            0 <= k < o.running@.len(),
            self.running == o.running,
            self.draft == o.draft + 1,
            self.queue@.len() == o.queue@.len() + 1,
            self.queue@.drop_last() == o.queue@,
            self.queue@.last().seq == o.running@[k],
        ensures
            self.draft_within(k + 1),
    {
        assert forall|a: int| #![trigger self.queue@[a]] self.in_draft(a)
            implies among(self.running@, k + 1, self.queue@[a].seq) by {
            if a == self.queue@.len() - 1 {
                assert(self.running@[k] == self.queue@[a].seq);
            } else {
                assert(self.queue@.drop_last()[a] == self.queue@[a]);
                let i = o.queue@[a].seq;
            assert(o.in_draft(a));
            let x = choose|x: int| 0 <= x < k && #[trigger] o.running@[x] == i;
                assert(self.running@[x] == o.running@[x]);
            }
        }
    }
}

/// Only the tables of running sequence `i` got longer.
proof fn lemma_grew(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        b == (Scheduler { groups: b.groups, ..a }),
        0 <= i < a.seqs@.len(),
        a.seqs@[i].phase is Running,
        groups_frame(a.config, a.groups@, b.groups@, a.seqs@[i].seat as int),
        forall|g: int| 0 <= g < b.groups@.len() ==> extends(
            a.groups@[g].seat(a.seqs@[i].seat as int),
            (#[trigger] b.groups@[g]).seat(a.seqs@[i].seat as int),
        ),
    ensures
        b.inv(),
{
    let seat = a.seqs@[i].seat as int;
    assert(a.seqs@[i].live());
    assert forall|j: int, g: int| #![trigger b.seqs@[j], b.groups@[g]]
        0 <= j < b.seqs@.len() && 0 <= g < b.groups@.len() && b.seqs@[j].phase is Running implies seat_ok(
        b.seqs@[j],
        b.groups@[g].seat(b.seqs@[j].seat as int),
        b.config.block_size,
    ) by {
        assert(seat_ok(a.seqs@[j], a.groups@[g].seat(a.seqs@[j].seat as int), a.config.block_size));
        if j == i {
            let v = a.groups@[g].seat(seat);
            let w = b.groups@[g].seat(seat);
            assert(extends(v, w));
            lemma_extends_holds(v, w, a.seqs@[j].tokens@, a.seqs@[j].computed as int);
            lemma_mul_le(v.table.len(), w.table.len(), a.config.block_size as nat);
        } else {
            assert(a.seqs@[j].live());
            assert(a.seqs@[j].seat != a.seqs@[i].seat);
            assert(b.groups@[g].seat(a.seqs@[j].seat as int) == a.groups@[g].seat(a.seqs@[j].seat as int));
        }
    }
    assert forall|m: int, g: int| #![trigger b.free_seats@[m], b.groups@[g]]
        0 <= m < b.free_seats@.len() && 0 <= g < b.groups@.len() implies b.groups@[g].seat(
        b.free_seats@[m] as int,
    ).table.len() == 0 by {
        assert(a.free_seats@.contains(a.free_seats@[m]));
        assert(b.groups@[g].seat(a.free_seats@[m] as int) == a.groups@[g].seat(a.free_seats@[m] as int));
    }
}

/// An aborted sequence left the front of the waiting queue.
proof fn lemma_forgot(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        a.waiting@.len() > 0 && a.waiting@[0] == i,
        0 <= i < a.seqs@.len(),
        a.seqs@[i].phase is Dropped,
        b.only_seq(&a, i),
        b.seqs@[i].phase is Free,
        b == (Scheduler { seqs: b.seqs, free_entries: b.free_entries, waiting: b.waiting, ..a }),
        b.waiting@ == a.waiting@.drop_first(),
        b.free_entries@ == a.free_entries@ || b.free_entries@ == a.free_entries@.push(i as u32),
    ensures
        b.inv(),
{
    assert forall|m: int| 0 <= m < a.running@.len() implies (#[trigger] a.running@[m]) != i by {
        assert(a.seqs@[a.running@[m] as int].live());
    }
    assert forall|m: int| 0 <= m < b.running@.len() implies {
        &&& (#[trigger] b.running@[m]) < b.seqs@.len()
        &&& b.seqs@[b.running@[m] as int].live()
    } by {
        assert(b.seqs@[a.running@[m] as int] == a.seqs@[a.running@[m] as int]);
    }
    assert forall|j: int| 0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.running@.contains(j as u32) by {
        assert(b.seqs@[j] == a.seqs@[j]);
    }
    assert forall|m: int| 0 <= m < b.waiting@.len() implies {
        &&& (#[trigger] b.waiting@[m]) < b.seqs@.len()
        &&& (b.seqs@[b.waiting@[m] as int].phase is Waiting || b.seqs@[b.waiting@[m] as int].phase is Dropped)
    } by {
        assert(b.waiting@[m] == a.waiting@[m + 1]);
        assert(a.waiting@[m + 1] != a.waiting@[0]);
        assert(b.seqs@[a.waiting@[m + 1] as int] == a.seqs@[a.waiting@[m + 1] as int]);
    }
    assert forall|j: int| 0 <= j < b.seqs@.len() && ((#[trigger] b.seqs@[j]).phase is Waiting
        || b.seqs@[j].phase is Dropped) implies b.waiting@.contains(j as u32) by {
        assert(b.seqs@[j] == a.seqs@[j]);
        let m = a.waiting@.index_of(j as u32);
        assert(m > 0);
        assert(b.waiting@[m - 1] == j as u32);
    }
    assert(b.waiting@.no_duplicates());
    assert forall|m: int| 0 <= m < b.free_entries@.len() implies {
        &&& (#[trigger] b.free_entries@[m]) < b.seqs@.len()
        &&& b.seqs@[b.free_entries@[m] as int].phase is Free
    } by {
        if m < a.free_entries@.len() {
            assert(b.free_entries@[m] == a.free_entries@[m]);
        }
    }
    assert(b.free_entries@.no_duplicates()) by {
        assert forall|m: int| 0 <= m < a.free_entries@.len() implies (#[trigger] a.free_entries@[m]) != i by {}
    }
    assert forall|m: int| 0 <= m < b.queue@.len() implies {
        &&& (#[trigger] b.queue@[m]).seq < b.seqs@.len()
        &&& b.seqs@[b.queue@[m].seq as int].live()
        &&& b.queue@[m].seat == b.seqs@[b.queue@[m].seq as int].seat
    } by {
        assert(a.seqs@[a.queue@[m].seq as int].live());
        assert(b.seqs@[a.queue@[m].seq as int] == a.seqs@[a.queue@[m].seq as int]);
    }
    assert(b.queue_ok());
    assert(b.seats_ok());
    assert(b.tables_ok());
}

} // verus!
