//! Each call is some moves of the whole system.
use super::*;
use vosti_spec::trusted::*;
use vstd::prelude::*;

verus! {

/// The step of a call that is not silent, if it has one that does not depend on silent ones.
pub open spec fn step_of(a: Link, call: Call) -> model::Step {
    match call {
        Call::Add { request, .. } => model::Step::Add { request },
        Call::Fork { parent, .. } => fork_step(a, parent),
        Call::Commit { tokens, .. } => model::Step::Commit {
            tokens: drawn(a.engine.plans[0], tokens),
        },
        Call::Cancel => model::Step::Cancel,
        Call::Abort { name } => model::Step::Abort { id: a.names.index_of(name) },
        Call::Load => model::Step::Load { restart: false },
        _ => model::Step::Reset,
    }
}

pub proof fn lemma_louder(e: model::Engine, e2: model::Engine)
    requires
        model::rearranges(e, e2),
    ensures
        model::reaches(e, e2),
{
}

pub proof fn lemma_call_reaches(a: Link, call: Call, b: Link)
    requires
        answers(a, call, b),
    ensures
        model::reaches(a.engine, b.engine),
{
    lemma_stays(a.engine);
    match call {
        Call::Schedule { plan: Some(p) } => {
            let (e, plan) = choose|e: model::Engine, plan: model::Plan| #[trigger]
                planned(a, p, e, plan, b);
            lemma_moves_on(a.engine, e, model::Step::Schedule { plan }, false);
        },
        Call::Schedule { plan: None } => lemma_louder(a.engine, b.engine),
        Call::Nothing => {},
        _ => {
            let step = step_of(a, call);
            let e = model::after(a.engine, step);
            lemma_moves_on(a.engine, a.engine, step, false);
            if !(call is Add || call is Fork) {
                lemma_louder(e, b.engine);
                lemma_moves_trans(a.engine, e, b.engine, false);
            }
        },
    }
}

/// A faithful execution with one more move.
pub proof fn lemma_one_more<D: Kernels + Sampler>(y: Seq<System<D>>, s2: System<D>) -> (z: Seq<
    System<D>,
>)
    requires
        runner_faithful(y),
        system_next(y.last(), s2),
    ensures
        runner_faithful(z) && z.last() == s2,
{
    let z = y.push(s2);
    z
}

/// A faithful execution in which the engine then takes one step.
proof fn lemma_moved<D: Kernels + Sampler>(
    y: Seq<System<D>>,
    step: model::Step,
    initial: D::State,
    w: D::Weights,
) -> (z: Seq<System<D>>)
    requires
        runner_faithful(y),
        can_move(y.last(), step),
    ensures
        runner_faithful(z) && z.last() == moved(y.last(), step, initial, w),
{
    let s = y.last();
    let s2 = moved(s, step, initial, w);
    lemma_one_more(y, s2)
}

/// A faithful execution in which the engine then takes silent steps.
proof fn lemma_rearranged<D: Kernels + Sampler>(
    y: Seq<System<D>>,
    steps: Seq<model::Step>,
    initial: D::State,
) -> (z: Seq<System<D>>)
    requires
        runner_faithful(y),
        model::runs(y.last().engine, steps),
        model::all_silent(steps),
    ensures
        runner_faithful(z),
        z.last() == (System { engine: model::run(y.last().engine, steps), ..y.last() }),
    decreases steps.len(),
{
    if steps.len() == 0 {
        return y;
    }
    let z = lemma_rearranged(y, steps.drop_last(), initial);
    lemma_moved(z, steps.last(), initial, z.last().weights)
}

/// A faithful execution in which the engine then answers a call.
pub proof fn lemma_call_faithful<D: Kernels + Sampler>(
    y: Seq<System<D>>,
    a: Link,
    call: Call,
    b: Link,
    initial: D::State,
    w: D::Weights,
) -> (z: Seq<System<D>>)
    requires
        runner_faithful(y),
        y.last().engine == a.engine,
        answers(a, call, b),
        call matches Call::Commit { tokens, .. } ==> drew(
            y.last(),
            drawn(a.engine.plans[0], tokens),
        ),
    ensures
        runner_faithful(z) && z.last() == after_call(y.last(), a, call, b, initial, w),
{
    match call {
        Call::Nothing => y,
        Call::Schedule { plan: None } => {
            let steps = choose|steps: Seq<model::Step>| #[trigger]
                model::runs(a.engine, steps) && model::run(a.engine, steps) == b.engine
                    && model::all_silent(steps);
            lemma_rearranged(y, steps, initial)
        },
        Call::Schedule { plan: Some(p) } => {
            let (e, plan) = choose|e: model::Engine, plan: model::Plan| #[trigger]
                planned(a, p, e, plan, b);
            let steps = choose|steps: Seq<model::Step>| #[trigger]
                model::runs(a.engine, steps) && model::run(a.engine, steps) == e
                    && model::all_silent(steps);
            let z = lemma_rearranged(y, steps, initial);
            lemma_moved(z, model::Step::Schedule { plan }, initial, z.last().weights)
        },
        _ => {
            let step = step_of(a, call);
            let z = lemma_moved(y, step, initial, w);
            let e = model::after(a.engine, step);
            if call is Add || call is Fork {
                z
            } else {
                let steps = choose|steps: Seq<model::Step>| #[trigger]
                    model::runs(e, steps) && model::run(e, steps) == b.engine && model::all_silent(
                        steps,
                    );
                lemma_rearranged(z, steps, initial)
            }
        },
    }
}

} // verus!
