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

pub open spec fn unseated(known: Seq<Token>, need_from: nat, logits_from: nat) -> Sequence {
    Sequence {
        request: toy_request(logits_from),
        known,
        computed: 0,
        need_from,
        seat: None,
        tables: seq![Seq::<int>::empty()],
        freed: seq![0nat],
        alive: true,
    }
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

pub open spec fn dead(s: Sequence) -> Sequence {
    Sequence { alive: false, ..s }
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

pub open spec fn none() -> Map<(int, int), Prefix> {
    Map::empty()
}

pub open spec fn cached_block() -> Map<(int, int), Prefix> {
    map![(0int, 0int) => Prefix { salt: 5, tokens: seq![7, 8] }]
}

pub open spec fn prompt_plan() -> Plan {
    Plan {
        order: seq![0int],
        chunks: map![0int => chunk(0, seq![Some(7int), Some(8int), Some(
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
        chunks: map![
            0int => chunk(2, seq![Some(9int), Some(t)], 3, 1, seq![0int, 1]),
            1int => chunk(2, seq![Some(9int)], 2, 0, seq![0int, 2])
        ],
    }
}

pub open spec fn first_table(blocks: Seq<int>) -> Sequence {
    seated(seq![7, 8, 9], 0, 0, 0, 0, blocks)
}

pub open spec fn drawn(t: Token) -> Seq<Token> {
    seq![7, 8, 9, t]
}

pub open spec fn resumed(t: Token, table: Seq<int>) -> Sequence {
    seated(drawn(t), 2, 3, 0, 1, table)
}

pub open spec fn forked(table: Seq<int>) -> Sequence {
    seated(seq![7, 8, 9], 2, 2, 2, 0, table)
}

pub open spec fn ended(t: Token, u: Token) -> Sequence {
    dead(seated(drawn(t).push(u), 4, 4, 0, 1, seq![0, 1]))
}

/// A table of two blocks covers four positions.
proof fn lemma_covers(e: Engine, table: Seq<int>)
    requires
        e.shape == toy_shape(),
        table.len() == 2,
    ensures
        table.len() * e.shape.block_size == 4,
{
    assert(table.len() * e.shape.block_size == 4) by (nonlinear_arith)
        requires
            table.len() == 2,
            e.shape.block_size == 2,
    ;
}

proof fn step_add(e: Engine, id: int)
    requires
        shows(e, id, Map::empty(), Seq::empty(), none()),
    ensures
        enabled(e, Step::Add { request: toy_request(0) }),
        shows(
            after(e, Step::Add { request: toy_request(0) }),
            id + 1,
            map![id => unseated(seq![7, 8, 9], 0, 0)],
            Seq::empty(),
            none(),
        ),
{
    let e2 = after(e, Step::Add { request: toy_request(0) });
    assert(e2.seqs[id].tables =~= seq![Seq::<int>::empty()]);
    assert(e2.seqs[id].freed =~= seq![0nat]);
    assert(e2.seqs =~= map![id => unseated(seq![7, 8, 9], 0, 0)]);
}

proof fn step_admit(e: Engine)
    requires
        shows(e, 1, map![0int => unseated(seq![7, 8, 9], 0, 0)], Seq::empty(), none()),
    ensures
        enabled(e, Step::Admit { id: 0, seat: 0, blocks: seq![Seq::<int>::empty()] }),
        shows(
            after(e, Step::Admit { id: 0, seat: 0, blocks: seq![Seq::<int>::empty()] }),
            1,
            map![0int => first_table(Seq::empty())],
            Seq::empty(),
            none(),
        ),
{
    let e2 = after(e, Step::Admit { id: 0, seat: 0, blocks: seq![Seq::<int>::empty()] });
    assert(e2.seqs[0].freed =~= seq![0nat]);
    assert(e2.seqs =~= map![0int => first_table(Seq::empty())]);
}

proof fn step_grow(e: Engine, b: int)
    requires
        b == 0 || b == 1,
        shows(
            e,
            1,
            map![0int => first_table(if b == 0 { Seq::empty() } else { seq![0int] })],
            Seq::empty(),
            none(),
        ),
    ensures
        enabled(e, Step::Grow { id: 0, group: 0, block: b }),
        shows(
            after(e, Step::Grow { id: 0, group: 0, block: b }),
            1,
            map![0int => first_table(if b == 0 { seq![0int] } else { seq![0int, 1] })],
            Seq::empty(),
            none(),
        ),
{
    let e2 = after(e, Step::Grow { id: 0, group: 0, block: b });
    let table = if b == 0 {
        seq![0int]
    } else {
        seq![0int, 1]
    };
    assert(e2.seqs[0].tables[0] =~= table);
    assert(e2.seqs[0].tables =~= seq![table]);
    assert(e2.seqs =~= map![0int => first_table(table)]);
}

proof fn step_schedule(e: Engine)
    requires
        shows(e, 1, map![0int => first_table(seq![0int, 1])], Seq::empty(), none()),
    ensures
        enabled(e, Step::Schedule { plan: prompt_plan() }),
        shows(
            after(e, Step::Schedule { plan: prompt_plan() }),
            1,
            map![0int => first_table(seq![0int, 1])],
            seq![prompt_plan()],
            none(),
        ),
{
    let plan = prompt_plan();
    let c = plan.chunks[0];
    assert(plan.order[0] == 0);
    assert(e.seqs[0].tables == c.tables);
    assert forall|j: int| 0 <= j < 3 implies token_fits(
        #[trigger] c.tokens[j],
        c,
        j,
        3,
        e.seqs[0].known,
    ) by {}
    lemma_covers(e, e.seqs[0].tables[0]);
    assert(can_plan(e, 0, c));
    assert(after(e, Step::Schedule { plan }).plans =~= seq![plan]);
}

proof fn step_schedule_ahead(e: Engine)
    requires
        shows(e, 1, map![0int => first_table(seq![0int, 1])], seq![prompt_plan()], none()),
    ensures
        enabled(e, Step::Schedule { plan: placeholder_plan() }),
        shows(
            after(e, Step::Schedule { plan: placeholder_plan() }),
            1,
            map![0int => first_table(seq![0int, 1])],
            seq![prompt_plan(), placeholder_plan()],
            none(),
        ),
{
    let plan = placeholder_plan();
    let c = plan.chunks[0];
    assert(plan.order[0] == 0);
    assert(e.plans.drop_last() =~= Seq::empty());
    assert(draws(e.plans.drop_last(), 0) == 0);
    assert(draws(e.plans, 0) == 1);
    assert(frontier(e.plans, 0, 0) == 3);
    lemma_covers(e, e.seqs[0].tables[0]);
    assert(can_plan(e, 0, c));
    assert(after(e, Step::Schedule { plan }).plans =~= seq![prompt_plan(), plan]);
}

proof fn step_cancel(e: Engine)
    requires
        shows(
            e,
            1,
            map![0int => first_table(seq![0int, 1])],
            seq![prompt_plan(), placeholder_plan()],
            none(),
        ),
    ensures
        enabled(e, Step::Cancel),
        shows(
            after(e, Step::Cancel),
            1,
            map![0int => first_table(seq![0int, 1])],
            seq![prompt_plan()],
            none(),
        ),
{
    assert(after(e, Step::Cancel).plans =~= seq![prompt_plan()]);
}

proof fn step_commit(e: Engine, tokens: Map<int, Token>)
    requires
        shows(e, 1, map![0int => first_table(seq![0int, 1])], seq![prompt_plan()], none()),
        tokens.dom().contains(0),
    ensures
        enabled(e, Step::Commit { tokens }),
        shows(
            after(e, Step::Commit { tokens }),
            1,
            map![0int => seated(drawn(tokens[0]), 3, 3, 0, 0, seq![0, 1])],
            Seq::empty(),
            none(),
        ),
{
    let e2 = after(e, Step::Commit { tokens });
    assert(e2.seqs[0].known =~= drawn(tokens[0]));
    assert(e2.seqs =~= map![0int => seated(drawn(tokens[0]), 3, 3, 0, 0, seq![0, 1])]);
    assert(e2.plans =~= Seq::empty());
}

proof fn step_register(e: Engine, t: Token)
    requires
        shows(
            e,
            1,
            map![0int => seated(drawn(t), 3, 3, 0, 0, seq![0, 1])],
            Seq::empty(),
            none(),
        ),
    ensures
        enabled(e, Step::Register { id: 0, group: 0, index: 0 }),
        shows(
            after(e, Step::Register { id: 0, group: 0, index: 0 }),
            1,
            map![0int => seated(drawn(t), 3, 3, 0, 0, seq![0, 1])],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Register { id: 0, group: 0, index: 0 });
    assert(drawn(t).take(2) =~= seq![7, 8]);
    assert(e2.registered =~= cached_block());
}

proof fn step_preempt(e: Engine, t: Token)
    requires
        shows(
            e,
            1,
            map![0int => seated(drawn(t), 3, 3, 0, 0, seq![0, 1])],
            Seq::empty(),
            cached_block(),
        ),
    ensures
        enabled(e, Step::Preempt { id: 0 }),
        shows(
            after(e, Step::Preempt { id: 0 }),
            1,
            map![0int => unseated(drawn(t), 3, 0)],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Preempt { id: 0 });
    assert(e2.seqs[0].tables =~= seq![Seq::<int>::empty()]);
    assert(e2.seqs[0].freed =~= seq![0nat]);
    assert(e2.seqs =~= map![0int => unseated(drawn(t), 3, 0)]);
}

proof fn step_resume(e: Engine, t: Token)
    requires
        shows(e, 1, map![0int => unseated(drawn(t), 3, 0)], Seq::empty(), cached_block()),
    ensures
        enabled(e, Step::Admit { id: 0, seat: 1, blocks: seq![seq![0int]] }),
        shows(
            after(e, Step::Admit { id: 0, seat: 1, blocks: seq![seq![0int]] }),
            1,
            map![0int => resumed(t, seq![0])],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Admit { id: 0, seat: 1, blocks: seq![seq![0int]] });
    assert(drawn(t).take(2) =~= seq![7, 8]);
    assert(block_prefix(e, 0, 0).tokens == drawn(t).take(2));
    assert(is_hit(e, 0, 0, 0, 0));
    assert(e2.seqs[0].freed =~= seq![0nat]);
    assert(e2.seqs =~= map![0int => resumed(t, seq![0])]);
}

proof fn step_fork(e: Engine, t: Token)
    requires
        shows(e, 1, map![0int => resumed(t, seq![0])], Seq::empty(), cached_block()),
    ensures
        enabled(e, Step::Fork { parent: 0, logits_from: 2 }),
        shows(
            after(e, Step::Fork { parent: 0, logits_from: 2 }),
            2,
            map![0int => resumed(t, seq![0]), 1int => unseated(seq![7, 8, 9], 2, 2)],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Fork { parent: 0, logits_from: 2 });
    assert(e2.seqs[1].tables =~= seq![Seq::<int>::empty()]);
    assert(e2.seqs[1].freed =~= seq![0nat]);
    assert(e2.seqs =~= map![0int => resumed(t, seq![0]), 1int => unseated(seq![7, 8, 9], 2, 2)]);
}

proof fn step_share(e: Engine, t: Token)
    requires
        shows(
            e,
            2,
            map![0int => resumed(t, seq![0]), 1int => unseated(seq![7, 8, 9], 2, 2)],
            Seq::empty(),
            cached_block(),
        ),
    ensures
        enabled(e, Step::Share { id: 1, seat: 0, from: 0, count: 1 }),
        shows(
            after(e, Step::Share { id: 1, seat: 0, from: 0, count: 1 }),
            2,
            map![0int => resumed(t, seq![0]), 1int => forked(seq![0])],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Share { id: 1, seat: 0, from: 0, count: 1 });
    assert(drawn(t).take(2) =~= seq![7int, 8, 9].take(2));
    assert(e2.seqs[1].tables[0] =~= seq![0int]);
    assert(e2.seqs[1].tables =~= seq![seq![0int]]);
    assert(e2.seqs[1].freed =~= seq![0nat]);
    assert(e2.seqs =~= map![0int => resumed(t, seq![0]), 1int => forked(seq![0])]);
}

proof fn step_grow_parent(e: Engine, t: Token)
    requires
        shows(
            e,
            2,
            map![0int => resumed(t, seq![0]), 1int => forked(seq![0])],
            Seq::empty(),
            cached_block(),
        ),
    ensures
        enabled(e, Step::Grow { id: 0, group: 0, block: 1 }),
        shows(
            after(e, Step::Grow { id: 0, group: 0, block: 1 }),
            2,
            map![0int => resumed(t, seq![0, 1]), 1int => forked(seq![0])],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Grow { id: 0, group: 0, block: 1 });
    assert(e2.seqs[0].tables[0] =~= seq![0int, 1]);
    assert(e2.seqs[0].tables =~= seq![seq![0int, 1]]);
    assert(e2.seqs =~= map![0int => resumed(t, seq![0, 1]), 1int => forked(seq![0])]);
}

