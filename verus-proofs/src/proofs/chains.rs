//! Chains of chunks: what committing the oldest plan leaves of them.
use crate::model::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// Whether the oldest plan has rows of `id`, and draws for it.
pub open spec fn heads(plans: Seq<Plan>, id: int) -> bool {
    plans.len() > 0 && plans[0].chunks.dom().contains(id)
}

/// Where sequence `id` has got when the oldest plan is committed.
pub open spec fn head_end(plans: Seq<Plan>, id: int, computed: nat) -> nat {
    if heads(plans, id) {
        plans[0].chunks[id].end()
    } else {
        computed
    }
}

pub open spec fn head_draws(plans: Seq<Plan>, id: int) -> nat {
    if heads(plans, id) && plans[0].chunks[id].sample {
        1
    } else {
        0
    }
}

/// `known` after the oldest plan drew `token` (if it drew).
pub open spec fn head_known(plans: Seq<Plan>, id: int, known: Seq<Token>, token: Token) -> Seq<
    Token,
> {
    if head_draws(plans, id) == 1 {
        known.push(token)
    } else {
        known
    }
}

pub proof fn lemma_shift_counts(plans: Seq<Plan>, id: int, computed: nat)
    requires
        plans.len() > 0,
    ensures
        frontier(plans.drop_first(), id, head_end(plans, id, computed)) == frontier(
            plans,
            id,
            computed,
        ),
        draws(plans.drop_first(), id) + head_draws(plans, id) == draws(plans, id),
    decreases plans.len(),
{
    let before = plans.drop_last();
    if plans.len() == 1 {
    } else {
        lemma_shift_counts(before, id, computed);
        assert(plans.drop_first().drop_last() =~= before.drop_first());
    }
}

/// Committing the oldest plan leaves a chain of the rest.
pub proof fn lemma_shift_chain(
    plans: Seq<Plan>,
    id: int,
    computed: nat,
    known: Seq<Token>,
    token: Token,
)
    requires
        plans.len() > 0,
        chain(plans, id, computed, known),
    ensures
        chain(
            plans.drop_first(),
            id,
            head_end(plans, id, computed),
            head_known(plans, id, known, token),
        ),
    decreases plans.len(),
{
    let before = plans.drop_last();
    let rest = plans.drop_first();
    if plans.len() == 1 {
    } else {
        lemma_shift_chain(before, id, computed, known, token);
        lemma_shift_counts(before, id, computed);
        assert(rest.drop_last() =~= before.drop_first());
    }
}

/// The oldest plan's own chunk starts where the sequence stands; its tokens are all known by now.
pub proof fn lemma_head(plans: Seq<Plan>, id: int, computed: nat, known: Seq<Token>)
    requires
        heads(plans, id),
        chain(plans, id, computed, known),
    ensures
        follows(plans[0].chunks[id], computed, known.len(), known),
{
    lemma_chain_at(plans, id, computed, known, 0);
}

/// Each chunk follows what the plans before it planned, and these are a chain themselves.
pub proof fn lemma_chain_at(plans: Seq<Plan>, id: int, computed: nat, known: Seq<Token>, n: int)
    requires
        0 <= n < plans.len(),
        chain(plans, id, computed, known),
    ensures
        chain(plans.take(n), id, computed, known),
        plans[n].chunks.dom().contains(id) ==> follows(
            plans[n].chunks[id],
            frontier(plans.take(n), id, computed),
            known.len() + draws(plans.take(n), id),
            known,
        ),
    decreases plans.len(),
{
    let before = plans.drop_last();
    if n == plans.len() - 1 {
    } else {
        lemma_chain_at(before, id, computed, known, n);
        assert(before.take(n) =~= plans.take(n));
    }
}

/// Nothing is planned before the frontier: it only rises.
pub proof fn lemma_frontier(plans: Seq<Plan>, id: int, computed: nat, known: Seq<Token>)
    requires
        chain(plans, id, computed, known),
    ensures
        computed <= frontier(plans, id, computed),
    decreases plans.len(),
{
    if plans.len() > 0 {
        lemma_frontier(plans.drop_last(), id, computed, known);
    }
}

/// Chunks start at or after `computed`.
pub proof fn lemma_chunk_first(plans: Seq<Plan>, id: int, computed: nat, known: Seq<Token>, n: int)
    requires
        0 <= n < plans.len(),
        plans[n].chunks.dom().contains(id),
        chain(plans, id, computed, known),
    ensures
        computed <= plans[n].chunks[id].first,
{
    lemma_chain_at(plans, id, computed, known, n);
    lemma_frontier(plans.take(n), id, computed, known);
}

} // verus!
