//! The oldest plan is committed.
use super::*;
use vstd::prelude::*;

verus! {

/// A plan is in flight, and none is being made.
pub open spec fn may_commit(a: Scheduler, l: Link) -> bool {
    a.inv() && a.draft == 0 && linked(a, l) && a.plans@.len() > 0
}

/// Committing the oldest plan, for the machine.
pub open spec fn commit_step(l: Link, tokens: Seq<u32>) -> model::Step {
    model::Step::Commit { tokens: drawn(l.engine.plans[0], tokens) }
}

/// What is linked after that.
pub open spec fn commit_link(l: Link, tokens: Seq<u32>) -> Link {
    l.with(model::after(l.engine, commit_step(l, tokens)))
}

/// All was committed.
pub proof fn lemma_all_committed(
    a: Scheduler,
    b: Scheduler,
    c: Scheduler,
    l: Link,
    tokens: Seq<u32>,
    outcomes: Seq<Outcome>,
)
    requires
        may_commit(a, l),
        b.draft == 0,
        halfway(a, b, a.plans@[0].entries as int, a.plans@[0].entries as int, tokens, outcomes),
        b.plans@ == a.plans@.drop_first(),
        b.queue@ == a.queue@.skip(a.plans@[0].entries as int),
        refines(b, c),
    ensures
        fates(l.engine, tokens, outcomes),
        takes(c, l, commit_step(l, tokens)),
{
    lemma_apart(a, l);
    lemma_commit_takes(a, b, l, tokens);
    lemma_takes_later(b, c, l, commit_step(l, tokens));
    lemma_fates(a, b, l, tokens, outcomes);
}

/// Entry `k` of the oldest plan, for the machine.
proof fn lemma_oldest_entry(a: Scheduler, l: Link, k: int)
    requires
        may_commit(a, l),
        0 <= k < a.plans@[0].entries,
    ensures
        ({
            let (plan, e) = (l.engine.plans[0], a.queue@[k]);
            let c = plan.chunks[plan.order[k]];
            &&& k < a.queue@.len()
            &&& plan.order.len() == a.plans@[0].entries
            &&& used(a, e.seq as int) && a.seqs@[e.seq as int].live()
            &&& plan.order[k] == l.id(a, e.seq as int)
            &&& plan.chunks.dom().contains(plan.order[k])
            &&& plan.order.index_of(plan.order[k]) == k
            &&& c.first == e.from && c.end() == e.to && c.sample == e.sampled
            &&& sampled_before(a.queue@, k) == samples_before(plan, k)
        }),
    decreases k,
{
    let (plans, plan) = (l.engine.plans, l.engine.plans[0]);
    lemma_flights_first(plans);
    assert(flights(plans)[k] == chunks_of(plan)[k]);
    if k > 0 {
        lemma_oldest_entry(a, l, k - 1);
    }
}

pub proof fn lemma_apart(a: Scheduler, l: Link)
    requires
        may_commit(a, l),
    ensures
        apart(a.queue@, a.plans@[0].entries as int),
{
    let q = a.queue@;
    assert forall|j: int, k: int|
        #![trigger q[j], q[k]]
        0 <= j < k < a.plans@[0].entries implies q[j].seq != q[k].seq by {
        lemma_oldest_entry(a, l, j);
        lemma_oldest_entry(a, l, k);
    }
}

/// A sequence of the oldest plan becomes for the machine what it became.
proof fn lemma_advanced(a: Scheduler, c: Scheduler, l: Link, k: int, tokens: Seq<u32>)
    requires
        may_commit(a, l),
        0 <= k < a.plans@[0].entries,
        committed_upto(a, c, a.plans@[0].entries as int, tokens),
        linked_seat(a, a.queue@[k].seq as int),
    ensures
        ({
            let i = a.queue@[k].seq as int;
            let id = l.id(a, i);
            &&& in_use(c.seqs@[i])
            &&& c.seqs@[i].generation == a.seqs@[i].generation
            &&& model::after_commit(l.engine, drawn(l.engine.plans[0], tokens), id) == seq_of(
                c.groups@,
                c.seqs@[i],
                l.engine.seqs[id].request.logits_from,
            )
        }),
{
    reveal(committed_upto);
    let q = a.queue@;
    let (e, i) = (q[k], q[k].seq as int);
    let (id, s, d) = (l.id(a, i), a.seqs@[i], c.seqs@[i]);
    let token = token_of(q, tokens, k);
    lemma_oldest_entry(a, l, k);
    lemma_id(a, l, i);
    assert(committed_seq(s, d, e, token));
    assert(tables_of(c.groups@, d) =~= tables_of(a.groups@, s));
    assert(freed_of(c.groups@, d) =~= freed_of(a.groups@, s));
    let x = l.engine.seqs[id];
    assert(model::inv_sequence(l.engine, x));
    if s.phase is Running {
        assert(s.wf(a.config));
        assert(d.tokens@.take(d.prompt_len as int) =~= s.tokens@.take(s.prompt_len as int));
        assert(ints(s.tokens@.push(token)) =~= ints(s.tokens@).push(token as int));
        lemma_ints_contain(s.stop@, token);
    }
}

/// The seat of a sequence in use is one of the engine's.
pub open spec fn linked_seat(a: Scheduler, i: int) -> bool {
    a.seqs@[i].live() ==> a.seqs@[i].seat < a.config.max_seqs
}

/// The outcomes are what the machine says.
proof fn lemma_fates(a: Scheduler, c: Scheduler, l: Link, tokens: Seq<u32>, outcomes: Seq<Outcome>)
    requires
        may_commit(a, l),
        committed_upto(a, c, a.plans@[0].entries as int, tokens),
        outcomes_of(a, a.plans@[0].entries as int, tokens, outcomes),
    ensures
        fates(l.engine, tokens, outcomes),
{
    let (e, q, plan) = (l.engine, a.queue@, l.engine.plans[0]);
    let drew = drawn(plan, tokens);
    assert forall|k: int|
        #![trigger plan.order[k]]
        0 <= k < plan.order.len() && plan.samples(plan.order[k]) implies outcomes[samples_before(
        plan,
        k,
    )] == fate(
        e.seqs[plan.order[k]],
        model::after_commit(e, drew, plan.order[k]),
        drew[plan.order[k]],
    ) by {
        let i = q[k].seq as int;
        let token = token_of(q, tokens, k);
        lemma_oldest_entry(a, l, k);
        lemma_id(a, l, i);
        lemma_advanced(a, c, l, k, tokens);
        lemma_ints_contain(a.seqs@[i].stop@, token);
        assert(committed_seq(a.seqs@[i], c.seqs@[i], q[k], token)) by {
            reveal(committed_upto);
        }
        assert(outcomes[sampled_before(q, k)] == outcome_of(a.seqs@[i], q[k], token)) by {
            reveal(outcomes_of);
        }
    }
}

proof fn lemma_ints_contain(list: Seq<u32>, x: u32)
    ensures
        ints(list).contains(x as int) == list.contains(x),
{
    if list.contains(x) {
        assert(ints(list)[list.index_of(x)] == x as int);
    }
}

/// The plan's tokens are committed; what they seal is registered by silent steps.
pub proof fn lemma_commit_takes(a: Scheduler, c: Scheduler, l: Link, tokens: Seq<u32>)
    requires
        may_commit(a, l),
        c.draft == 0,
        committed_upto(a, c, a.plans@[0].entries as int, tokens),
        c.plans@ == a.plans@.drop_first(),
        c.queue@ == a.queue@.skip(a.plans@[0].entries as int),
    ensures
        takes(c, l, commit_step(l, tokens)),
{
    reveal(committed_upto);
    let m = commit_link(l, tokens);
    lemma_step_inv(l.engine, commit_step(l, tokens));
    lemma_commit_seqs(a, c, l, tokens);
    lemma_tables_relinked(a.groups@, c.groups@, l);
    lemma_commit_plans(a, c, l, tokens);
    let cache = |g: int, x: int| cache_of(c.groups@, g, x);
    assert forall|g: int, x: int| #[trigger]
        m.engine.registered.dom().contains((g, x)) implies cache(g, x) == Some(
        m.engine.registered[(g, x)],
    ) by {
        assert(cache_of(a.groups@, g, x) == Some(m.engine.registered[(g, x)]));
        assert(cached_for(a, c, a.plans@[0].entries as int, g, x));
    }
    assert forall|g: int, x: int|
        cache(g, x) is Some && !m.engine.registered.dom().contains((g, x)) implies registrable(
        m.engine,
        g,
        x,
        (#[trigger] cache(g, x))->0,
    ) by {
        assert(cache_of(a.groups@, g, x) is None);
        lemma_registrable(a, c, l, tokens, g, x);
    }
    let e = lemma_registers(m.engine, cache, m.engine.groups() as int, 0);
    lemma_moves_inv(m.engine, e, true);
    assert(cache_linked(c.groups@, e)) by {
        assert forall|g: int, x: int|
            #![trigger e.registered.dom().contains((g, x))]
            #![trigger cache_of(c.groups@, g, x)]
            block_linked(c.groups@, e, g, x) by {
            if cache(g, x) is Some && !m.engine.registered.dom().contains((g, x)) {
                assert(registrable(m.engine, g, x, cache(g, x)->0));
            }
        }
    }
    lemma_plans_relinked(c, c, m, m.with(e));
    lemma_seqs_kept(c, c, m, m.with(e));
    assert(arrives(c, m, e));
}

proof fn lemma_commit_seqs(a: Scheduler, c: Scheduler, l: Link, tokens: Seq<u32>)
    requires
        may_commit(a, l),
        committed_upto(a, c, a.plans@[0].entries as int, tokens),
    ensures
        names_linked(c, commit_link(l, tokens)),
        seqs_linked(c, commit_link(l, tokens)),
        forall|i: int|
            0 <= i < a.seqs@.len() ==> (#[trigger] c.seqs@[i]).generation == a.seqs@[i].generation,
{
    reveal(committed_upto);
    let (q, n) = (a.queue@, a.plans@[0].entries as int);
    let (plan, m) = (l.engine.plans[0], commit_link(l, tokens));
    assert forall|i: int| 0 <= i < a.seqs@.len() implies (#[trigger] c.seqs@[i]).generation
        == a.seqs@[i].generation && in_use(c.seqs@[i]) == in_use(a.seqs@[i]) && (in_use(a.seqs@[i])
        ==> seq_linked(c, m, i)) by {
        if in_use(a.seqs@[i]) {
            lemma_id(a, l, i);
        }
        if named(q, n, i) {
            let k = choose|k: int| 0 <= k < n && (#[trigger] q[k]).seq == i;
            lemma_oldest_entry(a, l, k);
            lemma_advanced(a, c, l, k, tokens);
        } else if in_use(a.seqs@[i]) {
            let id = l.id(a, i);
            assert(!plan.chunks.dom().contains(id)) by {
                if plan.chunks.dom().contains(id) {
                    assert(model::inv_order(plan));
                    let k = plan.order.index_of(id);
                    lemma_oldest_entry(a, l, k);
                    lemma_id(a, l, q[k].seq as int);
                    assert(q[k].seq == i);
                }
            }
            assert(tables_of(c.groups@, c.seqs@[i]) =~= tables_of(a.groups@, a.seqs@[i]));
            assert(freed_of(c.groups@, c.seqs@[i]) =~= freed_of(a.groups@, a.seqs@[i]));
        }
    }
    assert(same_names(a, c));
    lemma_same_names(a, c, l);
    assert forall|id: int| #[trigger] m.engine.has(id) implies placed(c, m, id) by {
        lemma_placed(a, l, id);
    }
}

proof fn lemma_commit_plans(a: Scheduler, c: Scheduler, l: Link, tokens: Seq<u32>)
    requires
        may_commit(a, l),
        c.draft == 0,
        c.plans@ == a.plans@.drop_first(),
        c.queue@ == a.queue@.skip(a.plans@[0].entries as int),
        forall|i: int|
            0 <= i < a.seqs@.len() ==> (#[trigger] c.seqs@[i]).generation == a.seqs@[i].generation,
    ensures
        plans_linked(c, commit_link(l, tokens)),
{
    let (plans, n) = (l.engine.plans, a.plans@[0].entries as int);
    let m = commit_link(l, tokens);
    lemma_flights_first(plans);
    assert forall|k: int| 0 <= k < c.queue@.len() implies #[trigger] flights(plans.drop_first())[k]
        == flight_of(c, m, c.queue@[k]) by {
        assert(flights(plans)[n + k] == flights(plans.drop_first())[k]);
        assert(a.seqs@[a.queue@[n + k].seq as int].live());
        assert(c.seqs@[a.queue@[n + k].seq as int].generation == a.seqs@[a.queue@[n
            + k].seq as int].generation);
    }
    assert forall|k: int| 0 <= k < c.plans@.len() implies (#[trigger] c.plans@[k]).entries
        == m.engine.plans[k].order.len() by {}
}

proof fn lemma_registrable(a: Scheduler, c: Scheduler, l: Link, tokens: Seq<u32>, g: int, x: int)
    requires
        may_commit(a, l),
        committed_upto(a, c, a.plans@[0].entries as int, tokens),
        cache_of(a.groups@, g, x) is None,
        cache_of(c.groups@, g, x) is Some,
    ensures
        registrable(commit_link(l, tokens).engine, g, x, cache_of(c.groups@, g, x)->0),
{
    reveal(committed_upto);
    let e = commit_link(l, tokens).engine;
    let (q, n, size) = (a.queue@, a.plans@[0].entries as int, a.config.block_size as int);
    assert(cached_for(a, c, n, g, x));
    let j = choose|j: int|
        0 <= j < n && sealed_by(a, #[trigger] q[j], g, x, c.groups@[g].cached(x));
    let i = q[j].seq as int;
    let s = a.seqs@[i];
    lemma_oldest_entry(a, l, j);
    lemma_id(a, l, i);
    lemma_advanced(a, c, l, j, tokens);
    assert(committed_seq(s, c.seqs@[i], q[j], token_of(q, tokens, j)));
    let table = a.groups@[g].seat(s.seat as int).table;
    let freed = a.groups@[g].seat(s.seat as int).freed;
    assert(same_table(a.groups@[g].seat(s.seat as int), c.groups@[g].seat(s.seat as int)));
    let k = choose|k: int|
        freed <= k < table.len() && k < q[j].to as int / size && #[trigger] table[k] == x
            && c.groups@[g].cached(x) == Some((s.salt, s.tokens@.take((k + 1) * size)));
    let id = l.id(a, i);
    assert(e.seqs[id].tables[g][k] == x);
    assert(e.seqs[id].freed[g] == freed);
    assert((k + 1) * size <= q[j].to) by (nonlinear_arith)
        requires
            k < q[j].to as int / size,
            size > 0,
    ;
    assert((k + 1) * size >= 0) by (nonlinear_arith)
        requires
            k >= 0,
            size > 0,
    ;
    assert(ints(c.seqs@[i].tokens@).take((k + 1) * size) =~= ints(s.tokens@.take((k + 1) * size)));
    assert(e.has_block(id, g, k) && e.block(id, g, k) == x && k < e.sealed(id));
}

} // verus!
