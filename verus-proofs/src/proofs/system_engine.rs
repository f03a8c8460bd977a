//! The engine's moves keep the system's invariant, all but Commit.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::proofs::engine::*;
use crate::proofs::execute::*;
use crate::proofs::steps_simple::*;
use crate::proofs::steps_table::*;
use crate::proofs::streams::*;
use crate::proofs::system_inv::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// Sequence `id` has the same executed rows, at the same places, as before; or none.
pub open spec fn rows_kept<D: Kernels + Sampler>(s: System<D>, s2: System<D>, id: int) -> bool {
    let q = s.engine.seqs[id];
    let q2 = s2.engine.seqs[id];
    ||| executed(s2, id) <= q2.computed
    ||| {
        &&& s.engine.has(id) && q.alive
        &&& q2.computed == q.computed
        &&& executed(s2, id) <= executed(s, id)
        &&& forall|g: int, p: int|
            0 <= g < s.engine.groups() && 0 <= p < executed(s, id) ==> #[trigger] s2.engine.slot(
                id,
                g,
                p,
            ) == s.engine.slot(id, g, p)
    }
}

/// Steps that leave outcomes and records as they are.
pub open spec fn quiet<D: Kernels + Sampler>(s: System<D>, s2: System<D>) -> bool {
    &&& system_inv(s)
    &&& inv(s2.engine)
    &&& s2 == (System { engine: s2.engine, ..s })
    &&& s2.engine.shape == s.engine.shape
    &&& s2.engine.next_id == s.engine.next_id
    &&& s.ran.len() <= s2.engine.plans.len()
    &&& forall|n: int| 0 <= n < s.ran.len() ==> #[trigger] s2.engine.plans[n] == s.engine.plans[n]
    &&& forall|slot: Slot| #[trigger]
        s2.engine.content.dom().contains(slot) ==> s.engine.content.dom().contains(slot)
            && s2.engine.content[slot] == s.engine.content[slot]
    &&& forall|id: int| #[trigger]
        s2.engine.has(id) ==> {
            &&& s.engine.has(id)
            &&& s2.engine.seqs[id].request == s.engine.seqs[id].request
            &&& s2.engine.seqs[id].known == s.engine.seqs[id].known
            &&& s2.engine.seqs[id].need_from == s.engine.seqs[id].need_from
            &&& s2.engine.seqs[id].alive ==> s.engine.seqs[id].alive && rows_kept(s, s2, id)
        }
}

pub proof fn lemma_quiet<D: Kernels + Sampler>(s: System<D>, s2: System<D>)
    requires
        quiet(s, s2),
    ensures
        system_inv(s2),
{
    let n = s.ran.len();
    assert(inv_executed(s2)) by {
        assert forall|id: int, g: int, p: int|
            #![trigger s2.engine.slot(id, g, p)]
            executed_row(s2, id, g, p) implies holds_kv(s2, s2.memory, id, g, p) by {
            lemma_stream_frame(s, s2, id, n);
        }
    }
    assert forall|m: int, id: int|
        0 <= m < s2.ran.len() && #[trigger] s2.engine.plans[m].chunks.dom().contains(id)
            && s2.engine.seqs[id].alive implies inv_outcome(s2, m, id) by {
        lemma_stream_frame(s, s2, id, m as nat);
    }
}

/// Without rows in flight nothing is executed and not committed.
pub proof fn lemma_idle(e: Engine, id: int, n: int, computed: nat)
    requires
        !e.in_flight(id),
        0 <= n <= e.plans.len(),
    ensures
        frontier(e.plans.take(n), id, computed) == computed,
{
    let some = e.plans.take(n);
    lemma_no_chunks(some, id, computed, Seq::empty());
}

/// A sequence without seat has nothing in flight.
pub proof fn lemma_waiting_idle(e: Engine, id: int)
    requires
        inv(e),
        e.seqs[id].seat is None,
    ensures
        !e.in_flight(id),
{
}

