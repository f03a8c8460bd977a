//! A witness: one faithful execution of the toy system that takes every kind of step. So the
//! theorems' hypotheses can be met, and none of the machine's steps is empty.
//!
//! Block size 2, four blocks, two seats. Request 0 (prompt 7 8 9, two outputs) is run with two
//! plans in flight, the second with a placeholder and cancelled after it was executed; it is
//! preempted with one output, resumes with a prefix hit, is forked, ends in a mixed plan with its
//! fork, gives the block back that its window has left, and finishes; the fork is aborted with rows
//! in flight; then the cache is evicted, reset, and other weights are loaded.
use crate::model::*;
use crate::proofs::toy::*;
use crate::proofs::toy_runs::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

pub open spec fn toy_shape() -> Shape {
    Shape { block_size: 2, num_blocks: seq![4nat], windows: seq![2nat] }
}

/// What of an engine's state its steps depend on.
pub open spec fn shows(
    e: Engine,
    next_id: int,
    seqs: Map<int, Sequence>,
    plans: Seq<Plan>,
    registered: Map<(int, int), Prefix>,
) -> bool {
    &&& e.shape == toy_shape()
    &&& e.max_seqs == 2
    &&& e.next_id == next_id
    &&& e.seqs == seqs
    &&& e.plans == plans
    &&& e.registered == registered
}

pub open spec fn toy_request(logits_from: nat) -> Request {
    Request { prompt: seq![7, 8, 9], salt: 5, logits_from, max_tokens: 2, stop: Set::empty() }
}

pub open spec fn seated(
    known: Seq<Token>,
    computed: nat,
    need_from: nat,
    logits_from: nat,
    seat: int,
    table: Seq<int>,
) -> Sequence {
    Sequence {
        request: toy_request(logits_from),
        known,
        computed,
        need_from,
        seat: Some(seat),
        tables: seq![table],
        freed: seq![0nat],
        alive: true,
    }
}

pub open spec fn chunk(
    first: nat,
    tokens: Seq<Option<Token>>,
    logits_from: nat,
    seat: int,
    table: Seq<int>,
) -> PlannedChunk {
    PlannedChunk { first, tokens, logits_from, sample: true, seat, tables: seq![table] }
}

pub open spec fn cached_block() -> Map<(int, int), Prefix> {
    map![(0int, 0int) => Prefix { salt: 5, tokens: seq![7, 8] }]
}

pub open spec fn prompt_plan() -> Plan {
    Plan {
        order: seq![0int],
        chunks:
            map![0int => chunk(0, seq![Some(7int), Some(8int), Some(
            9int)], 0, 0, seq![0int, 1])],
    }
}

pub open spec fn placeholder_plan() -> Plan {
    Plan {
        order: seq![0int],
        chunks: map![0int => chunk(3, seq![None::<Token>], 0, 0, seq![0int, 1])],
    }
}

pub open spec fn mixed_plan(t: Token) -> Plan {
    Plan {
        order: seq![1int, 0],
        chunks:
            map![
            0int => chunk(2, seq![Some(9int), Some(t)], 3, 1, seq![0int, 1]),
            1int => chunk(2, seq![Some(9int)], 2, 0, seq![0int, 2])
        ],
    }
}

pub open spec fn drawn(t: Token) -> Seq<Token> {
    seq![7, 8, 9, t]
}

/// A table of two blocks covers four positions.
proof fn lemma_covers(e: Engine, table: Seq<int>)
    requires
        e.shape == toy_shape(),
        table.len() == 2,
    ensures
        table.len() * e.shape.block_size == 4,
{
}

