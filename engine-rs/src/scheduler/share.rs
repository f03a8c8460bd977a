//! A fork shares the full blocks that its parent has computed.
#[cfg(verus_only)]
use super::*;
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// The first `k` blocks of the table are committed and begin `toks`.
pub open spec fn shareable(v: SeatView, toks: Seq<u32>, k: nat, block_size: u32) -> bool {
    &&& k <= v.sealed
    &&& k > 0 ==> v.freed == 0
    &&& k * block_size <= toks.len()
    &&& holds(v, toks, (k * block_size) as int)
}

pub open spec fn all_shareable(
    groups: Seq<LayerGroup>,
    seat: int,
    toks: Seq<u32>,
    k: nat,
    block_size: u32,
) -> bool {
    forall|g: int|
        0 <= g < groups.len() ==> shareable((#[trigger] groups[g]).seat(seat), toks, k, block_size)
}

/// The computed blocks of `s` begin any tokens that begin as its own do.
pub(super) proof fn lemma_shareable(
    s: Sequence,
    toks: Seq<u32>,
    v: SeatView,
    block_size: u32,
    k: nat,
)
    requires
        block_size > 0,
        seat_ok(s, v, block_size),
        k * block_size <= s.computed <= s.len(),
        k * block_size <= toks.len(),
        s.tokens@.take((k * block_size) as int) == toks.take((k * block_size) as int),
        k > 0 ==> v.freed == 0,
    ensures
        shareable(v, toks, k, block_size),
{
    let n = (k * block_size) as int;
    assert(k <= s.computed as int / block_size as int) by (nonlinear_arith)
        requires
            k * block_size <= s.computed,
            block_size > 0,
    ;
    assert forall|p: int| v.kept <= p < n implies #[trigger] v.kv[p] == Some(toks.take(p + 1)) by {}
}

/// Gives the empty seat the first `k` blocks of the tables of seat `from`.
pub fn share_all(
    Ghost(c): Ghost<Config>,
    groups: &mut Vec<LayerGroup>,
    seat: u32,
    from: u32,
    k: usize,
    Ghost(toks): Ghost<Seq<u32>>,
)
    requires
        whole(c, old(groups)@, seat as int),
        from < c.max_seqs,
        seat != from,
        empty_at(old(groups)@, seat as int),
        all_shareable(old(groups)@, from as int, toks, k as nat, c.block_size),
    ensures
        groups_frame(c, old(groups)@, final(groups)@, seat as int),
        same_cache(old(groups)@, final(groups)@),
        forall|g: int|
            0 <= g < final(groups)@.len() ==> (#[trigger] final(groups)@[g]).seat(seat as int).table
                == old(groups)@[g].seat(from as int).table.take(k as int),
        all_attached(final(groups)@, seat as int, toks, k as nat, c.block_size),
{
    let ghost before = groups@;
    let mut g: usize = 0;
    while g < groups.len()
        invariant
            g <= groups@.len(),
            c.wf(),
            seat < c.max_seqs,
            from < c.max_seqs,
            seat != from,
            groups_frame(c, before, groups@, seat as int),
            same_cache(before, groups@),
            forall|h: int|
                0 <= h < g ==> (#[trigger] groups@[h]).seat(seat as int).table == before[h].seat(
                    from as int,
                ).table.take(k as int),
            all_shareable(before, from as int, toks, k as nat, c.block_size),
            forall|h: int|
                g <= h < groups@.len() ==> (#[trigger] groups@[h]).seat(seat as int).table.len()
                    == 0,
            forall|h: int|
                0 <= h < g ==> attached(
                    (#[trigger] groups@[h]).seat(seat as int),
                    toks,
                    k as nat,
                    c.block_size,
                ),
        decreases groups@.len() - g,
    {
        let ghost prev = groups@;
        proof {
            prev[g as int].lemma_bounds(from as int);
        }
        groups[g].share(seat as usize, from as usize, k);
        proof {
            let v = prev[g as int].seat(from as int);
            let n = (k * c.block_size) as int;
            let w = groups@[g as int].seat(seat as int);
            groups@[g as int].lemma_bounds(seat as int);
            assert(w.kv == v.kv.take(n));
            assert forall|p: int| w.kept <= p < n implies #[trigger] w.kv[p] == Some(
                toks.take(p + 1),
            ) by {
                assert(v.kv.take(n)[p] == v.kv[p]);
            }
            assert(w.table.take(0) =~= prev[g as int].seat(seat as int).table.take(0));
            lemma_logged(prev[g as int], groups@[g as int], seat, 0);
            lemma_next_cached(c, before, prev, groups@, g as int, seat as int);
        }
        g += 1;
    }
}

} // verus!
