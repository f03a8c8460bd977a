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
    assert(prefix.take(prefix.len() as int) =~= prefix);
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
    lemma_filled_holds(st.content, row, toks, st.size, k);
}

/// A seat that gave nothing back has kept all positions.
pub proof fn lemma_none_freed(st: State, s: int)
    requires
        st.freed[s] == 0,
    ensures
        st.kept(s) == 0,
{
}

/// A block acquired takes at most itself from the queue.
pub proof fn lemma_acquire_len(v: PoolView, b: u32, h: Holder)
    requires
        v.ok(),
        b < v.holders.len(),
    ensures
        v.order.len() - 1 <= v.acquire(b, h).order.len() <= v.order.len(),
{
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

} // verus!