/// Admit, Share, Preempt: the sequence has nothing in flight before and after.
pub proof fn lemma_put_idle<D: Kernels + Sampler>(
    s: System<D>,
    s2: System<D>,
    id: int,
    q2: Sequence,
)
    requires
        system_inv(s),
        inv(s2.engine),
        s.engine.has(id),
        !s.engine.in_flight(id),
        s2 == (System { engine: s.engine.put(id, q2), ..s }),
        q2.request == s.engine.seqs[id].request,
        q2.known == s.engine.seqs[id].known,
        q2.need_from == s.engine.seqs[id].need_from,
        q2.alive ==> s.engine.seqs[id].alive,
    ensures
        system_inv(s2),
{
    assert forall|a: int| s2.engine.has(a) && s2.engine.seqs[a].alive implies #[trigger] rows_kept(
        s,
        s2,
        a,
    ) by {
        if a == id {
            lemma_idle(s2.engine, id, s.ran.len() as int, q2.computed);
        }
    }
    lemma_quiet(s, s2);
}

pub proof fn lemma_system_grow<D: Kernels + Sampler>(
    s: System<D>,
    s2: System<D>,
    id: int,
    group: int,
    block: int,
)
    requires
        system_inv(s),
        inv(s2.engine),
        next(s.engine, Step::Grow { id, group, block }, s2.engine),
        s2 == (System { engine: s2.engine, ..s }),
    ensures
        system_inv(s2),
{
    assert forall|a: int| s2.engine.has(a) && s2.engine.seqs[a].alive implies #[trigger] rows_kept(
        s,
        s2,
        a,
    ) by {
        assert forall|g: int, p: int|
            0 <= g < s.engine.groups() && 0 <= p < executed(s, a) implies #[trigger] s2.engine.slot(
            a,
            g,
            p,
        ) == s.engine.slot(a, g, p) by {
            lemma_executed_covered(s.engine, a, s.ran.len() as int, g);
            lemma_block_index(s.engine.shape.block_size, p, s.engine.seqs[a].tables[g].len());
        }
    }
    lemma_quiet(s, s2);
}

pub proof fn lemma_system_schedule<D: Kernels + Sampler>(s: System<D>, s2: System<D>, plan: Plan)
    requires
        system_inv(s),
        inv(s2.engine),
        next(s.engine, Step::Schedule { plan }, s2.engine),
        s2 == (System { engine: s2.engine, ..s }),
    ensures
        system_inv(s2),
{
    assert(s2.engine.plans.take(s.ran.len() as int) =~= s.engine.plans.take(s.ran.len() as int));
    lemma_quiet(s, s2);
}

/// A new request.
pub proof fn lemma_system_add<D: Kernels + Sampler>(
    s: System<D>,
    s2: System<D>,
    request: Request,
    initial: D::State,
)
    requires
        system_inv(s),
        inv(s2.engine),
        s2.engine == added(s.engine, request),
        s2 == (System {
            engine: s2.engine,
            log: s.log.insert(s.engine.next_id, new_record::<D>(s.weights, request, initial)),
            ..s
        }),
    ensures
        system_inv(s2),
{
    let id = s.engine.next_id;
    let n = s.ran.len();
    assert(inv_executed(s2)) by {
        assert forall|a: int, g: int, p: int|
            #![trigger s2.engine.slot(a, g, p)]
            executed_row(s2, a, g, p) implies holds_kv(s2, s2.memory, a, g, p) by {
            if a == id {
                lemma_idle(s2.engine, id, n as int, 0);
            } else {
                lemma_stream_frame(s, s2, a, n);
                assert(s2.engine.slot(a, g, p) == s.engine.slot(a, g, p));
            }
        }
    }
    assert forall|m: int, a: int|
        0 <= m < s2.ran.len() && #[trigger] s2.engine.plans[m].chunks.dom().contains(a)
            && s2.engine.seqs[a].alive implies inv_outcome(s2, m, a) by {
        lemma_stream_frame(s, s2, a, m as nat);
    }
}

