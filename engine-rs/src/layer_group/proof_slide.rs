//! What a seat looks like that gave back its first blocks.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::spec::*;
use vstd::prelude::*;

verus! {

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
