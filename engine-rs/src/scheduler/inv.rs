use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Every group is whole and has the engine's shape.
pub open spec fn group_ok(c: Config, g: LayerGroup) -> bool {
    &&& g.inv()
    &&& g.block_size() == c.block_size
    &&& g.seats() == c.max_seqs
    &&& g.num_blocks() >= c.capacity
    &&& g.row_len() * c.block_size >= c.max_model_len
}

/// In one group: the seat's table covers what is planned and holds what is computed.
pub open spec fn seat_ok(s: Sequence, v: SeatView, block_size: u32) -> bool {
    &&& s.planned <= v.table.len() * block_size
    &&& v.sealed == s.computed as nat / block_size as nat
    &&& holds(v, s.tokens@, s.computed as int)
}

pub open spec fn all_hold(
    s: Sequence,
    groups: Seq<LayerGroup>,
    seat: int,
    block_size: u32,
) -> bool {
    forall|g: int|
        0 <= g < groups.len() ==> seat_ok(s, (#[trigger] groups[g]).seat(seat), block_size)
}

/// What a running sequence becomes when all that is in flight is committed.
pub open spec fn track_ok(q: Seq<Entry>, i: int, s: Sequence) -> bool {
    let t = track(q, i, Track { ok: true, pos: s.computed as int, len: s.len() });
    t.ok && t.pos == s.planned && t.len == s.len() + s.pending
}

/// An entry of the plan being made: rows above what is computed, up to what is planned.
pub open spec fn draft_entry_ok(e: Entry, s: Sequence) -> bool {
    &&& s.phase is Running
    &&& s.computed <= e.from < e.to == s.planned
}

/// Is in the waiting queue.
pub open spec fn queued(s: Sequence) -> bool {
    s.phase is Waiting || s.phase is Dropped
}

impl Scheduler {
    pub open spec fn sits_at(&self, k: int) -> bool {
        &&& self.running@[k] < self.seqs@.len()
        &&& self.seqs@[self.running@[k] as int].live()
    }

    pub open spec fn waits_at(&self, k: int) -> bool {
        &&& self.waiting@[k] < self.seqs@.len()
        &&& queued(self.seqs@[self.waiting@[k] as int])
    }

    pub open spec fn free_at(&self, k: int) -> bool {
        &&& self.free_entries@[k] < self.seqs@.len()
        &&& self.seqs@[self.free_entries@[k] as int].phase is Free
    }

    /// Entry `k` of the queue is of a sequence with this seat.
    pub open spec fn queued_at(&self, k: int) -> bool {
        let e = self.queue@[k];
        &&& e.seq < self.seqs@.len()
        &&& self.seqs@[e.seq as int].live()
        &&& e.seat == self.seqs@[e.seq as int].seat
    }

    /// In group `g` the seat of sequence `i` has what it is to have.
    pub open spec fn table_ok(&self, i: int, g: int) -> bool {
        let s = self.seqs@[i];
        seat_ok(s, self.groups@[g].seat(s.seat as int), self.config.block_size)
    }

    pub open spec fn seat_empty(&self, k: int, g: int) -> bool {
        self.groups@[g].seat(self.free_seats@[k] as int).table.len() == 0
    }

    pub open spec fn groups_ok(&self) -> bool {
        &&& self.config.wf()
        &&& forall|g: int|
            0 <= g < self.groups@.len() ==> group_ok(self.config, #[trigger] self.groups@[g])
    }

    pub open spec fn seqs_ok(&self) -> bool {
        &&& self.seqs@.len() <= u32::MAX
        &&& forall|i: int| 0 <= i < self.seqs@.len() ==> (#[trigger] self.seqs@[i]).wf(self.config)
    }

    /// The running list holds exactly the sequences with a seat, once each.
    pub open spec fn running_ok(&self) -> bool {
        &&& self.running@.no_duplicates()
        &&& forall|k: int|
            #![trigger self.running@[k]]
            0 <= k < self.running@.len() ==> self.sits_at(k)
        &&& forall|i: int|
            0 <= i < self.seqs@.len() && (#[trigger] self.seqs@[i]).live()
                ==> self.running@.contains(i as u32)
    }

    /// The waiting queue holds exactly the sequences that wait, once each.
    pub open spec fn waiting_ok(&self) -> bool {
        &&& self.waiting@.no_duplicates()
        &&& forall|k: int|
            #![trigger self.waiting@[k]]
            0 <= k < self.waiting@.len() ==> self.waits_at(k)
        &&& forall|i: int|
            0 <= i < self.seqs@.len() && queued(#[trigger] self.seqs@[i])
                ==> self.waiting@.contains(i as u32)
    }

    pub open spec fn free_entries_ok(&self) -> bool {
        &&& self.free_entries@.no_duplicates()
        &&& forall|k: int|
            #![trigger self.free_entries@[k]]
            0 <= k < self.free_entries@.len() ==> self.free_at(k)
    }

    /// Each seat is free, its tables empty, or has one sequence.
    pub open spec fn seats_ok(&self) -> bool {
        &&& self.free_seats@.no_duplicates()
        &&& self.running@.len() + self.free_seats@.len() == self.config.max_seqs
        &&& forall|k: int|
            0 <= k < self.free_seats@.len() ==> (#[trigger] self.free_seats@[k])
                < self.config.max_seqs
        &&& forall|k: int, g: int|
            #![trigger self.free_seats@[k], self.groups@[g]]
            0 <= k < self.free_seats@.len() && 0 <= g < self.groups@.len() ==> self.seat_empty(k, g)
        &&& forall|i: int|
            0 <= i < self.seqs@.len() && (#[trigger] self.seqs@[i]).live() ==> {
                &&& self.seqs@[i].seat < self.config.max_seqs
                &&& !self.free_seats@.contains(self.seqs@[i].seat)
            }
        &&& forall|i: int, j: int|
            #![trigger self.seqs@[i], self.seqs@[j]]
            0 <= i < self.seqs@.len() && 0 <= j < self.seqs@.len() && i != j && self.seqs@[i].live()
                && self.seqs@[j].live() ==> self.seqs@[i].seat != self.seqs@[j].seat
    }

    /// Tables and KV of the running sequences.
    pub open spec fn tables_ok(&self) -> bool {
        forall|i: int, g: int|
            #![trigger self.seqs@[i], self.groups@[g]]
            0 <= i < self.seqs@.len() && 0 <= g < self.groups@.len()
                && self.seqs@[i].phase is Running ==> self.table_ok(i, g)
    }

    /// The queue names live sequences, and leads each running one to what is planned.
    pub open spec fn queue_ok(&self) -> bool {
        &&& forall|k: int|
            #![trigger self.queue@[k]]
            0 <= k < self.queue@.len() ==> self.queued_at(k)
        &&& forall|i: int|
            0 <= i < self.seqs@.len() && (#[trigger] self.seqs@[i]).live()
                ==> self.seqs@[i].in_flight == entries_of(self.queue@, i)
        &&& forall|i: int|
            0 <= i < self.seqs@.len() && (#[trigger] self.seqs@[i]).phase is Running ==> track_ok(
                self.queue@,
                i,
                self.seqs@[i],
            )
    }

    /// The queue holds `open` entries of a plan being committed, those of the plans in flight, the
    /// draft.
    pub open spec fn plans_ok(&self, open: nat) -> bool {
        open + entries_in(self.plans@) + self.draft == self.queue@.len()
    }

    /// Entry `a` of the queue belongs to the plan being made.
    pub open spec fn in_draft(&self, a: int) -> bool {
        0 <= a && self.queue@.len() - self.draft <= a < self.queue@.len()
    }

    /// A plan names a sequence once.
    pub open spec fn draft_ok(&self) -> bool {
        &&& self.draft <= self.queue@.len()
        &&& self.draft_rows == span(self.queue@, self.queue@.len() - self.draft)
        &&& forall|a: int, b: int|
            #![trigger self.queue@[a], self.queue@[b]]
            self.in_draft(a) && self.in_draft(b) && a < b ==> self.queue@[a].seq
                != self.queue@[b].seq
        &&& forall|a: int|
            #![trigger self.queue@[a]]
            self.in_draft(a) ==> draft_entry_ok(
                self.queue@[a],
                self.seqs@[self.queue@[a].seq as int],
            )
    }

    pub open spec fn inv_with(&self, open: nat) -> bool {
        &&& self.groups_ok()
        &&& self.seqs_ok()
        &&& self.running_ok()
        &&& self.waiting_ok()
        &&& self.free_entries_ok()
        &&& self.seats_ok()
        &&& self.tables_ok()
        &&& self.queue_ok()
        &&& self.plans_ok(open)
        &&& self.draft_ok()
    }

    pub open spec fn inv(&self) -> bool {
        self.inv_with(0)
    }

    /// Only sequence `i` and its tables may differ.
    pub open spec fn only_seq(&self, o: &Self, i: int) -> bool {
        &&& self.config == o.config
        &&& self.seqs@.len() == o.seqs@.len()
        &&& forall|j: int|
            0 <= j < self.seqs@.len() && j != i ==> #[trigger] self.seqs@[j] == o.seqs@[j]
    }

    /// Of the groups only `seat` may look different.
    pub open spec fn only_seat(&self, o: &Self, seat: int) -> bool {
        groups_frame(o.config, o.groups@, self.groups@, seat)
    }
}

} // verus!
