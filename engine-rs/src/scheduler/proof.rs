#[cfg(verus_only)]
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

pub proof fn lemma_track_push(q: Seq<Entry>, e: Entry, i: int, t: Track)
    ensures
        track(q.push(e), i, t) == (if e.seq == i {
            advance(track(q, i, t), e)
        } else {
            track(q, i, t)
        }),
        entries_of(q.push(e), i) == entries_of(q, i) + if e.seq == i {
            1nat
        } else {
            0nat
        },
    decreases q.len(),
{
    reveal_with_fuel(track, 2);
    if q.len() == 0 {
        assert(q.push(e).drop_first() =~= q);
    } else {
        assert(q.push(e).drop_first() =~= q.drop_first().push(e));
        lemma_track_push(
            q.drop_first(),
            e,
            i,
            if q[0].seq == i {
                advance(t, q[0])
            } else {
                t
            },
        );
    }
}

/// What went wrong once stays wrong.
pub proof fn lemma_track_ok(q: Seq<Entry>, i: int, t: Track)
    requires
        track(q, i, t).ok,
    ensures
        t.ok,
        track(q, i, t).pos >= t.pos,
        track(q, i, t).len >= t.len,
    decreases q.len(),
{
    if q.len() > 0 {
        lemma_track_ok(
            q.drop_first(),
            i,
            if q[0].seq == i {
                advance(t, q[0])
            } else {
                t
            },
        );
    }
}

/// A sequence without entries is not moved.
pub proof fn lemma_track_none(q: Seq<Entry>, i: int, t: Track)
    requires
        entries_of(q, i) == 0,
    ensures
        track(q, i, t) == t,
    decreases q.len(),
{
    if q.len() > 0 {
        lemma_track_none(q.drop_first(), i, t);
    }
}

pub proof fn lemma_track_concat(q: Seq<Entry>, r: Seq<Entry>, i: int, t: Track)
    ensures
        track(q + r, i, t) == track(r, i, track(q, i, t)),
    decreases q.len(),
{
    if q.len() == 0 {
    } else {
        assert((q + r).drop_first() =~= q.drop_first() + r);
        lemma_track_concat(
            q.drop_first(),
            r,
            i,
            if q[0].seq == i {
                advance(t, q[0])
            } else {
                t
            },
        );
    }
}

/// A sequence with the one entry `k` is moved by it.
pub proof fn lemma_track_single(q: Seq<Entry>, k: int, i: int, t: Track)
    requires
        0 <= k < q.len(),
        q[k].seq == i,
        forall|m: int| 0 <= m < q.len() && m != k ==> (#[trigger] q[m]).seq != i,
    ensures
        track(q, i, t) == advance(t, q[k]),
{
    let (q0, q1) = (q.take(k), q.skip(k));
    assert(q =~= q0 + q1);
    lemma_track_concat(q0, q1, i, t);
    lemma_entries_none(q0, i);
    lemma_track_none(q0, i, t);
    lemma_entries_none(q1.drop_first(), i);
    lemma_track_none(q1.drop_first(), i, advance(t, q[k]));
}

/// Of the tokens that are not known, all but the last one were fed back.
pub proof fn lemma_track_unknown(q: Seq<Entry>, i: int, t: Track, known: int)
    requires
        track(q, i, t).ok,
        t.len == known || t.len > known && t.pos >= t.len - 1,
    ensures
        ({
            let r = track(q, i, t);
            r.len == known || r.len > known && r.pos >= r.len - 1
        }),
    decreases q.len(),
{
    if q.len() > 0 {
        let next = if q[0].seq == i {
            advance(t, q[0])
        } else {
            t
        };
        lemma_track_ok(q.drop_first(), i, next);
        lemma_track_unknown(q.drop_first(), i, next, known);
    }
}

/// A sequence that no entry names has none.
pub proof fn lemma_entries_none(q: Seq<Entry>, i: int)
    requires
        forall|k: int| 0 <= k < q.len() ==> (#[trigger] q[k]).seq != i,
    ensures
        entries_of(q, i) == 0,
    decreases q.len(),
{
    if q.len() > 0 {
        lemma_entries_none(q.drop_first(), i);
    }
}

/// A sequence that an entry names has some.
pub proof fn lemma_entries_some(q: Seq<Entry>, k: int)
    requires
        0 <= k < q.len(),
    ensures
        entries_of(q, q[k].seq as int) > 0,
    decreases q.len(),
{
    if k > 0 {
        lemma_entries_some(q.drop_first(), k - 1);
    }
}

pub proof fn lemma_entries_bound(q: Seq<Entry>, i: int)
    ensures
        entries_of(q, i) <= q.len(),
    decreases q.len(),
{
    if q.len() > 0 {
        lemma_entries_bound(q.drop_first(), i);
    }
}

pub proof fn lemma_entries_in_push(p: Seq<PlanRecord>, r: PlanRecord)
    ensures
        entries_in(p.push(r)) == entries_in(p) + r.entries,
    decreases p.len(),
{
    if p.len() == 0 {
        assert(p.push(r).drop_first() =~= p);
    } else {
        assert(p.push(r).drop_first() =~= p.drop_first().push(r));
        lemma_entries_in_push(p.drop_first(), r);
    }
}

pub proof fn lemma_span_push(q: Seq<Entry>, e: Entry, a: int)
    requires
        0 <= a <= q.len(),
    ensures
        span(q.push(e), a) == span(q, a) + (e.to - e.from),
    decreases q.len() - a,
{
    if a < q.len() {
        lemma_span_push(q, e, a + 1);
    } else {
        assert(span(q.push(e), a + 1) == 0);
    }
}

} // verus!
