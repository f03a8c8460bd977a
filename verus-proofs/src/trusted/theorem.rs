//! What is proved. `x`, `y`: faithful executions of the whole system, of any length, with any other
//! requests, pools, budgets and schedules; `x[i].log[a]`: what request `a` has been given in state `i`.
//!
//! Assumed, and nothing else: the kernel contract (`Kernels`), the runner (`runner_faithful`), that
//! Verus, its libraries and Z3 are sound, and that the engine's code follows its machine (which
//! vosti-engine proves).
use vstd::prelude::*;
use crate::trusted::blocks::*;
use crate::trusted::deployment::*;
use crate::trusted::kernel_contract::*;
use crate::trusted::reference::*;
use crate::trusted::runner::*;
use crate::trusted::sampler::*;
use crate::model::state::*;
use crate::model::steps::*;
use crate::proofs::accounting::*;
use crate::proofs::executions::*;
use crate::proofs::isolation::*;

verus! {

/// State `i` of execution `x` has a record of request `a`.
pub open spec fn recorded<D: Kernels + Sampler>(x: Seq<System<D>>, i: int, a: int) -> bool {
    runner_faithful(x) && 0 <= i < x.len() && x[i].log.dom().contains(a)
}

/// The same deployment, prompt, and initial state of the sampler (its parameters, seed, sample index).
pub open spec fn same_request<D: Kernels + Sampler>(a: Record<D>, b: Record<D>) -> bool {
    a.weights == b.weights && a.request.prompt == b.request.prompt && a.initial == b.initial
}

/// The two requests end at the same tokens.
pub open spec fn same_ends(a: Request, b: Request) -> bool {
    a.max_tokens == b.max_tokens && a.stop == b.stop
}

/// Every row of logits that both deliver for a position is equal, and so is every token.
pub open spec fn agree<D: Kernels + Sampler>(a: Record<D>, b: Record<D>) -> bool {
    &&& forall|p: int| #[trigger]
        a.logits.dom().contains(p) && #[trigger] b.logits.dom().contains(p) ==> a.logits[p]
            == b.logits[p]
    &&& forall|k: int|
        0 <= k < a.stream.tokens.len() && k < b.stream.tokens.len() ==> #[trigger] a.stream.tokens[k]
            == #[trigger] b.stream.tokens[k]
}

/// Theorem 1, determinism. Between any two executions under one deployment, a request's logits and
/// tokens are the same, bit for bit, at every position that both deliver, prompt positions included;
/// and once both have finished, so is the whole output.
pub proof fn theorem_determinism<D: Kernels + Sampler>(
    x: Seq<System<D>>,
    i: int,
    a: int,
    y: Seq<System<D>>,
    j: int,
    b: int,
)
    requires
        recorded(x, i, a),
        recorded(y, j, b),
        same_request(x[i].log[a], y[j].log[b]),
    ensures
        agree(x[i].log[a], y[j].log[b]),
        x[i].log[a].finished && y[j].log[b].finished && same_ends(
            x[i].log[a].request,
            y[j].log[b].request,
        ) ==> x[i].log[a].stream.tokens == y[j].log[b].stream.tokens,
{
    lemma_determinism(x, i, a, y, j, b);
}

/// Theorem 2, reference. What a request is given is what the model, one token after the other and
/// alone, gives. A function of deployment, prompt and initial sampler state: theorem 1 follows.
pub proof fn theorem_reference<D: Kernels + Sampler>(x: Seq<System<D>>, i: int, a: int)
    requires
        recorded(x, i, a),
    ensures
        ({
            let r = x[i].log[a];
            let n = (r.stream.tokens.len() - r.request.prompt.len()) as nat;
            &&& r.stream == reference::<D>(r.weights, r.request.prompt, r.initial, n)
            &&& forall|p: int| #[trigger]
                r.logits.dom().contains(p) ==> 0 <= p < r.stream.tokens.len() && r.logits[p]
                    == logits_of::<D>(r.weights, r.stream.tokens.take(p + 1))
        }),
{
    lemma_execution(x, i);
}

/// Theorem 3, complete. A finished request ended exactly where it asked to, and was given every row of
/// logits that it asked for: prefix hits skip none.
pub proof fn theorem_complete<D: Kernels + Sampler>(x: Seq<System<D>>, i: int, a: int)
    requires
        recorded(x, i, a),
        x[i].log[a].finished,
    ensures
        ({
            let r = x[i].log[a];
            let tokens = r.stream.tokens;
            &&& r.request.ends(tokens)
            &&& forall|m: int| 0 <= m < tokens.len() ==> !r.request.ends(#[trigger] tokens.take(m))
            &&& forall|p: int|
                r.request.logits_from <= p < tokens.len() - 1 ==> #[trigger] r.logits.dom().contains(p)
        }),
{
    lemma_execution(x, i);
}

/// Execution `y` never has a block in the prefix cache.
pub open spec fn cache_off<D: Kernels + Sampler>(y: Seq<System<D>>) -> bool {
    forall|j: int, block: (int, int)|
        0 <= j < y.len() ==> !(#[trigger] y[j].engine.registered.dom().contains(block))
}

/// Theorem 4, cache transparency. With the prefix cache off the outputs are the same.
pub proof fn theorem_cache_transparent<D: Kernels + Sampler>(
    x: Seq<System<D>>,
    i: int,
    a: int,
    y: Seq<System<D>>,
    j: int,
    b: int,
)
    requires
        recorded(x, i, a),
        recorded(y, j, b),
        cache_off(y),
        same_request(x[i].log[a], y[j].log[b]),
    ensures
        agree(x[i].log[a], y[j].log[b]),
{
    lemma_determinism(x, i, a, y, j, b);
}

/// Theorem 5, isolation of values. All KV that a request's rows are computed from, found in the cache
/// or shared or its own, was written by a request of its own salt, for its own token prefix.
pub proof fn theorem_isolation<D: Kernels + Sampler>(
    x: Seq<System<D>>,
    i: int,
    id: int,
    g: int,
    p: int,
)
    requires
        runner_faithful(x),
        0 <= i < x.len(),
        x[i].engine.has(id),
        0 <= g < x[i].engine.groups(),
        0 <= p < x[i].engine.seqs[id].computed,
    ensures
        ({
            let e = x[i].engine;
            let slot = e.slot(id, g, p);
            &&& e.content.dom().contains(slot)
            &&& e.content[slot].salt == e.seqs[id].request.salt
            &&& e.content[slot].tokens == e.seqs[id].known.take(p + 1)
            &&& (x[i].memory)(slot) == last_kv_of::<D>(x[i].weights, e.content[slot].tokens)[g]
        }),
{
    lemma_execution(x, i);
}

/// Theorem 6, isolation of hits. The longest prefix hit is a function of the token prefixes cached
/// under the request's own salt; and while nothing is evicted, only that salt's own registrations
/// change these. So one's hits say nothing of other tenants' prompts.
pub proof fn theorem_isolation_of_hits(e: Engine, e2: Engine, step: Step, salt: Salt)
    requires
        next(e, step, e2),
        !e2.evicted,
        step matches Step::Register { id, .. } ==> e.seqs[id].request.salt != salt,
    ensures
        forall|g: int, tokens: Seq<Token>|
            cached(e2, salt, g, tokens) == #[trigger] cached(e, salt, g, tokens),
        forall|tokens: Seq<Token>, most: nat|
            longest_hit(e2, salt, tokens, most) == #[trigger] longest_hit(e, salt, tokens, most),
{
    lemma_isolation_of_hits(e, e2, step, salt);
}

/// Theorem 7, memory. In every state: each plan in flight is well-formed (blocks in range, one writer
/// to a slot, nobody else reading it) however its placeholders are filled; a block in two tables, or in
/// the cache, is never written; each block is free, referenced or cached, and the counts add up.
pub proof fn theorem_memory<D: Kernels + Sampler>(x: Seq<System<D>>, i: int)
    requires
        runner_faithful(x),
        0 <= i < x.len(),
    ensures
        x[i].ran.len() < x[i].engine.plans.len() ==> plan_wf(x[i].engine.shape, device_plan(x[i])),
        forall|n: int, id: int, g: int, p: int| #[trigger]
            row_in_flight(x[i].engine, n, id, g, p) ==> private_block(x[i].engine, id, g, p),
        forall|g: int|
            0 <= g < x[i].engine.groups() ==> {
                &&& #[trigger] free_blocks(x[i].engine, g).len() + referenced_blocks(
                    x[i].engine,
                    g,
                ).len() + cached_blocks(x[i].engine, g).len() == x[i].engine.shape.num_blocks[g]
            },
{
    lemma_execution(x, i);
    lemma_memory(x[i]);
}

} // verus!
