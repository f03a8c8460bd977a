//! Why the abstract steps keep `PoolView::ok`, and what follows from it.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof_ring::*;
#[cfg(verus_only)]
use super::{Holder, PoolView};
use vstd::prelude::*;

verus! {

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
    order.unique_seq_to_set();
    let rest = vstd::set_lib::set_int_range(0, n).remove(b as int);
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
    assert forall|c: int|
        0 <= c < w.holders.len() && #[trigger] w.holders[c] == Set::<
            Holder,
        >::empty() implies w.order.contains(c as u32) by {
        let i = v.order.index_of(c as u32);
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
    let w = v.acquire(b, h);
    let k = v.order.index_of(b);
    let free = v.holders[b as int] == Set::<Holder>::empty();
    assert(w.holders[b as int].contains(h));
    assert forall|c: int|
        0 <= c < w.holders.len() && #[trigger] w.holders[c] == Set::<
            Holder,
        >::empty() implies w.order.contains(c as u32) by {
        let i = v.order.index_of(c as u32);
        assert(v.order[i] == c as u32);
        assert(w.order[if free && i > k {
            i - 1
        } else {
            i
        }] == c as u32);
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
    let w = v.release(b, h, reusable);
    let freed = v.holders[b as int].remove(h) == Set::<Holder>::empty();
    let front: int = if freed && !reusable {
        1
    } else {
        0
    };
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
            assert(w.order[if reusable {
                v.order.len() as int
            } else {
                0
            }] == b);
        } else {
            let i = v.order.index_of(c as u32);
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
    v.order.unique_seq_to_set();
    vstd::set_lib::lemma_map_size(v.order.to_set(), free, f);
    assert forall|x: int| #[trigger]
        free.contains(x) <==> all.contains(x) && !held(v).contains(x) by {
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
