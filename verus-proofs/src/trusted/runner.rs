//! The runner, between engine and device: the hypothesis `runner_faithful`, stated once, here.
//!
//! Exec code of the engine cannot know what Python ran. The theorems assume of the runner (short enough
//! to check against this page) that every move of the whole system is one of `system_next`'s:
//!
//! - each plan is executed at most once, in the order of scheduling, unmodified: its rows, and nothing
//!   else, run on the kernels (plus padding), with its block tables as of scheduling;
//! - a token not yet known is the one last sampled for that sequence by a plan that is committed or in
//!   flight; a cancelled plan leaves nothing behind but what it wrote to its own slots;
//! - only a plan that was executed is committed, with the tokens that the sampler drew from the logits
//!   of its sampled rows, each in that request's own state and history;
//! - what a request is given is what is logged here: its tokens, and the rows of logits of its plans;
//! - weights change only by a Load step that the engine agreed to.
use vstd::prelude::*;
use crate::trusted::deployment::*;
use crate::trusted::kernel_contract::*;
use crate::trusted::reference::*;
use crate::trusted::sampler::*;
use crate::model::state::*;
use crate::model::steps::*;

verus! {

/// What one request has been given: its tokens (with the sampler's state), and rows of logits by
/// position; all of it computed with `weights`. `finished`: by a stop token or at its length.
pub struct Record<D: Kernels + Sampler> {
    pub weights: D::Weights,
    pub request: Request,
    pub initial: D::State,
    pub stream: Stream<D::State>,
    pub logits: IMap<int, D::Logits>,
    pub finished: bool,
}

/// What the execution of one plan produced, by sequence: logits of its rows, and (where a token was
/// sampled) the sequence with that token.
pub struct Outcome<D: Kernels + Sampler> {
    pub logits: Map<int, Seq<D::Logits>>,
    pub draws: Map<int, Stream<D::State>>,
}

/// Engine, device, and the log of every request. `ran`: the outcomes of the plans in flight that have
/// been executed, oldest first.
pub struct System<D: Kernels + Sampler> {
    pub engine: Engine,
    pub weights: D::Weights,
    pub memory: spec_fn(Slot) -> D::Kv,
    pub ran: Seq<Outcome<D>>,
    pub log: Map<int, Record<D>>,
}

pub open spec fn draws_for(plan: Plan, id: int) -> bool {
    plan.chunks.dom().contains(id) && plan.chunks[id].sample
}

/// Sequence `id` as the first `n` executed plans in flight leave it.
pub open spec fn stream<D: Kernels + Sampler>(s: System<D>, id: int, n: nat) -> Stream<D::State>
    decreases n,
{
    if n == 0 {
        s.log[id].stream
    } else if draws_for(s.engine.plans[n - 1], id) {
        s.ran[n - 1].draws[id]
    } else {
        stream(s, id, (n - 1) as nat)
    }
}

/// A chunk with its placeholder filled in.
pub open spec fn fill(c: PlannedChunk, last: Token) -> Chunk {
    Chunk {
        tables: c.tables,
        first: c.first,
        tokens: Seq::new(
            c.tokens.len(),
            |j: int|
                match c.tokens[j] {
                    Some(token) => token,
                    None => last,
                },
        ),
        logits_from: c.logits_from,
    }
}

/// The next plan to execute, as the device gets it.
pub open spec fn device_plan<D: Kernels + Sampler>(s: System<D>) -> Seq<Chunk> {
    let n = s.ran.len();
    let plan = s.engine.plans[n as int];
    Seq::new(
        plan.order.len(),
        |i: int| fill(plan.chunks[plan.order[i]], stream(s, plan.order[i], n).tokens.last()),
    )
}

/// What is kept of an execution. `logits` are by place in the batch.
pub open spec fn outcome<D: Kernels + Sampler>(
    s: System<D>,
    logits: Seq<Seq<D::Logits>>,
) -> Outcome<D> {
    let n = s.ran.len();
    let plan = s.engine.plans[n as int];
    Outcome {
        logits: Map::new(plan.chunks.dom(), |id: int| logits[plan.order.index_of(id)]),
        draws: Map::new(
            plan.chunks.dom(),
            |id: int| extend::<D>(stream(s, id, n), logits[plan.order.index_of(id)].last()),
        ),
    }
}

/// The device executes the oldest plan not yet executed.
pub open spec fn executes<D: Kernels + Sampler>(
    s: System<D>,
    padding: nat,
    memory: spec_fn(Slot) -> D::Kv,
    logits: Seq<Seq<D::Logits>>,
    s2: System<D>,
) -> bool {
    &&& s.ran.len() < s.engine.plans.len()
    &&& D::executes(s.weights, s.engine.shape, s.memory, device_plan(s), padding, memory, logits)
    &&& s2 == System { memory, ran: s.ran.push(outcome(s, logits)), ..s }
}

/// A request comes in, with the initial state of its sampler.
pub open spec fn new_record<D: Kernels + Sampler>(
    weights: D::Weights,
    request: Request,
    initial: D::State,
) -> Record<D> {
    Record {
        weights,
        request,
        initial,
        stream: Stream { tokens: request.prompt, state: initial },
        logits: IMap::empty(),
        finished: false,
    }
}

/// What request `id` has been given after the oldest plan is committed.
pub open spec fn given<D: Kernels + Sampler>(s: System<D>, id: int) -> Record<D> {
    let r = s.log[id];
    let c = s.engine.plans[0].chunks[id];
    if s.engine.plans[0].chunks.dom().contains(id) && s.engine.seqs[id].alive {
        let stream = stream(s, id, 1);
        let delivered = |p: int| c.first <= p < c.end() && c.logits_from <= p;
        Record {
            stream,
            logits: IMap::new(
                |p: int| r.logits.dom().contains(p) || delivered(p),
                |p: int|
                    if delivered(p) {
                        s.ran[0].logits[id][p - c.first]
                    } else {
                        r.logits[p]
                    },
            ),
            finished: r.request.ends(stream.tokens),
            ..r
        }
    } else {
        r
    }
}

/// The tokens committed are those drawn.
pub open spec fn faithful_tokens<D: Kernels + Sampler>(s: System<D>, tokens: Map<int, Token>) -> bool {
    forall|id: int| #[trigger]
        s.engine.plans[0].chunks.dom().contains(id) && s.engine.plans[0].chunks[id].sample
            ==> tokens[id] == s.ran[0].draws[id].tokens.last()
}

/// The engine makes a step, and the runner goes along. `initial`, `weights`: of a request that is
/// added, of a load.
pub open spec fn engine_moves<D: Kernels + Sampler>(
    s: System<D>,
    step: Step,
    initial: D::State,
    weights: D::Weights,
    s2: System<D>,
) -> bool {
    let engine = s2.engine;
    let id = s.engine.next_id;
    &&& next(s.engine, step, engine)
    &&& match step {
        Step::Add { .. } | Step::Fork { .. } => s2 == System {
            engine,
            log: s.log.insert(id, new_record::<D>(s.weights, engine.seqs[id].request, initial)),
            ..s
        },
        Step::Commit { tokens } => s.ran.len() > 0 && faithful_tokens(s, tokens) && s2 == System {
            engine,
            ran: s.ran.drop_first(),
            log: Map::new(s.log.dom(), |id: int| given(s, id)),
            ..s
        },
        Step::Cancel => s2 == System {
            engine,
            ran: s.ran.take(
                if s.ran.len() < s.engine.plans.len() {
                    s.ran.len() as int
                } else {
                    s.ran.len() - 1
                },
            ),
            ..s
        },
        Step::Load { .. } => s2 == System {
            engine,
            weights,
            log: Map::new(
                s.log.dom(),
                |id: int|
                    if s.engine.has(id) {
                        new_record::<D>(weights, s.log[id].request, s.log[id].initial)
                    } else {
                        s.log[id]
                    },
            ),
            ..s
        },
        _ => s2 == System { engine, ..s },
    }
}

pub open spec fn system_init<D: Kernels + Sampler>(s: System<D>) -> bool {
    &&& init(s.engine)
    &&& s.engine.groups() == D::groups()
    &&& s.ran == Seq::<Outcome<D>>::empty()
    &&& s.log == Map::<int, Record<D>>::empty()
}

pub open spec fn system_next<D: Kernels + Sampler>(s: System<D>, s2: System<D>) -> bool {
    ||| exists|step: Step, initial: D::State, weights: D::Weights|
        engine_moves(s, step, initial, weights, s2)
    ||| exists|padding: nat, memory: spec_fn(Slot) -> D::Kv, logits: Seq<Seq<D::Logits>>|
        executes(s, padding, memory, logits, s2)
}

/// A faithful execution: it starts with a new engine, and every move is the engine's or a faithful
/// runner's. (What the KV memory holds at the start does not matter.)
pub open spec fn runner_faithful<D: Kernels + Sampler>(x: Seq<System<D>>) -> bool {
    &&& x.len() > 0
    &&& system_init(x[0])
    &&& forall|i: int| 0 <= i < x.len() - 1 ==> system_next(#[trigger] x[i], x[i + 1])
}

} // verus!
