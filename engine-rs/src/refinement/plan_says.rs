//! The plan that a runner gets is the machine's.
use super::*;
use vstd::prelude::*;

verus! {

/// Where a slot lies in the memory of its group.
pub open spec fn address(shape: Shape, slot: Slot) -> int {
    slot.block * shape.block_size + slot.offset
}

/// Row `r` is row `j` of chunk `c`: position, token, slots, and whether its logits are wanted.
pub open spec fn says_row(p: Plan, r: int, c: model::PlannedChunk, j: int, shape: Shape) -> bool {
    &&& p.positions@[r] == c.first + j
    &&& p.token_ids@[r] == match c.tokens[j] {
        Some(token) => token,
        None => UNKNOWN_TOKEN as int,
    }
    &&& p.logits_rows@.contains(r as u32) <==> c.logits_from <= c.first + j
    &&& forall|g: int|
        0 <= g < shape.groups() ==> (#[trigger] p.slots@[g])@[r] == address(
            shape,
            shape.slot(g, c.tables[g], c.first + j),
        )
}

/// The `k`-th sequence of the plan is the one called `name`, with chunk `c`.
pub open spec fn says_chunk(
    p: Plan,
    k: int,
    name: u64,
    c: model::PlannedChunk,
    shape: Shape,
) -> bool {
    &&& p.seq_ids@[k] == name
    &&& p.seats@[k] == c.seat
    &&& p.seq_lens@[k] == c.end()
    &&& p.query_start@[k + 1] - p.query_start@[k] == c.tokens.len()
    &&& p.sample_seqs@.contains(k as u32) <==> c.sample
    &&& forall|j: int|
        #![trigger c.tokens[j]]
        0 <= j < c.tokens.len() ==> says_row(p, p.query_start@[k] + j, c, j, shape)
}

/// The plan's arrays say what the machine's plan says, and nothing else.
pub open spec fn says(p: Plan, plan: model::Plan, names: Seq<u64>, shape: Shape) -> bool {
    let n = plan.order.len() as int;
    &&& p.seats@.len() == n && p.seq_ids@.len() == n && p.seq_lens@.len() == n
    &&& p.query_start@.len() == n + 1
    &&& p.query_start@[0] == 0 && p.query_start@[n] == p.token_ids@.len()
    &&& p.positions@.len() == p.token_ids@.len()
    &&& p.slots@.len() == shape.groups()
    &&& forall|k: int|
        #![trigger plan.order[k]]
        0 <= k < n ==> says_chunk(p, k, names[plan.order[k]], plan.chunks[plan.order[k]], shape)
}

/// Block tables `t` have those of every chunk of the plan.
pub open spec fn has_tables(plan: model::Plan, t: Tables) -> bool {
    forall|id: int, g: int, i: int|
        #![trigger plan.chunks[id].tables[g][i]]
        plan.chunks.dom().contains(id) && 0 <= g < plan.chunks[id].tables.len() && 0 <= i
            < plan.chunks[id].tables[g].len() ==> t[g](plan.chunks[id].seat, i)
            == plan.chunks[id].tables[g][i]
}

/// A runner that makes the plan's updates has the tables of its chunks.
pub open spec fn tables_reach(l: Link, p: Plan, plan: model::Plan) -> bool {
    forall|t: Tables| #[trigger] l.updated(p).may.contains(t) ==> has_tables(plan, t)
}

/// By silent steps the machine gets to `e`, schedules `plan`, which is what `p` says, and is linked
/// with `b`.
pub open spec fn goes_out(
    b: Scheduler,
    l: Link,
    p: Plan,
    e: model::Engine,
    plan: model::Plan,
) -> bool {
    let step = model::Step::Schedule { plan };
    &&& model::rearranges(l.engine, e)
    &&& model::enabled(e, step)
    &&& linked(b, l.updated(p).with(model::after(e, step)))
    &&& says(p, plan, l.names, e.shape)
    &&& tables_reach(l, p, plan)
}

pub open spec fn schedules(b: Scheduler, l: Link, p: Plan) -> bool {
    exists|e: model::Engine, plan: model::Plan| #[trigger] goes_out(b, l, p, e, plan)
}

proof fn lemma_says_chunk(s: Scheduler, l: Link, p: Plan, k: int)
    requires
        s.inv(),
        linked(s, l),
        s.plan_wf(p),
        p.seats@.len() == s.draft,
        0 <= k < s.draft,
        s.lists(p, k, drafted(s, k)),
    ensures
        says_chunk(
            p,
            k,
            name_of(s, drafted(s, k).seq as int),
            chunk_of(s, drafted(s, k)),
            l.engine.shape,
        ),
{
    let (e, shape, first) = (drafted(s, k), l.engine.shape, s.queue@.len() - s.draft);
    let (c, rows) = (chunk_of(s, e), p.rows@);
    assert(s.in_draft(first + k));
    assert(draft_entry_ok(s.queue@[first + k], s.seqs@[e.seq as int]));
    assert forall|j: int| #![trigger c.tokens[j]] 0 <= j < c.tokens.len() implies says_row(
        p,
        p.query_start@[k] + j,
        c,
        j,
        shape,
    ) by {
        let r = p.query_start@[k] + j;
        s.lemma_starts_ascend(p, k + 1, s.draft as int);
        assert(s.belongs(p, k, r)) by {
            assert(p.seats@[k] == e.seat);
            assert(rows[r].seq == e.seq);
        }
        assert(p.positions@[r] == rows[r].pos);
        assert(s.row_ok(rows[r]));
        if p.logits_rows@.contains(r as u32) {
            let a = p.logits_rows@.index_of(r as u32);
            assert(s.wants_logits(rows[p.logits_rows@[a] as int]));
        }
        assert forall|g: int| 0 <= g < shape.groups() implies (#[trigger] p.slots@[g])@[r]
            == address(shape, shape.slot(g, c.tables[g], c.first + j)) by {
            assert(s.slots_ok(g, p.slots@[g]@, rows));
            s.lemma_row_in_table(g, rows[r]);
            s.groups@[g].lemma_slot_in_range(e.seat as int, rows[r].pos as int);
        }
    }
}

/// What is written down of the plan being made is what the machine schedules.
pub proof fn lemma_says(s: Scheduler, l: Link, p: Plan)
    requires
        s.inv(),
        linked(s, l),
        s.plan_wf(p),
        s.draft > 0,
        p.seats@.len() == s.draft,
        forall|k: int| #![trigger p.seats@[k]] 0 <= k < s.draft ==> s.lists(p, k, drafted(s, k)),
    ensures
        says(p, plan_of(s, l), l.names, l.engine.shape),
{
    let plan = plan_of(s, l);
    lemma_can_schedule(s, l);
    assert forall|k: int| #![trigger plan.order[k]] 0 <= k < s.draft implies says_chunk(
        p,
        k,
        l.names[plan.order[k]],
        plan.chunks[plan.order[k]],
        l.engine.shape,
    ) by {
        lemma_says_chunk(s, l, p, k);
    }
}

