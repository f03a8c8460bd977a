//! A block that is given back while later ones are kept.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof_content::*;
#[cfg(verus_only)]
use super::spec::*;
#[cfg(verus_only)]
use crate::block_pool::proof::*;
#[cfg(verus_only)]
use crate::block_pool::Holder;
use vstd::prelude::*;

verus! {

/// Giving back the first block keeps the invariant.
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
    let first = st.freed[s] as int;
    let b = st.rows[s][first];
    assert(st.entry(s, first));
    let registered = st.tree.nodes[b as int] is Some;
    lemma_release(st.pool, b, (s, first), registered);
    assert forall|t: int, i: int| #![trigger now.rows[t][i]] now.entry(t, i) implies now.rows[t][i]
        < now.n() && now.pool.holders[now.rows[t][i] as int].contains((t, i)) by {
        assert(st.entry(t, i));
    }
    assert forall|c: int, h: Holder|
        0 <= c < now.n() && #[trigger] now.pool.holders[c].contains(h) implies now.entry(h.0, h.1)
        && now.rows[h.0][h.1] == c by {
        assert(st.pool.holders[c].contains(h));
        assert(st.entry(h.0, h.1) && st.rows[h.0][h.1] == c);
    }
    assert forall|t: int, i: int|
        #![trigger now.rows[t][i]]
        now.entry(t, i) && now.sealed[t] <= i implies now.private(t, i) by {
        assert(st.entry(t, i) && st.private(t, i));
    }
    let alone = st.pool.holders[b as int].remove((s, first)) == Set::<Holder>::empty();
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
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
    }
}

/// Its first `n` blocks were given back, but not its last sealed one, and nothing else changed.
pub open spec fn slid(v: SeatView, w: SeatView, n: nat) -> bool {
    &&& w.table == v.table
    &&& w.sealed == v.sealed
    &&& v.freed <= w.freed
    &&& w.freed <= n || w.freed == v.freed
    &&& w.freed >= n || w.freed + 1 >= w.sealed
    &&& v.kept <= w.kept
    &&& w.kv.len() == v.kv.len()
    &&& forall|p: int| w.kept <= p < v.kv.len() ==> #[trigger] w.kv[p] == v.kv[p]
}

pub proof fn lemma_slid_view(was: State, now: State, s: int)
    requires
        was.ok(),
        0 <= s < was.rows.len(),
        now == (State { freed: now.freed, pool: now.pool, ..was }),
        was.freed[s] <= now.freed[s],
    ensures
        seat_view(was, s).kept <= seat_view(now, s).kept,
        forall|p: int|
            seat_view(now, s).kept <= p < seat_view(was, s).kv.len() ==> #[trigger] seat_view(
                now,
                s,
            ).kv[p] == seat_view(was, s).kv[p],
{
    assert(0 <= was.kept(s) <= now.kept(s)) by (nonlinear_arith)
        requires
            was.kept(s) == was.freed[s] * was.size,
            now.kept(s) == now.freed[s] * was.size,
            0 <= was.freed[s] <= now.freed[s],
            was.size >= 1,
    ;
}

} // verus!
