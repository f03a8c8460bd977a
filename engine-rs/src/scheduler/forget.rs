//! What was aborted while it waited leaves the queue when it comes to the front.
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
    /// An aborted sequence at the front of the waiting queue leaves it.
    pub(super) fn forget_front(&mut self)
        requires
            old(self).inv(),
            old(self).waiting@.len() > 0,
            old(self).seqs@[old(self).waiting@[0] as int].phase is Dropped,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).waiting@ == old(self).waiting@.drop_first(),
            final(self).only_seq(old(self), old(self).waiting@[0] as int),
            final(self).seqs@[old(self).waiting@[0] as int].phase is Free,
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
                lemma_unseen(before, *self);
            }
        }
    }
}

/// An aborted sequence left the front of the waiting queue.
pub(super) proof fn lemma_forgot(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        a.waiting@.len() > 0 && a.waiting@[0] == i,
        0 <= i < a.seqs@.len(),
        a.seqs@[i].phase is Dropped,
        b.only_seq(&a, i),
        b.seqs@[i].phase is Free && b.seqs@[i].emptied(),
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
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.running@.contains(
        j as u32,
    ) by {
        assert(b.seqs@[j] == a.seqs@[j]);
    }
    assert forall|m: int| 0 <= m < b.waiting@.len() implies {
        &&& (#[trigger] b.waiting@[m]) < b.seqs@.len()
        &&& (b.seqs@[b.waiting@[m] as int].phase is Waiting
            || b.seqs@[b.waiting@[m] as int].phase is Dropped)
    } by {
        assert(b.waiting@[m] == a.waiting@[m + 1]);
        assert(a.waiting@[m + 1] != a.waiting@[0]);
        assert(b.seqs@[a.waiting@[m + 1] as int] == a.seqs@[a.waiting@[m + 1] as int]);
    }
    assert forall|j: int|
        0 <= j < b.seqs@.len() && ((#[trigger] b.seqs@[j]).phase is Waiting
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
        assert forall|m: int| 0 <= m < a.free_entries@.len() implies (#[trigger] a.free_entries@[m])
            != i by {}
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
