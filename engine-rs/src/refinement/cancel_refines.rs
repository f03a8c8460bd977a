//! The newest plan is cancelled.
use super::*;
use vstd::prelude::*;

verus! {

/// All tables are to go out again, so it does not matter what the runner has.
proof fn lemma_forgotten(s: Scheduler, l: Link, step: model::Step)
    requires
        takes(s, l, step),
        step is Cancel,
        l.engine.groups() == s.groups@.len(),
        forall|t: Tables| #[trigger] mirrors(s.groups@, t) <==> t.len() == s.groups@.len(),
    ensures
        takes(s, l.forgotten(), step),
{
    let m = l.with(model::after(l.engine, step));
    let n = l.forgotten().with(model::after(l.forgotten().engine, step));
    let e = choose|e: model::Engine| #[trigger] arrives(s, m, e);
    assert(arrives(s, n, e));
}

/// The newest plan is given up.
proof fn lemma_cancel_takes(a: Scheduler, c: Scheduler, l: Link)
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
    lemma_step_inv(l.engine, model::Step::Cancel);
    lemma_tables_relinked(a.groups@, c.groups@, l);
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
    lemma_arrived(c, m);
}

/// The newest plan was taken back, all tables were logged again, and what was over let go of.
pub proof fn lemma_cancelled_takes(a: Scheduler, back: Scheduler, again: Scheduler, b: Scheduler)
    requires
        a.inv(),
        a.draft == 0 && back.draft == 0,
        a.plans@.len() > 0,
        same_but(a, back, -1, -1),
        back.groups == a.groups,
        back.plans@ == a.plans@.drop_last(),
        back.queue@ == a.queue@.take(a.queue@.len() - a.plans@.last().entries),
        refines(back, again),
        again == (Scheduler { groups: again.groups, ..back }),
        forall|t: Tables| #[trigger] mirrors(again.groups@, t) <==> t.len() == again.groups@.len(),
        again.groups@.len() == back.groups@.len(),
        refines(again, b),
    ensures
        forall|l: Link| #[trigger] linked(a, l) ==> takes(b, l.forgotten(), model::Step::Cancel),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies takes(
        b,
        l.forgotten(),
        model::Step::Cancel,
    ) by {
        lemma_cancel_takes(a, back, l);
        lemma_takes_later(back, again, l, model::Step::Cancel);
        lemma_forgotten(again, l, model::Step::Cancel);
        lemma_takes_later(again, b, l.forgotten(), model::Step::Cancel);
    }
}

} // verus!
