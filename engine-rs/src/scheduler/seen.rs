//! What running sequences see of their blocks, and what keeps it so.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
#[cfg(verus_only)]
use vosti_spec::trusted::deployment::first_seen;
#[cfg(verus_only)]
use vstd::math::min;
use vstd::prelude::*;

verus! {

/// The seat has no block that a row from position `computed` on does not see, before its last
/// sealed one.
pub open spec fn seen_only(g: LayerGroup, seat: int, computed: int, block_size: u32) -> bool {
    let v = g.seat(seat);
    first_seen(g.window(), computed) < (v.freed + 1) * block_size || v.freed + 1 >= v.sealed
}

/// In every group the seat has given back and sealed as many blocks as before.
pub open spec fn same_kept(a: Seq<LayerGroup>, b: Seq<LayerGroup>, seat: int) -> bool {
    forall|g: int|
        0 <= g < b.len() ==> (#[trigger] b[g]).seat(seat).freed == a[g].seat(seat).freed
            && b[g].seat(seat).sealed == a[g].seat(seat).sealed
}

impl Scheduler {
    /// Sequence `i` has no block that its rows to come do not see, before its last sealed one.
    pub open spec fn sees_its_blocks(&self, i: int) -> bool {
        forall|g: int|
            0 <= g < self.groups@.len() ==> seen_only(
                #[trigger] self.groups@[g],
                self.seqs@[i].seat as int,
                self.seqs@[i].computed as int,
                self.config.block_size,
            )
    }

    /// That is so of the first `n` sequences that have a seat, and run.
    pub open spec fn see_their_blocks(&self, n: int) -> bool {
        forall|k: int|
            0 <= k < n && #[trigger] self.runs(k) ==> self.sees_its_blocks(self.running@[k] as int)
    }

    /// The `k`-th sequence that has a seat runs.
    pub open spec fn runs(&self, k: int) -> bool {
        self.seqs@[self.running@[k] as int].phase is Running
    }

    /// Of the sequences that had a seat in `o`, the first ones still have theirs, and nothing that
    /// their rows to come do not see, if that was so.
    pub open spec fn still_see(&self, o: &Self) -> bool {
        forall|n: int|
            n <= self.running@.len() && n <= o.running@.len() && #[trigger] o.see_their_blocks(n)
                ==> self.see_their_blocks(n)
    }

    /// What ran in `o` and still does, which is the beginning of the list, has given back what its
    /// rows to come do not see.
    #[verifier::opaque]
    pub open spec fn slid_since(&self, o: &Self) -> bool {
        let n = min(self.running@.len() as int, o.running@.len() as int);
        &&& forall|k: int| 0 <= k < n ==> #[trigger] self.running@[k] == o.running@[k]
        &&& self.see_their_blocks(n)
    }

    /// Writing the plan down does not change that.
    pub(super) proof fn lemma_slid_since(&self, emitted: Scheduler, b: Scheduler, o: Scheduler)
        requires
            self.slid_since(&o),
            emitted.still_see(self),
            emitted.running == self.running,
            b.still_see(&emitted),
            b.running == emitted.running,
        ensures
            b.slid_since(&o),
    {
        reveal(Scheduler::slid_since);
        assert(emitted.see_their_blocks(min(self.running@.len() as int, o.running@.len() as int)));
    }

    /// Nothing but sequence `i`, and what is at `seat`, may look different.
    pub(super) proof fn lemma_still_see(&self, b: Scheduler, i: int, seat: int)
        requires
            self.inv(),
            b.only_seq(self, i),
            groups_frame(self.config, self.groups@, b.groups@, seat),
            forall|k: int|
                0 <= k < self.running@.len() && k < b.running@.len() ==> #[trigger] b.running@[k]
                    == self.running@[k],
            forall|j: int|
                0 <= j < self.seqs@.len() && j != i && #[trigger] self.seqs@[j].live()
                    ==> self.seqs@[j].seat != seat,
            0 <= i < self.seqs@.len() && self.seqs@[i].live() && b.seqs@[i].phase is Running
                ==> b.sees_its_blocks(i) || {
                &&& self.seqs@[i].phase is Running
                &&& b.seqs@[i].seat == self.seqs@[i].seat
                &&& b.seqs@[i].computed == self.seqs@[i].computed
                &&& same_kept(self.groups@, b.groups@, b.seqs@[i].seat as int)
            },
        ensures
            b.still_see(self),
    {
        assert forall|n: int, k: int|
            n <= self.running@.len() && n <= b.running@.len() && self.see_their_blocks(n) && 0 <= k
                < n && b.runs(k) implies #[trigger] self.see_their_blocks(n)
            && #[trigger] b.sees_its_blocks(b.running@[k] as int) by {
            let j = b.running@[k] as int;
            assert(j == self.running@[k]);
            assert(self.seqs@[j].live());
            if j != i || !b.sees_its_blocks(j) {
                assert(self.runs(k));
                assert(self.sees_its_blocks(j));
                assert forall|g: int| 0 <= g < b.groups@.len() implies seen_only(
                    #[trigger] b.groups@[g],
                    b.seqs@[j].seat as int,
                    b.seqs@[j].computed as int,
                    b.config.block_size,
                ) by {
                    assert(seen_only(
                        self.groups@[g],
                        self.seqs@[j].seat as int,
                        self.seqs@[j].computed as int,
                        self.config.block_size,
                    ));
                }
            }
        }
    }
}

} // verus!
