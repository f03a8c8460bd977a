//! Writing down one entry after the other makes a well-formed plan.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// The `k`-th sequence of the plan is entry `e` of the queue.
    pub open spec fn lists(&self, p: Plan, k: int, e: Entry) -> bool {
        &&& p.seats@[k] == e.seat
        &&& p.seq_lens@[k] == e.to
        &&& p.query_start@[k + 1] - p.query_start@[k] == e.to - e.from
        &&& p.seq_ids@[k] == spec_seq_id(e.seq, self.seqs@[e.seq as int].generation)
        &&& p.sample_seqs@.contains(k as u32) <==> e.sampled
        &&& forall|r: int|
            p.query_start@[k] <= r < p.query_start@[k + 1] ==> (#[trigger] p.rows@[r]).seq == e.seq
    }

    /// What holds of a plan while its entries are written down, the first `n` sequences so far.
    pub open spec fn partial(&self, p: Plan, n: int) -> bool {
        let first = self.queue@.len() - self.draft;
        &&& 0 <= n <= self.draft
        &&& self.arrays_ok(p)
        &&& self.sequences_ok(p)
        &&& self.wanted_ok(p)
        &&& p.seats@.len() == n <= p.rows@.len()
        &&& p.rows@.len() + span(self.queue@, first + n) == self.draft_rows
        &&& forall|k: int|
            #![trigger p.seats@[k]]
            0 <= k < n ==> self.lists(p, k, self.queue@[first + k])
        &&& forall|r: int, q: int|
            #![trigger p.rows@[r], p.rows@[q]]
            0 <= r < q < p.rows@.len() ==> (p.rows@[r].seat, p.rows@[r].pos) != (
                p.rows@[q].seat,
                p.rows@[q].pos,
            )
        &&& forall|r: int|
            0 <= r < p.rows@.len() ==> exists|k: int|
                0 <= k < n && (#[trigger] p.rows@[r]).seat == #[trigger] self.queue@[first + k].seat
    }

    /// The rows of `p` are those of `o` and the positions of entry `e` below `pos`; the lists of
    /// sequences are those of `o`.
    pub open spec fn extended(&self, o: Plan, p: Plan, e: Entry, pos: int) -> bool {
        let n = o.rows@.len() as int;
        &&& p.rows@.len() == n + (pos - e.from)
        &&& forall|r: int| 0 <= r < n ==> #[trigger] p.rows@[r] == o.rows@[r]
        &&& forall|r: int|
            n <= r < p.rows@.len() ==> #[trigger] p.rows@[r] == (Row {
                seq: e.seq,
                seat: e.seat,
                pos: (e.from + (r - n)) as u32,
            })
        &&& p.id == o.id
        &&& p.updates == o.updates
        &&& p.query_start == o.query_start
        &&& p.seats == o.seats
        &&& p.seq_lens == o.seq_lens
        &&& p.seq_ids == o.seq_ids
        &&& p.sample_seqs == o.sample_seqs
    }

    pub(super) proof fn lemma_span_nonneg(&self, a: int)
        requires
            self.inv(),
            self.queue@.len() - self.draft <= a,
            0 <= a,
        ensures
            span(self.queue@, a) >= 0,
        decreases self.queue@.len() - a,
    {
        if a < self.queue@.len() {
            self.lemma_span_nonneg(a + 1);
        }
    }

    /// `p` is `o` and the rows and the lists of the next entry, `e`.
    pub open spec fn one_more(&self, o: Plan, p: Plan, e: Entry, n: int) -> bool {
        &&& 0 <= n < self.draft
        &&& self.partial(o, n)
        &&& e == self.queue@[self.queue@.len() - self.draft + n]
        &&& e.from < e.to
        &&& forall|r: int| 0 <= r < o.rows@.len() ==> (#[trigger] o.rows@[r]).seat != e.seat
        &&& forall|k: int| 0 <= k < n ==> #[trigger] o.seats@[k] != e.seat
        &&& self.arrays_ok(p)
        &&& self.extended(
            o,
            Plan {
                query_start: o.query_start,
                seats: o.seats,
                seq_lens: o.seq_lens,
                seq_ids: o.seq_ids,
                sample_seqs: o.sample_seqs,
                ..p
            },
            e,
            e.to as int,
        )
        &&& p.query_start@ == o.query_start@.push(p.rows@.len() as u32)
        &&& p.seats@ == o.seats@.push(e.seat)
        &&& p.seq_lens@ == o.seq_lens@.push(e.to)
        &&& p.seq_ids@ == o.seq_ids@.push(spec_seq_id(e.seq, self.seqs@[e.seq as int].generation))
        &&& p.sample_seqs@ == if e.sampled {
            o.sample_seqs@.push(n as u32)
        } else {
            o.sample_seqs@
        }
    }

    pub(super) proof fn lemma_sequences_done(&self, o: Plan, p: Plan, e: Entry, n: int)
        requires
            self.one_more(o, p, e, n),
        ensures
            self.sequences_ok(p),
    {
        assert forall|k: int, r: int|
            #![trigger p.seats@[k], p.rows@[r]]
            0 <= k < n + 1 && p.query_start@[k] <= r < p.query_start@[k + 1] implies self.belongs(
            p,
            k,
            r,
        ) by {
            if k < n {
                self.lemma_starts_ascend(o, k + 1, n);
                assert(p.rows@[r] == o.rows@[r]);
                assert(self.belongs(o, k, r));
            }
        }
    }

    /// The sequences written down are those of the queue.
    proof fn lemma_lists_done(&self, o: Plan, p: Plan, e: Entry, n: int)
        requires
            self.one_more(o, p, e, n),
            n <= u32::MAX,
        ensures
            forall|k: int|
                #![trigger p.seats@[k]]
                0 <= k < n + 1 ==> self.lists(
                    p,
                    k,
                    self.queue@[self.queue@.len() - self.draft + k],
                ),
    {
        let first = self.queue@.len() - self.draft;
        assert forall|k: int| #![trigger p.seats@[k]] 0 <= k < n + 1 implies self.lists(
            p,
            k,
            self.queue@[first + k],
        ) by {
            let (s, t) = (o.sample_seqs@, p.sample_seqs@);
            if k < n {
                assert(self.lists(o, k, self.queue@[first + k]));
                self.lemma_starts_ascend(o, k + 1, n);
                assert(forall|r: int|
                    0 <= r < o.rows@.len() ==> #[trigger] p.rows@[r] == o.rows@[r]);
                if s.contains(k as u32) {
                    assert(t[s.index_of(k as u32)] == k as u32);
                }
            } else if e.sampled {
                assert(t[t.len() - 1] == n as u32);
            }
        }
    }

    /// One more sequence is written down.
    pub(super) proof fn lemma_entry_done(&self, o: Plan, p: Plan, e: Entry, n: int)
        requires
            self.inv(),
            self.one_more(o, p, e, n),
            self.logits_ok(p),
        ensures
            self.partial(p, n + 1),
    {
        self.lemma_sequences_done(o, p, e, n);
        self.lemma_lists_done(o, p, e, n);
    }

    pub proof fn lemma_starts_ascend(&self, p: Plan, j: int, k: int)
        requires
            self.sequences_ok(p),
            0 <= j <= k <= p.seats@.len(),
        ensures
            p.query_start@[j] <= p.query_start@[k],
        decreases k - j,
    {
        if j < k {
            self.lemma_starts_ascend(p, j, k - 1);
        }
    }
}

} // verus!
