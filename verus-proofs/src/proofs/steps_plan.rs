//! Schedule and Commit.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::proofs::chains::*;
use crate::proofs::ownership::*;
use crate::proofs::steps_table::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// A plan whose rows are all at positions that are not computed, within their tables.
pub open spec fn ahead(e: Engine, plan: Plan) -> bool {
    forall|id: int| #[trigger]
        plan.chunks.dom().contains(id) ==> e.has(id) && row_ahead(e, id, plan.chunks[id])
}

pub open spec fn row_ahead(e: Engine, id: int, c: PlannedChunk) -> bool {
    &&& e.seqs[id].computed <= c.first
    &&& forall|g: int|
        0 <= g < e.groups() ==> c.end() <= #[trigger] e.seqs[id].tables[g].len()
            * e.shape.block_size
}

/// Its rows write no slot whose content somebody relies on.
pub proof fn lemma_writes_nothing_relied_on(e: Engine, plan: Plan, s: Slot)
    requires
        inv(e),
        ahead(e, plan),
        written(e, plan, s),
    ensures
        !e.registered.dom().contains((s.group, s.block)),
        forall|b: int, q: int|
            e.has(b) && e.kept_from(b, s.group) <= q < e.seqs[b].computed ==> #[trigger] e.slot(
                b,
                s.group,
                q,
            ) != s,
{
    let (id, p) = choose|id: int, p: int| writes(e, plan, s, id, p);
    let g = s.group;
    lemma_unregistered(e, id, p, g);
    assert forall|b: int, q: int|
        e.has(b) && e.kept_from(b, g) <= q < e.seqs[b].computed implies #[trigger] e.slot(b, g, q)
        != s by {
        lemma_private(e, id, p, b, q, g);
    }
}

pub proof fn lemma_planned_ahead(e: Engine, plan: Plan)
    requires
        inv(e),
        can_schedule(e, plan),
    ensures
        ahead(e, plan),
{
    assert forall|id: int| #[trigger] plan.chunks.dom().contains(id) implies e.has(id) && row_ahead(
        e,
        id,
        plan.chunks[id],
    ) by {
        lemma_frontier(e.plans, id, e.seqs[id].computed, e.seqs[id].known);
    }
}

pub proof fn lemma_schedule(e: Engine, plan: Plan)
    requires
        inv(e),
        can_schedule(e, plan),
    ensures
        inv(scheduled(e, plan)),
{
    let e2 = scheduled(e, plan);
    assert(e2.plans.drop_last() =~= e.plans);
    lemma_planned_ahead(e, plan);
    assert(inv_registered_content(e2)) by {
        assert forall|g: int, b: int, o: int|
            #![trigger e2.content.dom().contains(Slot { group: g, block: b, offset: o })]
            e2.registered.dom().contains((g, b)) && 0 <= o
                < e2.shape.block_size implies written_for(
            e2,
            Slot { group: g, block: b, offset: o },
            offset_prefix(e2, e2.registered[(g, b)], o),
        ) by {
            let s = Slot { group: g, block: b, offset: o };
            if written(e, plan, s) {
                lemma_writes_nothing_relied_on(e, plan, s);
            }
        }
    }
    assert(inv_computed_content(e2)) by {
        assert forall|id: int, g: int, p: int|
            #![trigger e2.slot(id, g, p)]
            e2.has(id) && 0 <= g < e2.groups() && e2.kept_from(id, g) <= p
                < e2.seqs[id].computed implies written_for(
            e2,
            e2.slot(id, g, p),
            position_prefix(e2.seqs[id], p),
        ) by {
            let s = e.slot(id, g, p);
            if written(e, plan, s) {
                lemma_writes_nothing_relied_on(e, plan, s);
            }
        }
    }
    assert(inv_unwritten(e2)) by {
        assert forall|n: int, id: int, g: int, p: int|
            #![trigger e2.plans[n].chunks.dom().contains(id), e2.slot(id, g, p)]
            row_in_flight(e2, n, id, g, p) implies !e2.content.dom().contains(
            e2.slot(id, g, p),
        ) by {
            if n < e.plans.len() {
                assert(e.plans[n].chunks.dom().contains(id));
            } else {
                assert(writes(e, plan, e.slot(id, g, p), id, p));
            }
        }
    }
    assert(inv_chunks(e2)) by {
        assert forall|n: int, id: int|
            0 <= n < e2.plans.len() && #[trigger] e2.plans[n].chunks.dom().contains(
                id,
            ) implies e2.has(id) && inv_chunk(e2, e2.seqs[id], e2.plans[n].chunks[id]) by {
            if n < e.plans.len() {
                assert(e.plans[n].chunks.dom().contains(id));
            } else {
                lemma_planned_chunk(e, id, plan.chunks[id]);
            }
        }
    }
    assert(inv_orders(e2));
}

