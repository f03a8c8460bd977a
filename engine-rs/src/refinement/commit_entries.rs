//! The entries of the oldest plan are committed one after the other.
use super::*;
use vstd::prelude::*;

verus! {

/// No sequence has two of the first `n` entries.
pub open spec fn apart(q: Seq<Entry>, n: int) -> bool {
    forall|j: int, k: int| #![trigger q[j], q[k]] 0 <= j < k < n ==> q[j].seq != q[k].seq
}

/// The token of the `k`-th entry, if it is sampled.
pub open spec fn token_of(q: Seq<Entry>, tokens: Seq<u32>, k: int) -> u32 {
    if q[k].sampled {
        tokens[sampled_before(q, k)]
    } else {
        0
    }
}

/// One of the first `k` entries is of sequence `i`.
pub open spec fn named(q: Seq<Entry>, k: int, i: int) -> bool {
    exists|j: int| 0 <= j < k && (#[trigger] q[j]).seq == i
}

/// Entry `e` sealed block `x` of group `g`, which is cached as `p` for that.
pub open spec fn sealed_by(
    a: Scheduler,
    e: Entry,
    g: int,
    x: int,
    p: Option<(u64, Seq<u32>)>,
) -> bool {
    let (s, size) = (a.seqs@[e.seq as int], a.config.block_size);
    let v = a.groups@[g].seat(s.seat as int);
    &&& s.phase is Running
    &&& exists|n: int|
        v.freed <= n < v.table.len() && n < e.to as int / size as int && #[trigger] v.table[n] == x
            && p == Some((s.salt, s.tokens@.take((n + 1) * size)))
}

/// Block `x` is cached as it was, or newly for one of the first `k` entries of the queue of `a`.
pub open spec fn cached_for(a: Scheduler, b: Scheduler, k: int, g: int, x: int) -> bool {
    b.groups@[g].cached(x) == a.groups@[g].cached(x) || a.groups@[g].cached(x) is None && exists|
        j: int,
    |
        0 <= j < k && sealed_by(a, #[trigger] a.queue@[j], g, x, b.groups@[g].cached(x))
}

/// `b` is `a` after the first `k` entries of its queue were committed with `tokens`.
#[verifier::opaque]
pub open spec fn committed_upto(a: Scheduler, b: Scheduler, k: int, tokens: Seq<u32>) -> bool {
    let q = a.queue@;
    &&& same_tables(a, b, -1)
    &&& all_logged(a.groups@, b.groups@)
    &&& a.seqs@.len() == b.seqs@.len()
    &&& b.free_entries == a.free_entries
    &&& forall|j: int|
        0 <= j < k ==> committed_seq(
            a.seqs@[(#[trigger] q[j]).seq as int],
            b.seqs@[q[j].seq as int],
            q[j],
            token_of(q, tokens, j),
        )
    &&& forall|i: int|
        #![trigger a.seqs@[i]]
        #![trigger b.seqs@[i]]
        0 <= i < a.seqs@.len() && !named(q, k, i) ==> b.seqs@[i] == a.seqs@[i]
    &&& forall|g: int, x: int|
        #![trigger b.groups@[g].cached(x)]
        0 <= g < b.groups@.len() ==> cached_for(a, b, k, g, x)
}

/// `c` is `b` after entry `e` was committed with `token`.
pub open spec fn entry_committed(
    b: Scheduler,
    c: Scheduler,
    e: Entry,
    token: u32,
    outcome: Outcome,
) -> bool {
    let s = b.seqs@[e.seq as int];
    &&& c.only_seq(&b, e.seq as int)
    &&& c.free_entries == b.free_entries
    &&& same_tables(b, c, -1)
    &&& all_logged(b.groups@, c.groups@)
    &&& committed_seq(s, c.seqs@[e.seq as int], e, token)
    &&& outcome == outcome_of(s, e, token)
    &&& forall|g: int, x: int|
        #![trigger c.groups@[g].cached(x)]
        0 <= g < c.groups@.len() ==> c.groups@[g].cached(x) == b.groups@[g].cached(x)
            || b.groups@[g].cached(x) is None && sealed_by(b, e, g, x, c.groups@[g].cached(x))
}

/// One entry more.
proof fn lemma_committed_upto(a: Scheduler, b: Scheduler, c: Scheduler, k: int, tokens: Seq<u32>)
    requires
        a.inv(),
        apart(a.queue@, k + 1),
        0 <= k < a.queue@.len(),
        committed_upto(a, b, k, tokens),
        exists|outcome: Outcome| #[trigger]
            entry_committed(b, c, a.queue@[k], token_of(a.queue@, tokens, k), outcome),
    ensures
        committed_upto(a, c, k + 1, tokens),
        b.seqs@[a.queue@[k].seq as int] == a.seqs@[a.queue@[k].seq as int],
{
    reveal(committed_upto);
    let q = a.queue@;
    let i = q[k].seq as int;
    assert forall|m: int|
        #![trigger a.seqs@[m]]
        #![trigger c.seqs@[m]]
        0 <= m < a.seqs@.len() && !named(q, k + 1, m) implies c.seqs@[m] == a.seqs@[m] by {
        assert(m != i && !named(q, k, m));
        assert(b.seqs@[m] == a.seqs@[m]);
    }
    assert forall|g: int, x: int|
        #![trigger c.groups@[g].cached(x)]
        0 <= g < c.groups@.len() implies cached_for(a, c, k + 1, g, x) by {
        assert(cached_for(a, b, k, g, x));
        if c.groups@[g].cached(x) != b.groups@[g].cached(x) {
            let seat = a.seqs@[i].seat as int;
            assert(b.groups@[g].seat(seat).table == a.groups@[g].seat(seat).table);
            assert(sealed_by(a, q[k], g, x, c.groups@[g].cached(x)));
        } else if b.groups@[g].cached(x) != a.groups@[g].cached(x) {
            let j = choose|j: int|
                0 <= j < k && sealed_by(a, #[trigger] q[j], g, x, b.groups@[g].cached(x));
        }
    }
}

/// What is known after the first `k` entries, if no sequence has two of the first `n`.
pub open spec fn halfway(
    a: Scheduler,
    b: Scheduler,
    k: int,
    n: int,
    tokens: Seq<u32>,
    outcomes: Seq<Outcome>,
) -> bool {
    apart(a.queue@, n) ==> committed_upto(a, b, k, tokens) && outcomes_of(a, k, tokens, outcomes)
}

pub proof fn lemma_halfway(
    a: Scheduler,
    b: Scheduler,
    c: Scheduler,
    k: int,
    n: int,
    tokens: Seq<u32>,
    outcomes: Seq<Outcome>,
    outcome: Outcome,
)
    requires
        a.inv(),
        0 <= k < n <= a.queue@.len(),
        halfway(a, b, k, n, tokens, outcomes),
        entry_committed(b, c, a.queue@[k], token_of(a.queue@, tokens, k), outcome),
    ensures
        halfway(
            a,
            c,
            k + 1,
            n,
            tokens,
            if a.queue@[k].sampled {
                outcomes.push(outcome)
            } else {
                outcomes
            },
        ),
{
    if apart(a.queue@, n) {
        lemma_committed_upto(a, b, c, k, tokens);
        lemma_outcomes(a, k, tokens, outcomes, outcome);
    }
}

proof fn lemma_outcomes(
    a: Scheduler,
    k: int,
    tokens: Seq<u32>,
    outcomes: Seq<Outcome>,
    outcome: Outcome,
)
    requires
        0 <= k < a.queue@.len(),
        outcomes_of(a, k, tokens, outcomes),
        outcome == outcome_of(
            a.seqs@[a.queue@[k].seq as int],
            a.queue@[k],
            token_of(a.queue@, tokens, k),
        ),
    ensures
        outcomes_of(
            a,
            k + 1,
            tokens,
            if a.queue@[k].sampled {
                outcomes.push(outcome)
            } else {
                outcomes
            },
        ),
{
    reveal(outcomes_of);
    let q = a.queue@;
    assert forall|j: int| 0 <= j < k && (#[trigger] q[j]).sampled implies 0 <= sampled_before(q, j)
        < outcomes.len() by {
        lemma_sampled_before(q, j, j);
        lemma_sampled_before(q, j + 1, k);
    }
}

/// Nothing was committed yet.
pub proof fn lemma_halfway_none(a: Scheduler, b: Scheduler, n: int, tokens: Seq<u32>)
    requires
        b == (Scheduler { plans: b.plans, ..a }),
    ensures
        halfway(a, b, 0, n, tokens, Seq::empty()),
{
    reveal(committed_upto);
    reveal(outcomes_of);
}

} // verus!
