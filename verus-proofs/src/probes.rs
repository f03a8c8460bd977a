//! Probes: from each trusted item, and from the hypotheses of each theorem, `false` must not
//! follow. Every function here must FAIL to verify, one error each; one that verifies means a
//! contradiction upstream. Compiled only with the feature `probes`.
use crate::model::*;
use crate::proofs::composition::*;
use crate::proofs::executions::*;
use crate::proofs::launches::*;
use crate::proofs::system_inv::*;
use crate::proofs::toy::*;
use crate::trusted::theorem::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

#[verifier::rlimit(1)]
proof fn probe_model<D: Model>(
    w: D::Weights,
    past: Seq<Seq<D::Kv>>,
    other: Seq<Seq<D::Kv>>,
    t: Token,
)
    requires
        same_seen(D::windows(), past, other),
        past != other,
    ensures
        false,
{
    D::forward_fills_groups(w, past, t);
    D::forward_sees_windows(w, past, other, t);
}

#[verifier::rlimit(1)]
proof fn probe_sampler<D: Sampler>(s: Stream<D::State>, logits: D::Logits)
    ensures
        extend::<D>(s, logits).tokens == s.tokens,
{
}

#[verifier::rlimit(1)]
proof fn probe_kernel_contract<D: Kernels>(x: Execution<D>)
    requires
        x.shape.windows == D::windows(),
        plan_wf(x.shape, x.plan),
        D::executes(x),
        x.plan.len() > 1,
        x.plan[0].tokens.len() > 1,
        x.plan[1].tokens.len() > 1,
    ensures
        false,
{
    D::contract(x);
}

#[verifier::rlimit(1)]
proof fn probe_launch_contract<R: Layers>(x: Launched<R>)
    requires
        plan_wf(x.shape, x.plan),
        R::launches(x),
        x.launch.kernel is Store,
        x.plan.len() > 1,
        x.plan[0].tokens.len() > 1,
    ensures
        false,
{
    R::program_ok();
    R::launch_contract(x);
}

#[verifier::rlimit(1)]
proof fn probe_launched_all<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>)
    requires
        launched_all(x, d),
        x.plan.len() > 1,
        x.plan[0].tokens.len() > 1,
    ensures
        false,
{
    R::program_ok();
    lemma_rows_computed(x, d);
}

#[verifier::rlimit(1)]
proof fn probe_engine_inv(e: Engine)
    requires
        inv(e),
        e.plans.len() > 1,
        e.has(0),
        e.seqs[0].computed > e.shape.block_size,
        e.registered.dom().contains((0, 0)),
    ensures
        false,
{
}

#[verifier::rlimit(1)]
proof fn probe_runner_faithful<D: Kernels + Sampler>(x: Seq<System<D>>, i: int)
    requires
        runner_faithful(x),
        3 < i < x.len(),
        x[i].ran.len() > 0,
    ensures
        false,
{
    lemma_execution(x, i);
}

#[verifier::rlimit(1)]
proof fn probe_system_inv<D: Kernels + Sampler>(s: System<D>, id: int)
    requires
        system_inv(s),
        s.ran.len() > 1,
        s.engine.plans.len() > 2,
        s.engine.has(id),
        s.engine.seqs[id].alive,
        s.engine.plans[0].samples(id),
        s.engine.plans[1].samples(id),
    ensures
        false,
{
}

#[verifier::rlimit(1)]
proof fn probe_theorem_determinism<D: Kernels + Sampler>(a: At<D>, b: At<D>)
    requires
        a.ok(),
        b.ok(),
        same_request(a.record(), b.record()),
        a.record().stream.tokens.len() > a.record().request.prompt.len() + 1,
        b.record().finished,
    ensures
        false,
{
    theorem_determinism(a, b);
    theorem_reference(a);
    theorem_complete(b);
}

/// Nothing forces two requests with different sampler states to agree.
#[verifier::rlimit(1)]
proof fn probe_states_matter<D: Kernels + Sampler>(a: At<D>, b: At<D>)
    requires
        a.ok(),
        b.ok(),
        a.record().weights == b.record().weights,
        a.record().request == b.record().request,
    ensures
        agree(a.record(), b.record()),
{
    theorem_reference(a);
    theorem_reference(b);
}

#[verifier::rlimit(1)]
proof fn probe_theorem_cache_transparent<D: Kernels + Sampler>(a: At<D>, off: At<D>)
    requires
        a.ok(),
        off.ok(),
        same_request(a.record(), off.record()),
        forall|j: int, b: (int, int)|
            0 <= j < off.x.len() ==> !(#[trigger] off.x[j].engine.registered.dom().contains(b)),
        a.record().finished,
        off.record().finished,
    ensures
        false,
{
    theorem_cache_transparent(a, off);
}

#[verifier::rlimit(1)]
proof fn probe_theorem_isolation<D: Kernels + Sampler>(
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
        false,
{
    theorem_isolation(x, i, id, g, p);
}

#[verifier::rlimit(1)]
proof fn probe_theorem_isolation_of_hits(e: Engine, e2: Engine, step: Step, salt: Salt)
    requires
        next(e, step, e2),
        !e2.evicted,
        step matches Step::Register { id, .. } && e.seqs[id].request.salt != salt,
    ensures
        false,
{
    theorem_isolation_of_hits(e, e2, step, salt);
}

#[verifier::rlimit(1)]
proof fn probe_theorem_memory<D: Kernels + Sampler>(x: Seq<System<D>>, i: int)
    requires
        runner_faithful(x),
        0 <= i < x.len(),
        x[i].engine.plans.len() > 1,
    ensures
        false,
{
    theorem_memory(x, i);
}

#[verifier::rlimit(1)]
proof fn probe_toy(x: Execution<Toy>)
    requires
        x.shape.windows == Toy::windows(),
        plan_wf(x.shape, x.plan),
        Toy::executes(x),
        x.plan.len() > 0,
    ensures
        false,
{
    Toy::contract(x);
    lemma_toy_kv(0, seq![1, 2, 3]);
}

} // verus!