proof fn step_grow_child(e: Engine, t: Token)
    requires
        shows(
            e,
            2,
            map![0int => resumed(t, seq![0, 1]), 1int => forked(seq![0])],
            Seq::empty(),
            cached_block(),
        ),
    ensures
        enabled(e, Step::Grow { id: 1, group: 0, block: 2 }),
        shows(
            after(e, Step::Grow { id: 1, group: 0, block: 2 }),
            2,
            map![0int => resumed(t, seq![0, 1]), 1int => forked(seq![0, 2])],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Grow { id: 1, group: 0, block: 2 });
    assert(e2.seqs[1].tables[0] =~= seq![0int, 2]);
    assert(e2.seqs[1].tables =~= seq![seq![0int, 2]]);
    assert(e2.seqs =~= map![0int => resumed(t, seq![0, 1]), 1int => forked(seq![0, 2])]);
}

proof fn step_schedule_mixed(e: Engine, t: Token)
    requires
        shows(
            e,
            2,
            map![0int => resumed(t, seq![0, 1]), 1int => forked(seq![0, 2])],
            Seq::empty(),
            cached_block(),
        ),
    ensures
        enabled(e, Step::Schedule { plan: mixed_plan(t) }),
        shows(
            after(e, Step::Schedule { plan: mixed_plan(t) }),
            2,
            map![0int => resumed(t, seq![0, 1]), 1int => forked(seq![0, 2])],
            seq![mixed_plan(t)],
            cached_block(),
        ),
{
    let plan = mixed_plan(t);
    assert(plan.order[0] == 1 && plan.order[1] == 0);
    lemma_covers(e, e.seqs[0].tables[0]);
    lemma_covers(e, e.seqs[1].tables[0]);
    assert(can_plan(e, 0, plan.chunks[0]));
    assert(can_plan(e, 1, plan.chunks[1]));
    assert(after(e, Step::Schedule { plan }).plans =~= seq![plan]);
}

