//! The device executes a plan: from the kernel contract to the reference.
use crate::model::*;
use crate::proofs::chains::*;
use crate::proofs::engine::*;
use crate::proofs::kv::*;
use crate::proofs::ownership::*;
use crate::proofs::steps_table::*;
use crate::proofs::streams::*;
use crate::proofs::system_inv::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// Execution `x` is of the next plan.
pub open spec fn runs<D: Kernels + Sampler>(s: System<D>, x: Execution<D>) -> bool {
    &&& x.weights == s.weights && x.shape == s.engine.shape
    &&& x.plan == device_plan(s) && x.before == s.memory
}

/// The plan to be executed next.
pub open spec fn next_plan<D: Kernels + Sampler>(s: System<D>) -> Plan {
    s.engine.plans[s.ran.len() as int]
}

/// Executing is under way: the contract holds of what the device did.
pub open spec fn ran_ok<D: Kernels + Sampler>(s: System<D>, x: Execution<D>) -> bool {
    &&& system_inv(s)
    &&& s.ran.len() < s.engine.plans.len()
    &&& runs(s, x)
    &&& x.rows_computed()
}

/// The device's plan is the engine's.
pub proof fn lemma_device_plan<D: Kernels + Sampler>(s: System<D>)
    requires
        system_inv(s),
        s.ran.len() < s.engine.plans.len(),
    ensures
        is_plan_of(s.engine, s.ran.len() as int, device_plan(s)),
        plan_wf(s.engine.shape, device_plan(s)),
{
    let plan = device_plan(s);
    lemma_plan_wf(s.engine, s.ran.len() as int, plan);
}

/// A slot that a plan does not write keeps its value.
pub proof fn lemma_unwritten<D: Kernels + Sampler>(s: System<D>, x: Execution<D>, slot: Slot)
    requires
        ran_ok(s, x),
        0 <= slot.group < s.engine.groups(),
        forall|id: int, p: int|
            next_plan(s).chunks.dom().contains(id) && next_plan(s).chunks[id].first <= p
                < next_plan(s).chunks[id].end() ==> #[trigger] s.engine.slot(id, slot.group, p)
                != slot,
    ensures
        (x.after)(slot) == (s.memory)(slot),
{
    let plan = device_plan(s);
    assert forall|c: int, p: int| #[trigger] is_row(plan, c, p) implies place(
        s.engine.shape,
        plan,
        c,
        p,
        slot.group,
    ) != slot by {
        lemma_place(s.engine, s.ran.len() as int, plan, c, p, slot.group);
    }
}

/// What was committed, or executed before, is still there.
pub proof fn lemma_past_kept<D: Kernels + Sampler>(
    s: System<D>,
    x: Execution<D>,
    id: int,
    g: int,
    p: int,
)
    requires
        ran_ok(s, x),
        s.engine.has(id),
        s.engine.seqs[id].alive,
        0 <= g < s.engine.groups(),
        s.engine.kept_from(id, g) <= p < executed(s, id),
    ensures
        p < s.engine.seqs[id].tables[g].len() * s.engine.shape.block_size,
        holds_kv(s, x.after, id, g, p),
{
    let e = s.engine;
    let n = s.ran.len() as int;
    let q = e.seqs[id];
    let slot = e.slot(id, g, p);
    lemma_executed_covered(e, id, n, g);
    assert forall|b: int, r: int|
        e.plans[n].chunks.dom().contains(b) && e.plans[n].chunks[b].first <= r
            < e.plans[n].chunks[b].end() implies #[trigger] e.slot(b, g, r) != slot by {
        lemma_pinned_covers(e, n, b, g);
        if b == id {
            lemma_chain_at(e.plans, id, q.computed, q.known, n);
        }
        lemma_private(e, b, r, id, p, g);
    }
    lemma_unwritten(s, x, slot);
    if p < q.computed {
        lemma_stream(s, id, s.ran.len());
    }
}

/// Executed rows lie within the tables.
pub proof fn lemma_executed_covered(e: Engine, id: int, n: int, g: int)
    requires
        inv(e),
        e.has(id),
        0 <= n <= e.plans.len(),
        0 <= g < e.groups(),
    ensures
        frontier(e.plans.take(n), id, e.seqs[id].computed) <= e.seqs[id].tables[g].len()
            * e.shape.block_size,
    decreases n,
{
    if n > 0 {
        lemma_executed_covered(e, id, n - 1, g);
        assert(e.plans.take(n).drop_last() =~= e.plans.take(n - 1));
        if e.plans[n - 1].chunks.dom().contains(id) {
            lemma_pinned_covers(e, n - 1, id, g);
        }
    }
}

