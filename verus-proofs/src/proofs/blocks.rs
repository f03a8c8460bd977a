//! Arithmetic of positions, blocks and offsets.
use crate::model::*;
use crate::trusted::*;
use vstd::arithmetic::div_mod::*;
use vstd::arithmetic::mul::*;
use vstd::prelude::*;

verus! {

/// Position `p` of a table that covers it lies in one of its blocks.
pub proof fn lemma_block_index(b: nat, p: int, blocks: nat)
    requires
        0 <= p < blocks * b,
    ensures
        0 <= p / b as int,
        p / (b as int) < blocks,
        0 <= p % b as int,
        p % (b as int) < b,
        p == (p / b as int) * b + p % b as int,
{
    lemma_fundamental_div_mod(p, b as int);
    assert(p / (b as int) < blocks) by (nonlinear_arith)
        requires
            p == (b as int) * (p / b as int) + p % b as int,
            0 <= p % b as int,
            p < blocks * b,
            b > 0,
    ;
    lemma_mul_is_commutative(b as int, p / b as int);
}

pub proof fn lemma_index_of_block(b: nat, i: int, o: int)
    requires
        0 <= i,
        0 <= o < b,
    ensures
        (i * b + o) / b as int == i,
        (i * b + o) % b as int == o,
        0 <= i * b + o < (i + 1) * b,
{
    lemma_fundamental_div_mod_converse(i * b + o, b as int, i, o);
    assert(0 <= i * b + o < (i + 1) * b) by (nonlinear_arith)
        requires
            0 <= i,
            0 <= o < b,
    ;
}

/// Whole blocks are sealed exactly.
pub proof fn lemma_sealed_of_blocks(b: nat, count: nat)
    requires
        b > 0,
    ensures
        (count * b) as int / b as int == count,
        0 <= count * b,
{
    lemma_index_of_block(b, count as int, 0);
}

pub proof fn lemma_sealed_monotone(b: nat, m: nat, n: nat)
    requires
        b > 0,
        m <= n,
    ensures
        m as int / b as int <= n as int / b as int,
{
    lemma_div_is_ordered(m as int, n as int, b as int);
}

/// A sealed block's positions are computed.
pub proof fn lemma_sealed_positions(b: nat, computed: nat, i: int)
    requires
        b > 0,
        0 <= i < computed as int / b as int,
    ensures
        0 <= (i + 1) * b <= computed,
{
    lemma_fundamental_div_mod(computed as int, b as int);
    assert(0 <= (i + 1) * b <= computed) by (nonlinear_arith)
        requires
            computed == (b as int) * (computed as int / b as int) + computed as int % b as int,
            0 <= computed as int % b as int,
            0 <= i < computed as int / b as int,
            b > 0,
    ;
}

/// Block `i` begins no earlier than one before it.
pub proof fn lemma_block_starts(b: nat, i: nat, j: int)
    requires
        i <= j,
    ensures
        i * b <= j * b,
{
    assert(i * b <= j * b) by (nonlinear_arith)
        requires
            i <= j,
            0 <= b,
    ;
}

/// The block and offset of a position that a table covers.
pub proof fn lemma_slot(e: Engine, id: int, g: int, p: int)
    requires
        inv_shape(e),
        e.has(id),
        0 <= g < e.groups(),
        e.kept_from(id, g) <= p < e.seqs[id].tables[g].len() * e.shape.block_size,
    ensures
        ({
            let i = p / e.shape.block_size as int;
            let o = p % e.shape.block_size as int;
            &&& e.has_block(id, g, i)
            &&& 0 <= o < e.shape.block_size
            &&& p == i * e.shape.block_size + o
            &&& e.slot(id, g, p) == (Slot { group: g, block: e.block(id, g, i), offset: o })
        }),
{
    let (size, freed) = (e.shape.block_size, e.seqs[id].freed[g]);
    lemma_sealed_of_blocks(size, freed);
    lemma_block_index(size, p, e.seqs[id].tables[g].len());
    lemma_div_is_ordered((freed * size) as int, p, size as int);
}

/// A later row sees no earlier position.
pub proof fn lemma_first_seen(window: nat, p: int, q: int)
    requires
        0 <= p <= q,
    ensures
        0 <= first_seen(window, p) <= first_seen(window, q),
        first_seen(window, q) <= q,
{
}

/// A position that is not yet computed is not given back.
pub proof fn lemma_kept(e: Engine, id: int, g: int)
    requires
        inv_freed(e, e.seqs[id]),
        0 <= g < e.groups(),
    ensures
        0 <= e.kept_from(id, g) <= e.seen_from(id, g) <= e.seqs[id].computed,
{
}

} // verus!
