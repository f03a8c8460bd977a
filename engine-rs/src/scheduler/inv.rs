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

impl Scheduler {
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
            0 <= k < self.running@.len() ==> {
                &&& (#[trigger] self.running@[k]) < self.seqs@.len()
                &&& self.seqs@[self.running@[k] as int].live()
            }
        &&& forall|i: int|
            0 <= i < self.seqs@.len() && (#[trigger] self.seqs@[i]).live()
                ==> self.running@.contains(i as u32)
    }

    /// The waiting queue holds exactly the sequences that wait, once each.
    pub open spec fn waiting_ok(&self) -> bool {
        &&& self.waiting@.no_duplicates()
        &&& forall|k: int|
            0 <= k < self.waiting@.len() ==> {
                &&& (#[trigger] self.waiting@[k]) < self.seqs@.len()
                &&& (self.seqs@[self.waiting@[k] as int].phase is Waiting
                    || self.seqs@[self.waiting@[k] as int].phase is Dropped)
            }
        &&& forall|i: int|
            0 <= i < self.seqs@.len() && ((#[trigger] self.seqs@[i]).phase is Waiting
                || self.seqs@[i].phase is Dropped) ==> self.waiting@.contains(i as u32)
    }

    pub open spec fn free_entries_ok(&self) -> bool {
        &&& self.free_entries@.no_duplicates()
        &&& forall|k: int|
            0 <= k < self.free_entries@.len() ==> {
                &&& (#[trigger] self.free_entries@[k]) < self.seqs@.len()
                &&& self.seqs@[self.free_entries@[k] as int].phase is Free
            }
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
            0 <= k < self.free_seats@.len() && 0 <= g < self.groups@.len() ==> self.groups@[g].seat(
                self.free_seats@[k] as int,
            ).table.len() == 0
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
                && self.seqs@[i].phase is Running ==> seat_ok(
                self.seqs@[i],
                self.groups@[g].seat(self.seqs@[i].seat as int),
                self.config.block_size,
            )
    }

    /// The queue names live sequences, and leads each running one to what is planned.
    pub open spec fn queue_ok(&self) -> bool {
        &&& forall|k: int|
            0 <= k < self.queue@.len() ==> {
                &&& (#[trigger] self.queue@[k]).seq < self.seqs@.len()
                &&& self.seqs@[self.queue@[k].seq as int].live()
                &&& self.queue@[k].seat == self.seqs@[self.queue@[k].seq as int].seat
            }
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
}

} // verus!
