//! The runner, between engine and device: the hypothesis `runner_faithful`, stated once, here.
//! Exec code of the engine cannot know what Python ran. The theorems assume of the runner (short enough to
//! check against this page) that every move of the whole system is one of `system_next`:
//! - each plan is executed at most once, in the order of scheduling, unmodified: its rows, and nothing else,
//!   run on the kernels (plus padding), with its block tables as of scheduling;
//! - a token not yet known is the one last sampled for that sequence by a plan that is committed or in
//!   flight; a cancelled plan leaves nothing behind but what it wrote to its own slots;
//! - only an executed plan is committed, with the tokens that the sampler drew from the logits of its sampled
//!   rows, each in that request's own state and history;
//! - what a request is given is what is logged here: its tokens, and its rows of logits;
//! - weights change only by a Load step that the engine agreed to.
use crate::model::{state::*, steps::*};
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// What one request has been given, computed with `weights`: its tokens (with its sampler's state), and rows
/// of logits by position. `finished`: by a stop token, or at its length.
pub struct Record<D: Sampler> {
    pub weights: D::Weights, pub request: Request, pub initial: D::State,
    pub stream: Stream<D::State>, pub logits: IMap<int, D::Logits>, pub finished: bool,
}

/// What executing a plan produced, by sequence: logits of its rows; the stream with the token sampled.
pub struct Outcome<D: Sampler> { pub logits: Map<int, Seq<D::Logits>>, pub draws: Map<int, Stream<D::State>> }

/// Engine, device and the log of every request. `ran`: outcomes of the executed plans in flight, in order.
pub struct System<D: Sampler> {
    pub engine: Engine, pub weights: D::Weights, pub memory: spec_fn(Slot) -> D::Kv,
    pub ran: Seq<Outcome<D>>, pub log: Map<int, Record<D>>,
}

/// Sequence `id` as the first `n` executed plans in flight leave it.
pub open spec fn stream<D: Sampler>(s: System<D>, id: int, n: nat) -> Stream<D::State>
    decreases n,
{
    if n == 0 { s.log[id].stream }
    else if s.engine.plans[n - 1].samples(id) { s.ran[n - 1].draws[id] }
    else { stream(s, id, (n - 1) as nat) }
}

/// A chunk with `last` for a token not yet known.
pub open spec fn fill(c: PlannedChunk, last: Token) -> Chunk {
    let known = |j: int| match c.tokens[j] { Some(token) => token, None => last };
    let tokens = Seq::new(c.tokens.len(), known);
    Chunk { tables: c.tables, first: c.first, tokens, logits_from: c.logits_from }
}

/// The next plan to execute, as the device gets it.
pub open spec fn device_plan<D: Sampler>(s: System<D>) -> Seq<Chunk> {
    let plan = s.engine.plans[s.ran.len() as int];
    let last = |id: int| stream(s, id, s.ran.len()).tokens.last();
    Seq::new(plan.order.len(), |i: int| fill(plan.chunks[plan.order[i]], last(plan.order[i])))
}

/// What is kept of an execution with these logits (by place in the batch).
pub open spec fn outcome<D: Sampler>(s: System<D>, logits: Seq<Seq<D::Logits>>) -> Outcome<D> {
    let plan = s.engine.plans[s.ran.len() as int];
    let rows = |id: int| logits[plan.order.index_of(id)];
    let draw = |id: int| extend::<D>(stream(s, id, s.ran.len()), rows(id).last());
    Outcome { logits: Map::new(plan.chunks.dom(), rows), draws: Map::new(plan.chunks.dom(), draw) }
}

/// The device executes the oldest plan not yet executed.
pub open spec fn executes<D: Kernels + Sampler>(s: System<D>, x: Execution<D>, s2: System<D>) -> bool {
    &&& s.ran.len() < s.engine.plans.len()
    &&& x.weights == s.weights && x.shape == s.engine.shape
    &&& x.plan == device_plan(s) && x.before == s.memory
    &&& D::executes(x)
    &&& s2 == System { memory: x.after, ran: s.ran.push(outcome(s, x.logits)), ..s }
}

