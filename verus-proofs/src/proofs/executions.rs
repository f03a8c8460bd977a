//! From the inductive invariant to statements about executions.
use crate::model::*;
use crate::proofs::kv::*;
use crate::proofs::system_commit::*;
use crate::proofs::system_engine::*;
use crate::proofs::system_execute::*;
use crate::proofs::system_inv::*;
use crate::trusted::theorem::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

pub proof fn lemma_system_next<D: Kernels + Sampler>(s: System<D>, s2: System<D>)
    requires
        system_inv(s),
        system_next(s, s2),
    ensures
        system_inv(s2),
{
    if exists|step: Step, initial: D::State, weights: D::Weights|
        can_move(s, step) && s2 == #[trigger] moved(s, step, initial, weights) {
        let (step, initial, weights) = choose|step: Step, initial: D::State, weights: D::Weights|
            can_move(s, step) && s2 == #[trigger] moved(s, step, initial, weights);
        match step {
            Step::Commit { tokens } => lemma_system_commit(s, tokens, s2),
            _ => lemma_engine_moves(s, step, initial, weights, s2),
        }
    } else {
        let x = choose|x: Execution<D>| executes(s, x, s2);
        lemma_execute(s, x, s2);
    }
}

/// Every state of a faithful execution satisfies the invariant.
pub proof fn lemma_execution<D: Kernels + Sampler>(x: Seq<System<D>>, i: int)
    requires
        runner_faithful(x),
        0 <= i < x.len(),
    ensures
        system_inv(x[i]),
    decreases i,
{
    if i > 0 {
        lemma_execution(x, i - 1);
        lemma_system_next(x[i - 1], x[i]);
    }
}

/// What `agree` says of rows and tokens.
pub open spec fn rows_agree<D: Sampler>(a: Record<D>, b: Record<D>) -> bool {
    &&& forall|p: int| #[trigger]
        a.logits.dom().contains(p) && #[trigger] b.logits.dom().contains(p) ==> a.logits[p]
            == b.logits[p]
    &&& forall|k: int|
        0 <= k < a.stream.tokens.len() && k < b.stream.tokens.len()
            ==> #[trigger] a.stream.tokens[k] == #[trigger] b.stream.tokens[k]
}

/// Two records of the same request are prefixes of one reference run.
pub proof fn lemma_agree<D: Kernels + Sampler>(a: Record<D>, b: Record<D>)
    requires
        inv_record(a),
        inv_record(b),
        same_request(a, b),
        a.stream.tokens.len() <= b.stream.tokens.len(),
    ensures
        rows_agree(a, b),
        a.stream.tokens == b.stream.tokens.take(a.stream.tokens.len() as int),
{
    let short = a.stream.tokens;
    let long = b.stream.tokens;
    lemma_reference_extends::<D>(a.weights, a.request.prompt, a.initial, outputs(a), outputs(b));
    assert forall|p: int| #[trigger]
        a.logits.dom().contains(p) && #[trigger] b.logits.dom().contains(p) implies a.logits[p]
        == b.logits[p] by {
        assert(short.take(p + 1) =~= long.take(p + 1));
    }
}

pub proof fn lemma_determinism<D: Kernels + Sampler>(a: At<D>, b: At<D>)
    requires
        a.ok(),
        b.ok(),
        same_request(a.record(), b.record()),
    ensures
        agree(a.record(), b.record()),
{
    let r = a.record();
    let t = b.record();
    lemma_execution(a.x, a.i);
    lemma_execution(b.x, b.i);
    if r.stream.tokens.len() <= t.stream.tokens.len() {
        lemma_agree(r, t);
    } else {
        lemma_agree(t, r);
    }
}

} // verus!