/// The same state, but the updates were taken.
proof fn lemma_emitted(a: Scheduler, b: Scheduler, l: Link, p: Plan)
    requires
        a.inv(),
        linked(a, l),
        b == (Scheduler { groups: b.groups, ..a }),
        updates_taken(a.groups@, b.groups@, p.updates@),
    ensures
        linked(b, l.updated(p)),
{
    let m = l.updated(p);
    lemma_updated(a.groups@, b.groups@, l, p);
    assert forall|i: int| 0 <= i < a.seqs@.len() && in_use(#[trigger] a.seqs@[i]) implies tables_of(
        b.groups@,
        a.seqs@[i],
    ) == tables_of(a.groups@, a.seqs@[i]) && freed_of(b.groups@, a.seqs@[i]) == freed_of(
        a.groups@,
        a.seqs@[i],
    ) by {
        assert forall|g: int| 0 <= g < a.groups@.len() implies #[trigger] tables_of(
            b.groups@,
            a.seqs@[i],
        )[g] == tables_of(a.groups@, a.seqs@[i])[g] && freed_of(b.groups@, a.seqs@[i])[g]
            == freed_of(a.groups@, a.seqs@[i])[g] by {
            assert(group_taken(a.groups@[g], b.groups@[g], p.updates@[g]));
            assert(group_ok(a.config, a.groups@[g]));
        }
        assert(tables_of(b.groups@, a.seqs@[i]) =~= tables_of(a.groups@, a.seqs@[i]));
        assert(freed_of(b.groups@, a.seqs@[i]) =~= freed_of(a.groups@, a.seqs@[i]));
    }
    lemma_seqs_kept(a, b, l, m);
    lemma_plans_relinked(a, b, l, m);
    assert forall|g: int, x: int| #[trigger]
        cache_of(b.groups@, g, x) == cache_of(a.groups@, g, x) by {
        if 0 <= g < a.groups@.len() {
            assert(group_taken(a.groups@[g], b.groups@[g], p.updates@[g]));
        }
    }
    assert forall|g: int| 0 <= g < b.groups@.len() implies m.engine.shape.num_blocks[g] == (
    #[trigger] b.groups@[g]).num_blocks() && m.engine.shape.windows[g]
        == b.groups@[g].window() by {}
}

