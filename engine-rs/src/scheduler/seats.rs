//! Sequences come to a seat, are preempted from it, and leave it.
use super::*;
use crate::layer_group::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// Takes the seat and the blocks of the youngest running sequence; it waits again, first in line,
    /// with all its tokens, and will recompute.
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
            final(self).only_seq(old(self), old(self).running@.last() as int),
            final(self).running@ == old(self).running@.drop_last(),
            final(self).waiting@ == seq![old(self).running@.last()] + old(self).waiting@,
            final(self).queue == old(self).queue,
            final(self).plans == old(self).plans,
            final(self).draft == old(self).draft,
            final(self).draft_rows == old(self).draft_rows,
            final(self).next_plan == old(self).next_plan,
            groups_frame(
                old(self).config,
                old(self).groups@,
                final(self).groups@,
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
        release_all(&self.config, &mut self.groups, seat);
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
            assert forall|j: int| 0 <= j < self.seqs@.len() && ((#[trigger] self.seqs@[j]).phase is Waiting
                || self.seqs@[j].phase is Dropped) implies self.waiting@.contains(j as u32) by {
                if j == i {
                    assert(self.waiting@[0] == i);
                } else {
                    assert(self.seqs@[j] == before.seqs@[j]);
                    assert(w.contains(j as u32));
                    let k = w.index_of(j as u32);
                    assert(self.waiting@[k + 1] == j as u32);
                }
            }
            assert forall|k: int| 0 <= k < self.waiting@.len() implies {
                &&& (#[trigger] self.waiting@[k]) < self.seqs@.len()
                &&& (self.seqs@[self.waiting@[k] as int].phase is Waiting
                    || self.seqs@[self.waiting@[k] as int].phase is Dropped)
            } by {
                if k > 0 {
                    assert(self.waiting@[k] == w[k - 1]);
                }
            }
            assert(self.waiting_ok());
            assert(self.free_entries_ok());
        }
    }
}

/// Sequence `i`, the `k`-th running one with no entry in the queue, left its seat: what the seats, the
/// tables, the queue and the running list say of the others still holds.
pub proof fn lemma_left_seat(a: Scheduler, b: Scheduler, i: int, k: int)
    requires
        a.inv(),
        b.only_seq(&a, i),
        0 <= k < a.running@.len(),
        a.running@[k] == i,
        0 <= i < a.seqs@.len(),
        a.seqs@[i].live() && a.seqs@[i].in_flight == 0,
        !b.seqs@[i].live(),
        b.seqs@[i].wf(b.config),
        b.running@ == a.running@.remove(k),
        b.free_seats@ == a.free_seats@.push(a.seqs@[i].seat),
        b.queue == a.queue,
        b.plans == a.plans,
        b.draft == a.draft,
        b.draft_rows == a.draft_rows,
        groups_frame(a.config, a.groups@, b.groups@, a.seqs@[i].seat as int),
        forall|g: int| 0 <= g < b.groups@.len() ==> (#[trigger] b.groups@[g]).seat(
            a.seqs@[i].seat as int,
        ).table.len() == 0,
    ensures
        b.groups_ok(),
        b.seqs_ok(),
        b.running_ok(),
        b.seats_ok(),
        b.tables_ok(),
        b.queue_ok(),
        b.plans_ok(0),
        b.draft_ok(),
{
    let seat = a.seqs@[i].seat;
    // running
    assert forall|j: int| 0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.running@.contains(j as u32) by {
        assert(j != i);
        assert(b.seqs@[j] == a.seqs@[j]);
        assert(a.running@.contains(j as u32));
        let m = a.running@.index_of(j as u32);
        assert(m != k);
        assert(b.running@[if m < k { m } else { m - 1 }] == j as u32);
    }
    assert forall|m: int| 0 <= m < b.running@.len() implies {
        &&& (#[trigger] b.running@[m]) < b.seqs@.len()
        &&& b.seqs@[b.running@[m] as int].live()
    } by {
        let m2 = if m < k { m } else { m + 1 };
        assert(b.running@[m] == a.running@[m2]);
        assert(a.running@[m2] != a.running@[k]);
        assert(b.seqs@[a.running@[m2] as int] == a.seqs@[a.running@[m2] as int]);
    }
    assert(b.running@.no_duplicates());
    // seats
    assert(!a.free_seats@.contains(seat));
    assert(b.free_seats@.no_duplicates());
    assert forall|j: int| 0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.seqs@[j].seat
        < b.config.max_seqs && !b.free_seats@.contains(b.seqs@[j].seat) by {
        assert(b.seqs@[j] == a.seqs@[j]);
        assert(a.seqs@[j].seat != a.seqs@[i].seat);
        if b.free_seats@.contains(b.seqs@[j].seat) {
            let m = b.free_seats@.index_of(b.seqs@[j].seat);
            assert(m < a.free_seats@.len());
            assert(a.free_seats@[m] == b.seqs@[j].seat);
            assert(a.free_seats@.contains(b.seqs@[j].seat));
        }
    }
    assert forall|m: int, g: int| #![trigger b.free_seats@[m], b.groups@[g]]
        0 <= m < b.free_seats@.len() && 0 <= g < b.groups@.len() implies b.groups@[g].seat(
        b.free_seats@[m] as int,
    ).table.len() == 0 by {
        if m < a.free_seats@.len() {
            assert(a.free_seats@[m] == b.free_seats@[m]);
            assert(a.free_seats@.contains(a.free_seats@[m]));
            assert(b.groups@[g].seat(a.free_seats@[m] as int) == a.groups@[g].seat(a.free_seats@[m] as int));
        }
    }
    assert(b.seats_ok());
    // tables
    assert forall|j: int, g: int| #![trigger b.seqs@[j], b.groups@[g]]
        0 <= j < b.seqs@.len() && 0 <= g < b.groups@.len() && b.seqs@[j].phase is Running implies seat_ok(
        b.seqs@[j],
        b.groups@[g].seat(b.seqs@[j].seat as int),
        b.config.block_size,
    ) by {
        assert(b.seqs@[j] == a.seqs@[j]);
        assert(a.seqs@[j].seat != a.seqs@[i].seat);
        assert(b.groups@[g].seat(b.seqs@[j].seat as int) == a.groups@[g].seat(b.seqs@[j].seat as int));
    }
    // queue
    assert forall|m: int| 0 <= m < b.queue@.len() implies {
        &&& (#[trigger] b.queue@[m]).seq < b.seqs@.len()
        &&& b.seqs@[b.queue@[m].seq as int].live()
        &&& b.queue@[m].seat == b.seqs@[b.queue@[m].seq as int].seat
    } by {
        lemma_entries_some(a.queue@, m);
        assert(a.queue@[m].seq != i);
        assert(b.seqs@[a.queue@[m].seq as int] == a.seqs@[a.queue@[m].seq as int]);
    }
}

} // verus!
