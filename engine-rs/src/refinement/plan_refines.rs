//! The plan being made becomes a plan of the machine.
use super::*;
use vstd::prelude::*;

verus! {

/// The chunk that entry `e` of the plan being made stands for.
pub open spec fn chunk_of(s: Scheduler, e: Entry) -> model::PlannedChunk {
    let c = s.seqs@[e.seq as int];
    model::PlannedChunk {
        first: e.from as nat,
        tokens: Seq::new(
            (e.to - e.from) as nat,
            |j: int|
                if e.from + j < c.len() {
                    Some(c.tokens@[e.from + j] as int)
                } else {
                    None
                },
        ),
        logits_from: c.need_from as nat,
        sample: e.sampled,
        seat: e.seat as int,
        tables: tables_of(s.groups@, c),
    }
}

/// Entry `k` of the plan being made.
pub open spec fn drafted(s: Scheduler, k: int) -> Entry {
    s.queue@[s.queue@.len() - s.draft + k]
}

/// The plan being made, for the machine.
pub open spec fn plan_of(s: Scheduler, l: Link) -> model::Plan {
    let order = Seq::new(s.draft as nat, |k: int| l.id(s, drafted(s, k).seq as int));
    model::Plan {
        order,
        chunks: Map::new(order.to_set(), |id: int| chunk_of(s, drafted(s, order.index_of(id)))),
    }
}

/// Where the queue leads sequence `i` is where the machine's plans in flight lead it.
proof fn lemma_track_flights(
    s: Scheduler,
    l: Link,
    q: Seq<Entry>,
    plans: Seq<model::Plan>,
    i: int,
    t: Track,
)
    requires
        t.pos >= 0,
        flights(plans).len() == q.len(),
        forall|k: int| 0 <= k < q.len() ==> #[trigger] flights(plans)[k] == flight_of(s, l, q[k]),
        forall|k: int|
            0 <= k < q.len() && l.id(s, (#[trigger] q[k]).seq as int) == l.id(s, i) ==> q[k].seq
                == i,
        forall|n: int| 0 <= n < plans.len() ==> model::inv_order(#[trigger] plans[n]),
    ensures
        track(q, i, t).pos == model::frontier(plans, l.id(s, i), t.pos as nat),
        track(q, i, t).len == t.len + model::draws(plans, l.id(s, i)),
    decreases plans.len(),
{
    if plans.len() > 0 {
        let (before, plan, id) = (plans.drop_last(), plans[plans.len() - 1], l.id(s, i));
        let n = flights(before).len() as int;
        let (q0, q1) = (q.take(n), q.skip(n));
        assert(q =~= q0 + q1);
        assert forall|k: int| 0 <= k < n implies #[trigger] flights(before)[k] == flight_of(
            s,
            l,
            q0[k],
        ) by {
            assert(flights(plans)[k] == flights(before)[k]);
        }
        assert forall|k: int|
            0 <= k < q0.len() && l.id(s, (#[trigger] q0[k]).seq as int) == l.id(
                s,
                i,
            ) implies q0[k].seq == i by {
            assert(q0[k] == q[k]);
        }
        assert forall|m: int| 0 <= m < before.len() implies model::inv_order(
            #[trigger] before[m],
        ) by {
            assert(before[m] == plans[m]);
        }
        lemma_track_flights(s, l, q0, before, i, t);
        lemma_track_concat(q0, q1, i, t);
        assert forall|k: int| 0 <= k < q1.len() implies (#[trigger] q1[k]).seq == i
            <==> plan.order[k] == id by {
            assert(q[n + k] == q1[k]);
            assert(flights(plans)[n + k] == chunks_of(plan)[k]);
        }
        assert(model::inv_order(plan));
        if plan.chunks.dom().contains(id) {
            let k = plan.order.index_of(id);
            assert(flights(plans)[n + k] == chunks_of(plan)[k]);
            assert(q1[k] == q[n + k]);
            lemma_track_single(q1, k, i, track(q0, i, t));
        } else {
            assert forall|k: int| 0 <= k < q1.len() implies (#[trigger] q1[k]).seq != i by {
                assert(plan.chunks.dom().contains(plan.order[k]));
            }
            lemma_entries_none(q1, i);
            lemma_track_none(q1, i, track(q0, i, t));
        }
    }
}

/// Entry `k` of the plan being made may be planned by the machine.
proof fn lemma_can_plan(s: Scheduler, l: Link, k: int)
    requires
        s.inv(),
        linked(s, l),
        0 <= k < s.draft,
    ensures
        model::can_plan(l.engine, l.id(s, drafted(s, k).seq as int), chunk_of(s, drafted(s, k))),
{
    let (e, x, first) = (l.engine, drafted(s, k), s.queue@.len() - s.draft);
    let (i, c) = (x.seq as int, s.seqs@[x.seq as int]);
    let t0 = Track { ok: true, pos: c.computed as int, len: c.len() };
    let (q0, q1) = (s.queue@.take(first), s.queue@.skip(first));
    assert(s.in_draft(first + k));
    assert(draft_entry_ok(x, c));
    assert(c.live() && c.wf(s.config));
    assert(s.queue@[first + k].seat == c.seat);
    lemma_id(s, l, i);
    assert(s.queue@ =~= q0 + q1);
    lemma_track_concat(q0, q1, i, t0);
    assert forall|m: int| 0 <= m < q1.len() && m != k implies (#[trigger] q1[m]).seq != i by {
        assert(s.in_draft(first + m));
        assert(q1[m] == s.queue@[first + m]);
        assert(s.queue@[first + m].seq != s.queue@[first + k].seq);
    }
    let t1 = track(q0, i, t0);
    assert(q1[k] == x);
    lemma_track_single(q1, k, i, t1);
    assert(track_ok(s.queue@, i, c));
    lemma_track_ok(q1, i, t1);
    lemma_track_unknown(q0, i, t0, c.len());
    assert forall|m: int|
        0 <= m < q0.len() && l.id(s, (#[trigger] q0[m]).seq as int) == l.id(s, i) implies q0[m].seq
        == i by {
        assert(q0[m] == s.queue@[m]);
        assert(s.seqs@[s.queue@[m].seq as int].live());
        lemma_id(s, l, s.queue@[m].seq as int);
    }
    lemma_track_flights(s, l, q0, e.plans, i, t0);
    assert forall|g: int| 0 <= g < e.groups() implies x.to <= #[trigger] e.seqs[l.id(
        s,
        i,
    )].tables[g].len() * e.shape.block_size by {
        assert(seat_ok(c, s.groups@[g].seat(c.seat as int), s.config.block_size));
    }
}

/// The machine may schedule the plan being made.
pub proof fn lemma_can_schedule(s: Scheduler, l: Link)
    requires
        s.inv(),
        linked(s, l),
        s.draft > 0,
    ensures
        model::enabled(l.engine, model::Step::Schedule { plan: plan_of(s, l) }),
        plan_of(s, l).order.len() == s.draft,
        forall|k: int|
            0 <= k < s.draft ==> {
                let id = #[trigger] plan_of(s, l).order[k];
                &&& id == l.id(s, drafted(s, k).seq as int)
                &&& plan_of(s, l).chunks[id] == chunk_of(s, drafted(s, k))
                &&& l.names[id] == name_of(s, drafted(s, k).seq as int)
            },
{
    let (plan, first) = (plan_of(s, l), s.queue@.len() - s.draft);
    assert forall|k: int| 0 <= k < s.draft implies {
        &&& s.seqs@[(#[trigger] drafted(s, k)).seq as int].live()
        &&& l.names[l.id(s, drafted(s, k).seq as int)] == name_of(s, drafted(s, k).seq as int)
    } by {
        assert(s.seqs@[s.queue@[first + k].seq as int].live());
        lemma_id(s, l, drafted(s, k).seq as int);
    }
    assert forall|j: int, k: int|
        0 <= j < s.draft && 0 <= k < s.draft && j != k implies #[trigger] plan.order[j]
        != #[trigger] plan.order[k] by {
        assert(s.in_draft(first + j) && s.in_draft(first + k));
        assert(s.queue@[first + j].seq != s.queue@[first + k].seq);
        lemma_id(s, l, drafted(s, j).seq as int);
        lemma_id(s, l, drafted(s, k).seq as int);
    }
    assert forall|k: int| 0 <= k < s.draft implies plan.order.index_of(#[trigger] plan.order[k])
        == k by {}
    assert forall|id: int| #[trigger] plan.chunks.dom().contains(id) implies plan.order.contains(id)
        && model::can_plan(l.engine, id, plan.chunks[id]) by {
        lemma_can_plan(s, l, plan.order.index_of(id));
    }
}

/// The plan being made goes out.
pub proof fn lemma_schedule_links(a: Scheduler, b: Scheduler, l: Link)
    requires
        a.inv(),
        linked(a, l),
        a.draft > 0,
        b == (Scheduler { plans: b.plans, draft: 0, draft_rows: 0, next_plan: b.next_plan, ..a }),
        b.plans@ == a.plans@.push(PlanRecord { id: a.next_plan, entries: a.draft }),
    ensures
        linked(b, l.with(model::after(l.engine, model::Step::Schedule { plan: plan_of(a, l) }))),
{
    let (plan, first) = (plan_of(a, l), a.queue@.len() - a.draft);
    let step = model::Step::Schedule { plan };
    let m = l.with(model::after(l.engine, step));
    lemma_can_schedule(a, l);
    lemma_step_inv(l.engine, step);
    assert(m.engine.plans.drop_last() =~= l.engine.plans);
    assert(m.engine.plans.last() == plan);
    assert forall|k: int| 0 <= k < b.queue@.len() implies #[trigger] flights(m.engine.plans)[k]
        == flight_of(b, m, b.queue@[k]) by {
        if k < first {
            assert(flights(l.engine.plans)[k] == flight_of(a, l, a.queue@[k]));
        } else {
            assert(flights(m.engine.plans)[k] == chunks_of(plan)[k - first]);
            assert(plan.order[k - first] == l.id(a, drafted(a, k - first).seq as int));
            assert(a.in_draft(k));
            assert(draft_entry_ok(a.queue@[k], a.seqs@[a.queue@[k].seq as int]));
        }
    }
    lemma_seqs_kept(a, b, l, m);
    assert(forall|g: int, x: int| #[trigger]
        cache_of(b.groups@, g, x) == cache_of(a.groups@, g, x));
}

} // verus!
