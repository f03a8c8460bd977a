//! One operation on the tables of a seat in every group.
#[cfg(verus_only)]
use super::*;
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// The seat's table has the same beginning; blocks that left the cache are new in it.
pub open spec fn grew(a: LayerGroup, b: LayerGroup, seat: int) -> bool {
    let (v, w) = (a.seat(seat), b.seat(seat));
    &&& w.freed == v.freed
    &&& w.sealed <= v.table.len() <= w.table.len()
    &&& w.table.take(v.table.len() as int) == v.table
    &&& logged(a, b) && a.seats() == b.seats()
    &&& forall|x: int| #[trigger]
        b.cached(x) == a.cached(x) || (b.cached(x) is None && w.table.skip(
            v.table.len() as int,
        ).contains(x as u32))
}

/// A longer table with the same beginning.
pub open spec fn extends(a: SeatView, b: SeatView) -> bool {
    &&& a.table.len() <= b.table.len()
    &&& b.freed == a.freed && b.kept == a.kept
    &&& b.sealed == a.sealed
    &&& a.kv.len() <= b.kv.len()
    &&& b.kv.take(a.kv.len() as int) == a.kv
}

pub open spec fn all_extend(a: Seq<LayerGroup>, b: Seq<LayerGroup>, seat: int) -> bool {
    forall|g: int| 0 <= g < b.len() ==> extends(a[g].seat(seat), (#[trigger] b[g]).seat(seat))
}

pub proof fn lemma_extends_holds(a: SeatView, b: SeatView, toks: Seq<u32>, n: int)
    requires
        extends(a, b),
        holds(a, toks, n),
    ensures
        holds(b, toks, n),
{
    assert forall|p: int| b.kept <= p < n implies #[trigger] b.kv[p] == Some(toks.take(p + 1)) by {
        assert(b.kv.take(a.kv.len() as int)[p] == a.kv[p]);
    }
}

/// Empties the seat's table in every group.
pub fn release_all(Ghost(c): Ghost<Config>, groups: &mut Vec<LayerGroup>, seat: u32)
    requires
        whole(c, old(groups)@, seat as int),
    ensures
        groups_frame(c, old(groups)@, final(groups)@, seat as int),
        same_cache(old(groups)@, final(groups)@),
        empty_at(final(groups)@, seat as int),
{
    let ghost before = groups@;
    let mut g: usize = 0;
    while g < groups.len()
        invariant
            g <= groups@.len(),
            seat < c.max_seqs,
            groups_frame(c, before, groups@, seat as int),
            same_cache(before, groups@),
            forall|h: int|
                0 <= h < g ==> (#[trigger] groups@[h]).seat(seat as int).table.len() == 0,
        decreases groups@.len() - g,
    {
        groups[g].release(seat as usize);
        g += 1;
    }
}

/// Too few free blocks for the seat's table to have `blocks` of them.
pub open spec fn lacks(g: LayerGroup, seat: int, blocks: int) -> bool {
    blocks > g.seat(seat).table.len() + g.num_free()
}

/// Makes every table of the seat cover `blocks` blocks; `false` when some group has too few free
/// ones (tables of other groups may have grown).
pub fn grow_all(
    Ghost(c): Ghost<Config>,
    groups: &mut Vec<LayerGroup>,
    seat: u32,
    blocks: usize,
) -> (ok: bool)
    requires
        whole(c, old(groups)@, seat as int),
        blocks * c.block_size < c.max_model_len + c.block_size,
    ensures
        groups_frame(c, old(groups)@, final(groups)@, seat as int),
        all_extend(old(groups)@, final(groups)@, seat as int),
        forall|g: int|
            0 <= g < final(groups)@.len() ==> grew(
                old(groups)@[g],
                #[trigger] final(groups)@[g],
                seat as int,
            ),
        ok ==> forall|g: int|
            0 <= g < final(groups)@.len() ==> (#[trigger] final(groups)@[g]).seat(
                seat as int,
            ).table.len() >= blocks,
        !ok ==> exists|g: int|
            0 <= g < old(groups)@.len() && lacks(
                #[trigger] old(groups)@[g],
                seat as int,
                blocks as int,
            ),
{
    let ghost before = groups@;
    let mut g: usize = 0;
    let mut ok = true;
    proof {
        assert forall|h: int| 0 <= h < groups@.len() implies extends(
            before[h].seat(seat as int),
            (#[trigger] groups@[h]).seat(seat as int),
        ) by {
            let v = before[h].seat(seat as int);
            assert(v.kv.take(v.kv.len() as int) =~= v.kv);
        }
    }
    while g < groups.len()
        invariant
            g <= groups@.len(),
            c.wf(),
            seat < c.max_seqs,
            blocks * c.block_size < c.max_model_len + c.block_size,
            groups_frame(c, before, groups@, seat as int),
            all_extend(before, groups@, seat as int),
            forall|h: int| 0 <= h < g ==> grew(before[h], #[trigger] groups@[h], seat as int),
            forall|h: int| g <= h < groups@.len() ==> (#[trigger] groups@[h]) == before[h],
            !ok ==> exists|h: int|
                0 <= h < before.len() && lacks(#[trigger] before[h], seat as int, blocks as int),
            ok ==> forall|h: int|
                0 <= h < g ==> (#[trigger] groups@[h]).seat(seat as int).table.len() >= blocks,
        decreases groups@.len() - g,
    {
        let ghost prev = groups@;
        proof {
            lemma_row_fits(c, groups@[g as int].row_len(), blocks as nat);
            prev[g as int].lemma_bounds(seat as int);
        }
        let grown = groups[g].grow(seat as usize, blocks);
        proof {
            lemma_next_frame(c, before, prev, groups@, g as int, seat as int);
            groups@[g as int].lemma_bounds(seat as int);
            let a = before[g as int].seat(seat as int);
            let m = prev[g as int].seat(seat as int);
            let b = groups@[g as int].seat(seat as int);
            assert(extends(a, m));
            if grown {
                lemma_mul_le(m.table.len(), b.table.len(), c.block_size as nat);
                assert(b.kv.take(a.kv.len() as int) =~= m.kv.take(a.kv.len() as int)) by {
                    assert(b.kv.take(m.kv.len() as int) == m.kv);
                    assert forall|p: int| 0 <= p < a.kv.len() implies b.kv[p] == m.kv[p] by {
                        assert(b.kv.take(m.kv.len() as int)[p] == m.kv[p]);
                    }
                }
            }
            assert(extends(a, b));
            assert(m.table.take(m.table.len() as int) =~= m.table);
            if grown {
                lemma_logged(prev[g as int], groups@[g as int], seat, m.table.len() as int);
            }
            assert(grew(before[g as int], groups@[g as int], seat as int));
        }
        if !grown {
            ok = false;
        }
        g += 1;
    }
    ok
}

pub proof fn lemma_mul_le(a: nat, b: nat, m: nat)
    requires
        a <= b,
    ensures
        a * m <= b * m,
{
    assert(a * m <= b * m) by (nonlinear_arith)
        requires
            a <= b,
    ;
}

/// A table row is long enough for any sequence.
pub proof fn lemma_row_fits(c: Config, row_len: nat, blocks: nat)
    requires
        c.wf(),
        row_len * c.block_size >= c.max_model_len,
        blocks * c.block_size < c.max_model_len + c.block_size,
    ensures
        blocks <= row_len,
{
    assert(blocks <= row_len) by (nonlinear_arith)
        requires
            row_len * c.block_size >= c.max_model_len,
            blocks * c.block_size < c.max_model_len + c.block_size,
            c.block_size > 0,
    ;
}

/// Blocks that `n` tokens need.
pub fn blocks_for(n: u32, block_size: u32) -> (k: usize)
    requires
        block_size > 0,
    ensures
        n <= k * block_size,
        k * block_size < n + block_size,
{
    let q = n / block_size;
    let r = n % block_size;
    proof {
        vstd::arithmetic::div_mod::lemma_fundamental_div_mod(n as int, block_size as int);
        assert(block_size as int * q as int == q as int * block_size as int) by (nonlinear_arith);
        assert((q + 1) * block_size == q * block_size + block_size) by (nonlinear_arith);
    }
    if r == 0 {
        q as usize
    } else {
        assert(q < u32::MAX) by (nonlinear_arith)
            requires
                q * block_size + r == n,
                n <= u32::MAX,
                r > 0,
                block_size > 0,
        ;
        (q + 1) as usize
    }
}

/// What positions `from..to` hold is unknown; before them, and else, the view is the same.
pub open spec fn dirtied(a: SeatView, b: SeatView, from: int, to: int) -> bool {
    &&& b.table == a.table
    &&& b.freed == a.freed && b.kept == a.kept
    &&& b.sealed == a.sealed
    &&& b.kv.len() == a.kv.len()
    &&& forall|p: int| 0 <= p < from && p < a.kv.len() ==> #[trigger] b.kv[p] == a.kv[p]
    &&& forall|p: int| 0 <= from <= p < to && p < a.kv.len() ==> (#[trigger] b.kv[p]) is None
}

pub open spec fn all_dirtied(
    a: Seq<LayerGroup>,
    b: Seq<LayerGroup>,
    seat: int,
    from: int,
    to: int,
) -> bool {
    forall|g: int|
        0 <= g < b.len() ==> dirtied(a[g].seat(seat), (#[trigger] b[g]).seat(seat), from, to)
}

/// A plan is about to write positions `from..to` of the seat: what is there is unknown until the
/// plan is committed. Ghost only.
pub fn dirty_all(
    Ghost(c): Ghost<Config>,
    groups: &mut Vec<LayerGroup>,
    seat: u32,
    from: u32,
    to: u32,
)
    requires
        whole(c, old(groups)@, seat as int),
        from <= to,
        all_writable(old(groups)@, seat as int, from as int, to as int, c.block_size),
    ensures
        groups_frame(c, old(groups)@, final(groups)@, seat as int),
        all_dirtied(old(groups)@, final(groups)@, seat as int, from as int, to as int),
        same_cache(old(groups)@, final(groups)@),
{
    let ghost before = groups@;
    let mut g: usize = 0;
    while g < groups.len()
        invariant
            g <= groups@.len(),
            c.wf(),
            seat < c.max_seqs,
            from <= to,
            groups_frame(c, before, groups@, seat as int),
            same_cache(before, groups@),
            forall|h: int|
                0 <= h < g ==> dirtied(
                    before[h].seat(seat as int),
                    (#[trigger] groups@[h]).seat(seat as int),
                    from as int,
                    to as int,
                ),
            forall|h: int| g <= h < groups@.len() ==> (#[trigger] groups@[h]) == before[h],
            all_writable(before, seat as int, from as int, to as int, c.block_size),
        decreases groups@.len() - g,
    {
        proof {
            groups@[g as int].lemma_bounds(seat as int);
        }
        groups[g].dirty(seat as usize, from as usize, to as usize);
        g += 1;
    }
}

/// The seat may write positions `from..to`: its table covers them, and they are not sealed.
pub open spec fn writable(v: SeatView, from: int, to: int, block_size: u32) -> bool {
    &&& v.sealed * block_size <= from
    &&& to <= v.table.len() * block_size
}

pub open spec fn all_writable(
    groups: Seq<LayerGroup>,
    seat: int,
    from: int,
    to: int,
    block_size: u32,
) -> bool {
    forall|g: int|
        0 <= g < groups.len() ==> writable((#[trigger] groups[g]).seat(seat), from, to, block_size)
}

} // verus!
