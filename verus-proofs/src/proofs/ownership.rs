//! Writes are private: what ownership of blocks gives the plans.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// A position that is not yet computed has a slot of its own.
pub proof fn lemma_private(e: Engine, a: int, p: int, b: int, q: int, g: int)
    requires
        inv_shape(e),
        inv_one_writer(e),
        e.has(a),
        e.has(b),
        inv_freed(e, e.seqs[a]),
        0 <= g < e.groups(),
        e.seqs[a].computed <= p < e.seqs[a].tables[g].len() * e.shape.block_size,
        e.kept_from(b, g) <= q < e.seqs[b].tables[g].len() * e.shape.block_size,
        (a, p) != (b, q),
    ensures
        e.slot(a, g, p) != e.slot(b, g, q),
{
    let size = e.shape.block_size;
    lemma_slot(e, a, g, p);
    lemma_slot(e, b, g, q);
    lemma_sealed_monotone(size, e.seqs[a].computed, p as nat);
}

/// A position that is not yet computed is in no registered block.
pub proof fn lemma_unregistered(e: Engine, id: int, p: int, g: int)
    requires
        inv_shape(e),
        inv_registered_sealed(e),
        e.has(id),
        inv_freed(e, e.seqs[id]),
        0 <= g < e.groups(),
        e.seqs[id].computed <= p < e.seqs[id].tables[g].len() * e.shape.block_size,
    ensures
        !e.registered.dom().contains((g, e.slot(id, g, p).block)),
{
    lemma_slot(e, id, g, p);
    lemma_sealed_monotone(e.shape.block_size, e.seqs[id].computed, p as nat);
}

} // verus!
