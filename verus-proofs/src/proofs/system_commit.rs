//! Commit keeps the system's invariant: what was executed becomes what is known, and is given out.
use crate::model::*;
use crate::proofs::chains::*;
use crate::proofs::steps_plan::*;
use crate::proofs::streams::*;
use crate::proofs::system_engine::*;
use crate::proofs::system_inv::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// A faithful commit.
pub open spec fn commits<D: Kernels + Sampler>(
    s: System<D>,
    tokens: Map<int, Token>,
    s2: System<D>,
) -> bool {
    &&& system_inv(s)
    &&& can_commit(s.engine, tokens)
    &&& s.ran.len() > 0
    &&& drew(s, tokens)
    &&& s2 == (System {
        engine: commit(s.engine, tokens),
        ran: s.ran.drop_first(),
        log: Map::new(s.log.dom(), |id: int| given(s, id)),
        ..s
    })
}

/// The oldest plan has rows of `id`, which is alive: it gets something.
pub open spec fn gets<D: Kernels + Sampler>(s: System<D>, id: int) -> bool {
    s.engine.plans[0].chunks.dom().contains(id) && s.engine.seqs[id].alive
}

/// The stream after the first plan is the reference, one output further where it drew.
pub proof fn lemma_first_draw<D: Kernels + Sampler>(
    s: System<D>,
    tokens: Map<int, Token>,
    s2: System<D>,
    id: int,
)
    requires
        commits(s, tokens, s2),
        gets(s, id),
    ensures
        ({
            let r = s.log[id];
            let r2 = s2.log[id];
            let c = s.engine.plans[0].chunks[id];
            &&& r2.stream.tokens == s2.engine.seqs[id].known
            &&& r2.stream == if c.sample {
                extend::<D>(r.stream, logits_of::<D>(s.weights, r.stream.tokens))
            } else {
                r.stream
            }
            &&& c.first == s.engine.seqs[id].computed
            &&& c.end() <= r.stream.tokens.len()
            &&& c.sample ==> c.end() == r.stream.tokens.len()
        }),
{
    let q = s.engine.seqs[id];
    lemma_head(s.engine.plans, id, q.computed, q.known);
    if s.engine.plans[0].chunks[id].sample {
    } else {
        assert(stream(s, id, 1) == stream(s, id, 0));
    }
}

proof fn lemma_given_record<D: Kernels + Sampler>(
    s: System<D>,
    tokens: Map<int, Token>,
    s2: System<D>,
    id: int,
)
    requires
        commits(s, tokens, s2),
        s.engine.has(id),
        gets(s, id),
    ensures
        inv_record(s2.log[id]),
        inv_open_record(s2, id),
{
    let r = s.log[id];
    let r2 = s2.log[id];
    let c = s.engine.plans[0].chunks[id];
    let old = r.stream.tokens;
    let new = r2.stream.tokens;
    lemma_first_draw(s, tokens, s2, id);
    assert(inv_stream(r2)) by {
        assert forall|m: int| 0 <= m < new.len() implies !r2.request.ends(
            #[trigger] new.take(m),
        ) by {
            assert(new.take(m) =~= old.take(m));
        }
        if c.sample {
            assert(outputs(r2) == outputs(r) + 1);
            assert(r2.stream == reference::<D>(
                r.weights,
                r.request.prompt,
                r.initial,
                outputs(r2),
            ));
        }
    }
    assert(inv_logits(r2)) by {
        assert forall|p: int| #[trigger] r2.logits.dom().contains(p) implies 0 <= p < new.len()
            && r2.logits[p] == logits_of::<D>(r2.weights, new.take(p + 1)) by {
            let delivered = c.first <= p < c.end() && c.logits_from <= p;
            if delivered {
                assert(s.ran[0].logits[id][p - c.first] == logits_of::<D>(
                    s.weights,
                    old.take(p + 1),
                ));
            } else {
                assert(r.logits.dom().contains(p));
            }
            assert(new.take(p + 1) =~= old.take(p + 1));
        }
    }
    assert(delivered_to(r2, s2.engine.seqs[id].need_from as int));
}

