//! A seat gets the blocks that are cached for its sequence.
use super::release_all;
#[cfg(verus_only)]
use super::*;
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Gives the empty seat the cached blocks that begin `tokens`, the same number in every group, at
/// most `max_blocks`; returns that number.
pub fn attach_all(
    Ghost(c): Ghost<Config>,
    groups: &mut Vec<LayerGroup>,
    seat: u32,
    salt: u64,
    tokens: &Vec<u32>,
    max_blocks: usize,
) -> (k: usize)
    requires
        whole(c, old(groups)@, seat as int),
        empty_at(old(groups)@, seat as int),
    ensures
        groups_frame(c, old(groups)@, final(groups)@, seat as int),
        same_cache(old(groups)@, final(groups)@),
        forall|g: int|
            0 <= g < final(groups)@.len() ==> attached_hits(
                old(groups)@[g],
                (#[trigger] final(groups)@[g]).seat(seat as int).table,
                salt,
                tokens@,
                k as nat,
                c.block_size,
            ),
        k <= max_blocks,
        all_attached(final(groups)@, seat as int, tokens@, k as nat, c.block_size),
{
    let ghost before = groups@;
    let mut want = max_blocks;
    loop
        invariant
            c.wf(),
            seat < c.max_seqs,
            want <= max_blocks,
            before == old(groups)@,
            groups_frame(c, before, groups@, seat as int),
            same_cache(before, groups@),
            empty_at(groups@, seat as int),
        decreases want,
    {
        let mut g: usize = 0;
        let mut least = want;
        while g < groups.len()
            invariant
                g <= groups@.len(),
                c.wf(),
                seat < c.max_seqs,
                least <= want <= max_blocks,
                before == old(groups)@,
                groups_frame(c, before, groups@, seat as int),
                same_cache(before, groups@),
                least == want ==> forall|h: int|
                    0 <= h < g ==> attached_hits(
                        before[h],
                        (#[trigger] groups@[h]).seat(seat as int).table,
                        salt,
                        tokens@,
                        want as nat,
                        c.block_size,
                    ),
                forall|h: int|
                    g <= h < groups@.len() ==> (#[trigger] groups@[h]).seat(seat as int).table.len()
                        == 0,
                least == want ==> forall|h: int|
                    0 <= h < g ==> attached(
                        (#[trigger] groups@[h]).seat(seat as int),
                        tokens@,
                        want as nat,
                        c.block_size,
                    ),
            decreases groups@.len() - g,
        {
            let ghost prev = groups@;
            let k = groups[g].attach(seat as usize, salt, tokens, want);
            proof {
                assert(groups@[g as int].seat(seat as int).table.take(0) =~= prev[g as int].seat(
                    seat as int,
                ).table.take(0));
                lemma_logged(prev[g as int], groups@[g as int], seat, 0);
            }
            if k < least {
                least = k;
            }
            g += 1;
        }
        if least == want {
            return want;
        }
        release_all(Ghost(c), groups, seat);
        want = least;
    }
}

/// The table is `k` blocks that group `g` has cached for the beginning of `toks`.
pub open spec fn attached_hits(
    g: LayerGroup,
    table: Seq<u32>,
    salt: u64,
    toks: Seq<u32>,
    k: nat,
    block_size: u32,
) -> bool {
    &&& table.len() == k
    &&& forall|i: int|
        0 <= i < k ==> g.cached(#[trigger] table[i] as int) == Some(
            (salt, toks.take((i + 1) * block_size)),
        )
}

/// The seat's table is exactly `k` blocks that hold the beginning of `toks`.
pub open spec fn attached(v: SeatView, toks: Seq<u32>, k: nat, block_size: u32) -> bool {
    &&& v.table.len() == k
    &&& v.freed == 0
    &&& v.sealed == k
    &&& k * block_size <= toks.len()
    &&& holds(v, toks, (k * block_size) as int)
}

/// That is so in every group.
pub open spec fn all_attached(
    groups: Seq<LayerGroup>,
    seat: int,
    toks: Seq<u32>,
    k: nat,
    block_size: u32,
) -> bool {
    forall|g: int|
        0 <= g < groups.len() ==> attached((#[trigger] groups[g]).seat(seat), toks, k, block_size)
}

} // verus!
