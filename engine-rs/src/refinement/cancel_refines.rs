//! The newest plan is cancelled.
use super::*;
use vstd::prelude::*;

verus! {

/// The newest plan is given up.
pub proof fn lemma_cancel_takes(a: Scheduler, c: Scheduler, l: Link)
    requires
        a.inv(),
        a.draft == 0 && c.draft == 0,
        linked(a, l),
        a.plans@.len() > 0,
        same_but(a, c, -1, -1),
        same_cache(a.groups@, c.groups@),
        c.plans@ == a.plans@.drop_last(),
        c.queue@ == a.queue@.take(a.queue@.len() - a.plans@.last().entries),
    ensures
        takes(c, l, model::Step::Cancel),
{
    let plans = l.engine.plans;
    let m = l.with(model::after(l.engine, model::Step::Cancel));
    lemma_stays(l.engine);
    lemma_moves_on(l.engine, l.engine, model::Step::Cancel, false);
    lemma_moves_inv(l.engine, m.engine, false);
    lemma_same_cache(a.groups@, c.groups@, m.engine);
    lemma_seqs_relinked(a, c, l, m.engine, -1, -1);
    assert(a.plans@[a.plans@.len() - 1].entries == plans[plans.len() - 1].order.len());
    assert forall|k: int| 0 <= k < c.queue@.len() implies #[trigger] flights(plans.drop_last())[k]
        == flight_of(c, m, c.queue@[k]) by {
        assert(flights(plans)[k] == flights(plans.drop_last())[k]);
        let j = a.queue@[k].seq as int;
        assert(a.seqs@[j].live());
        assert(same_seq(a.seqs@[j], c.seqs@[j]));
    }
    assert forall|k: int| 0 <= k < c.plans@.len() implies (#[trigger] c.plans@[k]).entries
        == m.engine.plans[k].order.len() by {
        assert(a.plans@[k].entries == plans[k].order.len());
    }
    lemma_stays(m.engine);
    assert(arrives(c, m, m.engine));
}

} // verus!
