//! Progress: there is a plan while there is work, and the oldest sequence gets on with each.
#[cfg(verus_only)]
use super::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// What `schedule` ensures from `a` to `b`; `some`: it gave a plan. With nothing in flight and
/// some sequence unfinished it does, and a plan begins with the next rows of the oldest sequence,
/// when none of these is in flight. (There are 2^64 - 1 plans in an engine's life.)
pub open spec fn progressed(a: Scheduler, b: Scheduler, some: bool) -> bool {
    &&& a.idle() && unfinished(a) && a.next_plan < u64::MAX ==> some
    &&& some && a.eldest_ready() ==> b.eldest_served(a)
}

/// What is running in `b` ran in `a`, with the same rows planned.
pub open spec fn rows_kept(a: Scheduler, b: Scheduler) -> bool {
    forall|i: int|
        #![trigger b.seqs@[i]]
        0 <= i < b.seqs@.len() && b.seqs@[i].phase is Running ==> {
            &&& i < a.seqs@.len() && a.seqs@[i].phase is Running
            &&& b.seqs@[i].planned == a.seqs@[i].planned
            &&& b.seqs@[i].max_len == a.seqs@[i].max_len
        }
}

/// Progress. `before[k]` and `after[k]`: the engine around the k-th call of `schedule`. If plans
/// are made one at a time, each is committed before the next is made (`commit` ensures
/// `rows_kept`), and sequence `i`, whose output ends at `max_len` tokens, is the oldest and goes
/// on, then each call gives a plan, and there are at most `max_len - 1 - planned` of them: the
/// oldest sequence ends, and the next one becomes the oldest.
pub proof fn theorem_progress(
    before: Seq<Scheduler>,
    after: Seq<Scheduler>,
    some: Seq<bool>,
    i: int,
    max_len: int,
)
    requires
        before.len() > 0,
        before.len() == after.len() && before.len() == some.len(),
        forall|k: int|
            0 <= k < before.len() ==> {
                let a = #[trigger] before[k];
                &&& a.inv() && after[k].inv()
                &&& progressed(a, after[k], some[k])
                &&& a.idle() && a.next_plan < u64::MAX
                &&& a.eldest_ready() && a.running@[0] == i
                &&& a.seqs@[i].max_len == max_len
            },
        forall|k: int| 0 <= k < before.len() - 1 ==> rows_kept(#[trigger] after[k], before[k + 1]),
    ensures
        forall|k: int| 0 <= k < some.len() ==> #[trigger] some[k],
        before.len() <= max_len - 1 - before[0].seqs@[i].planned,
{
    assert forall|k: int| 0 <= k < some.len() implies #[trigger] some[k] by {
        let a = before[k];
        assert(a.seqs@[a.running@[0] as int].phase is Running);
        assert(unfinished(a)) by {
            assert(a.seqs@[i].phase is Running);
        }
    }
    lemma_planned_rises(before, after, some, i, before.len() - 1);
    let last = before[before.len() - 1];
    assert(last.seqs@[last.running@[0] as int].live());
    last.lemma_has_rows(i);
    assert(last.seqs@[i].wf(last.config));
}

proof fn lemma_planned_rises(
    before: Seq<Scheduler>,
    after: Seq<Scheduler>,
    some: Seq<bool>,
    i: int,
    n: int,
)
    requires
        0 <= n < before.len(),
        before.len() == after.len() && before.len() == some.len(),
        forall|k: int|
            0 <= k < before.len() ==> {
                let a = #[trigger] before[k];
                &&& a.inv() && after[k].inv()
                &&& progressed(a, after[k], some[k])
                &&& a.eldest_ready() && a.running@[0] == i
            },
        forall|k: int| 0 <= k < some.len() ==> #[trigger] some[k],
        forall|k: int| 0 <= k < before.len() - 1 ==> rows_kept(#[trigger] after[k], before[k + 1]),
    ensures
        before[0].seqs@[i].planned + n <= before[n].seqs@[i].planned,
    decreases n,
{
    if n > 0 {
        lemma_planned_rises(before, after, some, i, n - 1);
        let (a, b, c) = (before[n - 1], after[n - 1], before[n]);
        assert(some[n - 1]);
        assert(rows_kept(b, before[n - 1 + 1]));
        assert(c.seqs@[c.running@[0] as int].phase is Running);
        assert(c.seqs@[c.running@[0] as int].live());
        let s = b.seqs@[i];
        assert(track_ok(b.queue@, i, s));
        let t = Track { ok: true, pos: s.computed as int, len: s.len() };
        lemma_track_covers(b.queue@, a.queue@.len() as int, i, t);
    }
}

/// The queue leads a sequence past the rows of each of its entries.
proof fn lemma_track_covers(q: Seq<Entry>, k: int, i: int, t: Track)
    requires
        0 <= k < q.len(),
        q[k].seq == i,
        track(q, i, t).ok,
    ensures
        q[k].to <= track(q, i, t).pos,
    decreases q.len(),
{
    let next = if q[0].seq == i {
        advance(t, q[0])
    } else {
        t
    };
    if k > 0 {
        lemma_track_covers(q.drop_first(), k - 1, i, next);
    } else {
        lemma_track_ok(q.drop_first(), i, next);
    }
}

} // verus!
