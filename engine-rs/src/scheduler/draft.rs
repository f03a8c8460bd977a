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

    pub proof fn lemma_draft_grows(&self, k: int, m: int)
        requires
            self.draft_within(k),
            k <= m <= self.running@.len(),
        ensures
            self.draft_within(m),
    {
        assert forall|a: int| #![trigger self.queue@[a]] self.in_draft(a) implies among(
            self.running@,
            m,
            self.queue@[a].seq,
        ) by {
            let i = self.queue@[a].seq;
            let x = choose|x: int| 0 <= x < k && #[trigger] self.running@[x] == i;
            assert(self.running@[x] == i);
        }
    }

    /// The first `k` running sequences are the same, and so is the draft.
    pub(super) proof fn lemma_draft_kept(&self, o: Scheduler, k: int)
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
        assert forall|a: int| #![trigger self.queue@[a]] self.in_draft(a) implies among(
            self.running@,
            k,
            self.queue@[a].seq,
        ) by {
            let i = o.queue@[a].seq;
            assert(o.in_draft(a));
            let x = choose|x: int| 0 <= x < k && #[trigger] o.running@[x] == i;
            assert(self.running@[x] == o.running@[x]);
        }
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
        assert forall|a: int| #![trigger self.queue@[a]] self.in_draft(a) implies self.queue@[a].seq
            != self.running@[k] by {
            let i = self.queue@[a].seq;
            let x = choose|x: int| 0 <= x < k && #[trigger] self.running@[x] == i;
            assert(self.running@[x] != self.running@[k]);
        }
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

} // verus!
