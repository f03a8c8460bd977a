//! Execute keeps the system's invariant.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::proofs::engine::*;
use crate::proofs::execute::*;
use crate::proofs::steps_table::*;
use crate::proofs::streams::*;
use crate::proofs::system_inv::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// The place in the batch of a sequence's rows.
pub proof fn lemma_index<D: Kernels + Sampler>(s: System<D>, id: int) -> (c: int)
    requires
        system_inv(s),
        s.ran.len() < s.engine.plans.len(),
        s.engine.plans[s.ran.len() as int].chunks.dom().contains(id),
    ensures
        c == s.engine.plans[s.ran.len() as int].order.index_of(id),
        0 <= c < device_plan(s).len(),
        s.engine.plans[s.ran.len() as int].order[c] == id,
        device_plan(s)[c].first == s.engine.plans[s.ran.len() as int].chunks[id].first,
        device_plan(s)[c].end() == s.engine.plans[s.ran.len() as int].chunks[id].end(),
        device_plan(s)[c].logits_from == s.engine.plans[s.ran.len() as int].chunks[id].logits_from,
{
    let plan = s.engine.plans[s.ran.len() as int];
    assert(inv_order(plan));
    let i = choose|i: int| 0 <= i < plan.order.len() && plan.order[i] == id;
    assert(plan.order[i] == id);
    plan.order.index_of(id)
}

pub proof fn lemma_execute<D: Kernels + Sampler>(
    s: System<D>,
    x: Execution<D>,
    s2: System<D>,
)
    requires
        system_inv(s),
        executes(s, x, s2),
    ensures
        system_inv(s2),
{
    let e = s.engine;
    let n = s.ran.len();
    lemma_device_plan(s);
    D::contract(x);
    assert(inv_log(s2));
    assert forall|id: int| #[trigger] s2.engine.has(id) implies inv_open_record(s2, id) by {
        assert(inv_open_record(s, id));
    }
    assert(inv_memory(s2)) by {
        assert forall|slot: Slot| #[trigger] s2.engine.content.dom().contains(slot) implies (
        s2.memory)(slot) == kv_value::<D>(
            s2.weights,
            s2.engine.content[slot].tokens,
            slot.group,
        ) by {
            lemma_content_kept(s, x, slot);
        }
    }
    assert(inv_executed(s2)) by {
        assert forall|id: int, g: int, p: int|
            #![trigger s2.engine.slot(id, g, p)]
            s2.engine.has(id) && s2.engine.seqs[id].alive && 0 <= g < s2.engine.groups()
                && s2.engine.seqs[id].computed <= p < executed(s2, id) implies (s2.memory)(
            s2.engine.slot(id, g, p),
        ) == kv_value::<D>(s2.weights, stream(s2, id, s2.ran.len()).tokens.take(p + 1), g) by {
            lemma_executed_row(s, x, s2, id, g, p);
        }
    }
    assert(inv_outcomes(s2)) by {
        assert forall|m: int, id: int|
            0 <= m < s2.ran.len() && #[trigger] s2.engine.plans[m].chunks.dom().contains(id)
                && s2.engine.seqs[id].alive implies inv_outcome(s2, m, id) by {
            lemma_stream_frame(s, s2, id, m as nat);
            if m < n {
                assert(inv_outcome(s, m, id));
            } else {
                lemma_new_outcome(s, x, id);
            }
        }
    }
}

/// Slots with content keep it.
proof fn lemma_content_kept<D: Kernels + Sampler>(
    s: System<D>,
    x: Execution<D>,
    slot: Slot,
)
    requires
        ran_ok(s, x),
        s.engine.content.dom().contains(slot),
    ensures
        (x.after)(slot) == (s.memory)(slot),
{
    let e = s.engine;
    let n = s.ran.len() as int;
    assert forall|c: int, p: int| #[trigger] is_row(device_plan(s), c, p) implies place(
        e.shape,
        device_plan(s),
        c,
        p,
        slot.group,
    ) != slot by {
        if 0 <= slot.group < e.groups() {
            lemma_device_plan(s);
            lemma_place(e, n, device_plan(s), c, p, slot.group);
            let id = e.plans[n].order[c];
            assert(!e.content.dom().contains(e.slot(id, slot.group, p)));
        } else {
            lemma_group_in_range(s, slot);
        }
    }
}

