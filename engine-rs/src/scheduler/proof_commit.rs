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
}

} // verus!
