//! What is over gives back its seat, its blocks and its entry.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Nothing that is over still holds a seat.
pub open spec fn drained(s: Sequence) -> bool {
    s.phase is Draining ==> s.in_flight > 0
}

impl Scheduler {
    pub open spec fn settled(&self) -> bool {
        forall|i: int| 0 <= i < self.seqs@.len() ==> drained(#[trigger] self.seqs@[i])
    }

    /// Frees the entry of sequence `i`, which is in no list any more.
    pub fn free_entry(&mut self, i: u32)
        requires
            i < old(self).seqs@.len() <= u32::MAX,
        ensures
            final(self).only_seq(old(self), i as int),
            final(self).seqs@[i as int].phase is Free,
            *final(self) == (Scheduler {
                seqs: final(self).seqs,
                free_entries: final(self).free_entries,
                ..*old(self)
            }),
            final(self).seqs@[i as int].emptied(),
            final(self).free_entries@ == if old(self).seqs@[i as int].generation < u32::MAX {
                old(self).free_entries@.push(i)
            } else {
                old(self).free_entries@
            },
            same_names(*old(self), *final(self)),
    {
        let seq = &mut self.seqs[i as usize];
        seq.phase = Phase::Free;
        seq.tokens = Vec::new();
        seq.stop = Vec::new();
        if seq.generation < u32::MAX {
            seq.generation += 1;
            self.free_entries.push(i);
        }
    }

    /// The `k`-th running sequence, over and with nothing in flight, leaves.
    pub fn retire(&mut self, k: usize)
        requires
            old(self).inv(),
            k < old(self).running@.len(),
            ({
                let s = old(self).seqs@[old(self).running@[k as int] as int];
                s.phase is Draining && s.in_flight == 0
            }),
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).only_seq(old(self), old(self).running@[k as int] as int),
            final(self).seqs@[old(self).running@[k as int] as int].phase is Free,
            final(self).running@ == old(self).running@.remove(k as int),
            final(self).waiting == old(self).waiting,
            final(self).same_work(old(self)),
    {
        let ghost before = *self;
        let i = self.running.remove(k);
        let seat = self.seqs[i as usize].seat;
        release_all(Ghost(self.config), &mut self.groups, seat);
        self.free_seats.push(seat);
        self.free_entry(i);
        proof {
            lemma_left_seat(before, *self, i as int, k as int);
            self.lemma_freed(before, i as int);
            lemma_finish_refines(before, *self, i as int);
        }
    }

    /// What the waiting queue and the free entries say still holds when `i`, in neither, became
    /// free.
    proof fn lemma_freed(&self, before: Scheduler, i: int)
        requires
            before.waiting_ok(),
            before.free_entries_ok(),
            self.only_seq(&before, i),
            0 <= i < self.seqs@.len() <= u32::MAX,
            !(before.seqs@[i].phase is Waiting || before.seqs@[i].phase is Dropped
                || before.seqs@[i].phase is Free),
            self.seqs@[i].phase is Free,
            self.waiting == before.waiting,
            self.free_entries@ == before.free_entries@ || self.free_entries@
                == before.free_entries@.push(i as u32),
        ensures
            self.waiting_ok(),
            self.free_entries_ok(),
    {
    }

    /// What runs is as it was.
    pub open spec fn unretired(&self, o: &Self) -> bool {
        &&& self.seqs@.len() == o.seqs@.len()
        &&& forall|i: int|
            0 <= i < self.seqs@.len() && (#[trigger] self.seqs@[i]).phase is Running
                ==> self.seqs@[i] == o.seqs@[i]
    }

    /// Lets go of all that is over.
    pub fn settle(&mut self)
        requires
            old(self).inv(),
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).settled(),
            final(self).unretired(old(self)),
            final(self).same_work(old(self)),
    {
        let mut k: usize = 0;
        proof {
            lemma_refines_self(*self);
        }
        while k < self.running.len()
            invariant
                self.inv(),
                refines(*old(self), *self),
                self.unretired(old(self)),
                self.same_work(old(self)),
                forall|m: int|
                    0 <= m < k ==> drained(self.seqs@[(#[trigger] self.running@[m]) as int]),
                k <= self.running@.len(),
            decreases self.running@.len() - k,
        {
            let i = self.running[k] as usize;
            assert(self.seqs@[self.running@[k as int] as int].live());
            let over = matches!(self.seqs[i].phase, Phase::Draining) && self.seqs[i].in_flight == 0;
            if over {
                let ghost before = *self;
                self.retire(k);
                proof {
                    lemma_refines_trans(*old(self), before, *self);
                    assert forall|m: int| 0 <= m < k implies drained(
                        self.seqs@[(#[trigger] self.running@[m]) as int],
                    ) by {
                        assert(self.running@[m] == before.running@[m]);
                        assert(before.running@[m] != before.running@[k as int]);
                        assert(drained(before.seqs@[before.running@[m] as int]));
                        assert(self.seqs@[self.running@[m] as int]
                            == before.seqs@[before.running@[m] as int]);
                    }
                }
            } else {
                k += 1;
            }
        }
        proof {
            assert forall|i: int| 0 <= i < self.seqs@.len() implies drained(
                #[trigger] self.seqs@[i],
            ) by {
                if self.seqs@[i].live() {
                    assert(self.running@.contains(i as u32));
                    let m = self.running@.index_of(i as u32);
                    assert(drained(self.seqs@[self.running@[m] as int]));
                }
            }
        }
    }
}

} // verus!
