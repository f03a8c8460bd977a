//! An entry leaves the queue: the invariant holds again.
#[cfg(verus_only)]
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// The first entry left the queue; its sequence, number `i`, is as it should be after that.
pub(super) proof fn lemma_committed(a: Scheduler, b: Scheduler, i: int, open: nat)
    requires
        a.inv_with(open),
        open > 0,
        a.draft == 0,
        a.queue@.len() > 0,
        a.queue@[0].seq == i,
        0 <= i < a.seqs@.len(),
        b.only_seq(&a, i),
        b.queue@ == a.queue@.drop_first(),
        b.running == a.running,
        b.waiting == a.waiting,
        b.plans == a.plans,
        b.draft == 0,
        b.draft_rows == a.draft_rows,
        b.free_seats == a.free_seats,
        b.free_entries == a.free_entries,
        groups_frame(a.config, a.groups@, b.groups@, a.seqs@[i].seat as int),
        a.seqs@[i].live() && b.seqs@[i].live(),
        b.seqs@[i].seat == a.seqs@[i].seat,
        b.seqs@[i].wf(b.config),
        b.seqs@[i].in_flight == a.seqs@[i].in_flight - 1,
        b.seqs@[i].phase is Running ==> track_ok(b.queue@, i, b.seqs@[i]),
        b.seqs@[i].phase is Running ==> forall|g: int|
            0 <= g < b.groups@.len() ==> seat_ok(
                b.seqs@[i],
                (#[trigger] b.groups@[g]).seat(b.seqs@[i].seat as int),
                b.config.block_size,
            ),
    ensures
        b.inv_with((open - 1) as nat),
{
    lemma_same_lists(a, b, i);
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.seqs@[j].in_flight
        == entries_of(b.queue@, j) by {
        if j != i {
            assert(b.seqs@[j] == a.seqs@[j]);
        }
    }
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).phase is Running implies track_ok(
        b.queue@,
        j,
        b.seqs@[j],
    ) by {
        if j != i {
            assert(b.seqs@[j] == a.seqs@[j]);
            assert(track_ok(a.queue@, j, a.seqs@[j]));
        }
    }
    assert forall|m: int| 0 <= m < b.queue@.len() implies {
        &&& (#[trigger] b.queue@[m]).seq < b.seqs@.len()
        &&& b.seqs@[b.queue@[m].seq as int].live()
        &&& b.queue@[m].seat == b.seqs@[b.queue@[m].seq as int].seat
    } by {
        assert(b.queue@[m] == a.queue@[m + 1]);
        assert(a.seqs@[a.queue@[m + 1].seq as int].live());
    }
    assert(span(b.queue@, b.queue@.len() as int) == 0);
    assert(span(a.queue@, a.queue@.len() as int) == 0);
}

/// Sequence `i` kept its seat, and stands where it should; the lists are the same.
pub proof fn lemma_same_lists(a: Scheduler, b: Scheduler, i: int)
    requires
        a.groups_ok() && a.seqs_ok() && a.running_ok() && a.waiting_ok() && a.free_entries_ok()
            && a.seats_ok() && a.tables_ok(),
        0 <= i < a.seqs@.len(),
        b.only_seq(&a, i),
        b.running == a.running,
        b.waiting == a.waiting,
        b.free_seats == a.free_seats,
        b.free_entries == a.free_entries,
        groups_frame(a.config, a.groups@, b.groups@, a.seqs@[i].seat as int),
        a.seqs@[i].live() && b.seqs@[i].live(),
        b.seqs@[i].seat == a.seqs@[i].seat,
        b.seqs@[i].wf(b.config),
        b.seqs@[i].phase is Running ==> forall|g: int|
            0 <= g < b.groups@.len() ==> seat_ok(
                b.seqs@[i],
                (#[trigger] b.groups@[g]).seat(b.seqs@[i].seat as int),
                b.config.block_size,
            ),
    ensures
        b.groups_ok() && b.seqs_ok() && b.running_ok() && b.waiting_ok() && b.free_entries_ok()
            && b.seats_ok() && b.tables_ok(),
{
    let seat = a.seqs@[i].seat;
    assert forall|m: int| 0 <= m < b.running@.len() implies {
        &&& (#[trigger] b.running@[m]) < b.seqs@.len()
        &&& b.seqs@[b.running@[m] as int].live()
    } by {
        assert(a.seqs@[a.running@[m] as int].live());
    }
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.running@.contains(
        j as u32,
    ) by {
        assert(a.seqs@[j].live());
    }
    assert forall|m: int| 0 <= m < b.waiting@.len() implies {
        &&& (#[trigger] b.waiting@[m]) < b.seqs@.len()
        &&& (b.seqs@[b.waiting@[m] as int].phase is Waiting
            || b.seqs@[b.waiting@[m] as int].phase is Dropped)
    } by {
        assert(a.waiting@[m] != i);
    }
    assert forall|m: int| 0 <= m < b.free_entries@.len() implies {
        &&& (#[trigger] b.free_entries@[m]) < b.seqs@.len()
        &&& b.seqs@[b.free_entries@[m] as int].phase is Free
    } by {
        assert(a.free_entries@[m] != i);
    }
    assert(!a.free_seats@.contains(seat));
    assert forall|m: int, g: int|
        #![trigger b.free_seats@[m], b.groups@[g]]
        0 <= m < b.free_seats@.len() && 0 <= g < b.groups@.len() implies b.groups@[g].seat(
        b.free_seats@[m] as int,
    ).table.len() == 0 by {
        assert(a.free_seats@.contains(a.free_seats@[m]));
        assert(b.groups@[g].seat(a.free_seats@[m] as int) == a.groups@[g].seat(
            a.free_seats@[m] as int,
        ));
    }
    assert forall|x: int, y: int|
        #![trigger b.seqs@[x], b.seqs@[y]]
        0 <= x < b.seqs@.len() && 0 <= y < b.seqs@.len() && x != y && b.seqs@[x].live()
            && b.seqs@[y].live() implies b.seqs@[x].seat != b.seqs@[y].seat by {
        assert(a.seqs@[x].live() && a.seqs@[y].live());
        assert(a.seqs@[x].seat != a.seqs@[y].seat);
    }
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.seqs@[j].seat
        < b.config.max_seqs && !b.free_seats@.contains(b.seqs@[j].seat) by {
        assert(a.seqs@[j].live());
    }
    assert forall|j: int, g: int|
        #![trigger b.seqs@[j], b.groups@[g]]
        0 <= j < b.seqs@.len() && 0 <= g < b.groups@.len()
            && b.seqs@[j].phase is Running implies seat_ok(
        b.seqs@[j],
        b.groups@[g].seat(b.seqs@[j].seat as int),
        b.config.block_size,
    ) by {
        if j != i {
            assert(b.seqs@[j] == a.seqs@[j]);
            assert(a.seqs@[j].seat != seat);
            assert(seat_ok(
                a.seqs@[j],
                a.groups@[g].seat(a.seqs@[j].seat as int),
                a.config.block_size,
            ));
            assert(b.groups@[g].seat(a.seqs@[j].seat as int) == a.groups@[g].seat(
                a.seqs@[j].seat as int,
            ));
        }
    }
}

} // verus!