proof fn lemma_planned_chunk(e: Engine, id: int, c: PlannedChunk)
    requires
        inv(e),
        can_plan(e, id, c),
    ensures
        inv_chunk(e, e.seqs[id], c),
{
    let s = e.seqs[id];
    lemma_frontier(e.plans, id, s.computed, s.known);
    assert forall|g: int| 0 <= g < e.groups() implies {
        &&& c.end() <= #[trigger] c.tables[g].len() * e.shape.block_size
        &&& c.tables[g].len() <= s.tables[g].len()
        &&& c.tables[g] == s.tables[g].take(c.tables[g].len() as int)
    } by {}
}

/// Where the sequence with the written slot is alive, the content after a commit is its own prefix.
proof fn lemma_committed_content(e: Engine, s: Slot, id: int, p: int)
    requires
        inv(e),
        e.plans.len() > 0,
        writes(e, e.plans[0], s, id, p),
        e.seqs[id].alive,
    ensures
        committed(e, e.plans[0], s),
        content_after_commit(e, e.plans[0]).dom().contains(s),
        content_after_commit(e, e.plans[0])[s] == position_prefix(e.seqs[id], p),
{
    let plan = e.plans[0];
    let (b, q) = choose|b: int, q: int| #[trigger] writes(e, plan, s, b, q) && e.seqs[b].alive;
    lemma_pinned_covers(e, 0, id, s.group);
    lemma_pinned_covers(e, 0, b, s.group);
    if (b, q) != (id, p) {
        lemma_private(e, id, p, b, q, s.group);
    }
}

/// What one sequence is after a commit.
pub proof fn lemma_after_commit(e: Engine, tokens: Map<int, Token>, id: int)
    requires
        inv(e),
        can_commit(e, tokens),
        e.has(id),
    ensures
        ({
            let s = e.seqs[id];
            let s2 = after_commit(e, tokens, id);
            &&& inv_sequence(commit(e, tokens), s2)
            &&& s2.tables == s.tables && s2.seat == s.seat && s2.request == s.request
            &&& s2.computed >= s.computed && s2.need_from >= s.need_from
            &&& s2.known.len() >= s.known.len() && s2.known.take(s.known.len() as int) == s.known
            &&& s.alive ==> {
                &&& s2.computed == head_end(e.plans, id, s.computed)
                &&& s2.known == head_known(e.plans, id, s.known, tokens[id])
                &&& s2.computed <= s.known.len()
                &&& heads(e.plans, id) ==> e.plans[0].chunks[id].first == s.computed
            }
            &&& s2.alive ==> s.alive
        }),
{
    let s = e.seqs[id];
    let s2 = after_commit(e, tokens, id);
    if e.plans[0].chunks.dom().contains(id) && s.alive {
        lemma_head(e.plans, id, s.computed, s.known);
        let prompt = s.request.prompt;
        assert(s2.known.take(prompt.len() as int) =~= s.known.take(prompt.len() as int));
        assert forall|g: int| 0 <= g < e.groups() implies s2.computed
            <= #[trigger] s2.tables[g].len() * e.shape.block_size by {
            lemma_pinned_covers(e, 0, id, g);
        }
    }
}

pub proof fn lemma_commit(e: Engine, tokens: Map<int, Token>)
    requires
        inv(e),
        can_commit(e, tokens),
    ensures
        inv(commit(e, tokens)),
{
    let e2 = commit(e, tokens);
    assert forall|id: int| #[trigger] e2.has(id) implies inv_sequence(e2, e2.seqs[id]) by {
        lemma_after_commit(e, tokens, id);
    }
    assert forall|id: int| #[trigger] e.has(id) implies e2.seqs[id].tables == e.seqs[id].tables
        && e2.seqs[id].seat == e.seqs[id].seat && e.sealed(id) <= e2.sealed(id) by {
        lemma_sealed_monotone(e.shape.block_size, e.seqs[id].computed, e2.seqs[id].computed);
    }
    lemma_commit_content(e, tokens);
    lemma_commit_in_flight(e, tokens);
}

