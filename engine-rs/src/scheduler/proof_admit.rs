//! A sequence takes a seat: the invariant holds again.
#[cfg(verus_only)]
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Sequence `i`, waiting until now, took the free seat: what is said of the others still holds.
pub(super) proof fn lemma_took_seat(a: Scheduler, b: Scheduler, i: int, k: nat)
    requires
        a.inv(),
        a.waiting@.len() > 0 && a.waiting@[0] == i,
        a.free_seats@.len() > 0,
        0 <= i < a.seqs@.len(),
        a.seqs@[i].phase is Waiting,
        b.only_seq(&a, i),
        b.seqs@[i] == (Sequence {
            phase: Phase::Running,
            seat: a.free_seats@.last(),
            computed: b.seqs@[i].computed,
            planned: b.seqs@[i].computed,
            in_flight: 0,
            ..a.seqs@[i]
        }),
        b.seqs@[i].computed == k * a.config.block_size,
        k <= hit_limit(a.seqs@[i], a.config.block_size),
        b.running@ == a.running@.push(i as u32),
        b.free_seats@ == a.free_seats@.drop_last(),
        b.waiting@ == a.waiting@.drop_first(),
        b.same_work(&a),
        b.free_entries == a.free_entries,
        entries_of(a.queue@, i) == 0,
        groups_frame(a.config, a.groups@, b.groups@, a.free_seats@.last() as int),
        all_attached(
            b.groups@,
            a.free_seats@.last() as int,
            a.seqs@[i].tokens@,
            k,
            a.config.block_size,
        ),
    ensures
        b.inv(),
        b.seqs@[i].computed <= a.seqs@[i].need_from,
        b.seqs@[i].computed < a.seqs@[i].len(),
        b.seqs@[i].computed % a.config.block_size == 0,
{
    let s = b.seqs@[i];
    let seat = a.free_seats@.last();
    let size = a.config.block_size as int;
    assert(a.seqs@[i].wf(a.config));
    lemma_limit(a.seqs@[i], a.config.block_size, k);
    assert(s.wf(b.config));
    assert(a.free_seats@.contains(seat));
    lemma_track_none(a.queue@, i, Track { ok: true, pos: s.computed as int, len: s.len() });
    // running
    assert forall|m: int| 0 <= m < a.running@.len() implies (#[trigger] a.running@[m]) != i by {
        assert(a.seqs@[a.running@[m] as int].live());
    }
    assert forall|m: int| 0 <= m < b.running@.len() implies #[trigger] b.sits_at(m) by {
        if m < a.running@.len() {
            assert(b.running@[m] == a.running@[m]);
            assert(b.seqs@[a.running@[m] as int] == a.seqs@[a.running@[m] as int]);
        }
    }
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.running@.contains(
        j as u32,
    ) by {
        if j == i {
            assert(b.running@[b.running@.len() - 1] == i as u32);
        } else {
            assert(b.seqs@[j] == a.seqs@[j]);
            let m = a.running@.index_of(j as u32);
            assert(b.running@[m] == j as u32);
        }
    }
    assert(b.running_ok());
    lemma_front_left(a, b, i);
    assert(b.free_entries_ok());
    // seats
    assert(b.free_seats@.no_duplicates());
    assert forall|m: int| 0 <= m < b.free_seats@.len() implies (#[trigger] b.free_seats@[m])
        != seat by {
        assert(b.free_seats@[m] == a.free_seats@[m]);
        assert(a.free_seats@[a.free_seats@.len() - 1] == seat);
    }
    assert forall|m: int, g: int|
        #![trigger b.free_seats@[m], b.groups@[g]]
        0 <= m < b.free_seats@.len() && 0 <= g < b.groups@.len() implies b.seat_empty(m, g) by {
        assert(b.free_seats@[m] == a.free_seats@[m]);
        assert(b.groups@[g].seat(a.free_seats@[m] as int) == a.groups@[g].seat(
            a.free_seats@[m] as int,
        ));
    }
    assert forall|j: int|
        0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.seqs@[j].seat
        < b.config.max_seqs && !b.free_seats@.contains(b.seqs@[j].seat) by {
        if j != i {
            assert(b.seqs@[j] == a.seqs@[j]);
            if b.free_seats@.contains(b.seqs@[j].seat) {
                let m = b.free_seats@.index_of(b.seqs@[j].seat);
                assert(a.free_seats@[m] == b.seqs@[j].seat);
                assert(a.free_seats@.contains(b.seqs@[j].seat));
            }
        }
    }
    assert forall|x: int, y: int|
        #![trigger b.seqs@[x], b.seqs@[y]]
        0 <= x < b.seqs@.len() && 0 <= y < b.seqs@.len() && x != y && b.seqs@[x].live()
            && b.seqs@[y].live() implies b.seqs@[x].seat != b.seqs@[y].seat by {
        if x == i {
            assert(!a.free_seats@.contains(a.seqs@[y].seat));
        } else if y == i {
            assert(!a.free_seats@.contains(a.seqs@[x].seat));
        } else {
            assert(a.seqs@[x].seat != a.seqs@[y].seat);
        }
    }
    assert(b.seats_ok());
    // tables
    assert forall|j: int, g: int|
        #![trigger b.seqs@[j], b.groups@[g]]
        0 <= j < b.seqs@.len() && 0 <= g < b.groups@.len()
            && b.seqs@[j].phase is Running implies b.table_ok(j, g) by {
        if j == i {
            let v = b.groups@[g].seat(seat as int);
            assert(attached(v, s.tokens@, k, b.config.block_size));
            assert((k * size) / size == k) by (nonlinear_arith)
                requires
                    size > 0,
            ;
        } else {
            assert(b.seqs@[j] == a.seqs@[j]);
            assert(!a.free_seats@.contains(a.seqs@[j].seat));
            assert(b.groups@[g].seat(b.seqs@[j].seat as int) == a.groups@[g].seat(
                a.seqs@[j].seat as int,
            ));
        }
    }
    assert forall|m: int| 0 <= m < b.queue@.len() implies #[trigger] b.queued_at(m) by {
        lemma_entries_some(a.queue@, m);
        assert(b.seqs@[a.queue@[m].seq as int] == a.seqs@[a.queue@[m].seq as int]);
    }
}

/// A hit within the limit leaves the last token, and each row whose logits are wanted, to be
/// computed.
pub(super) proof fn lemma_limit(s: Sequence, block_size: u32, k: nat)
    requires
        block_size > 0,
        s.need_ok(),
        k <= hit_limit(s, block_size),
    ensures
        k * block_size <= s.need_from,
        k * block_size < s.len(),
        (k * block_size) as int % block_size as int == 0,
{
    let size = block_size as int;
    assert(k * size <= s.need_from) by (nonlinear_arith)
        requires
            k <= s.need_from as int / size,
            size > 0,
    ;
    assert((k * size) % size == 0) by (nonlinear_arith)
        requires
            size > 0,
    ;
}

pub(super) proof fn lemma_small(k: nat, m: nat)
    requires
        m > 0,
    ensures
        k <= k * m,
{
    assert(k <= k * m) by (nonlinear_arith)
        requires
            m > 0,
    ;
}

} // verus!