proof fn step_abort(e: Engine, t: Token)
    requires
        shows(
            e,
            2,
            map![0int => resumed(t, seq![0, 1]), 1int => forked(seq![0, 2])],
            seq![mixed_plan(t)],
            cached_block(),
        ),
    ensures
        enabled(e, Step::Abort { id: 1 }),
        shows(
            after(e, Step::Abort { id: 1 }),
            2,
            map![0int => resumed(t, seq![0, 1]), 1int => dead(forked(seq![0, 2]))],
            seq![mixed_plan(t)],
            cached_block(),
        ),
{
    let e2 = after(e, Step::Abort { id: 1 });
    assert(e2.seqs =~= map![0int => resumed(t, seq![0, 1]), 1int => dead(forked(seq![0, 2]))]);
}

proof fn step_commit_last(e: Engine, t: Token, tokens: Map<int, Token>)
    requires
        shows(
            e,
            2,
            map![0int => resumed(t, seq![0, 1]), 1int => dead(forked(seq![0, 2]))],
            seq![mixed_plan(t)],
            cached_block(),
        ),
        tokens.dom().contains(0),
        tokens.dom().contains(1),
    ensures
        enabled(e, Step::Commit { tokens }),
        shows(
            after(e, Step::Commit { tokens }),
            2,
            map![0int => ended(t, tokens[0]), 1int => dead(forked(seq![0, 2]))],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Commit { tokens });
    assert(e2.seqs =~= map![0int => ended(t, tokens[0]), 1int => dead(forked(seq![0, 2]))]);
    assert(e2.plans =~= Seq::empty());
}