pub proof fn lemma_system_commit<D: Kernels + Sampler>(
    s: System<D>,
    tokens: Map<int, Token>,
    s2: System<D>,
)
    requires
        commits(s, tokens, s2),
    ensures
        system_inv(s2),
{
    lemma_commit(s.engine, tokens);
    assert forall|id: int| #[trigger] s2.engine.has(id) implies inv_open_record(s2, id) by {
        if gets(s, id) {
            lemma_given_record(s, tokens, s2, id);
        }
    }
    assert(inv_log(s2)) by {
        assert forall|id: int| #[trigger] s2.log.dom().contains(id) implies id < s2.engine.next_id
            && inv_record(s2.log[id]) by {
            if gets(s, id) {
                lemma_given_record(s, tokens, s2, id);
            }
        }
    }
    lemma_commit_memory(s, tokens, s2);
    lemma_commit_executed(s, tokens, s2);
    lemma_commit_outcomes(s, tokens, s2);
}

/// The oldest plan was executed: its rows are within what is executed.
proof fn lemma_oldest_executed<D: Kernels + Sampler>(s: System<D>, id: int, n: nat)
    requires
        system_inv(s),
        1 <= n <= s.ran.len(),
        gets(s, id),
    ensures
        s.engine.plans[0].chunks[id].end() <= frontier(
            s.engine.plans.take(n as int),
            id,
            s.engine.seqs[id].computed,
        ),
    decreases n,
{
    if n > 1 {
        lemma_oldest_executed(s, id, (n - 1) as nat);
        lemma_executed_grows(s, id, (n - 1) as nat);
    }
}

proof fn lemma_commit_memory<D: Kernels + Sampler>(
    s: System<D>,
    tokens: Map<int, Token>,
    s2: System<D>,
)
    requires
        commits(s, tokens, s2),
    ensures
        inv_memory(s2),
{
    let e = s.engine;
    let plan = e.plans[0];
    assert forall|slot: Slot| #[trigger] s2.engine.content.dom().contains(slot) implies (s2.memory)(
        slot,
    ) == kv_value::<D>(s2.weights, s2.engine.content[slot].tokens, slot.group) by {
        if committed(e, plan, slot) {
            let (id, p) = choose|id: int, p: int| #[trigger]
                writes(e, plan, slot, id, p) && e.seqs[id].alive;
            let q = e.seqs[id];
            lemma_oldest_executed(s, id, s.ran.len());
            lemma_head(e.plans, id, q.computed, q.known);
            lemma_stream(s, id, s.ran.len());
        }
    }
}

proof fn lemma_commit_executed<D: Kernels + Sampler>(
    s: System<D>,
    tokens: Map<int, Token>,
    s2: System<D>,
)
    requires
        commits(s, tokens, s2),
    ensures
        inv_executed(s2),
{
    let r = s.ran.len() as int;
    let plans = s.engine.plans;
    assert forall|id: int, g: int, p: int|
        #![trigger s2.engine.slot(id, g, p)]
        executed_row(s2, id, g, p) implies holds_kv(s2, s2.memory, id, g, p) by {
        let q = s.engine.seqs[id];
        lemma_log_shift(s, tokens, s2, id);
        lemma_stream_shift(s, s2, id, (r - 1) as nat);
        lemma_shift_counts(plans.take(r), id, q.computed);
        assert(plans.take(r).drop_first() =~= s2.engine.plans.take(r - 1));
    }
}

/// The log after a commit is the stream after the first plan.
proof fn lemma_log_shift<D: Kernels + Sampler>(
    s: System<D>,
    tokens: Map<int, Token>,
    s2: System<D>,
    id: int,
)
    requires
        commits(s, tokens, s2),
        s.engine.has(id),
        s.engine.seqs[id].alive,
    ensures
        s2.log[id].stream == stream(s, id, 1),
{
    if !gets(s, id) {
        assert(stream(s, id, 1) == stream(s, id, 0));
    }
}

proof fn lemma_commit_outcomes<D: Kernels + Sampler>(
    s: System<D>,
    tokens: Map<int, Token>,
    s2: System<D>,
)
    requires
        commits(s, tokens, s2),
    ensures
        inv_outcomes(s2),
{
    assert forall|m: int, id: int|
        0 <= m < s2.ran.len() && #[trigger] s2.engine.plans[m].chunks.dom().contains(id)
            && s2.engine.seqs[id].alive implies inv_outcome(s2, m, id) by {
        lemma_log_shift(s, tokens, s2, id);
        lemma_stream_shift(s, s2, id, m as nat);
    }
}

} // verus!
