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
    let y = x.map(f);
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
    let len = st.rows[s].len() as int;
    lemma_holders_bounded(st, b as int, s);
    lemma_acquire(st.pool, b, (s, len));
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
    let len = st.rows[s].len() as int;
    lemma_alloc(st.pool, (s, len));
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
    lemma_gave_back(st, now, s, st.freed[s] as int);
}

} // verus!