/// What is linked with an engine whose updates were all taken has the tables of the plan.
proof fn lemma_tables_reach(s: Scheduler, l: Link, p: Plan)
    requires
        s.inv(),
        linked(s, l.updated(p)),
        s.draft > 0,
        forall|g: int| 0 <= g < s.groups@.len() ==> (#[trigger] s.groups@[g]).updates().len() == 0,
    ensures
        tables_reach(l, p, plan_of(s, l.updated(p))),
{
    let m = l.updated(p);
    let plan = plan_of(s, m);
    assert forall|t: Tables| #[trigger] m.may.contains(t) implies has_tables(plan, t) by {
        assert forall|id: int, g: int, i: int|
            #![trigger plan.chunks[id].tables[g][i]]
            plan.chunks.dom().contains(id) && 0 <= g < plan.chunks[id].tables.len() && 0 <= i
                < plan.chunks[id].tables[g].len() implies t[g](plan.chunks[id].seat, i)
            == plan.chunks[id].tables[g][i] by {
            let k = plan.order.index_of(id);
            assert(plan.order.contains(id));
            let e = drafted(s, k);
            let first = s.queue@.len() - s.draft;
            assert(s.in_draft(first + k));
            assert(draft_entry_ok(s.queue@[first + k], s.seqs@[e.seq as int]));
            assert(plan.chunks[plan.order[k]] == chunk_of(s, e));
            assert(s.seqs@[e.seq as int].live());
            assert(s.queue@[first + k].seat == s.seqs@[e.seq as int].seat);
            assert(group_ok(s.config, s.groups@[g]));
            assert(mirrors_seat(s.groups@[g], t[g], e.seat as int));
        }
    }
}

pub proof fn lemma_schedules(
    a: Scheduler,
    chosen: Scheduler,
    made: Scheduler,
    b: Scheduler,
    p: Plan,
)
    requires
        refines(a, chosen),
        chosen.inv(),
        made == (Scheduler { groups: made.groups, ..chosen }),
        updates_taken(chosen.groups@, made.groups@, p.updates@),
        made.inv(),
        made.plan_wf(p),
        made.draft > 0,
        p.seats@.len() == made.draft,
        forall|k: int|
            #![trigger p.seats@[k]]
            0 <= k < made.draft ==> made.lists(p, k, drafted(made, k)),
        b == (Scheduler {
            plans: b.plans,
            draft: 0,
            draft_rows: 0,
            next_plan: b.next_plan,
            ..made
        }),
        b.plans@ == made.plans@.push(PlanRecord { id: made.next_plan, entries: made.draft }),
    ensures
        forall|l: Link| #[trigger] linked(a, l) ==> schedules(b, l, p),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies schedules(b, l, p) by {
        let e = choose|e: model::Engine| #[trigger] arrives(chosen, l, e);
        let m = l.with(e).updated(p);
        lemma_emitted(chosen, made, l.with(e), p);
        lemma_tables_reach(made, l.with(e), p);
        lemma_says(made, m, p);
        lemma_can_schedule(made, m);
        lemma_schedule_links(made, b, m);
        assert(goes_out(b, l, p, e, plan_of(made, m)));
    }
}

} // verus!
