//! Execute keeps the system's invariant.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::proofs::engine::*;
use crate::proofs::execute::*;
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
        next_plan(s).chunks.dom().contains(id),
    ensures
        c == next_plan(s).order.index_of(id),
        0 <= c < device_plan(s).len(),
        next_plan(s).order[c] == id,
        device_plan(s)[c].first == next_plan(s).chunks[id].first,
        device_plan(s)[c].end() == next_plan(s).chunks[id].end(),
        device_plan(s)[c].logits_from == next_plan(s).chunks[id].logits_from,
{
    let plan = next_plan(s);
    plan.order.index_of(id)
}

pub proof fn lemma_execute<D: Kernels + Sampler>(s: System<D>, x: Execution<D>, s2: System<D>)
    requires
        system_inv(s),
        executes(s, x, s2),
    ensures
        system_inv(s2),
{
    let n = s.ran.len();
    lemma_device_plan(s);
    D::contract(x);
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
            executed_row(s2, id, g, p) implies holds_kv(s2, s2.memory, id, g, p) by {
            lemma_executed_row(s, x, s2, id, g, p);
        }
    }
    assert(inv_outcomes(s2)) by {
        assert forall|m: int, id: int|
            0 <= m < s2.ran.len() && #[trigger] s2.engine.plans[m].chunks.dom().contains(id)
                && s2.engine.seqs[id].alive implies inv_outcome(s2, m, id) by {
            lemma_stream_frame(s, s2, id, m as nat);
            if m < n {
            } else {
                lemma_new_outcome(s, x, id);
            }
        }
    }
}

/// Slots with content keep it.
proof fn lemma_content_kept<D: Kernels + Sampler>(s: System<D>, x: Execution<D>, slot: Slot)
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
            lemma_place(e, n, device_plan(s), c, p, slot.group);
        }
    }
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
        executed_row(s2, id, g, p),
    ensures
        holds_kv(s2, x.after, id, g, p),
{
    let plans = s.engine.plans;
    let n = s.ran.len();
    assert(plans.take((n + 1) as int).drop_last() =~= plans.take(n as int));
    lemma_stream_frame(s, s2, id, n);
    let tokens = stream(s, id, n).tokens;
    if plans[n as int].chunks.dom().contains(id) {
        let c = lemma_index(s, id);
        let first = device_plan(s)[c].first as int;
        let last = device_plan(s)[c].end() - 1;
        lemma_row_token(s, c, last);
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
    }
}

/// The new outcome is the reference's.
proof fn lemma_new_outcome<D: Kernels + Sampler>(s: System<D>, x: Execution<D>, id: int)
    requires
        ran_ok(s, x),
        next_plan(s).chunks.dom().contains(id),
        s.engine.seqs[id].alive,
    ensures
        ({
            let n = s.ran.len() as int;
            let c = s.engine.plans[n].chunks[id];
            let before = stream(s, id, s.ran.len());
            let new = outcome(s, x.logits);
            &&& forall|p: int|
                c.first <= p < c.end() && c.logits_from <= p ==> #[trigger] new.logits[id][p
                    - c.first] == logits_of::<D>(s.weights, before.tokens.take(p + 1))
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
    assert forall|p: int|
        chunk.first <= p < chunk.end() && chunk.logits_from <= p implies #[trigger] new.logits[id][p
        - chunk.first] == logits_of::<D>(s.weights, tokens.take(p + 1)) by {
        lemma_row_past(s, x, c, p);
        lemma_row_is_reference(s, x, c, p);
    }
    if chunk.sample {
        let last = chunk.end() - 1;
        lemma_row_token(s, c, last);
        assert(tokens.take(last + 1) =~= tokens);
        assert(new.logits[id][last - chunk.first] == logits_of::<D>(s.weights, tokens));
    }
}

} // verus!