proof fn step_slide(e: Engine, t: Token, u: Token)
    requires
        shows(
            e,
            2,
            map![0int => ended(t, u), 1int => dead(forked(seq![0, 2]))],
            Seq::empty(),
            cached_block(),
        ),
    ensures
        enabled(e, Step::Slide { id: 0, group: 0 }),
        shows(
            after(e, Step::Slide { id: 0, group: 0 }),
            2,
            map![0int => slid(ended(t, u), 0), 1int => dead(forked(seq![0, 2]))],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Slide { id: 0, group: 0 });
    assert(e2.seqs =~= map![0int => slid(ended(t, u), 0), 1int => dead(forked(seq![0, 2]))]);
}

proof fn step_finish(e: Engine, t: Token, u: Token)
    requires
        shows(
            e,
            2,
            map![0int => slid(ended(t, u), 0), 1int => dead(forked(seq![0, 2]))],
            Seq::empty(),
            cached_block(),
        ),
    ensures
        enabled(e, Step::Finish { id: 0 }),
        shows(
            after(e, Step::Finish { id: 0 }),
            2,
            map![1int => dead(forked(seq![0, 2]))],
            Seq::empty(),
            cached_block(),
        ),
{
    let e2 = after(e, Step::Finish { id: 0 });
    assert(e2.seqs =~= map![1int => dead(forked(seq![0, 2]))]);
}