proof fn lemma_commit_content(e: Engine, tokens: Map<int, Token>)
    requires
        inv(e),
        can_commit(e, tokens),
    ensures
        inv_content(commit(e, tokens)),
{
    let e2 = commit(e, tokens);
    let plan = e.plans[0];
    assert(inv_computed_content(e2)) by {
        assert forall|id: int, g: int, p: int|
            #![trigger e2.slot(id, g, p)]
            e2.has(id) && 0 <= g < e2.groups() && e2.kept_from(id, g) <= p
                < e2.seqs[id].computed implies written_for(
            e2,
            e2.slot(id, g, p),
            position_prefix(e2.seqs[id], p),
        ) by {
            let s = e.seqs[id];
            let slot = e.slot(id, g, p);
            lemma_after_commit(e, tokens, id);
            assert(s.known.take(p + 1) =~= e2.seqs[id].known.take(p + 1));
            if p < s.computed {
                if committed(e, plan, slot) {
                    assert(written(e, plan, slot));
                    lemma_writes_nothing_relied_on(e, plan, slot);
                }
            } else {
                assert(writes(e, plan, slot, id, p));
                lemma_committed_content(e, slot, id, p);
            }
        }
    }
    assert(inv_unwritten(e2)) by {
        assert forall|n: int, id: int, g: int, p: int|
            #![trigger e2.plans[n].chunks.dom().contains(id), e2.slot(id, g, p)]
            row_in_flight(e2, n, id, g, p) implies !e2.content.dom().contains(
            e2.slot(id, g, p),
        ) by {
            lemma_later_row_unwritten(e, tokens, n, id, g, p);
        }
    }
}

proof fn lemma_later_row_unwritten(
    e: Engine,
    tokens: Map<int, Token>,
    n: int,
    id: int,
    g: int,
    p: int,
)
    requires
        inv(e),
        can_commit(e, tokens),
        0 <= n < e.plans.len() - 1,
        e.plans[n + 1].chunks.dom().contains(id),
        0 <= g < e.groups(),
        e.plans[n + 1].chunks[id].first <= p < e.plans[n + 1].chunks[id].end(),
    ensures
        !content_after_commit(e, e.plans[0]).dom().contains(e.slot(id, g, p)),
{
    let plan = e.plans[0];
    let slot = e.slot(id, g, p);
    lemma_pinned_covers(e, n + 1, id, g);
    if committed(e, plan, slot) {
        let (b, q) = choose|b: int, q: int| #[trigger]
            writes(e, plan, slot, b, q) && e.seqs[b].alive;
        lemma_pinned_covers(e, 0, b, g);
        if (b, q) == (id, p) {
            let s = e.seqs[id];
            lemma_shift_chain(e.plans, id, s.computed, s.known, 0);
            lemma_chunk_first(
                e.plans.drop_first(),
                id,
                head_end(e.plans, id, s.computed),
                head_known(e.plans, id, s.known, 0),
                n,
            );
        } else {
            lemma_private(e, b, q, id, p, g);
        }
    }
}

proof fn lemma_commit_in_flight(e: Engine, tokens: Map<int, Token>)
    requires
        inv(e),
        can_commit(e, tokens),
    ensures
        inv_in_flight(commit(e, tokens)),
{
    let e2 = commit(e, tokens);
    assert(inv_chunks(e2)) by {
        assert forall|n: int, id: int|
            0 <= n < e2.plans.len() && #[trigger] e2.plans[n].chunks.dom().contains(
                id,
            ) implies e2.has(id) && inv_chunk(e2, e2.seqs[id], e2.plans[n].chunks[id]) by {
            let s = e.seqs[id];
            if s.alive {
                lemma_shift_chain(e.plans, id, s.computed, s.known, tokens[id]);
                lemma_chunk_first(e2.plans, id, e2.seqs[id].computed, e2.seqs[id].known, n);
            }
        }
    }
    assert forall|id: int| #[trigger] e2.has(id) && e2.seqs[id].alive implies chain(
        e2.plans,
        id,
        e2.seqs[id].computed,
        e2.seqs[id].known,
    ) by {
        lemma_shift_chain(e.plans, id, e.seqs[id].computed, e.seqs[id].known, tokens[id]);
    }
}

} // verus!
