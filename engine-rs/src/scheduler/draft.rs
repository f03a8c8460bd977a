//! What is known of the plan being made.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
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
        &&& forall|a: int|
            #![trigger self.queue@[a]]
            self.in_draft(a) ==> among(self.running@, k, self.queue@[a].seq)
    }

    /// The first `k` running sequences are the same, and so is the draft.
    pub(super) proof fn lemma_draft_kept(&self, o: Scheduler, k: int, m: int)
        requires
            o.draft_within(k),
            self.queue == o.queue,
            self.draft == o.draft,
            k <= m <= self.running@.len(),
            forall|x: int| 0 <= x < k ==> self.running@[x] == o.running@[x],
        ensures
            self.draft_within(m),
    {
    }

    pub(super) proof fn lemma_not_in_draft(&self, k: int)
        requires
            self.running_ok(),
            self.draft_within(k),
            0 <= k < self.running@.len(),
        ensures
            forall|a: int|
                #![trigger self.queue@[a]]
                self.in_draft(a) ==> self.queue@[a].seq != self.running@[k],
    {
    }

    /// The draft got one more entry, of the `k`-th running sequence.
    pub(super) proof fn lemma_draft_pushed(&self, o: Scheduler, k: int)
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
        assert forall|a: int| #![trigger self.queue@[a]] self.in_draft(a) implies among(
            self.running@,
            k + 1,
            self.queue@[a].seq,
        ) by {
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

/// Some sequence waits or runs.
pub open spec fn unfinished(s: Scheduler) -> bool {
    exists|i: int|
        0 <= i < s.seqs@.len() && ((#[trigger] s.seqs@[i]).phase is Waiting
            || s.seqs@[i].phase is Running)
}

impl Scheduler {
    /// The oldest sequence with a seat runs, and has no row in flight.
    pub open spec fn eldest_ready(&self) -> bool {
        &&& self.running@.len() > 0
        &&& self.seqs@[self.running@[0] as int].phase is Running
        &&& self.seqs@[self.running@[0] as int].in_flight == 0
    }

    /// In this state the next rows of the eldest of `o` come first in the newest plan, and it keeps
    /// its seat.
    pub open spec fn eldest_served(&self, o: Scheduler) -> bool {
        let n = o.queue@.len() as int;
        let i = o.running@[0];
        let e = self.queue@[n];
        &&& self.running@.len() > 0 && self.running@[0] == i
        &&& self.queue@.len() > n
        &&& e.seq == i && e.seat == o.seqs@[i as int].seat
        &&& o.seqs@[i as int].planned == e.from < e.to
    }

    /// A running sequence with nothing in flight has rows to plan.
    pub(super) proof fn lemma_has_rows(&self, i: int)
        requires
            self.inv(),
            0 <= i < self.seqs@.len(),
            self.seqs@[i].phase is Running,
            self.seqs@[i].in_flight == 0,
        ensures
            self.seqs@[i].planned < goal(self.seqs@[i]),
    {
        let s = self.seqs@[i];
        assert(track_ok(self.queue@, i, s));
        lemma_track_none(self.queue@, i, Track { ok: true, pos: s.computed as int, len: s.len() });
    }

    /// Nothing in flight: whoever has a seat runs, with nothing in flight.
    pub(super) proof fn lemma_idle_runs(&self, k: int)
        requires
            self.inv(),
            self.idle(),
            0 <= k < self.running@.len(),
        ensures
            self.seqs@[self.running@[k] as int].phase is Running,
            self.seqs@[self.running@[k] as int].in_flight == 0,
    {
    }
}

} // verus!
