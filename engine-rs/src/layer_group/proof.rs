//! What the operations' loops rest on.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof_content::*;
#[cfg(verus_only)]
use super::spec::*;
#[cfg(verus_only)]
use super::{LayerGroup, NO_ANCHOR};
#[cfg(verus_only)]
use crate::block_pool::proof::*;
#[cfg(verus_only)]
use crate::block_pool::{Holder, PoolView};
#[cfg(verus_only)]
use crate::prefix_tree::block_of;
use vstd::prelude::*;

verus! {

/// The node's id may be the anchor after its block.
pub proof fn lemma_node_anchors(st: State, b: int)
    requires
        st.ok(),
        0 <= b < st.n(),
        st.tree.nodes[b] is Some,
    ensures
        st.anchors((st.tree.nodes[b]->0).id, b),
        st.shareable(b),
        0 < (st.tree.nodes[b]->0).id < st.tree.prefixes.len(),
{
    let x = st.tree.nodes[b]->0;
    let prefix = st.tree.prefixes[x.id as int];
    assert(st.tree.node_ok(st.size, x));
    assert(filled(st.content[b], prefix, st.size));
    assert(st.content[b][st.size - 1] == Some(prefix.take(prefix.len() as int)));
    assert(prefix.take(prefix.len() as int) =~= prefix);
}

/// What is registered holds it.
pub proof fn lemma_cached_filled(st: State, b: int, salt: u64, prefix: Seq<u32>)
    requires
        st.ok(),
        cached_as(st, b) == Some((salt, prefix)),
    ensures
        filled(st.content[b], prefix, st.size),
{
}

/// Seats whose table, sealed blocks and content stay look the same.
pub proof fn lemma_others(was: State, now: State, s: int)
    requires
        0 <= s < was.rows.len(),
        now.only(was, s),
        now.content == was.content,
        was.sealed.len() == was.rows.len() == was.freed.len(),
    ensures
        forall|t: int|
            t != s && 0 <= t < was.rows.len() ==> #[trigger] seat_view(now, t) == seat_view(was, t),
{
    assert forall|t: int| t != s && 0 <= t < was.rows.len() implies #[trigger] seat_view(now, t)
        == seat_view(was, t) by {
        assert(now.rows[t] == was.rows[t]);
        assert(now.sealed[t] == was.sealed[t]);
        assert(now.freed[t] == was.freed[t]);
    }
}

/// One more entry in the list of what was appended.
pub proof fn lemma_appended(s: int, row: Seq<u32>, b: u32, from: int)
    requires
        0 <= from <= row.len(),
    ensures
        appended(s, row.push(b), from, row.len() as int + 1) == appended(
            s,
            row,
            from,
            row.len() as int,
        ).push(TableUpdate { seat: s as u32, index: row.len() as u32, block: b }),
{
    assert(appended(s, row.push(b), from, row.len() as int + 1) =~= appended(
        s,
        row,
        from,
        row.len() as int,
    ).push(TableUpdate { seat: s as u32, index: row.len() as u32, block: b }));
}

/// The blocks of `row` are registered under `salt` as `k` leading blocks of `toks`.
pub open spec fn attached(st: State, row: Seq<u32>, salt: u64, toks: Seq<u32>, k: int) -> bool {
    forall|i: int|
        0 <= i < k ==> cached_as(st, (#[trigger] row[i]) as int) == Some(
            (salt, toks.take((i + 1) * st.size)),
        )
}

pub proof fn lemma_attached_holds(st: State, row: Seq<u32>, salt: u64, toks: Seq<u32>, k: int)
    requires
        st.ok(),
        attached(st, row, salt, toks, k),
        0 <= k <= row.len(),
        k * st.size <= toks.len(),
    ensures
        k * st.size <= kv_of(st.content, row, st.size, 0).len(),
        forall|p: int|
            0 <= p < k * st.size ==> #[trigger] kv_of(st.content, row, st.size, 0)[p] == Some(
                toks.take(p + 1),
            ),
{
    assert forall|i: int| 0 <= i < k implies filled(
        st.content[(#[trigger] row[i]) as int],
        toks.take((i + 1) * st.size),
        st.size,
    ) by {
        lemma_cached_filled(st, row[i] as int, salt, toks.take((i + 1) * st.size));
    }
    lemma_filled_holds(st.content, row, toks, st.size, k);
}

/// An empty seat holds nothing.
pub proof fn lemma_nothing_held(st: State, s: int, toks: Seq<u32>)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.rows[s].len() == 0,
    ensures
        st.freed[s] == 0,
        st.kept(s) == 0,
        st.sealed[s] == 0,
        st.anchor[s] == 0,
        holds(seat_view(st, s), toks, 0),
{
    assert(st.anchor_ok(s, st.sealed[s] as int, st.anchor[s]));
}

/// A seat that gave nothing back has kept all positions.
pub proof fn lemma_none_freed(st: State, s: int)
    requires
        st.freed[s] == 0,
    ensures
        st.kept(s) == 0,
{
    assert(0 * st.size == 0);
}

/// A block acquired takes at most itself from the queue.
pub proof fn lemma_acquire_len(v: PoolView, b: u32, h: Holder)
    requires
        v.ok(),
        b < v.holders.len(),
    ensures
        v.order.len() - 1 <= v.acquire(b, h).order.len() <= v.order.len(),
{
    lemma_queued(v, b);
}

/// Only blocks in `taken` have left the prefix tree; none has entered it.
pub open spec fn evicted(was: State, now: State, taken: Seq<u32>) -> bool {
    forall|b: int|
        (#[trigger] cached_as(now, b)) == cached_as(was, b) || (cached_as(now, b) is None
            && taken.contains(b as u32))
}

pub proof fn lemma_evicted(was: State, st: State, s: int, m: int)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        0 <= m <= st.rows[s].len(),
        st.pool.order.len() > 0,
        evicted(was, st, st.rows[s].skip(m)),
    ensures
        evicted(was, st.push_fresh(s), st.push_fresh(s).rows[s].skip(m)),
{
    let now = st.push_fresh(s);
    let taken = st.rows[s].skip(m);
    let more = now.rows[s].skip(m);
    let b = st.pool.order[0];
    assert(more =~= taken.push(b));
    assert forall|c: int|
        (#[trigger] cached_as(now, c)) == cached_as(was, c) || (cached_as(now, c) is None
            && more.contains(c as u32)) by {
        if c == b {
            assert(more[taken.len() as int] == b);
        }
        if cached_as(st, c) != cached_as(was, c) {
            let i = taken.index_of(c as u32);
            assert(more[i] == c as u32);
        }
    }
}

/// A factor of a small product is small.
pub proof fn lemma_factors(a: int, b: int)
    requires
        a >= 1,
        b >= 1,
    ensures
        a <= a * b,
        b <= a * b,
{
    assert(a <= a * b && b <= a * b) by (nonlinear_arith)
        requires
            a >= 1,
            b >= 1,
    ;
}

/// The state that `new` makes.
pub proof fn lemma_initial(st: State)
    requires
        st.size >= 1,
        st.n() < 0xffff_ffff,
        st.n() * st.size < 0xffff_ffff,
        st.pool.holders == Seq::new(st.n(), |b: int| Set::<Holder>::empty()),
        st.pool.order.len() == st.pool.plain,
        st.pool.ok(),
        st.tree.ok(st.size),
        st.tree.nodes.len() == st.n(),
        st.content.len() == st.n(),
        st.rows.len() * st.row_len <= 0xffff_ffff,
        0 <= st.row_len,
        st.freed.len() == st.rows.len(),
        st.sealed.len() == st.rows.len(),
        st.anchor.len() == st.rows.len(),
        forall|b: int| 0 <= b < st.n() ==> (#[trigger] st.content[b]).len() == st.size,
        forall|b: int| 0 <= b < st.n() ==> (#[trigger] st.tree.nodes[b]) is None,
        forall|s: int| 0 <= s < st.rows.len() ==> (#[trigger] st.rows[s]).len() == 0,
        forall|s: int| 0 <= s < st.rows.len() ==> (#[trigger] st.freed[s]) == 0,
        forall|s: int| 0 <= s < st.rows.len() ==> (#[trigger] st.sealed[s]) == 0,
        forall|s: int| 0 <= s < st.rows.len() ==> (#[trigger] st.anchor[s]) == 0,
    ensures
        st.ok(),
{
    assert forall|k: int| 0 <= k < st.pool.order.len() implies (st.pool.plain <= k
        <==> st.tree.nodes[(#[trigger] st.pool.order[k]) as int] is Some) by {
        assert(st.pool.order[k] < st.n());
    }
    assert forall|s: int| 0 <= s < st.rows.len() implies st.anchor_ok(
        s,
        st.sealed[s] as int,
        #[trigger] st.anchor[s],
    ) by {
        assert(st.rows[s].len() == 0);
        assert(st.sealed[s] == 0);
    }
}

} // verus!