/// A toy system at rest.
proof fn start() -> (w: Walk)
    ensures
        w.ok(),
        w.kinds == Set::<int>::empty(),
        w.ran() == 0,
        init(w.engine()),
        w.engine().shape == toy_shape(),
        w.engine().max_seqs == 2,
{
    let e = Engine {
        shape: toy_shape(),
        max_seqs: 2,
        next_id: 0,
        seqs: Map::empty(),
        plans: Seq::empty(),
        registered: Map::empty(),
        content: IMap::empty(),
        evicted: false,
    };
    let s = System::<Toy> {
        engine: e,
        weights: 0,
        memory: |slot: Slot| Seq::empty(),
        ran: Seq::empty(),
        log: Map::empty(),
    };
    let w = Walk { run: seq![s], kinds: Set::empty() };
    reveal(witnessed);
    w
}

/// Prompt and placeholder in flight, both executed.
proof fn part_in_flight() -> (w: Walk)
    ensures
        w.ok(),
        w.kinds =~= set![0int, 2, 4, 5],
        w.ran() == 2,
        shows(
            w.engine(),
            1,
            map![0int => seated(seq![7, 8, 9], 0, 0, 0, 0, seq![0int, 1])],
            seq![prompt_plan(), placeholder_plan()],
            Map::empty(),
        ),
{
    let w = start();
    let w = lemma_move(w, Step::Add { request: toy_request(0) });
    let w = lemma_move(w, Step::Admit { id: 0, seat: 0, blocks: seq![Seq::<int>::empty()] });
    let w = lemma_move(w, Step::Grow { id: 0, group: 0, block: 0 });
    let w = lemma_move(w, Step::Grow { id: 0, group: 0, block: 1 });
    let e = w.engine();
    assert(e.seqs[0].tables[0] =~= seq![0int, 1]);
    assert(e.seqs[0].tables =~= seq![seq![0int, 1]]);
    assert(e.seqs[0].freed =~= seq![0nat]);
    lemma_covers(e, e.seqs[0].tables[0]);
    let p = prompt_plan();
    assert(p.order[0] == 0);
    assert(can_plan(e, 0, p.chunks[0]));
    let w = lemma_move(w, Step::Schedule { plan: prompt_plan() });
    let e = w.engine();
    let p = placeholder_plan();
    assert(e.plans.drop_last() =~= Seq::empty());
    assert(p.order[0] == 0);
    assert(draws(e.plans.drop_last(), 0) == 0);
    assert(draws(e.plans, 0) == 1);
    assert(frontier(e.plans, 0, 0) == 3);
    let w = lemma_move(w, Step::Schedule { plan: placeholder_plan() });
    assert(w.engine().seqs =~= map![0int => seated(seq![7, 8, 9], 0, 0, 0, 0, seq![0int, 1])]);
    assert(w.engine().plans =~= seq![prompt_plan(), placeholder_plan()]);
    let w = lemma_device(w);
    lemma_device(w)
}

/// The second plan is cancelled; one output; preempted, and resumed with a prefix hit.
proof fn part_resume() -> (out: (Walk, Token))
    ensures
        out.0.ok(),
        out.0.kinds =~= set![0int, 2, 4, 5, 6, 7, 8, 10],
        out.0.ran() == 0,
        shows(
            out.0.engine(),
            1,
            map![0int => seated(drawn(out.1), 2, 3, 0, 1, seq![0int])],
            Seq::empty(),
            cached_block(),
        ),
{
    let w = part_in_flight();
    let w = lemma_move(w, Step::Cancel);
    assert(w.engine().plans =~= seq![prompt_plan()]);
    let (w, tokens) = lemma_commit_drawn(w);
    let t = tokens[0];
    assert(w.engine().plans =~= Seq::empty());
    assert(w.engine().seqs[0].known =~= drawn(t));
    assert(drawn(t).take(2) =~= seq![7, 8]);
    let w = lemma_move(w, Step::Register { id: 0, group: 0, index: 0 });
    assert(w.engine().registered =~= cached_block());
    let w = lemma_move(w, Step::Preempt { id: 0 });
    let w = lemma_move(w, Step::Admit { id: 0, seat: 1, blocks: seq![seq![0int]] });
    assert(w.engine().seqs[0].freed =~= seq![0nat]);
    assert(w.engine().seqs =~= map![0int => seated(drawn(t), 2, 3, 0, 1, seq![0])]);
    (w, t)
}

