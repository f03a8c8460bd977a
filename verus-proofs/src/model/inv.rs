//! The engine's invariant: a conjunction of short named predicates.
use crate::model::blocks::*;
use crate::model::plans::*;
use crate::model::state::*;
use crate::trusted::deployment::*;
use vstd::prelude::*;

verus! {

pub open spec fn inv_shape(e: Engine) -> bool {
    e.shape.block_size > 0 && e.groups() > 0
}

/// Ids are never reused.
pub open spec fn inv_ids(e: Engine) -> bool {
    &&& 0 <= e.next_id
    &&& forall|id: int| #[trigger] e.has(id) ==> 0 <= id < e.next_id
}

/// What holds of one sequence by itself.
pub open spec fn inv_sequence(e: Engine, s: Sequence) -> bool {
    let prompt = s.request.prompt;
    &&& s.request.logits_from < prompt.len() && s.request.max_tokens > 0
    &&& s.known.len() >= prompt.len() && s.known.take(prompt.len() as int) == prompt
    &&& s.request.logits_from <= s.need_from
    &&& s.computed <= s.need_from && s.computed <= s.known.len()
    &&& s.alive ==> !s.request.ends(s.known)
    &&& s.tables.len() == e.groups()
    &&& forall|g: int|
        0 <= g < e.groups() ==> s.computed <= #[trigger] s.tables[g].len() * e.shape.block_size
    &&& forall|g: int| 0 <= g < e.groups() && s.seat is None ==> #[trigger] s.tables[g].len() == 0
    &&& inv_freed(e, s)
    &&& s.seat matches Some(seat) ==> 0 <= seat < e.max_seqs
}

/// Nothing is given back that a row still to be computed sees.
pub open spec fn inv_freed(e: Engine, s: Sequence) -> bool {
    &&& s.freed.len() == e.groups()
    &&& forall|g: int|
        0 <= g < e.groups() ==> #[trigger] s.freed[g] * e.shape.block_size <= first_seen(
            e.shape.windows[g],
            s.computed as int,
        )
}

pub open spec fn inv_sequences(e: Engine) -> bool {
    forall|id: int| #[trigger] e.has(id) ==> inv_sequence(e, e.seqs[id])
}

/// A seat, a row of the block tables, belongs to one sequence.
pub open spec fn inv_seats(e: Engine) -> bool {
    forall|a: int, b: int| #[trigger]
        e.has(a) && #[trigger] e.has(b) && a != b && e.seqs[a].seat is Some ==> e.seqs[a].seat
            != e.seqs[b].seat
}

/// Also what was given back names a block of the pool: a kernel may load it, and look no further.
pub open spec fn inv_blocks_in_range(e: Engine) -> bool {
    forall|id: int, g: int, i: int|
        e.has(id) && 0 <= g < e.groups() && 0 <= i < e.seqs[id].tables[g].len() ==> 0
            <= #[trigger] e.block(id, g, i) < e.shape.num_blocks[g]
}

/// A block that occurs twice in block tables is sealed in each: nobody writes it any more.
pub open spec fn inv_one_writer(e: Engine) -> bool {
    forall|a: int, i: int, b: int, j: int, g: int|
        #![trigger e.block(a, g, i), e.block(b, g, j)]
        e.has_block(a, g, i) && e.has_block(b, g, j) && (a, i) != (b, j) && e.block(a, g, i)
            == e.block(b, g, j) ==> i < e.sealed(a)
}

