//! What connects the code with the theorems of vosti-spec.
//!
//! Every public function of `engine::Engine` ensures `answers(before, call, after)`: what the call
//! means for the machine that the engine follows (calls.rs). The machine's state is ghost, so it is
//! not computed, but it is tied to the engine's by `linked` (relation.rs), a type invariant.
//!
//! So the states of the machine between the calls of a program, whatever it calls, in whatever
//! order, are states of one execution of the machine: `theorem_engine_refines`. And if between the
//! calls the plans are run and the tokens committed are those drawn (`serves`, which is
//! `runner_faithful` call by call), the whole system's states are those of a faithful execution:
//! `theorem_calls_faithful`. The theorems of `trusted/theorem.rs` are about every such state.
use super::*;
use vosti_spec::trusted::*;
use vstd::prelude::*;

verus! {

/// A new engine, and the machine before and after each of `calls`.
pub open spec fn called(links: Seq<Link>, calls: Seq<Call>) -> bool {
    &&& links.len() == calls.len() + 1
    &&& model::init(links[0].engine) && links[0].names.len() == 0
    &&& forall|i: int| 0 <= i < calls.len() ==> answers(links[i], #[trigger] calls[i], links[i + 1])
}

/// Refinement. Any calls of a new engine's functions are an execution of the machine, so its
/// invariant holds after each.
pub proof fn theorem_engine_refines(links: Seq<Link>, calls: Seq<Call>, i: int)
    requires
        called(links, calls),
        0 <= i < links.len(),
    ensures
        model::reaches(links[0].engine, links[i].engine),
        model::inv(links[i].engine),
    decreases i,
{
    if i == 0 {
        lemma_stays(links[0].engine);
        lemma_louder(links[0].engine, links[0].engine);
    } else {
        theorem_engine_refines(links, calls, i - 1);
        assert(answers(links[i - 1], calls[i - 1], links[i - 1 + 1]));
        lemma_call_reaches(links[i - 1], calls[i - 1], links[i]);
        lemma_moves_trans(links[0].engine, links[i - 1].engine, links[i].engine, false);
    }
    vosti_spec::proofs::engine::lemma_init(links[0].engine);
    lemma_moves_inv(links[0].engine, links[i].engine, false);
}

/// The system after a call: what is logged is logged with the one step that users see. `w`: the
/// weights of a Load.
pub open spec fn after_call<D: Sampler>(
    s: System<D>,
    a: Link,
    call: Call,
    b: Link,
    initial: D::State,
    w: D::Weights,
) -> System<D> {
    let seen = match call {
        Call::Add { .. }
        | Call::Fork { .. }
        | Call::Commit { .. }
        | Call::Cancel
        | Call::Load => moved(s, step_of(a, call), initial, w),
        _ => s,
    };
    System { engine: b.engine, ..seen }
}

/// The runner's part in one move of the system, from `s` to `s2`: a call of the engine (with the
/// tokens drawn, if it is a commit), or the execution of the oldest plan not yet executed.
pub open spec fn serves<D: Kernels + Sampler>(
    s: System<D>,
    a: Link,
    s2: System<D>,
    b: Link,
) -> bool {
    ||| exists|call: Call, initial: D::State, w: D::Weights|
        {
            &&& answers(a, call, b)
            &&& call matches Call::Commit { tokens, .. } ==> drew(
                s,
                drawn(a.engine.plans[0], tokens),
            )
            &&& s2 == #[trigger] after_call(s, a, call, b, initial, w)
        }
    ||| a == b && exists|x: Execution<D>| executes(s, x, s2)
}

/// The system between the calls of an engine, from a new one on.
pub open spec fn served<D: Kernels + Sampler>(x: Seq<System<D>>, links: Seq<Link>) -> bool {
    &&& x.len() == links.len() && x.len() > 0
    &&& system_init(x[0]) && x[0].engine == links[0].engine
    &&& forall|i: int|
        #![trigger x[i], links[i]]
        0 <= i < x.len() - 1 ==> serves(x[i], links[i], x[i + 1], links[i + 1])
}

/// Faithful calls. What a system that calls the engine comes to is what some faithful execution
/// comes to.
pub proof fn theorem_calls_faithful<D: Kernels + Sampler>(
    x: Seq<System<D>>,
    links: Seq<Link>,
    i: int,
) -> (y: Seq<System<D>>)
    requires
        served(x, links),
        0 <= i < x.len(),
    ensures
        runner_faithful(y) && y.last() == x[i],
        x[i].engine == links[i].engine,
    decreases i,
{
    if i == 0 {
        return seq![x[0]];
    }
    let y = theorem_calls_faithful(x, links, i - 1);
    let (s, s2, a, b) = (x[i - 1], x[i], links[i - 1], links[i]);
    assert(serves(s, a, x[i - 1 + 1], links[i - 1 + 1]));
    if exists|call: Call, initial: D::State, w: D::Weights|
        {
            &&& answers(a, call, b)
            &&& call matches Call::Commit { tokens, .. } ==> drew(
                s,
                drawn(a.engine.plans[0], tokens),
            )
            &&& s2 == #[trigger] after_call(s, a, call, b, initial, w)
        } {
        let (call, initial, w) = choose|call: Call, initial: D::State, w: D::Weights|
            {
                &&& answers(a, call, b)
                &&& call matches Call::Commit { tokens, .. } ==> drew(
                    s,
                    drawn(a.engine.plans[0], tokens),
                )
                &&& s2 == #[trigger] after_call(s, a, call, b, initial, w)
            };
        lemma_call_faithful(y, a, call, b, initial, w)
    } else {
        let run = choose|run: Execution<D>| executes(s, run, s2);
        assert(system_next(s, s2));
        lemma_one_more(y, s2)
    }
}

} // verus!
