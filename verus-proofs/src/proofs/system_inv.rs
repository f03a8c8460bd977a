//! The invariant of engine, device and log together.
use crate::model::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// One move of the engine, and of the runner with it.
pub open spec fn engine_moves<D: Sampler>(
    s: System<D>,
    step: Step,
    initial: D::State,
    weights: D::Weights,
    s2: System<D>,
) -> bool {
    can_move(s, step) && s2 == moved(s, step, initial, weights)
}

/// How many outputs a request has been given.
pub open spec fn outputs<D: Kernels + Sampler>(r: Record<D>) -> nat {
    (r.stream.tokens.len() - r.request.prompt.len()) as nat
}

/// Its tokens are those of the reference run, and it ended where its request says.
pub open spec fn inv_stream<D: Kernels + Sampler>(r: Record<D>) -> bool {
    let tokens = r.stream.tokens;
    &&& tokens.len() >= r.request.prompt.len()
    &&& r.stream == reference::<D>(r.weights, r.request.prompt, r.initial, outputs(r))
    &&& forall|m: int| 0 <= m < tokens.len() ==> !r.request.ends(#[trigger] tokens.take(m))
    &&& r.finished == r.request.ends(tokens)
}

/// Its rows of logits are the reference's.
pub open spec fn inv_logits<D: Kernels + Sampler>(r: Record<D>) -> bool {
    let tokens = r.stream.tokens;
    forall|p: int| #[trigger]
        r.logits.dom().contains(p) ==> 0 <= p < tokens.len() && r.logits[p] == logits_of::<D>(
            r.weights,
            tokens.take(p + 1),
        )
}

/// All rows of logits that were asked for, up to `end`, have been delivered.
pub open spec fn delivered_to<D: Kernels + Sampler>(r: Record<D>, end: int) -> bool {
    forall|p: int| r.request.logits_from <= p < end ==> #[trigger] r.logits.dom().contains(p)
}

pub open spec fn inv_record<D: Kernels + Sampler>(r: Record<D>) -> bool {
    &&& inv_stream(r)
    &&& inv_logits(r)
    &&& r.finished ==> delivered_to(r, r.stream.tokens.len() - 1)
}

pub open spec fn inv_log<D: Kernels + Sampler>(s: System<D>) -> bool {
    forall|id: int| #[trigger]
        s.log.dom().contains(id) ==> id < s.engine.next_id && inv_record(s.log[id])
}

/// The log of a sequence in the engine is about that sequence.
pub open spec fn inv_open_record<D: Kernels + Sampler>(s: System<D>, id: int) -> bool {
    let r = s.log[id];
    let q = s.engine.seqs[id];
    &&& s.log.dom().contains(id)
    &&& r.weights == s.weights
    &&& r.request == q.request
    &&& r.stream.tokens == q.known
    &&& delivered_to(r, q.need_from as int)
}

pub open spec fn inv_open<D: Kernels + Sampler>(s: System<D>) -> bool {
    forall|id: int| #[trigger] s.engine.has(id) ==> inv_open_record(s, id)
}

/// The KV that the reference model has at the last position of `tokens`, in group `g`.
pub open spec fn kv_value<D: Model>(w: D::Weights, tokens: Seq<Token>, g: int) -> D::Kv {
    last_kv_of::<D>(w, tokens)[g]
}

/// Cached KV is tied to its token prefix.
pub open spec fn inv_memory<D: Kernels + Sampler>(s: System<D>) -> bool {
    forall|slot: Slot| #[trigger]
        s.engine.content.dom().contains(slot) ==> (s.memory)(slot) == kv_value::<D>(
            s.weights,
            s.engine.content[slot].tokens,
            slot.group,
        )
}

/// How far sequence `id` is executed.
pub open spec fn executed<D: Kernels + Sampler>(s: System<D>, id: int) -> nat {
    frontier(s.engine.plans.take(s.ran.len() as int), id, s.engine.seqs[id].computed)
}

/// Position `p` of sequence `id` is executed, but not yet committed.
pub open spec fn executed_row<D: Kernels + Sampler>(s: System<D>, id: int, g: int, p: int) -> bool {
    &&& s.engine.has(id) && s.engine.seqs[id].alive && 0 <= g < s.engine.groups()
    &&& s.engine.seqs[id].computed <= p < executed(s, id)
}

/// `memory` has the reference's KV where position `p` of sequence `id` has its slot.
pub open spec fn holds_kv<D: Kernels + Sampler>(
    s: System<D>,
    memory: spec_fn(Slot) -> D::Kv,
    id: int,
    g: int,
    p: int,
) -> bool {
    memory(s.engine.slot(id, g, p)) == kv_value::<D>(
        s.weights,
        stream(s, id, s.ran.len()).tokens.take(p + 1),
        g,
    )
}

/// So is the KV of rows that are executed, but not yet committed.
pub open spec fn inv_executed<D: Kernels + Sampler>(s: System<D>) -> bool {
    forall|id: int, g: int, p: int|
        #![trigger s.engine.slot(id, g, p)]
        executed_row(s, id, g, p) ==> holds_kv(s, s.memory, id, g, p)
}

/// What plan `n`, executed, left for sequence `id`: the reference's logits, and a faithful draw.
pub open spec fn inv_outcome<D: Kernels + Sampler>(s: System<D>, n: int, id: int) -> bool {
    let c = s.engine.plans[n].chunks[id];
    let before = stream(s, id, n as nat);
    &&& forall|p: int|
        c.first <= p < c.end() && c.logits_from <= p ==> #[trigger] s.ran[n].logits[id][p - c.first]
            == logits_of::<D>(s.weights, before.tokens.take(p + 1))
    &&& c.sample ==> s.ran[n].draws[id] == extend::<D>(
        before,
        logits_of::<D>(s.weights, before.tokens),
    )
}

pub open spec fn inv_outcomes<D: Kernels + Sampler>(s: System<D>) -> bool {
    forall|n: int, id: int|
        0 <= n < s.ran.len() && #[trigger] s.engine.plans[n].chunks.dom().contains(id)
            && s.engine.seqs[id].alive ==> inv_outcome(s, n, id)
}

pub open spec fn system_inv<D: Kernels + Sampler>(s: System<D>) -> bool {
    &&& inv(s.engine)
    &&& s.engine.shape.windows == D::windows()
    &&& s.ran.len() <= s.engine.plans.len()
    &&& inv_log(s)
    &&& inv_open(s)
    &&& inv_memory(s)
    &&& inv_executed(s)
    &&& inv_outcomes(s)
}

} // verus!
