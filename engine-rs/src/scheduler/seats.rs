//! Sequences come to a seat, are preempted from it, and leave it.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// Takes the seat and the blocks of the youngest running sequence; it waits again, first in
    /// line, with all its tokens, and will recompute.
    pub fn preempt_last(&mut self)
        requires
            old(self).inv(),
            old(self).running@.len() > 0,
            ({
                let s = old(self).seqs@[old(self).running@.last() as int];
                s.phase is Running && s.in_flight == 0
            }),
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).only_seq(old(self), old(self).running@.last() as int),
            final(self).seqs@[old(self).running@.last() as int].phase is Waiting,
            final(self).running@ == old(self).running@.drop_last(),
            final(self).waiting@ == seq![old(self).running@.last()] + old(self).waiting@,
            final(self).same_work(old(self)),
            final(self).only_seat(
                old(self),
                old(self).seqs@[old(self).running@.last() as int].seat as int,
            ),
    {
        let ghost before = *self;
        let i = match self.running.pop() {
            Some(i) => i,
            None => {
                assert(false);
                0
            },
        };
        proof {
            assert(self.running@ =~= before.running@.drop_last());
            assert(before.running@[before.running@.len() - 1] == i);
            assert(before.seqs@[i as int].live());
            assert(before.seqs@[i as int].wf(before.config));
            assert(track_ok(before.queue@, i as int, before.seqs@[i as int]));
            let s = before.seqs@[i as int];
            lemma_track_none(
                before.queue@,
                i as int,
                Track { ok: true, pos: s.computed as int, len: s.len() },
            );
        }
        let seat = self.seqs[i as usize].seat;
        release_all(Ghost(self.config), &mut self.groups, seat);
        self.free_seats.push(seat);
        self.seqs[i as usize].phase = Phase::Waiting;
        self.seqs[i as usize].computed = 0;
        self.seqs[i as usize].planned = 0;
        self.waiting.push_front(i);
        self.preemptions = self.preemptions.wrapping_add(1);
        proof {
            lemma_left_seat(before, *self, i as int, before.running@.len() - 1);
            let w = before.waiting@;
            assert(self.waiting@ =~= seq![i] + w);
            assert forall|k: int| 0 <= k < w.len() implies #[trigger] w[k] != i by {
                assert(!(before.seqs@[w[k] as int].live()));
            }
            assert(self.waiting@.no_duplicates());
            assert forall|j: int|
                0 <= j < self.seqs@.len() && queued(
                    #[trigger] self.seqs@[j],
                ) implies self.waiting@.contains(j as u32) by {
                if j == i {
                    assert(self.waiting@[0] == i);
                } else {
                    assert(self.seqs@[j] == before.seqs@[j]);
                    assert(w.contains(j as u32));
                    let k = w.index_of(j as u32);
                    assert(self.waiting@[k + 1] == j as u32);
                }
            }
            assert forall|k: int| 0 <= k < self.waiting@.len() implies #[trigger] self.waits_at(
                k,
            ) by {
                if k > 0 {
                    assert(self.waiting@[k] == w[k - 1]);
                }
            }
            assert(self.waiting_ok());
            assert(self.free_entries_ok());
            lemma_preempt_refines(before, *self, i as int);
        }
    }
}

} // verus!