/// A request comes in, with the initial state of its sampler.
pub open spec fn new_record<D: Sampler>(w: D::Weights, request: Request, initial: D::State) -> Record<D> {
    let stream = Stream { tokens: request.prompt, state: initial };
    Record { weights: w, request, initial, stream, logits: IMap::empty(), finished: false }
}

/// Request `id` after the oldest plan is committed.
pub open spec fn given<D: Sampler>(s: System<D>, id: int) -> Record<D> {
    let (r, c) = (s.log[id], s.engine.plans[0].chunks[id]);
    let delivered = |p: int| c.first <= p < c.end() && c.logits_from <= p;
    let row = |p: int| if delivered(p) { s.ran[0].logits[id][p - c.first] } else { r.logits[p] };
    if s.engine.plans[0].chunks.dom().contains(id) && s.engine.seqs[id].alive {
        let (stream, logits) = (stream(s, id, 1), IMap::new(
            |p: int| r.logits.dom().contains(p) || delivered(p), row));
        Record { stream, logits, finished: r.request.ends(stream.tokens), ..r }
    } else { r }
}

/// The oldest plan in flight was executed, and drew `tokens`.
pub open spec fn drew<D: Sampler>(s: System<D>, tokens: Map<int, Token>) -> bool {
    s.ran.len() > 0 && forall|id: int| #[trigger] s.engine.plans[0].samples(id)
        ==> tokens[id] == s.ran[0].draws[id].tokens.last()
}

/// The engine makes a step, and the runner goes along. `initial`: of an Add or Fork; `w`: of a Load.
pub open spec fn moved<D: Sampler>(s: System<D>, step: Step, initial: D::State, w: D::Weights) -> System<D> {
    let (engine, id) = (after(s.engine, step), s.engine.next_id);
    let fresh = |id: int| new_record::<D>(w, s.log[id].request, s.log[id].initial);
    let restarted = |id: int| if s.engine.has(id) { fresh(id) } else { s.log[id] };
    match step {
        Step::Add { .. } | Step::Fork { .. } => System { engine, log: s.log.insert(id,
            new_record::<D>(s.weights, engine.seqs[id].request, initial)), ..s },
        Step::Commit { .. } => System { engine, ran: s.ran.drop_first(),
            log: Map::new(s.log.dom(), |id: int| given(s, id)), ..s },
        Step::Cancel => System { engine,
            ran: if s.ran.len() < s.engine.plans.len() { s.ran } else { s.ran.drop_last() }, ..s },
        Step::Load { .. } => System { engine, weights: w, log: Map::new(s.log.dom(), restarted), ..s },
        _ => System { engine, ..s },
    }
}

pub open spec fn can_move<D: Sampler>(s: System<D>, step: Step) -> bool {
    enabled(s.engine, step) && (step matches Step::Commit { tokens } ==> drew(s, tokens))
}

pub open spec fn system_init<D: Sampler>(s: System<D>) -> bool {
    &&& init(s.engine) && s.engine.shape.windows == D::windows()
    &&& s.ran == Seq::<Outcome<D>>::empty() && s.log == Map::<int, Record<D>>::empty()
}

pub open spec fn system_next<D: Kernels + Sampler>(s: System<D>, s2: System<D>) -> bool {
    ||| exists|step: Step, initial: D::State, w: D::Weights|
        can_move(s, step) && s2 == #[trigger] moved(s, step, initial, w)
    ||| exists|x: Execution<D>| executes(s, x, s2)
}

/// A faithful execution: it starts with a new engine (and anything in its KV memory), and every move is the
/// engine's or a faithful runner's.
pub open spec fn runner_faithful<D: Kernels + Sampler>(x: Seq<System<D>>) -> bool {
    &&& x.len() > 0 && system_init(x[0])
    &&& forall|i: int| 0 <= i < x.len() - 1 ==> system_next(#[trigger] x[i], x[i + 1])
}

} // verus!
