//! Sequences come and are aborted: the invariant holds again.
#[cfg(verus_only)]
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

pub(super) proof fn lemma_blocks_fit(n: u32, block_size: u32, capacity: u32)
    requires
        exists|k: int| n <= #[trigger] (k * block_size) && k <= capacity,
    ensures
        n <= capacity * block_size,
{
    let k = choose|k: int| n <= #[trigger] (k * block_size) && k <= capacity;
    assert(k * block_size <= capacity * block_size) by (nonlinear_arith)
        requires
            k <= capacity,
    ;
}

/// What needs more blocks than there are has more positions than they hold.
pub(super) proof fn lemma_never_fits(n: u32, block_size: u32, capacity: u32, blocks: usize)
    requires
        blocks * block_size < n + block_size,
        blocks > capacity,
    ensures
        n > capacity * block_size,
{
    assert(capacity * block_size + block_size <= blocks * block_size) by (nonlinear_arith)
        requires
            blocks >= capacity + 1,
    ;
}

/// A sequence came to the end of the waiting queue, in a free entry.
pub(super) proof fn lemma_entered(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        0 <= i < a.seqs@.len(),
        a.seqs@[i].phase is Free,
        !a.free_entries@.contains(i as u32),
        b.only_seq(&a, i),
        b == (Scheduler { seqs: b.seqs, waiting: b.waiting, ..a }),
        b.seqs@[i].phase is Waiting,
        b.seqs@[i].wf(b.config),
        b.waiting@ == a.waiting@.push(i as u32),
        a.draft == 0,
    ensures
        b.inv(),
{
    assert forall|m: int| 0 <= m < b.waiting@.len() implies #[trigger] b.waits_at(m) by {
        if m < a.waiting@.len() {
            assert(b.waiting@[m] == a.waiting@[m]);
        }
    }
    assert forall|j: int|
        0 <= j < b.seqs@.len() && queued(#[trigger] b.seqs@[j]) implies b.waiting@.contains(
        j as u32,
    ) by {
        if j == i {
            assert(b.waiting@[a.waiting@.len() as int] == i as u32);
        } else {
            assert(b.seqs@[j] == a.seqs@[j]);
            let m = a.waiting@.index_of(j as u32);
            assert(b.waiting@[m] == j as u32);
        }
    }
    assert(b.waiting@.no_duplicates());
    assert forall|m: int| 0 <= m < b.free_entries@.len() implies #[trigger] b.free_at(m) by {
        assert(a.free_entries@.contains(a.free_entries@[m]));
        assert(a.free_entries@[m] != i);
    }
    lemma_idle_entry(a, b, i);
}

} // verus!
