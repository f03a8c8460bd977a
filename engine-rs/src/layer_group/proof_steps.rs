//! Every abstract step that takes a block or gives one back keeps the invariant.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::NO_ANCHOR;
#[cfg(verus_only)]
use crate::block_pool::proof::*;
#[cfg(verus_only)]
use crate::block_pool::Holder;
#[cfg(verus_only)]
use crate::prefix_tree::proof::*;
use vstd::prelude::*;

verus! {

/// A shareable block is not one that somebody still writes.
pub proof fn lemma_shareable(st: State, b: int, s: int, i: int)
    requires
        st.ok(),
        st.shareable(b),
        st.entry(s, i),
        st.rows[s][i] == b,
    ensures
        i < st.sealed[s],
{
    if st.sealed[s] <= i {
        assert(st.private(s, i));
        if st.tree.nodes[b] is None {
            let h = choose|h: Holder| #[trigger]
                st.pool.holders[b].contains(h) && h.1 < st.sealed[h.0];
            assert(h == (s, i));
        }
    }
}

/// A block has at most as many holders as there are table entries.
pub proof fn lemma_holders_bounded(st: State, b: int, s: int)
    requires
        st.ok(),
        0 <= b < st.n(),
        0 <= s < st.rows.len(),
        st.rows[s].len() < st.row_len,
    ensures
        st.pool.holders[b].len() < 0xffff_ffff,
{
    let r = st.row_len;
    let f = |h: Holder| h.0 * r + h.1;
    let x = st.pool.holders[b];
    let spare = s * r + st.rows[s].len();
    let all = vstd::set_lib::set_int_range(0, st.rows.len() * r);
    vstd::set_lib::lemma_int_range(0, st.rows.len() * r);
    let y = x.map(f);
    assert forall|h: Holder| #[trigger] x.contains(h) implies 0 <= h.0 < st.rows.len() && 0 <= h.1
        < st.rows[h.0].len() <= r by {}
    assert(spare < st.rows.len() * r && 0 <= spare) by (nonlinear_arith)
        requires
            0 <= s < st.rows.len(),
            st.rows[s].len() < r,
            spare == s * r + st.rows[s].len(),
    ;
    assert forall|h: Holder, g: Holder|
        x.contains(h) && x.contains(g) && #[trigger] f(h) == #[trigger] f(g) implies h == g by {
        lemma_cell_unique(r, h.0, h.1, g.0, g.1);
    }
    assert(y.subset_of(all.remove(spare))) by {
        assert forall|c: int| #[trigger] y.contains(c) implies all.remove(spare).contains(c) by {
            let h = choose|h: Holder| #[trigger] x.contains(h) && f(h) == c;
            assert(0 <= h.0 * r + h.1 < st.rows.len() * r) by (nonlinear_arith)
                requires
                    0 <= h.0 < st.rows.len(),
                    0 <= h.1 < r,
            ;
            if f(h) == spare {
                lemma_cell_unique(r, h.0, h.1, s, st.rows[s].len() as int);
            }
        }
    }
    vstd::set_lib::lemma_map_size(x, y, f);
    vstd::set_lib::lemma_len_subset(y, all.remove(spare));
}

proof fn lemma_cell_unique(r: int, s: int, i: int, t: int, j: int)
    requires
        0 <= i < r,
        0 <= j < r,
        s * r + i == t * r + j,
    ensures
        s == t,
        i == j,
{
    assert(s == t) by (nonlinear_arith)
        requires
            0 <= i < r,
            0 <= j < r,
            s * r + i == t * r + j,
    ;
}

