//! The invariant is inductive: it holds of a new engine, and every step keeps it.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::proofs::ownership::*;
use crate::proofs::steps_plan::*;
use crate::proofs::steps_simple::*;
use crate::proofs::steps_table::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

pub proof fn lemma_init(e: Engine)
    requires
        init(e),
    ensures
        inv(e),
{
}

pub proof fn lemma_step(e: Engine, step: Step, e2: Engine)
    requires
        inv(e),
        next(e, step, e2),
    ensures
        inv(e2),
{
    match step {
        Step::Add { request } => lemma_add(e, request),
        Step::Fork { parent, logits_from } => {
            lemma_add(e, Request { logits_from, ..e.seqs[parent].request });
        },
        Step::Admit { id, seat, blocks } => lemma_admit(e, id, seat, blocks),
        Step::Share { id, seat, from, count } => lemma_share(e, id, seat, from, count),
        Step::Grow { id, group, block } => lemma_grow(e, id, group, block),
        Step::Slide { id, group } => lemma_slide(e, id, group),
        Step::Schedule { plan } => lemma_schedule(e, plan),
        Step::Commit { tokens } => lemma_commit(e, tokens),
        Step::Register { id, group, index } => lemma_register(e, id, group, index),
        Step::Preempt { id } => lemma_preempt(e, id),
        Step::Abort { id } => lemma_abort(e, id),
        Step::Load { restart } => lemma_load(e, restart),
        Step::Cancel | Step::Evict { .. } | Step::Finish { .. } | Step::Reset => {},
    }
}

/// `plan`, with its placeholders filled in somehow, is plan `n` in flight as the device gets it.
pub open spec fn is_plan_of(e: Engine, n: int, plan: Seq<Chunk>) -> bool {
    &&& 0 <= n < e.plans.len()
    &&& plan.len() == e.plans[n].order.len()
    &&& forall|i: int|
        0 <= i < plan.len() ==> same_rows(
            #[trigger] plan[i],
            e.plans[n].chunks[e.plans[n].order[i]],
        )
}

pub open spec fn same_rows(d: Chunk, c: PlannedChunk) -> bool {
    d.tables == c.tables && d.first == c.first && d.tokens.len() == c.tokens.len() && d.logits_from
        == c.logits_from
}

/// The slot of a position of a chunk is that of its sequence.
pub proof fn lemma_place(e: Engine, n: int, plan: Seq<Chunk>, c: int, p: int, g: int)
    requires
        inv(e),
        is_plan_of(e, n, plan),
        is_read(e.shape, plan, c, p, g),
        0 <= g < e.groups(),
    ensures
        ({
            let id = e.plans[n].order[c];
            &&& e.has(id)
            &&& e.plans[n].chunks.dom().contains(id)
            &&& e.plans[n].chunks[id].end() == plan[c].end()
            &&& place(e.shape, plan, c, p, g) == e.slot(id, g, p)
            &&& e.kept_from(id, g) <= p < e.seqs[id].tables[g].len() * e.shape.block_size
            &&& e.seqs[id].computed <= plan[c].first
        }),
{
    let id = e.plans[n].order[c];
    let chunk = e.plans[n].chunks[id];
    lemma_pinned_covers(e, n, id, g);
    let table = chunk.tables[g];
    lemma_block_index(e.shape.block_size, p, table.len());
}

/// Every plan in flight is well-formed, whatever tokens its placeholders stand for.
pub proof fn lemma_plan_wf(e: Engine, n: int, plan: Seq<Chunk>)
    requires
        inv(e),
        is_plan_of(e, n, plan),
    ensures
        plan_wf(e.shape, plan),
{
    let shape = e.shape;
    let order = e.plans[n].order;
    assert forall|c: int, p: int, d: int, q: int, g: int|
        #![trigger place(shape, plan, c, p, g), place(shape, plan, d, q, g)]
        is_row(plan, c, p) && is_read(shape, plan, d, q, g) && 0 <= g < shape.groups() && (c, p)
            != (d, q) implies place(shape, plan, c, p, g) != place(shape, plan, d, q, g) by {
        lemma_place(e, n, plan, c, p, g);
        lemma_place(e, n, plan, d, q, g);
        lemma_private(e, order[c], p, order[d], q, g);
    }
}

} // verus!