proof fn step_finish_child(e: Engine)
    requires
        shows(
            e,
            2,
            map![1int => dead(forked(seq![0, 2]))],
            Seq::empty(),
            cached_block(),
        ),
    ensures
        enabled(e, Step::Finish { id: 1 }),
        shows(after(e, Step::Finish { id: 1 }), 2, Map::empty(), Seq::empty(), cached_block()),
{
    let e2 = after(e, Step::Finish { id: 1 });
    assert(e2.seqs =~= Map::empty());
}

proof fn step_evict(e: Engine)
    requires
        shows(e, 2, Map::empty(), Seq::empty(), cached_block()),
    ensures
        enabled(e, Step::Evict { group: 0, block: 0 }),
        shows(after(e, Step::Evict { group: 0, block: 0 }), 2, Map::empty(), Seq::empty(), none()),
{
    let e2 = after(e, Step::Evict { group: 0, block: 0 });
    assert(e2.registered =~= none());
}

proof fn step_reset(e: Engine)
    requires
        shows(e, 3, map![2int => unseated(seq![7, 8, 9], 0, 0)], Seq::empty(), none()),
    ensures
        enabled(e, Step::Reset),
        shows(
            after(e, Step::Reset),
            3,
            map![2int => unseated(seq![7, 8, 9], 0, 0)],
            Seq::empty(),
            none(),
        ),
{
}

proof fn step_load(e: Engine)
    requires
        shows(e, 3, map![2int => unseated(seq![7, 8, 9], 0, 0)], Seq::empty(), none()),
    ensures
        enabled(e, Step::Load { restart: true }),
{
}

/// The tokens drawn by the oldest plan.
proof fn lemma_drawn(x: Run)
    requires
        x.len() > 0,
        x.last().ran.len() > 0,
        x.last().engine.plans.len() > 0,
    ensures
        drew(x.last(), drawn_tokens(x.last())),
        drawn_tokens(x.last()).dom() == x.last().engine.plans[0].chunks.dom(),
{
}