pub proof fn lemma_system_cancel<D: Kernels + Sampler>(s: System<D>, s2: System<D>)
    requires
        system_inv(s),
        inv(s2.engine),
        next(s.engine, Step::Cancel, s2.engine),
        s2.engine.plans == s.engine.plans.drop_last(),
        s2 == (System {
            engine: s2.engine,
            ran: if s.ran.len() < s.engine.plans.len() {
                s.ran
            } else {
                s.ran.drop_last()
            },
            ..s
        }),
    ensures
        system_inv(s2),
{
    let plans = s.engine.plans;
    let r = s2.ran.len();
    let n = s.ran.len();
    assert(s2.engine.plans.take(r as int) =~= plans.take(r as int));
    assert(inv_executed(s2)) by {
        assert forall|id: int, g: int, p: int|
            #![trigger s2.engine.slot(id, g, p)]
            executed_row(s2, id, g, p) implies holds_kv(s2, s2.memory, id, g, p) by {
            lemma_stream_frame(s, s2, id, r);
            if r < n {
                lemma_executed_grows(s, id, r);
                lemma_executed_within(s, id, r);
                lemma_stream_extends(s, id, r, p + 1);
            }
        }
    }
    assert forall|m: int, id: int|
        0 <= m < s2.ran.len() && #[trigger] s2.engine.plans[m].chunks.dom().contains(id)
            && s2.engine.seqs[id].alive implies inv_outcome(s2, m, id) by {
        lemma_stream_frame(s, s2, id, m as nat);
    }
}

/// One more plan executed gets a sequence no less far.
pub proof fn lemma_executed_grows<D: Kernels + Sampler>(s: System<D>, id: int, n: nat)
    requires
        system_inv(s),
        s.engine.seqs[id].alive,
        n < s.ran.len(),
    ensures
        frontier(s.engine.plans.take(n as int), id, s.engine.seqs[id].computed) <= frontier(
            s.engine.plans.take((n + 1) as int),
            id,
            s.engine.seqs[id].computed,
        ),
{
    let plans = s.engine.plans;
    assert(plans.take((n + 1) as int).drop_last() =~= plans.take(n as int));
    if plans[n as int].chunks.dom().contains(id) {
        crate::proofs::chains::lemma_chain_at(
            plans,
            id,
            s.engine.seqs[id].computed,
            s.engine.seqs[id].known,
            n as int,
        );
    }
}

/// Executed rows are rows of tokens in the stream.
pub proof fn lemma_executed_within<D: Kernels + Sampler>(s: System<D>, id: int, n: nat)
    requires
        system_inv(s),
        s.engine.has(id),
        s.engine.seqs[id].alive,
        n <= s.ran.len(),
    ensures
        frontier(s.engine.plans.take(n as int), id, s.engine.seqs[id].computed) <= stream(
            s,
            id,
            n,
        ).tokens.len(),
    decreases n,
{
    let plans = s.engine.plans;
    let q = s.engine.seqs[id];
    if n > 0 {
        lemma_executed_within(s, id, (n - 1) as nat);
        lemma_stream(s, id, (n - 1) as nat);
        assert(plans.take(n as int).drop_last() =~= plans.take(n - 1));
        crate::proofs::chains::lemma_chain_at(plans, id, q.computed, q.known, n - 1);
    }
}

/// All engine moves but Commit.
pub proof fn lemma_engine_moves<D: Kernels + Sampler>(
    s: System<D>,
    step: Step,
    initial: D::State,
    weights: D::Weights,
    s2: System<D>,
)
    requires
        system_inv(s),
        engine_moves(s, step, initial, weights, s2),
        !(step is Commit),
    ensures
        system_inv(s2),
{
    let e = s.engine;
    lemma_step(e, step, s2.engine);
    match step {
        Step::Add { request } => lemma_system_add(s, s2, request, initial),
        Step::Fork { parent, logits_from } => {
            lemma_system_add(s, s2, Request { logits_from, ..e.seqs[parent].request }, initial);
        },
        Step::Admit { id, .. } => {
            lemma_put_idle(s, s2, id, s2.engine.seqs[id]);
        },
        Step::Share { id, .. } => {
            lemma_waiting_idle(e, id);
            lemma_put_idle(s, s2, id, s2.engine.seqs[id]);
        },
        Step::Grow { id, group, block } => lemma_system_grow(s, s2, id, group, block),
        Step::Slide { .. } => lemma_quiet(s, s2),
        Step::Schedule { plan } => lemma_system_schedule(s, s2, plan),
        Step::Cancel => lemma_system_cancel(s, s2),
        Step::Register { .. } => lemma_quiet(s, s2),
        Step::Evict { .. } => lemma_quiet(s, s2),
        Step::Preempt { id } => lemma_put_idle(s, s2, id, s2.engine.seqs[id]),
        Step::Abort { .. } => lemma_quiet(s, s2),
        Step::Finish { .. } => lemma_quiet(s, s2),
        Step::Reset => lemma_quiet(s, s2),
        Step::Commit { .. } | Step::Load { .. } => {},
    }
}

} // verus!
