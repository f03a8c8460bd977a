//! Why unlinking and linking keep the ring.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::{Holder, PoolView};
use vstd::prelude::*;

verus! {

/// Distinct numbers below `n`: what the lemmas below need to know of the queue.
pub open spec fn queue(order: Seq<u32>, n: int) -> bool {
    &&& 0 <= n < 0xffff_ffff
    &&& forall|i: int| 0 <= i < order.len() ==> (#[trigger] order[i]) < n
    &&& forall|i: int, j: int|
        #![trigger order[i], order[j]]
        0 <= i < j < order.len() ==> order[i] != order[j]
}

/// Two places of the ring are the same block only when they are the same place, or both the head.
pub proof fn lemma_ring_distinct(order: Seq<u32>, n: int, i: int, j: int)
    requires
        queue(order, n),
        -1 <= i <= order.len(),
        -1 <= j <= order.len(),
        ring(order, n, i) == ring(order, n, j),
    ensures
        i == j || ring(order, n, i) == n,
{
}

/// Taking out entry `k` closes the ring over it.
pub proof fn lemma_unlink(order: Seq<u32>, n: int, next: Seq<u32>, prev: Seq<u32>, k: int)
    requires
        queue(order, n),
        0 <= k < order.len(),
        next_ok(order, n, next),
        prev_ok(order, n, prev),
    ensures
        ({
            let p = prev[order[k] as int];
            let q = next[order[k] as int];
            &&& p == ring(order, n, k - 1)
            &&& q == ring(order, n, k + 1)
            &&& queue(order.remove(k), n)
            &&& next_ok(order.remove(k), n, next.update(p as int, q))
            &&& prev_ok(order.remove(k), n, prev.update(q as int, p))
        }),
{
    let after = order.remove(k);
    let p = prev[ring(order, n, k) as int];
    let q = next[ring(order, n, k) as int];
    let next2 = next.update(p as int, q);
    let prev2 = prev.update(q as int, p);
    assert forall|i: int| -1 <= i < after.len() implies #[trigger] next2[ring(after, n, i) as int]
        == ring(after, n, i + 1) by {
        let j = if i < k {
            i
        } else {
            i + 1
        };
        if ring(order, n, j) == p {
            lemma_ring_distinct(order, n, j, k - 1);
        }
    }
    assert forall|i: int| 0 <= i <= after.len() implies #[trigger] prev2[ring(after, n, i) as int]
        == ring(after, n, i - 1) by {
        let j = if i < k {
            i
        } else {
            i + 1
        };
        assert(ring(after, n, i) == ring(order, n, j));
        assert(prev[ring(order, n, j) as int] == ring(order, n, j - 1));
        if ring(order, n, j) == q {
            lemma_ring_distinct(order, n, j, k + 1);
        }
    }
}

/// Block `b` put between entries `k - 1` and `k`.
pub proof fn lemma_link(order: Seq<u32>, n: int, next: Seq<u32>, prev: Seq<u32>, k: int, b: u32)
    requires
        queue(order, n),
        0 <= k <= order.len(),
        b < n,
        !order.contains(b),
        next_ok(order, n, next),
        prev_ok(order, n, prev),
    ensures
        ({
            let p = ring(order, n, k - 1);
            let q = ring(order, n, k);
            &&& p <= n
            &&& q <= n
            &&& queue(order.insert(k, b), n)
            &&& next_ok(order.insert(k, b), n, next.update(b as int, q).update(p as int, b))
            &&& prev_ok(order.insert(k, b), n, prev.update(b as int, p).update(q as int, b))
        }),
{
    let after = order.insert(k, b);
    let p = ring(order, n, k - 1);
    let q = ring(order, n, k);
    let next2 = next.update(b as int, q).update(p as int, b);
    let prev2 = prev.update(b as int, p).update(q as int, b);
    assert forall|i: int| 0 <= i < after.len() implies #[trigger] after[i] == if i < k {
        order[i]
    } else if i == k {
        b
    } else {
        order[i - 1]
    } by {}
    assert forall|i: int| -1 <= i < after.len() implies #[trigger] next2[ring(after, n, i) as int]
        == ring(after, n, i + 1) by {
        if i != k {
            let j = if i < k {
                i
            } else {
                i - 1
            };
            if ring(order, n, j) == p {
                lemma_ring_distinct(order, n, j, k - 1);
            }
        }
    }
    assert forall|i: int| 0 <= i <= after.len() implies #[trigger] prev2[ring(after, n, i) as int]
        == ring(after, n, i - 1) by {
        if i != k {
            let j = if i < k {
                i
            } else {
                i - 1
            };
            assert(ring(after, n, i) == ring(order, n, j));
            assert(prev[ring(order, n, j) as int] == ring(order, n, j - 1));
            if ring(order, n, j) == q {
                lemma_ring_distinct(order, n, j, k);
            }
        }
    }
}

} // verus!