/// Prompt and placeholder in flight, both executed.
proof fn part_in_flight() -> (out: (Run, Set<int>))
    ensures
        witnessed(out.0, out.1),
        out.1 =~= set![0int, 2, 4, 5],
        out.0.len() > 0,
        out.0.last().ran.len() == 2,
        shows(
            out.0.last().engine,
            1,
            map![0int => first_table(seq![0int, 1])],
            seq![prompt_plan(), placeholder_plan()],
            none(),
        ),
{
    hide(after);
    hide(enabled);
    let x = start();
    let k = Set::empty();
    step_add(x.last().engine, 0);
    let x = lemma_move(x, Step::Add { request: toy_request(0) }, k);
    let k = k.insert(0);
    step_admit(x.last().engine);
    let x = lemma_move(x, Step::Admit { id: 0, seat: 0, blocks: seq![Seq::<int>::empty()] }, k);
    let k = k.insert(2);
    step_grow(x.last().engine, 0);
    let x = lemma_move(x, Step::Grow { id: 0, group: 0, block: 0 }, k);
    let k = k.insert(4);
    step_grow(x.last().engine, 1);
    let x = lemma_move(x, Step::Grow { id: 0, group: 0, block: 1 }, k);
    let k = k.insert(4);
    step_schedule(x.last().engine);
    let x = lemma_move(x, Step::Schedule { plan: prompt_plan() }, k);
    let k = k.insert(5);
    step_schedule_ahead(x.last().engine);
    let x = lemma_move(x, Step::Schedule { plan: placeholder_plan() }, k);
    let k = k.insert(5);
    let x = lemma_device(x, k);
    let x = lemma_device(x, k);
    (x, k)
}

