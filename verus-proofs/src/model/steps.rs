//! The engine's steps: when each is allowed (`enabled`), and the state after it (`after`).
//! Every public function of vosti-engine ensures a sequence of these; which ones it picks is its
//! own policy, and the theorems hold for all.
use crate::model::plans::*;
use crate::model::state::*;
use crate::trusted::deployment::*;
use vstd::prelude::*;

verus! {

pub enum Step {
    /// A new request; its id is `next_id`. (One that can never fit is refused: no step.)
    Add { request: Request },
    /// Another sample of the prompt of `parent`; its blocks are shared by `Share`.
    Fork { parent: int, logits_from: nat },
    /// A waiting sequence gets a seat, and the cached blocks of a prefix hit (by group; maybe
    /// none). One that was preempted resumes so.
    Admit { id: int, seat: int, blocks: Seq<Seq<int>> },
    /// A waiting sequence gets a seat, and the first `count` blocks of `from`.
    Share { id: int, seat: int, from: int, count: nat },
    /// One more block, free, at the end of a block table.
    Grow { id: int, group: int, block: int },
    /// The first block that a table still has, which no later row sees, is given back.
    Slide { id: int, group: int },
    /// A plan goes out. The slots it is to write are no longer anybody's.
    Schedule { plan: Plan },
    /// The oldest plan is done, and drew these tokens. Sequences may finish by that.
    Commit { tokens: Map<int, Token> },
    /// The newest plan is given up, run or not.
    Cancel,
    /// A full, committed block becomes visible to other requests of the same salt.
    Register { id: int, group: int, index: int },
    /// A cached block that nobody holds leaves the cache.
    Evict { group: int, block: int },
    /// A sequence with nothing in flight gives up its blocks, to be recomputed; its tokens stay.
    Preempt { id: int },
    /// The user gives a sequence up.
    Abort { id: int },
    /// A dead sequence with nothing in flight leaves the engine, and its blocks are free.
    Finish { id: int },
    /// The cache is emptied; blocks in use stay in use.
    Reset,
    /// Other weights. Open requests start again from their prompts, with outputs discarded.
    Load { restart: bool },
}

/// A request that fits when it has the engine for itself.
pub open spec fn admissible(e: Engine, r: Request) -> bool {
    &&& 0 <= r.logits_from < r.prompt.len()
    &&& r.max_tokens > 0
    &&& forall|g: int|
        0 <= g < e.groups()
            ==> r.prompt.len() + r.max_tokens - 1 <= #[trigger] e.shape.num_blocks[g]
            * e.shape.block_size
}

/// `count` full blocks may be taken over by `s`: the last known token, and every position whose
/// logits are wanted, is computed by `s` itself.
pub open spec fn reusable(e: Engine, s: Sequence, count: nat) -> bool {
    &&& count * e.shape.block_size < s.known.len()
    &&& count * e.shape.block_size <= s.need_from
}

pub open spec fn waiting(e: Engine, id: int, seat: int) -> bool {
    &&& e.has(id) && e.seqs[id].alive && e.seqs[id].seat is None
    &&& 0 <= seat < e.max_seqs && !e.seated(seat)
}

/// The first `i + 1` blocks' tokens of sequence `id`, under its salt.
pub open spec fn block_prefix(e: Engine, id: int, i: int) -> Prefix {
    Prefix {
        salt: e.seqs[id].request.salt,
        tokens: e.seqs[id].known.take((i + 1) * e.shape.block_size),
    }
}

pub open spec fn can_admit(e: Engine, id: int, seat: int, blocks: Seq<Seq<int>>) -> bool {
    &&& waiting(e, id, seat)
    &&& blocks.len() == e.groups()
    &&& forall|g: int|
        0 <= g < e.groups() ==> #[trigger] blocks[g].len() == blocks[0].len() && reusable(
            e,
            e.seqs[id],
            blocks[g].len(),
        )
    &&& forall|g: int, i: int|
        0 <= g < e.groups() && 0 <= i < blocks[g].len()
            ==> is_hit(e, id, g, i, #[trigger] blocks[g][i])
}

/// Block `b` is cached for index `i` of the block table of sequence `id` in group `g`.
pub open spec fn is_hit(e: Engine, id: int, g: int, i: int, b: int) -> bool {
    e.registered.dom().contains((g, b)) && e.registered[(g, b)] == block_prefix(e, id, i)
}

pub open spec fn can_share(e: Engine, id: int, seat: int, from: int, count: nat) -> bool {
    &&& waiting(e, id, seat)
    &&& e.has(from) && from != id
    &&& forall|g: int| 0 <= g < e.groups() && count > 0 ==> #[trigger] e.seqs[from].freed[g] == 0
    &&& e.seqs[from].request.salt == e.seqs[id].request.salt
    &&& reusable(e, e.seqs[id], count)
    &&& count <= e.sealed(from)
    &&& e.seqs[from].known.take((count * e.shape.block_size) as int) == e.seqs[id].known.take(
        (count * e.shape.block_size) as int,
    )
}

pub open spec fn can_grow(e: Engine, id: int, g: int, b: int) -> bool {
    &&& e.has(id) && e.seqs[id].seat is Some
    &&& 0 <= g < e.groups() && 0 <= b < e.shape.num_blocks[g]
    &&& !e.held(g, b)
    &&& !e.registered.dom().contains((g, b))
}

pub open spec fn can_slide(e: Engine, id: int, g: int) -> bool {
    &&& e.has(id) && 0 <= g < e.groups()
    &&& (e.seqs[id].freed[g] + 1) * e.shape.block_size <= e.seen_from(id, g)
}

/// Chunk `c` may be planned for sequence `id` next.
pub open spec fn can_plan(e: Engine, id: int, c: PlannedChunk) -> bool {
    let s = e.seqs[id];
    &&& e.has(id) && s.alive && s.seat == Some(c.seat)
    &&& c.tables == s.tables
    &&& forall|g: int|
        0 <= g < e.groups() ==> c.end() <= #[trigger] s.tables[g].len() * e.shape.block_size
    &&& follows(c, frontier(e.plans, id, s.computed), s.known.len() + draws(e.plans, id), s.known)
    &&& c.logits_from <= s.need_from
}

pub open spec fn can_schedule(e: Engine, plan: Plan) -> bool {
    &&& plan.order.len() > 0
    &&& plan.order.no_duplicates()
    &&& forall|i: int| 0 <= i < plan.order.len()
        ==> plan.chunks.dom().contains(#[trigger] plan.order[i])
    &&& forall|id: int| #[trigger]
        plan.chunks.dom().contains(id)
            ==> plan.order.contains(id) && can_plan(e, id, plan.chunks[id])
}

pub open spec fn can_commit(e: Engine, tokens: Map<int, Token>) -> bool {
    &&& e.plans.len() > 0
    &&& forall|id: int| #[trigger] e.plans[0].samples(id) ==> tokens.dom().contains(id)
}

pub open spec fn can_register(e: Engine, id: int, g: int, i: int) -> bool {
    &&& e.has_block(id, g, i)
    &&& i < e.sealed(id)
    &&& !e.registered.dom().contains((g, e.block(id, g, i)))
}

pub open spec fn can_load(e: Engine, restart: bool) -> bool {
    &&& e.plans.len() == 0
    &&& forall|id: int| #[trigger] e.has(id) ==> restart && e.seqs[id].alive
}

pub open spec fn enabled(e: Engine, step: Step) -> bool {
    match step {
        Step::Add { request } => admissible(e, request),
        Step::Fork { parent, logits_from } => e.has(parent) && logits_from
            < e.seqs[parent].request.prompt.len(),
        Step::Admit { id, seat, blocks } => can_admit(e, id, seat, blocks),
        Step::Share { id, seat, from, count } => can_share(e, id, seat, from, count),
        Step::Grow { id, group, block } => can_grow(e, id, group, block),
        Step::Slide { id, group } => can_slide(e, id, group),
        Step::Schedule { plan } => can_schedule(e, plan),
        Step::Commit { tokens } => can_commit(e, tokens),
        Step::Cancel => e.plans.len() > 0,
        Step::Register { id, group, index } => can_register(e, id, group, index),
        Step::Evict { group, block } => e.registered.dom().contains((group, block)) && !e.held(
            group,
            block,
        ),
        Step::Preempt { id } => e.has(id) && e.seqs[id].alive && !e.in_flight(id),
        Step::Abort { id } => e.has(id),
        Step::Finish { id } => e.has(id) && !e.seqs[id].alive && !e.in_flight(id),
        Step::Reset => true,
        Step::Load { restart } => can_load(e, restart),
    }
}

pub open spec fn added(e: Engine, request: Request) -> Engine {
    Engine {
        next_id: e.next_id + 1,
        ..e.put(e.next_id, Sequence::fresh(request, e.groups()))
    }
}

/// Sequence `id` in `seat` with `tables`, which hold the KV of `count` blocks.
pub open spec fn admitted(
    e: Engine, id: int, seat: int, tables: Seq<Seq<int>>, count: nat) -> Engine {
    let computed = count * e.shape.block_size;
    let freed = Seq::new(tables.len(), |g: int| 0);
    e.put(id, Sequence { seat: Some(seat), tables, freed, computed, ..e.seqs[id] })
}

pub open spec fn first_blocks(tables: Seq<Seq<int>>, count: nat) -> Seq<Seq<int>> {
    Seq::new(tables.len(), |g: int| tables[g].take(count as int))
}

pub open spec fn grown(s: Sequence, g: int, b: int) -> Sequence {
    Sequence { tables: s.tables.update(g, s.tables[g].push(b)), ..s }
}

pub open spec fn slid(s: Sequence, g: int) -> Sequence {
    Sequence { freed: s.freed.update(g, s.freed[g] + 1), ..s }
}

/// The plan has a row that writes slot `s`: position `p` of sequence `id`.
pub open spec fn writes(e: Engine, plan: Plan, s: Slot, id: int, p: int) -> bool {
    &&& plan.chunks.dom().contains(id)
    &&& plan.chunks[id].first <= p < plan.chunks[id].end()
    &&& 0 <= s.group < e.groups()
    &&& s == e.slot(id, s.group, p)
}

pub open spec fn written(e: Engine, plan: Plan, s: Slot) -> bool {
    exists|id: int, p: int| writes(e, plan, s, id, p)
}

/// Written by a row of a sequence that is still alive.
pub open spec fn committed(e: Engine, plan: Plan, s: Slot) -> bool {
    exists|id: int, p: int| #[trigger] writes(e, plan, s, id, p) && e.seqs[id].alive
}

pub open spec fn scheduled(e: Engine, plan: Plan) -> Engine {
    Engine {
        plans: e.plans.push(plan),
        content: IMap::new(
            |s: Slot| e.content.dom().contains(s) && !written(e, plan, s),
            |s: Slot| e.content[s],
        ),
        ..e
    }
}

/// What a sequence is after chunk `c`, with the token drawn, is committed.
pub open spec fn advanced(s: Sequence, c: PlannedChunk, token: Token) -> Sequence {
    let known = if c.sample {
        s.known.push(token)
    } else {
        s.known
    };
    Sequence {
        known,
        computed: c.end(),
        need_from: if s.need_from < c.end() {
            c.end()
        } else {
            s.need_from
        },
        alive: !s.request.ends(known),
        ..s
    }
}

/// Sequence `id` after the oldest plan: a dead one takes nothing from it any more.
pub open spec fn after_commit(e: Engine, tokens: Map<int, Token>, id: int) -> Sequence {
    if e.plans[0].chunks.dom().contains(id) && e.seqs[id].alive {
        advanced(e.seqs[id], e.plans[0].chunks[id], tokens[id])
    } else {
        e.seqs[id]
    }
}

pub open spec fn content_after_commit(e: Engine, plan: Plan) -> IMap<Slot, Prefix> {
    IMap::new(
        |s: Slot| e.content.dom().contains(s) || committed(e, plan, s),
        |s: Slot|
            if committed(e, plan, s) {
                let (id, p) = choose|id: int, p: int| #[trigger]
                    writes(e, plan, s, id, p) && e.seqs[id].alive;
                Prefix { salt: e.seqs[id].request.salt, tokens: e.seqs[id].known.take(p + 1) }
            } else {
                e.content[s]
            },
    )
}

pub open spec fn commit(e: Engine, tokens: Map<int, Token>) -> Engine {
    Engine {
        seqs: Map::new(e.seqs.dom(), |id: int| after_commit(e, tokens, id)),
        plans: e.plans.drop_first(),
        content: content_after_commit(e, e.plans[0]),
        ..e
    }
}

pub open spec fn loaded(e: Engine) -> Engine {
    Engine {
        seqs: Map::new(
            e.seqs.dom(),
            |id: int| Sequence::fresh(e.seqs[id].request, e.groups()),
        ),
        registered: Map::empty(),
        content: IMap::empty(),
        evicted: true,
        ..e
    }
}

pub open spec fn after(e: Engine, step: Step) -> Engine {
    match step {
        Step::Add { request } => added(e, request),
        Step::Fork { parent, logits_from } => added(
            e,
            Request { logits_from, ..e.seqs[parent].request },
        ),
        Step::Admit { id, seat, blocks } => admitted(e, id, seat, blocks, blocks[0].len()),
        Step::Share { id, seat, from, count } => admitted(
            e,
            id,
            seat,
            first_blocks(e.seqs[from].tables, count),
            count,
        ),
        Step::Grow { id, group, block } => e.put(id, grown(e.seqs[id], group, block)),
        Step::Slide { id, group } => e.put(id, slid(e.seqs[id], group)),
        Step::Schedule { plan } => scheduled(e, plan),
        Step::Commit { tokens } => commit(e, tokens),
        Step::Cancel => Engine { plans: e.plans.drop_last(), ..e },
        Step::Register { id, group, index } => Engine {
            registered: e.registered.insert(
                (group, e.block(id, group, index)),
                block_prefix(e, id, index),
            ),
            ..e
        },
        Step::Evict { group, block } => Engine {
            registered: e.registered.remove((group, block)),
            evicted: true,
            ..e
        },
        Step::Preempt { id } => e.put(id, e.seqs[id].released()),
        Step::Abort { id } => e.put(id, Sequence { alive: false, ..e.seqs[id] }),
        Step::Finish { id } => Engine { seqs: e.seqs.remove(id), ..e },
        Step::Reset => Engine { registered: Map::empty(), evicted: true, ..e },
        Step::Load { restart } => loaded(e),
    }
}

/// An engine as it is made.
pub open spec fn init(e: Engine) -> bool {
    &&& e.shape.block_size > 0
    &&& e.groups() > 0
    &&& e.next_id == 0
    &&& e.seqs == Map::<int, Sequence>::empty()
    &&& e.plans == Seq::<Plan>::empty()
    &&& e.registered == Map::<(int, int), Prefix>::empty()
    &&& e.content == IMap::<Slot, Prefix>::empty()
    &&& !e.evicted
}

pub open spec fn next(e: Engine, step: Step, e2: Engine) -> bool {
    enabled(e, step) && e2 == after(e, step)
}

} // verus!
