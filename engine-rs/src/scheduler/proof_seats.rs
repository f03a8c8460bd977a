//! A sequence leaves its seat: the invariant holds again.
#[cfg(verus_only)]
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Sequence `i`, the `k`-th running one with no entry in the queue, left its seat: what the seats,
/// the tables, the queue and the running list say of the others still holds.
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
        b.same_work(&a),
        groups_frame(a.config, a.groups@, b.groups@, a.seqs@[i].seat as int),
        empty_at(b.groups@, a.seqs@[i].seat as int),
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
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.running@.contains(
        j as u32,
    ) by {
        assert(j != i);
        assert(b.seqs@[j] == a.seqs@[j]);
        assert(a.running@.contains(j as u32));
        let m = a.running@.index_of(j as u32);
        assert(m != k);
        assert(b.running@[if m < k {
            m
        } else {
            m - 1
        }] == j as u32);
    }
    assert forall|m: int| 0 <= m < b.running@.len() implies #[trigger] b.sits_at(m) by {
        let m2 = if m < k {
            m
        } else {
            m + 1
        };
        assert(b.running@[m] == a.running@[m2]);
        assert(a.running@[m2] != a.running@[k]);
        assert(b.seqs@[a.running@[m2] as int] == a.seqs@[a.running@[m2] as int]);
    }
    assert(b.running@.no_duplicates());
    // seats
    assert(!a.free_seats@.contains(seat));
    assert(b.free_seats@.no_duplicates());
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.seqs@[j].seat
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
    assert forall|m: int, g: int|
        #![trigger b.free_seats@[m], b.groups@[g]]
        0 <= m < b.free_seats@.len() && 0 <= g < b.groups@.len() implies b.seat_empty(m, g) by {
        if m < a.free_seats@.len() {
            assert(a.free_seats@[m] == b.free_seats@[m]);
            assert(a.free_seats@.contains(a.free_seats@[m]));
            assert(b.groups@[g].seat(a.free_seats@[m] as int) == a.groups@[g].seat(
                a.free_seats@[m] as int,
            ));
        }
    }
    assert(b.seats_ok());
    // tables
    assert forall|j: int, g: int|
        #![trigger b.seqs@[j], b.groups@[g]]
        0 <= j < b.seqs@.len() && 0 <= g < b.groups@.len()
            && b.seqs@[j].phase is Running implies b.table_ok(j, g) by {
        assert(b.seqs@[j] == a.seqs@[j]);
        assert(a.seqs@[j].seat != a.seqs@[i].seat);
        assert(b.groups@[g].seat(b.seqs@[j].seat as int) == a.groups@[g].seat(
            b.seqs@[j].seat as int,
        ));
    }
    // queue
    assert forall|m: int| 0 <= m < b.queue@.len() implies #[trigger] b.queued_at(m) by {
        lemma_entries_some(a.queue@, m);
        assert(a.queue@[m].seq != i);
        assert(b.seqs@[a.queue@[m].seq as int] == a.seqs@[a.queue@[m].seq as int]);
    }
    assert forall|m: int| #![trigger b.queue@[m]] b.in_draft(m) implies draft_entry_ok(
        b.queue@[m],
        b.seqs@[b.queue@[m].seq as int],
    ) by {
        lemma_entries_some(a.queue@, m);
        assert(a.in_draft(m));
        assert(b.queued_at(m));
    }
}

} // verus!
