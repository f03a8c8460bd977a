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
        stays(a, b, i),
        b.queue@ == a.queue@.drop_first(),
        b.plans == a.plans,
        b.draft == 0,
        b.draft_rows == a.draft_rows,
        b.seqs@[i].in_flight == a.seqs@[i].in_flight - 1,
        b.seqs@[i].phase is Running ==> track_ok(b.queue@, i, b.seqs@[i]),
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
    assert forall|m: int| 0 <= m < b.queue@.len() implies #[trigger] b.queued_at(m) by {
        assert(b.queue@[m] == a.queue@[m + 1]);
        assert(a.seqs@[a.queue@[m + 1].seq as int].live());
    }
    assert(span(b.queue@, b.queue@.len() as int) == 0);
    assert(span(a.queue@, a.queue@.len() as int) == 0);
}

} // verus!
