//! The plans in flight as one list of chunks, as the scheduler's queue has them.
use super::*;
use vstd::prelude::*;

verus! {

/// A chunk of a plan in flight, without its tokens and tables.
pub ghost struct Flight {
    pub id: int,
    pub first: int,
    pub end: int,
    pub sample: bool,
}

/// The chunks of a plan, in the order of the batch.
pub open spec fn chunks_of(plan: model::Plan) -> Seq<Flight> {
    Seq::new(
        plan.order.len(),
        |k: int|
            {
                let c = plan.chunks[plan.order[k]];
                Flight {
                    id: plan.order[k],
                    first: c.first as int,
                    end: c.end() as int,
                    sample: c.sample,
                }
            },
    )
}

/// The chunks of all plans, oldest first.
pub open spec fn flights(plans: Seq<model::Plan>) -> Seq<Flight>
    decreases plans.len(),
{
    if plans.len() == 0 {
        Seq::empty()
    } else {
        flights(plans.drop_last()) + chunks_of(plans.last())
    }
}

/// The oldest plan's chunks come first.
pub proof fn lemma_flights_first(plans: Seq<model::Plan>)
    requires
        plans.len() > 0,
    ensures
        flights(plans) == chunks_of(plans[0]) + flights(plans.drop_first()),
    decreases plans.len(),
{
    if plans.len() == 1 {
        assert(plans.drop_last() =~= Seq::<model::Plan>::empty());
        assert(plans.drop_first() =~= Seq::<model::Plan>::empty());
    } else {
        lemma_flights_first(plans.drop_last());
        assert(plans.drop_last().drop_first() =~= plans.drop_first().drop_last());
    }
}

/// Each chunk of plan `n` is one of the list.
pub proof fn lemma_flies(plans: Seq<model::Plan>, n: int, j: int) -> (k: int)
    requires
        0 <= n < plans.len(),
        0 <= j < plans[n].order.len(),
    ensures
        0 <= k < flights(plans).len(),
        flights(plans)[k] == chunks_of(plans[n])[j],
    decreases plans.len(),
{
    let before = plans.drop_last();
    if n == plans.len() - 1 {
        (flights(before).len() + j) as int
    } else {
        lemma_flies(before, n, j)
    }
}

} // verus!
