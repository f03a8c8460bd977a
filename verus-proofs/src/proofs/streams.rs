//! Streams: a sequence with the tokens drawn for it by executed plans that are still in flight.
use crate::model::*;
use crate::proofs::system_inv::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// A stream is what is known plus one token for each draw, and only grows.
pub proof fn lemma_stream<D: Kernels + Sampler>(s: System<D>, id: int, n: nat)
    requires
        system_inv(s),
        s.engine.has(id),
        s.engine.seqs[id].alive,
        n <= s.ran.len(),
    ensures
        stream(s, id, n).tokens.len() == s.engine.seqs[id].known.len() + draws(
            s.engine.plans.take(n as int),
            id,
        ),
        forall|k: int|
            0 <= k <= s.engine.seqs[id].known.len() ==> #[trigger] stream(s, id, n).tokens.take(k)
                == s.engine.seqs[id].known.take(k),
    decreases n,
{
    let known = s.engine.seqs[id].known;
    let plans = s.engine.plans;
    if n == 0 {
    } else {
        let m = (n - 1) as nat;
        lemma_stream(s, id, m);
        assert(plans.take(n as int).drop_last() =~= plans.take(m as int));
        if plans[m as int].samples(id) {
            let old = stream(s, id, m).tokens;
            let new = stream(s, id, n).tokens;
            assert forall|k: int| 0 <= k <= known.len() implies #[trigger] new.take(k)
                == known.take(k) by {
                assert(new.take(k) =~= old.take(k));
            }
        }
    }
}

/// A row's prefix does not change when later plans draw more.
pub proof fn lemma_stream_extends<D: Kernels + Sampler>(s: System<D>, id: int, n: nat, k: int)
    requires
        system_inv(s),
        s.engine.seqs[id].alive,
        n < s.ran.len(),
        0 <= k <= stream(s, id, n).tokens.len(),
    ensures
        stream(s, id, n + 1).tokens.take(k) == stream(s, id, n).tokens.take(k),
{
}

/// Streams depend on the log of the sequence, the plans and the outcomes alone.
pub proof fn lemma_stream_frame<D: Kernels + Sampler>(s: System<D>, s2: System<D>, id: int, n: nat)
    requires
        s.log[id].stream == s2.log[id].stream,
        forall|m: int| 0 <= m < n ==> #[trigger] s.engine.plans[m] == s2.engine.plans[m],
        forall|m: int| 0 <= m < n ==> #[trigger] s.ran[m] == s2.ran[m],
    ensures
        stream(s, id, n) == stream(s2, id, n),
    decreases n,
{
    if n > 0 {
        lemma_stream_frame(s, s2, id, (n - 1) as nat);
    }
}

/// Committing the oldest plan moves the first draw from the stream to the log.
pub proof fn lemma_stream_shift<D: Kernels + Sampler>(s: System<D>, s2: System<D>, id: int, n: nat)
    requires
        s2.log[id].stream == stream(s, id, 1),
        s2.engine.plans == s.engine.plans.drop_first(),
        s2.ran == s.ran.drop_first(),
        n < s.ran.len() <= s.engine.plans.len(),
    ensures
        stream(s2, id, n) == stream(s, id, n + 1),
    decreases n,
{
    if n > 0 {
        lemma_stream_shift(s, s2, id, (n - 1) as nat);
    }
}

} // verus!
