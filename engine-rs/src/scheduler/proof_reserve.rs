//! Growing tables keeps the invariant; a sequence alone has room for all its tokens.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// One sequence changed, and is not over.
    pub(super) proof fn lemma_settled_kept(&self, b: Scheduler, i: int)
        requires
            self.settled(),
            b.only_seq(self, i),
            0 <= i < self.seqs@.len(),
            drained(b.seqs@[i]),
        ensures
            b.settled(),
    {
    }

    /// A sequence alone has room for all its tokens.
    pub(super) proof fn lemma_alone_fits(&self, i: int, to: u32, blocks: int)
        requires
            self.inv(),
            self.alone(i),
            0 <= i < self.seqs@.len(),
            self.seqs@[i].phase is Running,
            to < self.seqs@[i].max_len,
            blocks * self.config.block_size < to + self.config.block_size,
        ensures
            forall|g: int|
                0 <= g < self.groups@.len() ==> !lacks(
                    #[trigger] self.groups@[g],
                    self.seqs@[i].seat as int,
                    blocks,
                ),
    {
        let s = self.seqs@[i];
        let c = self.config;
        assert(blocks <= c.capacity) by (nonlinear_arith)
            requires
                blocks * c.block_size < to + c.block_size,
                to < s.max_len,
                s.max_len <= c.capacity * c.block_size,
                c.block_size > 0,
        ;
        assert forall|g: int| 0 <= g < self.groups@.len() implies !lacks(
            #[trigger] self.groups@[g],
            s.seat as int,
            blocks,
        ) by {
            assert forall|t: int| 0 <= t < self.groups@[g].seats() && t != s.seat implies (
            #[trigger] self.groups@[g].seat(t)).table.len() == 0 by {
                lemma_all_but_one(self.free_seats@, c.max_seqs as int, s.seat, t as u32);
                let k = self.free_seats@.index_of(t as u32);
                assert(self.free_seats@[k] == t as u32);
            }
            self.groups@[g].lemma_alone(s.seat as int);
        }
    }
}

/// Only the tables of running sequence `i` got longer.
pub(super) proof fn lemma_grew(a: Scheduler, b: Scheduler, i: int)
    requires
        a.inv(),
        b == (Scheduler { groups: b.groups, ..a }),
        0 <= i < a.seqs@.len(),
        a.seqs@[i].phase is Running,
        groups_frame(a.config, a.groups@, b.groups@, a.seqs@[i].seat as int),
        all_extend(a.groups@, b.groups@, a.seqs@[i].seat as int),
    ensures
        b.inv(),
{
    let seat = a.seqs@[i].seat as int;
    assert forall|g: int| 0 <= g < b.groups@.len() implies seat_ok(
        a.seqs@[i],
        (#[trigger] b.groups@[g]).seat(seat),
        a.config.block_size,
    ) by {
        let v = a.groups@[g].seat(seat);
        let w = b.groups@[g].seat(seat);
        lemma_extends_holds(v, w, a.seqs@[i].tokens@, a.seqs@[i].computed as int);
        lemma_mul_le(v.table.len(), w.table.len(), a.config.block_size as nat);
    }
}

/// `n - 1` different numbers below `n` without `x` are all of them.
pub(super) proof fn lemma_all_but_one(list: Seq<u32>, n: int, x: u32, t: u32)
    requires
        list.no_duplicates(),
        list.len() == n - 1,
        forall|k: int| 0 <= k < list.len() ==> (#[trigger] list[k]) < n,
        !list.contains(x),
        x < n,
        t < n,
        t != x,
    ensures
        list.contains(t),
{
    if !list.contains(t) {
        let set = list.to_set();
        list.unique_seq_to_set();
        let f = |v: u32| v as int;
        let ints = set.map(f);
        vstd::set_lib::lemma_map_size(set, ints, f);
        let range = vstd::set_lib::set_int_range(0, n).remove(x as int).remove(t as int);
        vstd::set_lib::lemma_len_subset(ints, range);
    }
}

} // verus!
