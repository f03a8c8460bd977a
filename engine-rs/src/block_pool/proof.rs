//! Why unlinking and linking keep the ring, and why the abstract steps keep `PoolView::ok`.
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
    if 0 <= i < order.len() && 0 <= j < order.len() {
        if i < j {
            assert(order[i] != order[j]);
        } else if j < i {
            assert(order[j] != order[i]);
        }
    }
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
    assert(order[k] == ring(order, n, k));
    let p = prev[ring(order, n, k) as int];
    let q = next[ring(order, n, k) as int];
    let next2 = next.update(p as int, q);
    let prev2 = prev.update(q as int, p);
    assert forall|i: int| 0 <= i < after.len() implies #[trigger] after[i] == order[if i < k {
        i
    } else {
        i + 1
    }] by {}
    assert forall|i: int| -1 <= i < after.len() implies #[trigger] next2[ring(after, n, i) as int]
        == ring(after, n, i + 1) by {
        let j = if i < k { i } else { i + 1 };
        assert(ring(after, n, i) == ring(order, n, j));
        assert(next[ring(order, n, j) as int] == ring(order, n, j + 1));
        if ring(order, n, j) == p {
            lemma_ring_distinct(order, n, j, k - 1);
        }
    }
    assert forall|i: int| 0 <= i <= after.len() implies #[trigger] prev2[ring(after, n, i) as int]
        == ring(after, n, i - 1) by {
        let j = if i < k { i } else { i + 1 };
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
    assert forall|i: int| 0 <= i < order.len() implies #[trigger] order[i] != b by {}
    assert forall|i: int| -1 <= i < after.len() implies #[trigger] next2[ring(after, n, i) as int]
        == ring(after, n, i + 1) by {
        if i != k {
            let j = if i < k { i } else { i - 1 };
            assert(ring(after, n, i) == ring(order, n, j));
            assert(next[ring(order, n, j) as int] == ring(order, n, j + 1));
            if ring(order, n, j) == p {
                lemma_ring_distinct(order, n, j, k - 1);
            }
        }
    }
    assert forall|i: int| 0 <= i <= after.len() implies #[trigger] prev2[ring(after, n, i) as int]
        == ring(after, n, i - 1) by {
        if i != k {
            let j = if i < k { i } else { i - 1 };
            assert(ring(after, n, i) == ring(order, n, j));
            assert(prev[ring(order, n, j) as int] == ring(order, n, j - 1));
            if ring(order, n, j) == q {
                lemma_ring_distinct(order, n, j, k);
            }
        }
    }
}

/// A block's place in the queue.
pub proof fn lemma_queued(v: PoolView, b: u32)
    requires
        v.ok(),
        b < v.holders.len(),
    ensures
        v.holders[b as int] == Set::<Holder>::empty() <==> v.order.contains(b),
        v.order.contains(b) ==> 0 <= v.order.index_of(b) < v.order.len() && v.order[v.order.index_of(
            b,
        )] == b,
{
    if v.order.contains(b) {
        let i = v.order.index_of(b);
        assert(v.order[i] == b);
    }
}

/// A queue of distinct blocks that misses `b` has room for it.
pub proof fn lemma_room(order: Seq<u32>, n: int, b: u32)
    requires
        queue(order, n),
        b < n,
        !order.contains(b),
    ensures
        order.len() < n,
{
    let f = |i: u32| i as int;
    let set = order.to_set().map(f);
    assert(order.no_duplicates());
    order.unique_seq_to_set();
    let rest = vstd::set_lib::set_int_range(0, n).remove(b as int);
    vstd::set_lib::lemma_int_range(0, n);
    assert(set.subset_of(rest)) by {
        assert forall|x: int| #[trigger] set.contains(x) implies rest.contains(x) by {
            let k = choose|k: u32| order.to_set().contains(k) && k as int == x;
            let i = choose|i: int| 0 <= i < order.len() && order[i] == k;
            assert(order[i] < n);
        }
    }
    vstd::set_lib::lemma_map_size(order.to_set(), set, f);
    vstd::set_lib::lemma_len_subset(set, rest);
}

/// `alloc` keeps the queue exact.
pub proof fn lemma_alloc(v: PoolView, h: Holder)
    requires
        v.ok(),
        v.order.len() > 0,
    ensures
        v.alloc(h).ok(),
        !v.alloc(h).order.contains(v.order[0]),
{
    let w = v.alloc(h);
    let b = v.order[0];
    assert(w.holders[b as int].contains(h));
    assert forall|i: int| 0 <= i < w.order.len() implies #[trigger] w.order[i] == v.order[i + 1]
        && w.order[i] != b by {}
    assert forall|c: int|
        0 <= c < w.holders.len() && #[trigger] w.holders[c] == Set::<
            Holder,
        >::empty() implies w.order.contains(c as u32) by {
        assert(v.holders[c] == Set::<Holder>::empty());
        let i = v.order.index_of(c as u32);
        assert(v.order[i] == c as u32);
        assert(w.order[i - 1] == c as u32);
    }
}

