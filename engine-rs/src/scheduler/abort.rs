//! Sequences are found by their id, and may be aborted.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
#[cfg(verus_only)]
use vosti_spec::model;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// The entry of the sequence with this id, whatever its phase but free.
    pub fn find(&self, id: u64) -> (index: Option<u32>)
        requires
            self.inv(),
        ensures
            index matches Some(i) ==> {
                &&& i < self.seqs@.len()
                &&& id == spec_seq_id(i, self.seqs@[i as int].generation)
                &&& !(self.seqs@[i as int].phase is Free)
            },
            index is None ==> !self.alive(id),
            forall|i: int|
                #![trigger name_of(*self, i)]
                0 <= i < self.seqs@.len() && id == name_of(*self, i) ==> i == place(id),
    {
        let index = (id % 0x1_0000_0000) as u32;
        let generation = (id / 0x1_0000_0000) as u32;
        if index as usize >= self.seqs.len() || self.seqs[index as usize].generation != generation {
            return None;
        }
        match self.seqs[index as usize].phase {
            Phase::Free => None,
            _ => Some(index),
        }
    }

    /// Ends a sequence; `false` when it was over already. Its blocks are free at once, or as soon
    /// as the plans that name it are over.
    pub fn abort(&mut self, id: u64) -> (done: bool)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            final(self).draft == 0,
            done <==> old(self).alive(id),
            !done ==> *final(self) == *old(self),
            done ==> final(self).settled(),
            done ==> forall|l: Link| #[trigger]
                linked(*old(self), l) ==> l.names.contains(id) && takes(
                    *final(self),
                    l,
                    model::Step::Abort { id: l.names.index_of(id) },
                ),
    {
        let i = match self.find(id) {
            Some(i) => i,
            None => {
                return false;
            },
        };
        let ghost before = *self;
        match self.seqs[i as usize].phase {
            Phase::Waiting => {
                self.seqs[i as usize].phase = Phase::Dropped;
                self.seqs[i as usize].tokens = Vec::new();
                self.seqs[i as usize].stop = Vec::new();
            },
            Phase::Running => {
                self.seqs[i as usize].phase = Phase::Draining;
                proof {
                    assert(self.only_seat(&before, before.seqs@[i as int].seat as int));
                    lemma_same_lists(before, *self, i as int);
                    assert forall|m: int|
                        0 <= m < self.queue@.len() implies #[trigger] self.queued_at(m) by {
                        assert(before.seqs@[before.queue@[m].seq as int].live());
                    }
                }
            },
            _ => {
                return false;
            },
        }
        let ghost given_up = *self;
        self.settle();
        proof {
            assert forall|l: Link| #[trigger] linked(before, l) implies l.names.contains(id)
                && takes(*self, l, model::Step::Abort { id: l.names.index_of(id) }) by {
                lemma_id(before, l, i as int);
                lemma_abort_takes(before, given_up, l, i as int);
                lemma_takes_later(
                    given_up,
                    *self,
                    l,
                    model::Step::Abort { id: l.names.index_of(id) },
                );
            }
        }
        true
    }
}

} // verus!