/// A toy system at rest.
proof fn start() -> (x: Run)
    ensures
        witnessed(x, Set::empty()),
        x.len() == 1,
        x.last().ran.len() == 0,
        shows(x.last().engine, 0, Map::empty(), Seq::empty(), none()),
{
    let e = Engine {
        shape: toy_shape(),
        max_seqs: 2,
        next_id: 0,
        seqs: Map::empty(),
        plans: Seq::empty(),
        registered: none(),
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
    let x = seq![s];
    assert(witnessed(x, Set::empty())) by {
        reveal(witnessed);
    }
    x
}

/// The second plan is cancelled; one output; preempted, and resumed with a prefix hit.
proof fn part_resume() -> (out: (Run, Set<int>, Token))
    ensures
        witnessed(out.0, out.1),
        out.1 =~= set![0int, 2, 4, 5, 6, 7, 8, 10],
        out.0.len() > 0,
        out.0.last().ran.len() == 0,
        shows(
            out.0.last().engine,
            1,
            map![0int => resumed(out.2, seq![0])],
            Seq::empty(),
            cached_block(),
        ),
{
    hide(after);
    hide(enabled);
    let (x, k) = part_in_flight();
    step_cancel(x.last().engine);
    let x = lemma_move(x, Step::Cancel, k);
    let k = k.insert(7);
    let tokens = drawn_tokens(x.last());
    lemma_drawn(x);
    step_commit(x.last().engine, tokens);
    let x = lemma_move(x, Step::Commit { tokens }, k);
    let k = k.insert(6);
    let t = tokens[0];
    step_register(x.last().engine, t);
    let x = lemma_move(x, Step::Register { id: 0, group: 0, index: 0 }, k);
    let k = k.insert(8);
    step_preempt(x.last().engine, t);
    let x = lemma_move(x, Step::Preempt { id: 0 }, k);
    let k = k.insert(10);
    step_resume(x.last().engine, t);
    let x = lemma_move(x, Step::Admit { id: 0, seat: 1, blocks: seq![seq![0int]] }, k);
    let k = k.insert(2);
    (x, k, t)
}

/// Forked, and both in a mixed plan.
proof fn part_mixed() -> (out: (Run, Set<int>, Token))
    ensures
        witnessed(out.0, out.1),
        out.1 =~= set![0int, 1, 2, 3, 4, 5, 6, 7, 8, 10],
        out.0.len() > 0,
        out.0.last().ran.len() == 1,
        shows(
            out.0.last().engine,
            2,
            map![0int => resumed(out.2, seq![0, 1]), 1int => forked(seq![0, 2])],
            seq![mixed_plan(out.2)],
            cached_block(),
        ),
{
    hide(after);
    hide(enabled);
    let (x, k, t) = part_resume();
    step_fork(x.last().engine, t);
    let x = lemma_move(x, Step::Fork { parent: 0, logits_from: 2 }, k);
    let k = k.insert(1);
    step_share(x.last().engine, t);
    let x = lemma_move(x, Step::Share { id: 1, seat: 0, from: 0, count: 1 }, k);
    let k = k.insert(3);
    step_grow_parent(x.last().engine, t);
    let x = lemma_move(x, Step::Grow { id: 0, group: 0, block: 1 }, k);
    let k = k.insert(4);
    step_grow_child(x.last().engine, t);
    let x = lemma_move(x, Step::Grow { id: 1, group: 0, block: 2 }, k);
    let k = k.insert(4);
    step_schedule_mixed(x.last().engine, t);
    let x = lemma_move(x, Step::Schedule { plan: mixed_plan(t) }, k);
    let k = k.insert(5);
    let x = lemma_device(x, k);
    (x, k, t)
}

/// The fork aborted in flight, the first finished; nothing is left but a cached block.
proof fn part_finished() -> (out: (Run, Set<int>))
    ensures
        witnessed(out.0, out.1),
        out.1 =~= set![0int, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 15],
        out.0.len() > 0,
        out.0.last().ran.len() == 0,
        shows(out.0.last().engine, 2, Map::empty(), Seq::empty(), cached_block()),
{
    hide(after);
    hide(enabled);
    let (x, k, t) = part_mixed();
    step_abort(x.last().engine, t);
    let x = lemma_move(x, Step::Abort { id: 1 }, k);
    let k = k.insert(11);
    let tokens = drawn_tokens(x.last());
    lemma_drawn(x);
    step_commit_last(x.last().engine, t, tokens);
    let x = lemma_move(x, Step::Commit { tokens }, k);
    let k = k.insert(6);
    step_slide(x.last().engine, t, tokens[0]);
    let x = lemma_move(x, Step::Slide { id: 0, group: 0 }, k);
    let k = k.insert(15);
    step_finish(x.last().engine, t, tokens[0]);
    let x = lemma_move(x, Step::Finish { id: 0 }, k);
    let k = k.insert(12);
    step_finish_child(x.last().engine);
    let x = lemma_move(x, Step::Finish { id: 1 }, k);
    let k = k.insert(12);
    (x, k)
}

/// All kinds of steps, by one faithful execution.
pub proof fn theorem_witness() -> (x: Run)
    ensures
        witnessed(x, Set::range(0, 16)),
{
    hide(after);
    hide(enabled);
    let (x, k) = part_finished();
    step_evict(x.last().engine);
    let x = lemma_move(x, Step::Evict { group: 0, block: 0 }, k);
    let k = k.insert(9);
    step_add(x.last().engine, 2);
    let x = lemma_move(x, Step::Add { request: toy_request(0) }, k);
    let k = k.insert(0);
    step_reset(x.last().engine);
    let x = lemma_move(x, Step::Reset, k);
    let k = k.insert(13);
    step_load(x.last().engine);
    let x = lemma_move(x, Step::Load { restart: true }, k);
    let k = k.insert(14);
    lemma_all_kinds(k);
    x
}

proof fn lemma_all_kinds(k: Set<int>)
    requires
        forall|i: int| 0 <= i < 16 <==> #[trigger] k.contains(i),
    ensures
        k == Set::range(0int, 16),
{
    vstd::set_lib::lemma_int_range(0, 16);
    assert(k =~= Set::range(0int, 16));
}

} // verus!
