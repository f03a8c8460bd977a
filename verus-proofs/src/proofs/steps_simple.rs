//! Steps that touch neither block tables nor content: Add, Fork, Abort, Register, and those that give
//! everything of a sequence up: Preempt, Load. (Of Cancel, Evict, Reset and Finish there is nothing
//! to say but their definitions.)
use crate::model::*;
use crate::proofs::blocks::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// Where nothing is given back, nothing that is seen is.
pub proof fn lemma_none_freed(e: Engine, s: Sequence)
    requires
        s.freed == Seq::new(e.groups(), |g: int| 0nat),
    ensures
        inv_freed(e, s),
{
    assert(0 * e.shape.block_size == 0);
}

/// Tables without blocks hold nothing.
pub proof fn lemma_fresh(e: Engine, r: Request)
    requires
        r.logits_from < r.prompt.len(),
        r.max_tokens > 0,
    ensures
        inv_sequence(e, Sequence::fresh(r, e.groups())),
{
    assert(r.prompt.take(r.prompt.len() as int) =~= r.prompt);
    lemma_none_freed(e, Sequence::fresh(r, e.groups()));
}

pub proof fn lemma_add(e: Engine, r: Request)
    requires
        inv(e),
        r.logits_from < r.prompt.len(),
        r.max_tokens > 0,
    ensures
        inv(added(e, r)),
{
    let e2 = added(e, r);
    lemma_fresh(e, r);
    assert forall|id: int| #[trigger] e2.has(id) && e2.seqs[id].alive implies chain(
        e2.plans,
        id,
        e2.seqs[id].computed,
        e2.seqs[id].known,
    ) by {
        if id == e.next_id {
            lemma_no_chunks(e.plans, id, e2.seqs[id].computed, e2.seqs[id].known);
        }
    }
}

/// A sequence with nothing in flight: its chain is empty, whatever it knows.
pub proof fn lemma_no_chunks(plans: Seq<Plan>, id: int, computed: nat, known: Seq<Token>)
    requires
        forall|n: int| 0 <= n < plans.len() ==> !(#[trigger] plans[n]).chunks.dom().contains(id),
    ensures
        chain(plans, id, computed, known),
        frontier(plans, id, computed) == computed,
        draws(plans, id) == 0,
    decreases plans.len(),
{
    if plans.len() > 0 {
        let before = plans.drop_last();
        lemma_no_chunks(before, id, computed, known);
    }
}

pub proof fn lemma_not_in_flight(e: Engine, id: int, computed: nat, known: Seq<Token>)
    requires
        !e.in_flight(id),
    ensures
        chain(e.plans, id, computed, known),
        frontier(e.plans, id, computed) == computed,
        draws(e.plans, id) == 0,
{
    lemma_no_chunks(e.plans, id, computed, known);
}

pub proof fn lemma_abort(e: Engine, id: int)
    requires
        inv(e),
        enabled(e, Step::Abort { id }),
    ensures
        inv(after(e, Step::Abort { id })),
{
}

pub proof fn lemma_register(e: Engine, id: int, group: int, index: int)
    requires
        inv(e),
        enabled(e, Step::Register { id, group, index }),
    ensures
        inv(after(e, Step::Register { id, group, index })),
{
    let e2 = after(e, Step::Register { id, group, index });
    let b = e.block(id, group, index);
    let size = e.shape.block_size;
    assert(inv_registered_content(e2)) by {
        assert forall|g: int, k: int, o: int|
            #![trigger e2.content.dom().contains(Slot { group: g, block: k, offset: o })]
            e2.registered.dom().contains((g, k)) && 0 <= o < size implies written_for(
            e2,
            Slot { group: g, block: k, offset: o },
            offset_prefix(e2, e2.registered[(g, k)], o),
        ) by {
            if (g, k) == (group, b) {
                let p = index * size + o;
                let s = e.seqs[id];
                lemma_index_of_block(size, index, o);
                lemma_sealed_positions(size, s.computed, index);
                lemma_block_starts(size, s.freed[group], index);
                assert(e.slot(id, group, p) == (Slot { group: g, block: k, offset: o }));
                assert((index + 1) * size == index * size + size) by (nonlinear_arith);
                let whole = s.known.take((index + 1) * size);
                assert(whole.take(whole.len() - size + o + 1) =~= s.known.take(p + 1));
            } else {
            }
        }
    }
}

pub proof fn lemma_preempt(e: Engine, id: int)
    requires
        inv(e),
        enabled(e, Step::Preempt { id }),
    ensures
        inv(after(e, Step::Preempt { id })),
{
    let e2 = after(e, Step::Preempt { id });
    lemma_not_in_flight(e, id, 0, e.seqs[id].known);
    lemma_none_freed(e2, e2.seqs[id]);
}

pub proof fn lemma_load(e: Engine, restart: bool)
    requires
        inv(e),
        enabled(e, Step::Load { restart }),
    ensures
        inv(after(e, Step::Load { restart })),
{
    let e2 = after(e, Step::Load { restart });
    assert forall|id: int| #[trigger] e2.has(id) implies inv_sequence(e2, e2.seqs[id]) by {
        lemma_fresh(e, e.seqs[id].request);
    }
}

} // verus!
