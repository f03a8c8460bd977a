//! A plan that never was: its rows are to be planned again.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// The newest entry in the queue is taken back.
    pub fn cancel_entry(&mut self, Ghost(open): Ghost<nat>)
        requires
            old(self).inv_with(open),
            open > 0,
            old(self).draft == 0,
        ensures
            final(self).inv_with((open - 1) as nat),
            final(self).only_seq(old(self), old(self).queue@.last().seq as int),
            final(self).queue@ == old(self).queue@.drop_last(),
            final(self).plans == old(self).plans,
            final(self).free_entries == old(self).free_entries,
            final(self).draft == 0,
            final(self).next_plan == old(self).next_plan,
            final(self).groups == old(self).groups,
            ({
                let e = old(self).queue@.last();
                let s = old(self).seqs@[e.seq as int];
                final(self).seqs@[e.seq as int] == if s.phase is Running {
                    Sequence {
                        planned: e.from,
                        pending: if e.sampled {
                            (s.pending - 1) as u32
                        } else {
                            s.pending
                        },
                        in_flight: (s.in_flight - 1) as usize,
                        ..s
                    }
                } else {
                    Sequence { in_flight: (s.in_flight - 1) as usize, ..s }
                }
            }),
    {
        let ghost before = *self;
        let e = match self.queue.pop_back() {
            Some(e) => e,
            None => {
                assert(false);
                return;
            },
        };
        let i = e.seq as usize;
        let ghost n = before.queue@.len() - 1;
        proof {
            assert(before.queue@[n] == e);
            assert(self.queue@ =~= before.queue@.drop_last());
            assert(self.queue@.push(e) =~= before.queue@);
            lemma_entries_some(before.queue@, n);
            lemma_track_push_all(self.queue@, e);
            assert(before.seqs@[i as int].live());
            assert(before.seqs@[i as int].wf(before.config));
        }
        let running = self.seqs[i].is_running();
        proof {
            let s = before.seqs@[i as int];
            let t0 = Track { ok: true, pos: s.computed as int, len: s.len() };
            if running {
                assert(track_ok(before.queue@, i as int, s));
                lemma_track_ok(self.queue@, i as int, t0);
            }
        }
        self.seqs[i].in_flight -= 1;
        if running {
            self.seqs[i].planned = e.from;
            if e.sampled {
                self.seqs[i].pending -= 1;
            }
        }
        proof {
            assert(self.only_seat(&before, before.seqs@[i as int].seat as int));
            let s = self.seqs@[i as int];
            assert forall|g: int| 0 <= g < self.groups@.len() && s.phase is Running implies seat_ok(
                s,
                (#[trigger] self.groups@[g]).seat(s.seat as int),
                self.config.block_size,
            ) by {
                assert(seat_ok(
                    before.seqs@[i as int],
                    before.groups@[g].seat(s.seat as int),
                    before.config.block_size,
                ));
            }
            lemma_same_lists(before, *self, i as int);
            self.lemma_cancelled(before, e);
        }
    }

    /// The queue without its last entry leads every sequence to what is planned.
    proof fn lemma_cancelled(&self, a: Scheduler, e: Entry)
        requires
            a.queue_ok(),
            e.seq < a.seqs@.len(),
            a.seqs@[e.seq as int].live(),
            self.only_seq(&a, e.seq as int),
            self.queue@.push(e) == a.queue@,
            self.seqs@[e.seq as int].live(),
            self.seqs@[e.seq as int].seat == a.seqs@[e.seq as int].seat,
            self.seqs@[e.seq as int].in_flight == a.seqs@[e.seq as int].in_flight - 1,
            self.seqs@[e.seq as int].phase is Running ==> track_ok(
                self.queue@,
                e.seq as int,
                self.seqs@[e.seq as int],
            ),
        ensures
            self.queue_ok(),
    {
        lemma_track_push_all(self.queue@, e);
        assert forall|m: int| 0 <= m < self.queue@.len() implies #[trigger] self.queued_at(m) by {
            assert(a.queue@[m] == self.queue@[m]);
            assert(a.seqs@[a.queue@[m].seq as int].live());
        }
        assert forall|j: int|
            0 <= j < self.seqs@.len() && (
            #[trigger] self.seqs@[j]).live() implies self.seqs@[j].in_flight == entries_of(
            self.queue@,
            j,
        ) by {
            if j != e.seq {
                assert(self.seqs@[j] == a.seqs@[j]);
            } else {
                assert(a.seqs@[j].live());
            }
        }
        assert forall|j: int|
            0 <= j < self.seqs@.len() && (
            #[trigger] self.seqs@[j]).phase is Running implies track_ok(
            self.queue@,
            j,
            self.seqs@[j],
        ) by {
            if j != e.seq {
                assert(self.seqs@[j] == a.seqs@[j]);
                assert(track_ok(a.queue@, j, a.seqs@[j]));
            }
        }
    }
}

} // verus!
