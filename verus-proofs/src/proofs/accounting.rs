//! Blocks: free, referenced, cached; and private while they are written.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::proofs::execute::*;
use crate::proofs::steps_table::*;
use crate::proofs::system_inv::*;
use crate::trusted::*;
use vstd::prelude::*;
use vstd::set_lib::*;

verus! {

pub proof fn lemma_accounting(e: Engine, g: int)
    ensures
        free_blocks(e, g).len() + referenced_blocks(e, g).len() + cached_blocks(e, g).len()
            == e.shape.num_blocks[g],
{
    let all = set_int_range(0, e.shape.num_blocks[g] as int);
    let free = free_blocks(e, g);
    let referenced = referenced_blocks(e, g);
    let cached = cached_blocks(e, g);
    lemma_set_disjoint_lens(free, referenced);
    lemma_set_disjoint_lens(free + referenced, cached);
    assert(free + referenced + cached =~= all);
}

pub proof fn lemma_private_block(e: Engine, n: int, id: int, g: int, p: int)
    requires
        inv(e),
        row_in_flight(e, n, id, g, p),
    ensures
        private_block(e, id, g, p),
{
    lemma_pinned_covers(e, n, id, g);
    lemma_slot(e, id, g, p);
    lemma_sealed_monotone(e.shape.block_size, e.seqs[id].computed, p as nat);
}

pub proof fn lemma_memory<D: Kernels + Sampler>(s: System<D>)
    requires
        system_inv(s),
    ensures
        s.ran.len() < s.engine.plans.len() ==> plan_wf(s.engine.shape, device_plan(s)),
        forall|n: int, id: int, g: int, p: int| #[trigger]
            row_in_flight(s.engine, n, id, g, p) ==> private_block(s.engine, id, g, p),
        forall|g: int|
            0 <= g < s.engine.groups() ==> #[trigger] free_blocks(s.engine, g).len()
                + referenced_blocks(s.engine, g).len() + cached_blocks(s.engine, g).len()
                == s.engine.shape.num_blocks[g],
{
    if s.ran.len() < s.engine.plans.len() {
        lemma_device_plan(s);
    }
    assert forall|n: int, id: int, g: int, p: int| #[trigger]
        row_in_flight(s.engine, n, id, g, p) implies private_block(s.engine, id, g, p) by {
        lemma_private_block(s.engine, n, id, g, p);
    }
    assert forall|g: int| 0 <= g < s.engine.groups() implies #[trigger] free_blocks(
        s.engine,
        g,
    ).len() + referenced_blocks(s.engine, g).len() + cached_blocks(s.engine, g).len()
        == s.engine.shape.num_blocks[g] by {
        lemma_accounting(s.engine, g);
    }
}

} // verus!
