//! What the lists, the seats and the tables say still holds when one sequence changed.
#[cfg(verus_only)]
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// The seat of sequence `i`; none if there is no such sequence.
pub open spec fn seat_of(s: Scheduler, i: int) -> int {
    if 0 <= i < s.seqs@.len() {
        s.seqs@[i].seat as int
    } else {
        -1
    }
}

/// Only sequence `i`, if there is one, changed: it kept its seat, and stands where it should. The
/// lists are the same.
pub open spec fn stays(a: Scheduler, b: Scheduler, i: int) -> bool {
    &&& b.only_seq(&a, i)
    &&& b.running == a.running
    &&& b.waiting == a.waiting
    &&& b.free_seats == a.free_seats
    &&& b.free_entries == a.free_entries
    &&& groups_frame(a.config, a.groups@, b.groups@, seat_of(a, i))
    &&& 0 <= i < a.seqs@.len() ==> {
        &&& a.seqs@[i].live() && b.seqs@[i].live()
        &&& b.seqs@[i].seat == a.seqs@[i].seat
        &&& b.seqs@[i].wf(b.config)
        &&& b.seqs@[i].phase is Running ==> all_hold(
            b.seqs@[i],
            b.groups@,
            seat_of(a, i),
            b.config.block_size,
        )
    }
}

pub proof fn lemma_same_lists(a: Scheduler, b: Scheduler, i: int)
    requires
        a.groups_ok() && a.seqs_ok() && a.running_ok() && a.waiting_ok() && a.free_entries_ok()
            && a.seats_ok() && a.tables_ok(),
        stays(a, b, i),
    ensures
        b.groups_ok() && b.seqs_ok() && b.running_ok() && b.waiting_ok() && b.free_entries_ok()
            && b.seats_ok() && b.tables_ok(),
{
}

/// Only the tables of sequence `i`, if there is one, are others, and they do as well.
pub(super) proof fn lemma_one_seat(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        b == (Scheduler { groups: b.groups, ..a }),
        stays(a, b, i),
    ensures
        b.inv(),
{
}

/// What left the front of the waiting queue does not wait.
pub(super) proof fn lemma_front_left(a: Scheduler, b: Scheduler, i: int)
    requires
        a.waiting_ok(),
        a.waiting@.len() > 0 && a.waiting@[0] == i,
        b.waiting@ == a.waiting@.drop_first(),
        b.only_seq(&a, i),
        a.seqs@.len() <= u32::MAX,
        !queued(b.seqs@[i]),
    ensures
        b.waiting_ok(),
{
    assert forall|j: int|
        0 <= j < b.seqs@.len() && queued(#[trigger] b.seqs@[j]) implies b.waiting@.contains(
        j as u32,
    ) by {
        assert(b.seqs@[j] == a.seqs@[j]);
        let m = a.waiting@.index_of(j as u32);
        assert(m > 0);
        assert(b.waiting@[m - 1] == j as u32);
    }
    assert(b.waiting@.no_duplicates());
}

/// The entry of sequence `i` became free.
pub(super) proof fn lemma_entry_freed(a: Scheduler, b: Scheduler, i: int)
    requires
        a.free_entries_ok(),
        b.only_seq(&a, i),
        0 <= i < b.seqs@.len() <= u32::MAX,
        !(a.seqs@[i].phase is Free) && b.seqs@[i].phase is Free,
        b.free_entries@ == a.free_entries@ || b.free_entries@ == a.free_entries@.push(i as u32),
    ensures
        b.free_entries_ok(),
{
}

/// A sequence without a seat changed: what is said of seats, tables and queue still holds.
pub(super) proof fn lemma_idle_entry(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        0 <= i < a.seqs@.len(),
        !a.seqs@[i].live() && !b.seqs@[i].live(),
        b.only_seq(&a, i),
        b == (Scheduler { seqs: b.seqs, free_entries: b.free_entries, waiting: b.waiting, ..a }),
        b.seqs@[i].wf(b.config),
        b.waiting_ok(),
        b.free_entries_ok(),
    ensures
        b.inv(),
{
}

} // verus!
