//! Whole plans: committed oldest first, cancelled newest first.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
#[cfg(verus_only)]
use crate::sequence::*;
#[cfg(verus_only)]
use vosti_spec::model;
use vstd::prelude::*;

verus! {

/// Sampled entries among the first `k`.
pub open spec fn sampled_before(q: Seq<Entry>, k: int) -> int
    decreases k,
{
    if k <= 0 {
        0
    } else {
        sampled_before(q, k - 1) + if q[k - 1].sampled {
            1int
        } else {
            0int
        }
    }
}

pub proof fn lemma_sampled_before(q: Seq<Entry>, k: int, n: int)
    requires
        0 <= k <= n,
    ensures
        0 <= sampled_before(q, k) <= k,
        sampled_before(q, k) <= sampled_before(q, n),
    decreases n,
{
    if k < n {
        lemma_sampled_before(q, k, n - 1);
    } else if k > 0 {
        lemma_sampled_before(q, k - 1, k - 1);
    }
}

/// The outcomes are those of the sampled entries among the first `k`.
#[verifier::opaque]
pub open spec fn outcomes_of(
    a: Scheduler,
    k: int,
    tokens: Seq<u32>,
    outcomes: Seq<Outcome>,
) -> bool {
    let q = a.queue@;
    &&& outcomes.len() == sampled_before(q, k)
    &&& forall|j: int|
        0 <= j < k && (#[trigger] q[j]).sampled ==> outcomes[sampled_before(q, j)] == outcome_of(
            a.seqs@[q[j].seq as int],
            q[j],
            token_of(q, tokens, j),
        )
}

impl Scheduler {
    /// Sampled sequences of the oldest plan.
    fn count_sampled(&self, n: usize) -> (count: usize)
        requires
            n <= self.queue@.len(),
        ensures
            count == sampled_before(self.queue@, n as int),
    {
        let mut k: usize = 0;
        let mut count: usize = 0;
        while k < n
            invariant
                k <= n <= self.queue@.len(),
                count <= k,
                count == sampled_before(self.queue@, k as int),
            decreases n - k,
        {
            if self.queue[k].sampled {
                count += 1;
            }
            k += 1;
        }
        count
    }

    /// Plan `id` is the oldest, and these are tokens for its sampled sequences.
    pub open spec fn commits(&self, id: u64, tokens: Seq<u32>) -> bool {
        &&& self.plans@.len() > 0
        &&& self.plans@[0].id == id
        &&& tokens.len() == sampled_before(self.queue@, self.plans@[0].entries as int)
        &&& forall|k: int| 0 <= k < tokens.len() ==> #[trigger] tokens[k] < self.config.vocab_size
    }

    /// Plan `id` is the newest.
    pub open spec fn cancels(&self, id: u64) -> bool {
        self.plans@.len() > 0 && self.plans@.last().id == id
    }

    /// Why `commit` would refuse, if it would.
    fn check_commit(&self, id: u64, tokens: &Vec<u32>) -> (r: Result<usize, EngineError>)
        requires
            self.inv(),
            self.draft == 0,
        ensures
            r is Ok <==> self.commits(id, tokens@),
            r matches Ok(n) ==> {
                &&& n == self.plans@[0].entries
                &&& n + entries_in(self.plans@.drop_first()) == self.queue@.len()
            },
    {
        if self.plans.len() == 0 {
            return Err(EngineError::NoPlan);
        }
        let plan = self.plans[0];
        if plan.id != id {
            return Err(EngineError::WrongPlan);
        }
        if self.count_sampled(plan.entries) != tokens.len() {
            return Err(EngineError::TokenCount);
        }
        if !below(tokens, self.config.vocab_size) {
            return Err(EngineError::TokenOutOfRange);
        }
        Ok(plan.entries)
    }

    /// The oldest plan was executed, and `tokens` were sampled: one for each of its `sample_seqs`,
    /// whose outcomes are returned in that order.
    pub fn commit(&mut self, id: u64, tokens: &Vec<u32>) -> (r: Result<Vec<Outcome>, EngineError>)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            final(self).draft == 0,
            r is Err ==> *final(self) == *old(self),
            r is Ok <==> old(self).commits(id, tokens@),
            r matches Ok(out) ==> {
                &&& final(self).plans@ == old(self).plans@.drop_first()
                &&& final(self).queue@ == old(self).queue@.skip(old(self).plans@[0].entries as int)
                &&& out@.len() == tokens@.len()
                &&& final(self).settled()
                &&& rows_kept(*old(self), *final(self))
                &&& forall|l: Link| #[trigger]
                    linked(*old(self), l) ==> {
                        &&& fates(l.engine, tokens@, out@)
                        &&& takes(
                            *final(self),
                            l,
                            model::Step::Commit { tokens: drawn(l.engine.plans[0], tokens@) },
                        )
                    }
            },
    {
        let n = match self.check_commit(id, tokens) {
            Ok(n) => n,
            Err(e) => {
                return Err(e);
            },
        };
        let ghost before = *self;
        let _ = self.plans.pop_front();
        let count = tokens.len();
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(count);
        proof {
            lemma_halfway_none(before, *self, n as int, tokens@);
            assert(outcomes@ =~= Seq::empty());
        }
        let mut k: usize = 0;
        let mut t: usize = 0;
        while k < n
            invariant
                k <= n <= before.queue@.len(),
                t <= count == tokens@.len(),
                self.inv_with((n - k) as nat),
                self.draft == 0,
                self.config == before.config,
                self.plans@ == before.plans@.drop_first(),
                self.queue@ == before.queue@.skip(k as int),
                outcomes@.len() == t,
                t == sampled_before(before.queue@, k as int),
                sampled_before(before.queue@, n as int) == tokens@.len(),
                before.inv(),
                halfway(before, *self, k as int, n as int, tokens@, outcomes@),
                rows_kept(before, *self),
                forall|m: int|
                    0 <= m < tokens@.len() ==> #[trigger] tokens@[m] < self.config.vocab_size,
            decreases n - k,
        {
            assert(self.queue@.len() > 0);
            let sampled = self.queue[0].sampled;
            let ghost prev = *self;
            let ghost outcomes_before = outcomes@;
            proof {
                assert(self.queue@[0] == before.queue@[k as int]);
                lemma_sampled_before(before.queue@, k as int, k as int);
                lemma_sampled_before(before.queue@, k + 1, n as int);
            }
            let token = if sampled {
                tokens[t]
            } else {
                0
            };
            let outcome = self.commit_entry(Ghost((n - k) as nat), token);
            if sampled {
                outcomes.push(outcome);
                t += 1;
            }
            proof {
                assert(self.queue@ =~= before.queue@.skip(k + 1));
                lemma_halfway(
                    before,
                    prev,
                    *self,
                    k as int,
                    n as int,
                    tokens@,
                    outcomes_before,
                    outcome,
                );
            }
            k += 1;
        }
        let ghost done = *self;
        self.settle();
        proof {
            assert forall|l: Link| #[trigger] linked(before, l) implies fates(
                l.engine,
                tokens@,
                outcomes@,
            ) && takes(
                *self,
                l,
                model::Step::Commit { tokens: drawn(l.engine.plans[0], tokens@) },
            ) by {
                lemma_all_committed(before, done, *self, l, tokens@, outcomes@);
            }
        }
        Ok(outcomes)
    }

    /// The newest plan never was. Block table updates that it carried go out again.
    pub fn cancel(&mut self, id: u64) -> (r: Result<(), EngineError>)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            final(self).draft == 0,
            r is Err ==> *final(self) == *old(self),
            r is Ok <==> old(self).cancels(id),
            r is Ok ==> {
                &&& final(self).plans@ == old(self).plans@.drop_last()
                &&& final(self).queue@ == old(self).queue@.take(
                    old(self).queue@.len() - old(self).plans@.last().entries,
                )
                &&& final(self).settled()
                &&& forall|l: Link| #[trigger]
                    linked(*old(self), l) ==> takes(
                        *final(self),
                        l.forgotten(),
                        model::Step::Cancel,
                    )
            },
    {
        if self.plans.len() == 0 {
            return Err(EngineError::NoPlan);
        }
        let last = self.plans.len() - 1;
        let plan = self.plans[last];
        if plan.id != id {
            return Err(EngineError::WrongPlan);
        }
        let n = plan.entries;
        let ghost before = *self;
        let _ = self.plans.pop_back();
        proof {
            assert(self.plans@ =~= before.plans@.drop_last());
            assert(self.plans@.push(plan) =~= before.plans@);
            lemma_entries_in_push(self.plans@, plan);
            assert(self.queue@.take(self.queue@.len() as int) =~= self.queue@);
        }
        let mut k: usize = 0;
        while k < n
            invariant
                k <= n <= before.queue@.len(),
                self.inv_with((n - k) as nat),
                self.draft == 0,
                before.inv(),
                self.plans@ == before.plans@.drop_last(),
                self.groups == before.groups,
                same_but(before, *self, -1, -1),
                self.queue@ == before.queue@.take(before.queue@.len() - k),
            decreases n - k,
        {
            self.cancel_entry(Ghost((n - k) as nat));
            k += 1;
            proof {
                assert(self.queue@ =~= before.queue@.take(before.queue@.len() - k));
            }
        }
        let ghost taken_back = *self;
        self.relog();
        let ghost logged = *self;
        self.settle();
        proof {
            lemma_cancelled_takes(before, taken_back, logged, *self);
        }
        Ok(())
    }

    /// Forgets what is cached: no later sequence reuses what was computed before this.
    pub fn reset_cache(&mut self)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            forall|l: Link| #[trigger]
                linked(*old(self), l) ==> takes(*final(self), l, model::Step::Reset) && linked(
                    *final(self),
                    l.with(model::after(l.engine, model::Step::Reset)),
                ),
    {
        let ghost before = *self;
        let mut g: usize = 0;
        while g < self.groups.len()
            invariant
                g <= self.groups@.len(),
                *self == (Scheduler { groups: self.groups, ..before }),
                groups_frame(before.config, before.groups@, self.groups@, -1),
                forall|h: int, x: int|
                    #![trigger self.groups@[h].cached(x)]
                    0 <= h < g ==> self.groups@[h].cached(x) is None,
                all_logged(before.groups@, self.groups@),
            decreases self.groups@.len() - g,
        {
            let ghost prev = self.groups@;
            self.groups[g].reset();
            proof {
                lemma_logged_none(prev[g as int], self.groups@[g as int], -1);
                lemma_next_logged(before.config, before.groups@, prev, self.groups@, g as int, -1);
            }
            g += 1;
        }
        proof {
            lemma_one_seat(before, *self, -1);
            assert forall|l: Link| #[trigger] linked(before, l) implies takes(
                *self,
                l,
                model::Step::Reset,
            ) && linked(*self, l.with(model::after(l.engine, model::Step::Reset))) by {
                lemma_reset_takes(before, *self, l);
            }
        }
    }
}

} // verus!
