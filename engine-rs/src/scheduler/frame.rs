//! Groups change one after the other, each at one seat at most.
#[cfg(verus_only)]
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// The groups are as whole as before, and only `seat` may look different.
pub open spec fn groups_frame(
    c: Config,
    a: Seq<LayerGroup>,
    b: Seq<LayerGroup>,
    seat: int,
) -> bool {
    &&& a.len() == b.len()
    &&& forall|g: int|
        0 <= g < b.len() ==> group_ok(c, #[trigger] b[g]) && b[g].num_blocks() == a[g].num_blocks()
            && b[g].window() == a[g].window()
    &&& forall|g: int, s: int|
        #![trigger b[g].seat(s)]
        0 <= g < b.len() && 0 <= s < c.max_seqs && s != seat ==> b[g].seat(s) == a[g].seat(s)
}

/// What an operation on a seat in every group relies on.
pub open spec fn whole(c: Config, groups: Seq<LayerGroup>, seat: int) -> bool {
    &&& c.wf()
    &&& 0 <= seat < c.max_seqs
    &&& forall|g: int| 0 <= g < groups.len() ==> group_ok(c, #[trigger] groups[g])
}

/// No group has a table at this seat.
pub open spec fn empty_at(groups: Seq<LayerGroup>, seat: int) -> bool {
    forall|g: int| 0 <= g < groups.len() ==> (#[trigger] groups[g]).seat(seat).table.len() == 0
}

/// Group `g` changed, at `seat` only.
pub open spec fn one_changed(a: Seq<LayerGroup>, b: Seq<LayerGroup>, g: int, seat: int) -> bool {
    0 <= g < a.len() && b == a.update(g, b[g]) && b[g].same_but(&a[g], seat)
}

/// One group more changed.
pub(super) proof fn lemma_next_frame(
    c: Config,
    before: Seq<LayerGroup>,
    prev: Seq<LayerGroup>,
    now: Seq<LayerGroup>,
    g: int,
    seat: int,
)
    requires
        groups_frame(c, before, prev, seat),
        one_changed(prev, now, g, seat),
    ensures
        groups_frame(c, before, now, seat),
{
}

/// One group more changed, and logged that.
pub(super) proof fn lemma_next_logged(
    c: Config,
    before: Seq<LayerGroup>,
    prev: Seq<LayerGroup>,
    now: Seq<LayerGroup>,
    g: int,
    seat: int,
)
    requires
        groups_frame(c, before, prev, seat),
        one_changed(prev, now, g, seat),
        all_logged(before, prev),
        logged(prev[g], now[g]),
    ensures
        groups_frame(c, before, now, seat),
        all_logged(before, now),
{
}

/// One group more changed, logged that, and has the cache it had.
pub(super) proof fn lemma_next_cached(
    c: Config,
    before: Seq<LayerGroup>,
    prev: Seq<LayerGroup>,
    now: Seq<LayerGroup>,
    g: int,
    seat: int,
)
    requires
        groups_frame(c, before, prev, seat),
        one_changed(prev, now, g, seat),
        same_cache(before, prev),
        logged(prev[g], now[g]),
        now[g].same_cached(&prev[g]),
    ensures
        groups_frame(c, before, now, seat),
        same_cache(before, now),
{
}

} // verus!