pub proof fn lemma_push_held(st: State, s: int, b: u32, a: u64)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.rows[s].len() < st.row_len,
        st.sealed[s] == st.rows[s].len(),
        st.sealed[s] < usize::MAX,
        st.shareable(b as int),
        st.anchors(a, b as int),
    ensures
        st.push_held(s, b, a).ok(),
        !st.pool.holders[b as int].contains((s, st.rows[s].len() as int)),
        st.pool.holders[b as int].len() < 0xffff_ffff,
        st.pool.order.contains(b) ==> st.pool.order.index_of(b) >= st.pool.plain,
{
    let now = st.push_held(s, b, a);
    let len = st.rows[s].len() as int;
    lemma_queued(st.pool, b);
    lemma_holders_bounded(st, b as int, s);
    if st.pool.order.contains(b) {
        assert(st.tree.nodes[st.pool.order[st.pool.order.index_of(b)] as int] is Some);
    }
    lemma_acquire(st.pool, b, (s, len));
    assert forall|t: int, i: int| #![trigger now.rows[t][i]] now.entry(t, i) implies now.rows[t][i]
        < now.n() && now.pool.holders[now.rows[t][i] as int].contains((t, i)) by {
        if !(t == s && i == len) {
            assert(st.entry(t, i) && now.rows[t][i] == st.rows[t][i]);
        }
    }
    assert forall|c: int, h: Holder|
        0 <= c < now.n() && #[trigger] now.pool.holders[c].contains(h) implies now.entry(h.0, h.1)
        && now.rows[h.0][h.1] == c by {
        if !(c == b && h == (s, len)) {
            assert(st.pool.holders[c].contains(h));
            assert(st.entry(h.0, h.1) && st.rows[h.0][h.1] == c);
        }
    }
    assert forall|t: int, i: int|
        #![trigger now.rows[t][i]]
        now.entry(t, i) && now.sealed[t] <= i implies now.private(t, i) by {
        assert(st.entry(t, i) && now.rows[t][i] == st.rows[t][i]);
        assert(st.private(t, i));
        if st.rows[t][i] == b {
            lemma_shareable(st, b as int, t, i);
        }
    }
    assert forall|k: int| 0 <= k < now.pool.order.len() implies (now.pool.plain <= k
        <==> now.tree.nodes[(#[trigger] now.pool.order[k]) as int] is Some) by {
        let at = st.pool.order.index_of(b);
        if st.pool.order.contains(b) && k >= at {
            assert(now.pool.order[k] == st.pool.order[k + 1]);
        } else {
            assert(now.pool.order[k] == st.pool.order[k]);
        }
    }
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        if t != s {
            assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
        }
    }
}

pub proof fn lemma_push_fresh(st: State, s: int)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.rows[s].len() < st.row_len,
        st.pool.order.len() > 0,
    ensures
        st.push_fresh(s).ok(),
        st.pool.order[0] < st.n(),
        st.pool.plain == 0 <==> st.tree.nodes[st.pool.order[0] as int] is Some,
{
    let now = st.push_fresh(s);
    let len = st.rows[s].len() as int;
    let b = st.pool.order[0];
    lemma_alloc(st.pool, (s, len));
    lemma_unregister_view(st.tree, st.size, b);
    assert(st.pool.holders[b as int] == Set::<Holder>::empty());
    assert forall|t: int, i: int| #![trigger st.rows[t][i]] st.entry(t, i) implies st.rows[t][i]
        != b by {
        assert(st.pool.holders[st.rows[t][i] as int].contains((t, i)));
    }
    assert forall|t: int, i: int| #![trigger now.rows[t][i]] now.entry(t, i) implies now.rows[t][i]
        < now.n() && now.pool.holders[now.rows[t][i] as int].contains((t, i)) by {
        if !(t == s && i == len) {
            assert(st.entry(t, i) && now.rows[t][i] == st.rows[t][i]);
        }
    }
    assert forall|c: int, h: Holder|
        0 <= c < now.n() && #[trigger] now.pool.holders[c].contains(h) implies now.entry(h.0, h.1)
        && now.rows[h.0][h.1] == c by {
        if c != b {
            assert(st.pool.holders[c].contains(h));
            assert(st.entry(h.0, h.1) && st.rows[h.0][h.1] == c);
        }
    }
    assert forall|t: int, i: int|
        #![trigger now.rows[t][i]]
        now.entry(t, i) && now.sealed[t] <= i implies now.private(t, i) by {
        if !(t == s && i == len) {
            assert(st.entry(t, i) && now.rows[t][i] == st.rows[t][i]);
            assert(st.private(t, i));
        }
    }
    assert forall|k: int| 0 <= k < now.pool.order.len() implies (now.pool.plain <= k
        <==> now.tree.nodes[(#[trigger] now.pool.order[k]) as int] is Some) by {
        assert(now.pool.order[k] == st.pool.order[k + 1]);
        assert(st.pool.order[0] != st.pool.order[k + 1]);
    }
    assert forall|c: int| 0 <= c < now.n() && (#[trigger] now.tree.nodes[c]) is Some implies filled(
        now.content[c],
        now.tree.prefixes[(now.tree.nodes[c]->0).id as int],
        now.size,
    ) by {
        assert(st.tree.nodes[c] is Some);
    }
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
        if now.sealed[t] > 0 {
            assert(now.rows[t][now.sealed[t] - 1] == st.rows[t][st.sealed[t] - 1]);
        }
    }
}

/// Seat `s` gave back its entry `i`, and nobody has less of anything else.
pub open spec fn gave_back(st: State, now: State, s: int, i: int) -> bool {
    let b = st.rows[s][i];
    &&& now == (State {
        rows: now.rows,
        freed: now.freed,
        sealed: now.sealed,
        anchor: now.anchor,
        pool: st.pool.release(b, (s, i), st.tree.nodes[b as int] is Some),
        ..st
    })
    &&& forall|t: int, j: int| #[trigger] now.entry(t, j) <==> st.entry(t, j) && !(t == s && j == i)
    &&& forall|t: int, j: int| #[trigger]
        now.entry(t, j) ==> now.rows[t][j] == st.rows[t][j] && (now.sealed[t] <= j ==> st.sealed[t]
            <= j)
}

/// A block that a seat gave back is held by one entry less, and may be free.
pub proof fn lemma_gave_back(st: State, now: State, s: int, i: int)
    requires
        st.ok(),
        st.entry(s, i),
        gave_back(st, now, s, i),
        now.sizes_ok() && now.freed_ok() && now.anchors_ok(),
    ensures
        now.ok(),
        st.rows[s][i] < st.n(),
        st.pool.holders[st.rows[s][i] as int].contains((s, i)),
        now.pool.order.len() >= st.pool.order.len(),
{
    let b = st.rows[s][i];
    let registered = st.tree.nodes[b as int] is Some;
    lemma_release(st.pool, b, (s, i), registered);
    assert forall|t: int, j: int| #![trigger now.rows[t][j]] now.entry(t, j) implies now.rows[t][j]
        < now.n() && now.pool.holders[now.rows[t][j] as int].contains((t, j)) by {
        assert(st.entry(t, j) && now.rows[t][j] == st.rows[t][j]);
    }
    assert forall|c: int, h: Holder|
        0 <= c < now.n() && #[trigger] now.pool.holders[c].contains(h) implies now.entry(h.0, h.1)
        && now.rows[h.0][h.1] == c by {
        assert(st.pool.holders[c].contains(h));
        assert(st.entry(h.0, h.1) && st.rows[h.0][h.1] == c);
    }
    assert forall|t: int, j: int|
        #![trigger now.rows[t][j]]
        now.entry(t, j) && now.sealed[t] <= j implies now.private(t, j) by {
        assert(st.entry(t, j) && now.rows[t][j] == st.rows[t][j]);
        assert(st.private(t, j));
    }
    let alone = st.pool.holders[b as int].remove((s, i)) == Set::<Holder>::empty();
    let front: int = if alone && !registered {
        1
    } else {
        0
    };
    assert forall|k: int| 0 <= k < now.pool.order.len() implies (now.pool.plain <= k
        <==> now.tree.nodes[(#[trigger] now.pool.order[k]) as int] is Some) by {
        if 0 <= k - front < st.pool.order.len() {
            assert(now.pool.order[k] == st.pool.order[k - front]);
        } else {
            assert(now.pool.order[k] == b);
        }
    }
}

/// Giving back the last block keeps the invariant.
pub proof fn lemma_pop(st: State, s: int)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.rows[s].len() > 0,
    ensures
        st.pop(s).ok(),
        st.rows[s].last() < st.n(),
        st.pool.holders[st.rows[s].last() as int].contains((s, st.rows[s].len() - 1)),
{
    let now = st.pop(s);
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        if t != s {
            assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
        }
    }
    lemma_gave_back(st, now, s, st.rows[s].len() - 1);
}

/// Giving back the first block, while later ones are kept, keeps the invariant.
pub proof fn lemma_slide(st: State, s: int)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.freed[s] + 1 < st.sealed[s],
    ensures
        st.slide(s).ok(),
        st.rows[s][st.freed[s] as int] < st.n(),
        st.pool.holders[st.rows[s][st.freed[s] as int] as int].contains((s, st.freed[s] as int)),
        st.slide(s).pool.order.len() >= st.pool.order.len(),
{
    let now = st.slide(s);
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
    }
    lemma_gave_back(st, now, s, st.freed[s] as int);
}

} // verus!