/// Only slots of real groups have content.
proof fn lemma_group_in_range<D: Kernels + Sampler>(s: System<D>, slot: Slot)
    requires
        system_inv(s),
        s.engine.content.dom().contains(slot),
    ensures
        0 <= slot.group < s.engine.groups(),
{
}

proof fn lemma_executed_row<D: Kernels + Sampler>(
    s: System<D>,
    x: Execution<D>,
    s2: System<D>,
    id: int,
    g: int,
    p: int,
)
    requires
        ran_ok(s, x),
        s2 == (System { memory: x.after, ran: s.ran.push(outcome(s, x.logits)), ..s }),
        s.engine.has(id),
        s.engine.seqs[id].alive,
        0 <= g < s.engine.groups(),
        s.engine.seqs[id].computed <= p < executed(s2, id),
    ensures
        (x.after)(s.engine.slot(id, g, p)) == kv_value::<D>(
            s.weights,
            stream(s2, id, s2.ran.len()).tokens.take(p + 1),
            g,
        ),
{
    let plans = s.engine.plans;
    let n = s.ran.len();
    let known = s.engine.seqs[id].known;
    assert(plans.take((n + 1) as int).drop_last() =~= plans.take(n as int));
    assert(plans.take((n + 1) as int).last() == plans[n as int]);
    lemma_stream_frame(s, s2, id, n);
    lemma_stream(s, id, n);
    let tokens = stream(s, id, n).tokens;
    if plans[n as int].chunks.dom().contains(id) {
        let c = lemma_index(s, id);
        let first = device_plan(s)[c].first as int;
        let last = device_plan(s)[c].end() - 1;
        assert(inv_chunk(s.engine, s.engine.seqs[id], plans[n as int].chunks[id]));
        assert(is_row(device_plan(s), c, last));
        lemma_row_token(s, c, last);
        lemma_kept(s.engine, id, g);
        if p < first {
            lemma_past_kept(s, x, id, g, p);
        } else {
            lemma_first_seen(s.engine.shape.windows[g], first, first);
            lemma_rows_kv(s, x, c, g, p);
        }
        lemma_new_outcome(s, x, id);
        assert(stream(s2, id, n + 1).tokens.take(p + 1) =~= tokens.take(p + 1));
    } else {
        lemma_past_kept(s, x, id, g, p);
        assert(stream(s2, id, n + 1) == stream(s2, id, n));
    }
}

/// The new outcome is the reference's.
proof fn lemma_new_outcome<D: Kernels + Sampler>(
    s: System<D>,
    x: Execution<D>,
    id: int,
)
    requires
        ran_ok(s, x),
        s.engine.plans[s.ran.len() as int].chunks.dom().contains(id),
        s.engine.seqs[id].alive,
    ensures
        ({
            let n = s.ran.len() as int;
            let c = s.engine.plans[n].chunks[id];
            let before = stream(s, id, s.ran.len());
            let new = outcome(s, x.logits);
            &&& forall|p: int|
                c.first <= p < c.end() && c.logits_from <= p
                    ==> #[trigger] new.logits[id][p - c.first]
                    == logits_of::<D>(s.weights, before.tokens.take(p + 1))
            &&& c.sample ==> new.draws[id] == extend::<D>(
                before,
                logits_of::<D>(s.weights, before.tokens),
            )
        }),
{
    let n = s.ran.len() as int;
    let chunk = s.engine.plans[n].chunks[id];
    let tokens = stream(s, id, s.ran.len()).tokens;
    let new = outcome(s, x.logits);
    let c = lemma_index(s, id);
    let plan = device_plan(s);
    assert(inv_chunk(s.engine, s.engine.seqs[id], chunk));
    assert forall|p: int|
        chunk.first <= p < chunk.end() && chunk.logits_from <= p implies #[trigger] new.logits[id][p
        - chunk.first] == logits_of::<D>(s.weights, tokens.take(p + 1)) by {
        assert(is_row(plan, c, p));
        lemma_row_past(s, x, c, p);
        lemma_row_is_reference(s, x, c, p);
    }
    if chunk.sample {
        let last = chunk.end() - 1;
        assert(is_row(plan, c, last));
        lemma_row_token(s, c, last);
        assert(tokens.take(last + 1) =~= tokens);
        assert(new.logits[id][last - chunk.first] == logits_of::<D>(s.weights, tokens));
    }
}

} // verus!
