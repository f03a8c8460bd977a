//! Positions and blocks, and what they hold.
#[cfg(verus_only)]
use super::inv::*;
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

/// A position lies in a block of its table, at an offset within the block.
pub proof fn lemma_place(p: int, size: int, len: int)
    requires
        size >= 1,
        0 <= p < len * size,
    ensures
        0 <= p / size < len,
        0 <= p % size < size,
        p == p / size * size + p % size,
        (p / size + 1) * size == p - p % size + size,
{
    assert(0 <= p / size < len && 0 <= p % size < size && p == p / size * size + p % size)
        by (nonlinear_arith)
        requires
            size >= 1,
            0 <= p < len * size,
    ;
    assert((p / size + 1) * size == p / size * size + size) by (nonlinear_arith);
}

/// The end of block `i` is within `k` blocks.
pub proof fn lemma_block_end(i: int, k: int, size: int)
    requires
        size >= 1,
        0 <= i < k,
    ensures
        0 <= i * size,
        (i + 1) * size == i * size + size,
        (i + 1) * size <= k * size,
{
    assert(0 <= i * size && (i + 1) * size == i * size + size && (i + 1) * size <= k * size)
        by (nonlinear_arith)
        requires
            size >= 1,
            0 <= i < k,
    ;
}

/// Filled blocks make held positions.
pub proof fn lemma_filled_holds(
    content: Seq<Seq<Option<Seq<u32>>>>,
    row: Seq<u32>,
    toks: Seq<u32>,
    size: int,
    k: int,
)
    requires
        size >= 1,
        0 <= k <= row.len(),
        k * size <= toks.len(),
        forall|i: int|
            0 <= i < k ==> filled(
                content[(#[trigger] row[i]) as int],
                toks.take((i + 1) * size),
                size,
            ),
    ensures
        k * size <= kv_of(content, row, size, 0).len(),
        forall|p: int|
            0 <= p < k * size ==> #[trigger] kv_of(content, row, size, 0)[p] == Some(
                toks.take(p + 1),
            ),
{
    assert(k * size <= row.len() * size) by (nonlinear_arith)
        requires
            size >= 1,
            k <= row.len(),
    ;
    assert forall|p: int| 0 <= p < k * size implies #[trigger] kv_of(content, row, size, 0)[p]
        == Some(toks.take(p + 1)) by {
        lemma_place(p, size, k);
        let i = p / size;
        lemma_block_end(i, k, size);
    }
}

/// Held positions make a filled block, if it is not one of the first `freed`.
pub proof fn lemma_holds_filled(
    content: Seq<Seq<Option<Seq<u32>>>>,
    row: Seq<u32>,
    freed: int,
    toks: Seq<u32>,
    size: int,
    n: int,
    i: int,
)
    requires
        size >= 1,
        0 <= freed <= i < row.len(),
        (i + 1) * size <= n <= toks.len(),
        forall|p: int|
            freed * size <= p < n ==> #[trigger] kv_of(content, row, size, freed * size)[p] == Some(
                toks.take(p + 1),
            ),
    ensures
        filled(content[row[i] as int], toks.take((i + 1) * size), size),
{
    let prefix = toks.take((i + 1) * size);
    lemma_block_end(i, row.len() as int, size);
    assert(freed * size <= i * size) by (nonlinear_arith)
        requires
            freed <= i,
            size >= 1,
    ;
    assert forall|o: int| 0 <= o < size implies #[trigger] content[row[i] as int][o] == Some(
        prefix.take(prefix.len() - size + o + 1),
    ) by {
        let p = i * size + o;
        assert(p / size == i && p % size == o) by (nonlinear_arith)
            requires
                size >= 1,
                0 <= o < size,
                p == i * size + o,
        ;
        assert(kv_of(content, row, size, freed * size)[p] == Some(toks.take(p + 1)));
    }
}

/// A prefix and the block that follows it.
pub proof fn lemma_next_block(toks: Seq<u32>, size: int, i: int)
    requires
        size >= 1,
        0 <= i,
        i * size + size <= toks.len(),
    ensures
        0 <= i * size,
        (i + 1) * size == i * size + size,
        toks.take((i + 1) * size) == toks.take(i * size) + block_of(toks, size, i),
{
    lemma_block_end(i, i + 1, size);
}

/// A position is kept if its block is.
pub proof fn lemma_kept(p: int, size: int, freed: int)
    requires
        size >= 1,
        0 <= p,
        0 <= freed,
    ensures
        0 <= freed * size,
        freed * size <= p <==> freed <= p / size,
{
    assert(0 <= freed * size && (freed * size <= p <==> freed <= p / size)) by (nonlinear_arith)
        requires
            size >= 1,
            0 <= p,
            0 <= freed,
    ;
}

/// The first blocks of a longer table hold what they held.
pub proof fn lemma_kv_prefix(
    content: Seq<Seq<Option<Seq<u32>>>>,
    short: Seq<u32>,
    long: Seq<u32>,
    size: int,
    kept: int,
)
    requires
        size >= 1,
        short.len() <= long.len(),
        long.take(short.len() as int) == short,
    ensures
        kv_of(content, long, size, kept).len() == long.len() * size,
        short.len() * size <= long.len() * size,
        kv_of(content, long, size, kept).take((short.len() * size) as int) == kv_of(
            content,
            short,
            size,
            kept,
        ),
{
    let m = (short.len() * size) as int;
    assert(m <= long.len() * size) by (nonlinear_arith)
        requires
            size >= 1,
            short.len() <= long.len(),
            m == short.len() * size,
    ;
    assert forall|p: int| 0 <= p < m implies #[trigger] kv_of(content, long, size, kept)[p]
        == kv_of(content, short, size, kept)[p] by {
        lemma_place(p, size, short.len() as int);
    }
}

} // verus!
