//! Words for blocks, used in the theorems on memory and isolation.
use crate::model::state::*;
use crate::trusted::deployment::*;
use vstd::prelude::*;
use vstd::set_lib::*;

verus! {

/// Blocks of group `g` in some block table.
pub open spec fn referenced_blocks(e: Engine, g: int) -> Set<int> {
    set_int_range(0, e.shape.num_blocks[g] as int).filter(|b: int| e.held(g, b))
}

/// Those in the prefix cache, and in no table: they may be evicted.
pub open spec fn cached_blocks(e: Engine, g: int) -> Set<int> {
    set_int_range(0, e.shape.num_blocks[g] as int).filter(
        |b: int| !e.held(g, b) && e.registered.dom().contains((g, b)))
}

/// Those in neither.
pub open spec fn free_blocks(e: Engine, g: int) -> Set<int> {
    set_int_range(0, e.shape.num_blocks[g] as int).filter(
        |b: int| !e.held(g, b) && !e.registered.dom().contains((g, b)))
}

/// Position `p` of sequence `id` is written by plan `n` in flight.
pub open spec fn row_in_flight(e: Engine, n: int, id: int, g: int, p: int) -> bool {
    &&& 0 <= n < e.plans.len() && 0 <= g < e.groups()
    &&& e.plans[n].chunks.dom().contains(id)
    &&& e.plans[n].chunks[id].first <= p < e.plans[n].chunks[id].end()
}

/// The block of position `p` of sequence `id` is in range, in no other table, nor twice, nor
/// cached.
pub open spec fn private_block(e: Engine, id: int, g: int, p: int) -> bool {
    let i = p / e.shape.block_size as int;
    &&& e.has_block(id, g, i)
    &&& 0 <= e.block(id, g, i) < e.shape.num_blocks[g]
    &&& !e.registered.dom().contains((g, e.block(id, g, i)))
    &&& forall|a: int, k: int| e.has_block(a, g, k) && (a, k) != (id, i)
        ==> #[trigger] e.block(a, g, k) != e.block(id, g, i)
}

/// Some block of group `g` is registered for `tokens` under `salt`.
pub open spec fn cached(e: Engine, salt: Salt, g: int, tokens: Seq<Token>) -> bool {
    exists|b: int| #[trigger] e.registered.dom().contains((g, b))
        && e.registered[(g, b)] == (Prefix { salt, tokens })
}

/// The first `count` blocks of `tokens` are cached under `salt`, in every group.
pub open spec fn hit(e: Engine, salt: Salt, tokens: Seq<Token>, count: nat) -> bool {
    forall|g: int, i: int| 0 <= g < e.groups() && 0 < i <= count
        ==> #[trigger] cached(e, salt, g, tokens.take(i * e.shape.block_size))
}

/// How many leading blocks of `tokens`, at most `most`, a hit may return.
pub open spec fn longest_hit(e: Engine, salt: Salt, tokens: Seq<Token>, most: nat) -> nat
    decreases most,
{
    if most == 0 || hit(e, salt, tokens, most) { most } else {
        longest_hit(e, salt, tokens, (most - 1) as nat)
    }
}

} // verus!