/// A block that a hit may return is sealed in every table that has it.
pub open spec fn inv_registered_sealed(e: Engine) -> bool {
    forall|id: int, g: int, i: int|
        e.has_block(id, g, i) && e.registered.dom().contains((g, #[trigger] e.block(id, g, i)))
            ==> i < e.sealed(id)
}

pub open spec fn inv_registered_in_range(e: Engine) -> bool {
    forall|g: int, b: int| #[trigger]
        e.registered.dom().contains((g, b)) ==> 0 <= g < e.groups() && 0 <= b
            < e.shape.num_blocks[g]
}

/// Offset `o` of a block of a prefix belongs to that much of the prefix.
pub open spec fn offset_prefix(e: Engine, prefix: Prefix, o: int) -> Prefix {
    Prefix {
        salt: prefix.salt,
        tokens: prefix.tokens.take(prefix.tokens.len() - e.shape.block_size + o + 1),
    }
}

pub open spec fn inv_content_in_range(e: Engine) -> bool {
    forall|s: Slot| #[trigger] e.content.dom().contains(s) ==> 0 <= s.group < e.groups()
}

/// Slot `s` was written for exactly `prefix`.
pub open spec fn written_for(e: Engine, s: Slot, prefix: Prefix) -> bool {
    e.content.dom().contains(s) && e.content[s] == prefix
}

/// Every slot of a registered block was written for exactly the prefix it is registered under.
pub open spec fn inv_registered_content(e: Engine) -> bool {
    forall|g: int, b: int, o: int|
        #![trigger e.content.dom().contains(Slot { group: g, block: b, offset: o })]
        #![trigger e.content[Slot { group: g, block: b, offset: o }]]
        e.registered.dom().contains((g, b)) && 0 <= o < e.shape.block_size ==> written_for(
            e,
            Slot { group: g, block: b, offset: o },
            offset_prefix(e, e.registered[(g, b)], o),
        )
}

/// Position `p` of sequence `id`, under its salt.
pub open spec fn position_prefix(s: Sequence, p: int) -> Prefix {
    Prefix { salt: s.request.salt, tokens: s.known.take(p + 1) }
}

/// Every slot of a computed position, unless it was given back, was written for exactly the
/// sequence's own prefix.
pub open spec fn inv_computed_content(e: Engine) -> bool {
    forall|id: int, g: int, p: int|
        #![trigger e.slot(id, g, p)]
        e.has(id) && 0 <= g < e.groups() && e.kept_from(id, g) <= p < e.seqs[id].computed
            ==> written_for(e, e.slot(id, g, p), position_prefix(e.seqs[id], p))
}

/// The table of a chunk is a prefix of its sequence's, which can only grow while it is in flight.
pub open spec fn inv_pinned(e: Engine, s: Sequence, c: PlannedChunk) -> bool {
    &&& c.tables.len() == e.groups()
    &&& forall|g: int|
        0 <= g < e.groups() ==> {
            &&& c.end() <= #[trigger] c.tables[g].len() * e.shape.block_size
            &&& c.tables[g].len() <= s.tables[g].len()
            &&& c.tables[g] == s.tables[g].take(c.tables[g].len() as int)
        }
}

/// What holds of a chunk in flight of sequence `s`, dead or alive.
pub open spec fn inv_chunk(e: Engine, s: Sequence, c: PlannedChunk) -> bool {
    &&& s.seat == Some(c.seat)
    &&& s.computed <= c.first < c.end()
    &&& c.logits_from <= s.need_from || c.logits_from <= c.first
    &&& c.sample ==> c.logits_from < c.end()
    &&& inv_pinned(e, s, c)
}

pub open spec fn inv_chunks(e: Engine) -> bool {
    forall|n: int, id: int|
        0 <= n < e.plans.len() && #[trigger] e.plans[n].chunks.dom().contains(id) ==> e.has(id)
            && inv_chunk(e, e.seqs[id], e.plans[n].chunks[id])
}

pub open spec fn inv_order(plan: Plan) -> bool {
    &&& plan.order.len() > 0
    &&& plan.order.no_duplicates()
    &&& forall|i: int|
        0 <= i < plan.order.len() ==> plan.chunks.dom().contains(#[trigger] plan.order[i])
    &&& forall|id: int| #[trigger] plan.chunks.dom().contains(id) ==> plan.order.contains(id)
}

pub open spec fn inv_orders(e: Engine) -> bool {
    forall|n: int| 0 <= n < e.plans.len() ==> inv_order(#[trigger] e.plans[n])
}

/// The chunks of a live sequence follow each other from `computed` on.
pub open spec fn inv_chains(e: Engine) -> bool {
    forall|id: int| #[trigger]
        e.has(id) && e.seqs[id].alive ==> chain(e.plans, id, e.seqs[id].computed, e.seqs[id].known)
}

/// A slot that a plan in flight writes has no content until that plan is committed.
pub open spec fn inv_unwritten(e: Engine) -> bool {
    forall|n: int, id: int, g: int, p: int|
        #![trigger e.plans[n].chunks.dom().contains(id), e.slot(id, g, p)]
        row_in_flight(e, n, id, g, p) ==> !e.content.dom().contains(e.slot(id, g, p))
}

/// A table's blocks: in range, writable by one sequence only, sealed if others may see them.
pub open spec fn inv_ownership(e: Engine) -> bool {
    &&& inv_blocks_in_range(e)
    &&& inv_one_writer(e)
    &&& inv_registered_sealed(e)
    &&& inv_registered_in_range(e)
}

pub open spec fn inv_content(e: Engine) -> bool {
    &&& inv_content_in_range(e)
    &&& inv_registered_content(e)
    &&& inv_computed_content(e)
    &&& inv_unwritten(e)
}

pub open spec fn inv_in_flight(e: Engine) -> bool {
    &&& inv_chunks(e)
    &&& inv_orders(e)
    &&& inv_chains(e)
}

pub open spec fn inv(e: Engine) -> bool {
    &&& inv_shape(e)
    &&& inv_ids(e)
    &&& inv_sequences(e)
    &&& inv_seats(e)
    &&& inv_ownership(e)
    &&& inv_content(e)
    &&& inv_in_flight(e)
}

} // verus!
