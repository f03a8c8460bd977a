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
                lemma_front_left(before, *self, i as int);
                lemma_entry_freed(before, *self, i as int);
                lemma_idle_entry(before, *self, i as int);
                lemma_unseen(before, *self);
            }
        }
    }
}

} // verus!
