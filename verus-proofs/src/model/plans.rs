//! Plans in flight: how far each sequence has got once the first few of them are committed.
use crate::model::state::*;
use crate::trusted::deployment::*;
use vstd::prelude::*;

verus! {

/// The end of the last chunk of sequence `id` in `plans`; `computed` where there is none.
pub open spec fn frontier(plans: Seq<Plan>, id: int, computed: nat) -> nat
    decreases plans.len(),
{
    if plans.len() == 0 {
        computed
    } else if plans.last().chunks.dom().contains(id) {
        plans.last().chunks[id].end()
    } else {
        frontier(plans.drop_last(), id, computed)
    }
}

/// How many tokens `plans` draw for sequence `id`.
pub open spec fn draws(plans: Seq<Plan>, id: int) -> nat
    decreases plans.len(),
{
    if plans.len() == 0 {
        0
    } else {
        draws(plans.drop_last(), id) + if plans.last().samples(id) {
            1nat
        } else {
            0nat
        }
    }
}

/// Chunk `c` may follow when positions up to `planned` are planned already, `length` tokens are
/// known or being drawn, and `known` are known.
pub open spec fn follows(c: PlannedChunk, planned: nat, length: nat, known: Seq<Token>) -> bool {
    &&& c.first == planned
    &&& c.first < c.end() <= length
    &&& c.sample ==> c.end() == length && c.logits_from < c.end()
    &&& forall|j: int| 0 <= j < c.tokens.len()
        ==> token_fits(#[trigger] c.tokens[j], c, j, length, known)
}

/// A token of a chunk is the known one at its position, or the placeholder of the last one drawn.
pub open spec fn token_fits(
    t: Option<Token>,
    c: PlannedChunk,
    j: int,
    length: nat,
    known: Seq<Token>,
) -> bool {
    match t {
        Some(token) => c.first + j < known.len() && token == known[c.first + j],
        None => c.first + j == length - 1,
    }
}

/// The chunks of sequence `id` in `plans` follow each other without a gap, from `computed`.
pub open spec fn chain(plans: Seq<Plan>, id: int, computed: nat, known: Seq<Token>) -> bool
    decreases plans.len(),
{
    plans.len() > 0 ==> {
        let before = plans.drop_last();
        &&& chain(before, id, computed, known)
        &&& plans.last().chunks.dom().contains(id) ==> follows(
            plans.last().chunks[id],
            frontier(before, id, computed),
            known.len() + draws(before, id),
            known,
        )
    }
}

} // verus!