/// `acquire` keeps the queue exact.
pub proof fn lemma_acquire(v: PoolView, b: u32, h: Holder)
    requires
        v.ok(),
        b < v.holders.len(),
        v.order.contains(b) ==> v.order.index_of(b) >= v.plain,
    ensures
        v.acquire(b, h).ok(),
{
    lemma_queued(v, b);
    let w = v.acquire(b, h);
    let k = v.order.index_of(b);
    let free = v.holders[b as int] == Set::<Holder>::empty();
    assert(w.holders[b as int].contains(h));
    assert forall|i: int| 0 <= i < w.order.len() implies (#[trigger] w.order[i]) == v.order[if free
        && i >= k {
        i + 1
    } else {
        i
    }] && w.order[i] != b by {}
    assert forall|c: int|
        0 <= c < w.holders.len() && #[trigger] w.holders[c] == Set::<
            Holder,
        >::empty() implies w.order.contains(c as u32) by {
        assert(v.holders[c] == Set::<Holder>::empty());
        let i = v.order.index_of(c as u32);
        assert(v.order[i] == c as u32);
        assert(w.order[if free && i > k { i - 1 } else { i }] == c as u32);
    }
}

/// `release` keeps the queue exact.
pub proof fn lemma_release(v: PoolView, b: u32, h: Holder, reusable: bool)
    requires
        v.ok(),
        b < v.holders.len(),
        v.holders[b as int].contains(h),
    ensures
        v.release(b, h, reusable).ok(),
{
    lemma_queued(v, b);
    let w = v.release(b, h, reusable);
    let freed = v.holders[b as int].remove(h) == Set::<Holder>::empty();
    let front: int = if freed && !reusable { 1 } else { 0 };
    assert forall|i: int| 0 <= i < v.order.len() implies (#[trigger] v.order[i]) == w.order[i + front]
        && v.order[i] != b by {}
    assert forall|i: int| 0 <= i < w.order.len() implies (#[trigger] w.order[i]) == if 0 <= i
        - front < v.order.len() {
        v.order[i - front]
    } else {
        b
    } by {}
    assert forall|c: int|
        0 <= c < w.holders.len() && #[trigger] w.holders[c] == Set::<
            Holder,
        >::empty() implies w.order.contains(c as u32) by {
        if c == b {
            assert(w.order[if reusable { v.order.len() as int } else { 0 }] == b);
        } else {
            assert(v.holders[c] == Set::<Holder>::empty());
            let i = v.order.index_of(c as u32);
            assert(v.order[i] == c as u32);
            assert(w.order[i + front] == c as u32);
        }
    }
}

/// Free and held blocks together are all blocks.
pub proof fn lemma_counts(v: PoolView)
    requires
        v.ok(),
    ensures
        v.order.len() <= v.holders.len(),
        v.order.len() + held(v).len() == v.holders.len(),
{
    let n = v.holders.len() as int;
    let f = |i: u32| i as int;
    let free = v.order.to_set().map(f);
    let all = vstd::set_lib::set_int_range(0, n);
    vstd::set_lib::lemma_int_range(0, n);
    assert(v.order.no_duplicates());
    v.order.unique_seq_to_set();
    vstd::set_lib::lemma_map_size(v.order.to_set(), free, f);
    assert forall|x: int| #[trigger] free.contains(x) <==> all.contains(x) && !held(v).contains(
        x,
    ) by {
        if free.contains(x) {
            let k = choose|k: u32| v.order.to_set().contains(k) && k as int == x;
            let i = choose|i: int| 0 <= i < v.order.len() && v.order[i] == k;
            assert(v.holders[v.order[i] as int] == Set::<Holder>::empty());
        }
        if all.contains(x) && !held(v).contains(x) {
            assert(v.holders[x] == Set::<Holder>::empty());
            assert(v.order.contains(x as u32));
            assert(v.order.to_set().contains(x as u32));
            assert(free.contains(f(x as u32)));
        }
    }
    assert(free.disjoint(held(v)));
    assert(free.union(held(v)) =~= all);
    vstd::set_lib::lemma_set_disjoint_lens(free, held(v));
}

/// Blocks that somebody holds.
pub open spec fn held(v: PoolView) -> Set<int> {
    vstd::set_lib::set_int_range(0, v.holders.len() as int).filter(
        |b: int| v.holders[b] != Set::<Holder>::empty(),
    )
}

} // verus!
