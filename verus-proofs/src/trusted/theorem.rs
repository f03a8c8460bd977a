//! What is proved. `x`, `y`: faithful executions of the whole system, of any length, with any other requests,
//! pools, budgets and schedules.
//! Assumed: the kernel contract (`Kernels`, or `Launches` below it), the runner (`runner_faithful`), that
//! Verus, its library and Z3 are sound. That the engine's code follows the machine of model/ is proved in
//! vosti-engine: `theorem_engine_refines`.
use crate::model::{blocks::*, state::*, steps::*};
use crate::proofs::{accounting::*, executions::*, isolation::*};
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// Request `id` in state `i` of execution `x`.
pub struct At<D: Sampler> { pub x: Seq<System<D>>, pub i: int, pub id: int }

impl<D: Kernels + Sampler> At<D> {
    pub open spec fn ok(self) -> bool {
        runner_faithful(self.x) && 0 <= self.i < self.x.len() && self.x[self.i].log.dom().contains(self.id)
    }
    pub open spec fn record(self) -> Record<D> { self.x[self.i].log[self.id] }
}

/// The same deployment, prompt and initial sampler state (its parameters, seed, sample index).
pub open spec fn same_request<D: Sampler>(a: Record<D>, b: Record<D>) -> bool {
    a.weights == b.weights && a.request.prompt == b.request.prompt && a.initial == b.initial
}

/// Every row of logits that both were given for a position is equal, and so is every token; and if both have
/// finished, and were to end at the same tokens, the whole output.
pub open spec fn agree<D: Sampler>(a: Record<D>, b: Record<D>) -> bool {
    let (s, t) = (a.stream.tokens, b.stream.tokens);
    &&& forall|p: int| #[trigger] a.logits.dom().contains(p) && #[trigger] b.logits.dom().contains(p)
        ==> a.logits[p] == b.logits[p]
    &&& forall|k: int| 0 <= k < s.len() && k < t.len() ==> #[trigger] s[k] == #[trigger] t[k]
    &&& a.finished && b.finished && a.request.max_tokens == b.request.max_tokens
        && a.request.stop == b.request.stop ==> s == t
}

/// Theorem 1, determinism. In any two executions under one deployment, a request's logits, at every position
/// (of the prompt too) that both deliver, and its tokens are the same, bit for bit.
pub proof fn theorem_determinism<D: Kernels + Sampler>(a: At<D>, b: At<D>)
    requires a.ok(), b.ok(), same_request(a.record(), b.record()), ensures agree(a.record(), b.record()),
{ lemma_determinism(a, b) }

/// Theorem 2, reference. They are what the model, one token after the other and alone, gives.
pub proof fn theorem_reference<D: Kernels + Sampler>(a: At<D>)
    requires a.ok(), ensures ({
        let (r, tokens) = (a.record(), a.record().stream.tokens);
        let outputs = (tokens.len() - r.request.prompt.len()) as nat;
        &&& r.stream == reference::<D>(r.weights, r.request.prompt, r.initial, outputs)
        &&& forall|p: int| #[trigger] r.logits.dom().contains(p) ==> 0 <= p < tokens.len()
            && r.logits[p] == logits_of::<D>(r.weights, tokens.take(p + 1))
    }),
{ lemma_execution(a.x, a.i) }

/// Theorem 3, completeness. A finished request ended exactly where it was to end, and was given every row of
/// logits that it asked for: prefix hits skip none.
pub proof fn theorem_complete<D: Kernels + Sampler>(a: At<D>)
    requires a.ok(), a.record().finished, ensures ({
        let (r, tokens) = (a.record(), a.record().stream.tokens);
        &&& r.request.ends(tokens)
        &&& forall|m: int| 0 <= m < tokens.len() ==> !r.request.ends(#[trigger] tokens.take(m))
        &&& forall|p: int| r.request.logits_from <= p < tokens.len() - 1
            ==> #[trigger] r.logits.dom().contains(p)
    }),
{ lemma_execution(a.x, a.i) }

/// Theorem 4, cache transparency. With the prefix cache off (nothing registered, ever) outputs are the same.
pub proof fn theorem_cache_transparent<D: Kernels + Sampler>(a: At<D>, off: At<D>)
    requires
        a.ok(), off.ok(), same_request(a.record(), off.record()),
        forall|j: int, b: (int, int)| 0 <= j < off.x.len()
            ==> !(#[trigger] off.x[j].engine.registered.dom().contains(b)),
    ensures agree(a.record(), off.record()),
{ lemma_determinism(a, off) }

/// Theorem 5, isolation of values. All KV that a request's rows, from the next on, can see, cached, shared or
/// its own, was written by a request of its own salt, for its own token prefix.
pub proof fn theorem_isolation<D: Kernels + Sampler>(x: Seq<System<D>>, i: int, id: int, g: int, p: int)
    requires
        runner_faithful(x), 0 <= i < x.len(), x[i].engine.has(id),
        0 <= g < x[i].engine.groups(), x[i].engine.seen_from(id, g) <= p < x[i].engine.seqs[id].computed,
    ensures ({
        let (e, slot) = (x[i].engine, x[i].engine.slot(id, g, p));
        &&& e.content.dom().contains(slot)
        &&& e.content[slot].salt == e.seqs[id].request.salt
        &&& e.content[slot].tokens == e.seqs[id].known.take(p + 1)
        &&& (x[i].memory)(slot) == last_kv_of::<D>(x[i].weights, e.content[slot].tokens)[g]
    }),
{ lemma_execution(x, i) }

/// Theorem 6, isolation of hits. The longest prefix hit depends on what is cached under the request's own
/// salt; and while nothing is evicted, only requests of that salt change this.
pub proof fn theorem_isolation_of_hits(e: Engine, e2: Engine, step: Step, salt: Salt)
    requires
        next(e, step, e2), !e2.evicted,
        step matches Step::Register { id, .. } ==> e.seqs[id].request.salt != salt,
    ensures
        forall|tokens: Seq<Token>, most: nat| #[trigger] longest_hit(e, salt, tokens, most)
            == longest_hit(e2, salt, tokens, most),
{ lemma_isolation_of_hits(e, e2, step, salt) }

/// Theorem 7, memory. The plan that the device gets is well-formed; what a plan in flight writes is in blocks
/// that no other table has, nor the cache; free + referenced + cached blocks are all blocks.
pub proof fn theorem_memory<D: Kernels + Sampler>(x: Seq<System<D>>, i: int)
    requires runner_faithful(x), 0 <= i < x.len(), ensures
        x[i].ran.len() < x[i].engine.plans.len() ==> plan_wf(x[i].engine.shape, device_plan(x[i])),
        forall|n: int, id: int, g: int, p: int| #[trigger] row_in_flight(x[i].engine, n, id, g, p)
            ==> private_block(x[i].engine, id, g, p),
        forall|g: int| 0 <= g < x[i].engine.groups() ==> #[trigger] free_blocks(x[i].engine, g).len()
            + referenced_blocks(x[i].engine, g).len() + cached_blocks(x[i].engine, g).len()
            == x[i].engine.shape.num_blocks[g],
{ lemma_execution(x, i); lemma_memory(x[i]) }

} // verus!