/// The device's row for position `p` of a live sequence has that position's token.
pub proof fn lemma_row_token<D: Kernels + Sampler>(s: System<D>, c: int, p: int)
    requires
        system_inv(s),
        s.ran.len() < s.engine.plans.len(),
        is_row(device_plan(s), c, p),
        s.engine.seqs[next_plan(s).order[c]].alive,
    ensures
        ({
            let plan = device_plan(s);
            let id = next_plan(s).order[c];
            let tokens = stream(s, id, s.ran.len()).tokens;
            &&& s.engine.has(id)
            &&& next_plan(s).chunks.dom().contains(id)
            &&& p < tokens.len()
            &&& plan[c].tokens[p - plan[c].first] == tokens[p]
            &&& plan[c].first == executed(s, id)
            &&& next_plan(s).chunks[id].sample ==> plan[c].end() == tokens.len()
                && plan[c].logits_from < plan[c].end()
        }),
{
    let e = s.engine;
    let n = s.ran.len() as int;
    let id = e.plans[n].order[c];
    let chunk = e.plans[n].chunks[id];
    let q = e.seqs[id];
    lemma_chain_at(e.plans, id, q.computed, q.known, n);
    lemma_stream(s, id, s.ran.len());
    let tokens = stream(s, id, s.ran.len()).tokens;
    let j = p - chunk.first;
    if chunk.tokens[j] is Some {
        assert(tokens[p] == tokens.take(q.known.len() as int)[p]);
    }
}

/// What position `p` of sequence `id` sees of those before it is the reference's KV.
pub open spec fn sees_reference<D: Kernels + Sampler>(
    s: System<D>,
    x: Execution<D>,
    id: int,
    p: int,
) -> bool {
    forall|g: int, q: int|
        #![trigger s.engine.slot(id, g, q)]
        0 <= g < s.engine.groups() && first_seen(s.engine.shape.windows[g], p) <= q < p
            ==> holds_kv(s, x.after, id, g, q)
}

/// The row at position `p` is the reference's, once the memory holds the reference's KV at the
/// positions that it sees.
pub proof fn lemma_row_is_reference<D: Kernels + Sampler>(
    s: System<D>,
    x: Execution<D>,
    c: int,
    p: int,
)
    requires
        system_inv(s),
        s.ran.len() < s.engine.plans.len(),
        runs(s, x),
        is_row(device_plan(s), c, p),
        s.engine.seqs[next_plan(s).order[c]].alive,
        sees_reference(s, x, next_plan(s).order[c], p),
    ensures
        ({
            let id = next_plan(s).order[c];
            let prefix = stream(s, id, s.ran.len()).tokens.take(p + 1);
            let row = x.row(c, p);
            row.0 == last_kv_of::<D>(s.weights, prefix) && row.1 == logits_of::<D>(
                s.weights,
                prefix,
            )
        }),
{
    let plan = device_plan(s);
    let n = s.ran.len() as int;
    let id = s.engine.plans[n].order[c];
    let tokens = stream(s, id, s.ran.len()).tokens;
    lemma_row_token(s, c, p);
    let prefix = tokens.take(p + 1);
    let past = tokens.take(p);
    assert(prefix.drop_last() =~= past);
    let read = x.gather(c, p as nat);
    let kv = kv_of::<D>(s.weights, past);
    lemma_kv_len::<D>(s.weights, past);
    assert(same_seen(D::windows(), read, kv)) by {
        assert forall|g: int, q: int|
            0 <= g < s.engine.groups() && first_seen(s.engine.shape.windows[g], p) <= q
                < p implies #[trigger] read[q][g] == kv[q][g] by {
            lemma_kv_at::<D>(s.weights, past, q);
            assert(past.take(q + 1) =~= tokens.take(q + 1));
            lemma_place(s.engine, n, plan, c, q, g);
        }
    }
    D::forward_sees_windows(s.weights, read, kv, tokens[p]);
}

/// After the plan, all that a live sequence's rows see, up to its chunk's end, holds the
/// reference's KV.
pub proof fn lemma_rows_kv<D: Kernels + Sampler>(
    s: System<D>,
    x: Execution<D>,
    c: int,
    g: int,
    p: int,
)
    requires
        ran_ok(s, x),
        0 <= c < device_plan(s).len(),
        s.engine.seqs[next_plan(s).order[c]].alive,
        0 <= g < s.engine.groups(),
        is_read(s.engine.shape, device_plan(s), c, p, g),
    ensures
        holds_kv(s, x.after, next_plan(s).order[c], g, p),
    decreases p, 1nat,
{
    let plan = device_plan(s);
    let n = s.ran.len() as int;
    let id = s.engine.plans[n].order[c];
    lemma_place(s.engine, n, plan, c, p, g);
    let first = plan[c].first as int;
    lemma_row_token(s, c, first);
    if p < first {
        lemma_past_kept(s, x, id, g, p);
    } else {
        lemma_row_past(s, x, c, p);
        lemma_row_is_reference(s, x, c, p);
    }
}

/// What a row sees holds the reference's KV.
pub proof fn lemma_row_past<D: Kernels + Sampler>(s: System<D>, x: Execution<D>, c: int, p: int)
    requires
        ran_ok(s, x),
        s.engine.seqs[next_plan(s).order[c]].alive,
        is_row(device_plan(s), c, p),
    ensures
        sees_reference(s, x, next_plan(s).order[c], p),
    decreases p, 0nat,
{
    let id = next_plan(s).order[c];
    assert forall|g: int, q: int|
        #![trigger s.engine.slot(id, g, q)]
        0 <= g < s.engine.groups() && first_seen(s.engine.shape.windows[g], p) <= q
            < p implies holds_kv(s, x.after, id, g, q) by {
        lemma_rows_kv(s, x, c, g, q);
    }
}

} // verus!