/// Forked, and both in a mixed plan, executed.
proof fn part_mixed() -> (out: (Walk, Token))
    ensures
        out.0.ok(),
        out.0.kinds =~= set![0int, 1, 2, 3, 4, 5, 6, 7, 8, 10],
        out.0.ran() == 1,
        shows(
            out.0.engine(),
            2,
            map![
                0int => seated(drawn(out.1), 2, 3, 0, 1, seq![0, 1]),
                1int => seated(seq![7, 8, 9], 2, 2, 2, 0, seq![0, 2])
            ],
            seq![mixed_plan(out.1)],
            cached_block(),
        ),
{
    let (w, t) = part_resume();
    let w = lemma_move(w, Step::Fork { parent: 0, logits_from: 2 });
    assert(drawn(t).take(2) =~= seq![7int, 8, 9].take(2));
    let w = lemma_move(w, Step::Share { id: 1, seat: 0, from: 0, count: 1 });
    let w = lemma_move(w, Step::Grow { id: 0, group: 0, block: 1 });
    let w = lemma_move(w, Step::Grow { id: 1, group: 0, block: 2 });
    let e = w.engine();
    assert(e.seqs[0].tables[0] =~= seq![0int, 1]);
    assert(e.seqs[0].tables =~= seq![seq![0int, 1]]);
    assert(e.seqs[1].tables[0] =~= seq![0int, 2]);
    assert(e.seqs[1].tables =~= seq![seq![0int, 2]]);
    assert(e.seqs[1].freed =~= seq![0nat]);
    let plan = mixed_plan(t);
    assert(plan.order[0] == 1 && plan.order[1] == 0);
    lemma_covers(e, e.seqs[0].tables[0]);
    lemma_covers(e, e.seqs[1].tables[0]);
    assert(can_plan(e, 0, plan.chunks[0]));
    let w = lemma_move(w, Step::Schedule { plan });
    assert(e.seqs
        =~= map![
        0int => seated(drawn(t), 2, 3, 0, 1, seq![0, 1]),
        1int => seated(seq![7, 8, 9], 2, 2, 2, 0, seq![0, 2])
    ]);
    let w = lemma_device(w);
    (w, t)
}

/// The fork is aborted in flight, the first ends; nothing is left but a cached block, then not even
/// that.
proof fn part_finished() -> (w: Walk)
    ensures
        w.ok(),
        w.kinds =~= set![0int, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15],
        shows(w.engine(), 2, Map::empty(), Seq::empty(), Map::empty()),
{
    let (w, _) = part_mixed();
    let w = lemma_move(w, Step::Abort { id: 1 });
    let (w, _) = lemma_commit_drawn(w);
    assert(w.engine().plans =~= Seq::empty());
    let e = w.engine();
    assert(e.has(0) && e.seqs[0].freed[0] == 0);
    assert(e.shape.block_size == 2);
    assert(e.seqs[0].computed == 4);
    let w = lemma_move(w, Step::Slide { id: 0, group: 0 });
    let w = lemma_move(w, Step::Finish { id: 0 });
    let w = lemma_move(w, Step::Finish { id: 1 });
    assert(w.engine().seqs =~= Map::empty());
    let w = lemma_move(w, Step::Evict { group: 0, block: 0 });
    assert(w.engine().registered =~= Map::empty());
    w
}

/// All kinds of steps, by one faithful execution.
pub proof fn theorem_witness() -> (x: Run)
    ensures
        witnessed(x, Set::range(0, 16)),
{
    let w = part_finished();
    let w = lemma_move(w, Step::Add { request: toy_request(0) });
    let w = lemma_move(w, Step::Reset);
    let w = lemma_move(w, Step::Load { restart: true });
    assert(w.kinds =~= Set::range(0int, 16));
    w.run
}

} // verus!
