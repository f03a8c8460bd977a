//! Blocks for the rows of a step.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// Tables of running sequence `i` cover `to` positions.
    pub open spec fn covers(&self, i: int, to: int) -> bool {
        forall|g: int|
            0 <= g < self.groups@.len() ==> to <= (#[trigger] self.groups@[g]).seat(
                self.seqs@[i].seat as int,
            ).table.len() * self.config.block_size
    }

    /// What growing tables leaves alone.
    pub open spec fn same_work(&self, o: &Self) -> bool {
        &&& self.config == o.config
        &&& self.queue == o.queue
        &&& self.plans == o.plans
        &&& self.draft == o.draft
        &&& self.draft_rows == o.draft_rows
        &&& self.next_plan == o.next_plan
    }

    /// Longer tables for running sequence `i`, in free blocks only.
    pub(super) fn grow(&mut self, i: u32, to: u32) -> (ok: bool)
        requires
            old(self).inv(),
            i < old(self).seqs@.len(),
            old(self).seqs@[i as int].phase is Running,
            to < old(self).config.max_model_len,
        ensures
            final(self).inv(),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            ok ==> final(self).covers(i as int, to as int),
    {
        let ghost before = *self;
        let seat = self.seqs[i as usize].seat;
        let blocks = blocks_for(to, self.config.block_size);
        assert(before.seqs@[i as int].live());
        let ok = grow_all(Ghost(self.config), &mut self.groups, seat, blocks);
        proof {
            lemma_grew(before, *self, i as int);
            if ok {
                assert forall|g: int| 0 <= g < self.groups@.len() implies to <= (
                #[trigger] self.groups@[g]).seat(seat as int).table.len()
                    * self.config.block_size by {
                    lemma_mul_le(
                        blocks as nat,
                        self.groups@[g].seat(seat as int).table.len(),
                        self.config.block_size as nat,
                    );
                }
            }
        }
        ok
    }

    /// Blocks for the `k`-th running sequence up to position `to`; the youngest others are
    /// preempted for it while they have nothing in flight.
    pub(super) fn reserve(&mut self, k: usize, to: u32) -> (ok: bool)
        requires
            old(self).inv(),
            k < old(self).running@.len(),
            old(self).seqs@[old(self).running@[k as int] as int].phase is Running,
            to < old(self).config.max_model_len,
            old(self).draft_within(k as int),
        ensures
            final(self).inv(),
            final(self).same_work(old(self)),
            final(self).draft_within(k as int),
            k < final(self).running@.len() <= old(self).running@.len(),
            final(self).running@ == old(self).running@.take(final(self).running@.len() as int),
            final(self).running@.len() == old(self).running@.len() ==> final(self).waiting == old(
                self,
            ).waiting,
            final(self).seqs@.len() == old(self).seqs@.len(),
            final(self).seqs@[old(self).running@[k as int] as int] == old(self).seqs@[old(
                self,
            ).running@[k as int] as int],
            ok ==> final(self).covers(final(self).running@[k as int] as int, to as int),
    {
        let ghost before = *self;
        let i = self.running[k];
        proof {
            assert(self.running@.take(self.running@.len() as int) =~= self.running@);
            assert(self.seqs@[self.running@[k as int] as int].live());
        }
        loop
            invariant
                self.inv(),
                self.same_work(&before),
                self.draft_within(k as int),
                k < self.running@.len() <= before.running@.len(),
                self.running@ == before.running@.take(self.running@.len() as int),
                self.running@.len() == before.running@.len() ==> self.waiting == before.waiting,
                i == before.running@[k as int],
                i < self.seqs@.len(),
                self.seqs@.len() == before.seqs@.len(),
                self.seqs@[i as int] == before.seqs@[i as int],
                self.seqs@[i as int].phase is Running,
                to < self.config.max_model_len,
                before == *old(self),
            decreases self.running@.len(),
        {
            if self.grow(i, to) {
                return true;
            }
            let last = self.running.len() - 1;
            if last == k {
                return false;
            }
            let y = self.running[last] as usize;
            assert(self.seqs@[self.running@[last as int] as int].live());
            let idle = self.seqs[y].is_running() && self.seqs[y].in_flight == 0;
            if !idle {
                return false;
            }
            let ghost prev = *self;
            proof {
                assert(self.running@[last as int] != self.running@[k as int]);
            }
            self.preempt_last();
            proof {
                assert(self.running@ =~= before.running@.take(self.running@.len() as int));
                self.lemma_draft_kept(prev, k as int);
            }
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
        forall|g: int|
            0 <= g < b.groups@.len() ==> extends(
                a.groups@[g].seat(a.seqs@[i].seat as int),
                (#[trigger] b.groups@[g]).seat(a.seqs@[i].seat as int),
            ),
    ensures
        b.inv(),
{
    let seat = a.seqs@[i].seat as int;
    assert(a.seqs@[i].live());
    assert forall|j: int, g: int|
        #![trigger b.seqs@[j], b.groups@[g]]
        0 <= j < b.seqs@.len() && 0 <= g < b.groups@.len()
            && b.seqs@[j].phase is Running implies seat_ok(
        b.seqs@[j],
        b.groups@[g].seat(b.seqs@[j].seat as int),
        b.config.block_size,
    ) by {
        assert(seat_ok(a.seqs@[j], a.groups@[g].seat(a.seqs@[j].seat as int), a.config.block_size));
        if j == i {
            let v = a.groups@[g].seat(seat);
            let w = b.groups@[g].seat(seat);
            assert(extends(v, w));
            lemma_extends_holds(v, w, a.seqs@[j].tokens@, a.seqs@[j].computed as int);
            lemma_mul_le(v.table.len(), w.table.len(), a.config.block_size as nat);
        } else {
            assert(a.seqs@[j].live());
            assert(a.seqs@[j].seat != a.seqs@[i].seat);
            assert(b.groups@[g].seat(a.seqs@[j].seat as int) == a.groups@[g].seat(
                a.seqs@[j].seat as int,
            ));
        }
    }
    assert forall|m: int, g: int|
        #![trigger b.free_seats@[m], b.groups@[g]]
        0 <= m < b.free_seats@.len() && 0 <= g < b.groups@.len() implies b.groups@[g].seat(
        b.free_seats@[m] as int,
    ).table.len() == 0 by {
        assert(a.free_seats@.contains(a.free_seats@[m]));
        assert(b.groups@[g].seat(a.free_seats@[m] as int) == a.groups@[g].seat(
            a.free_seats@[m] as int,
        ));
    }
}

} // verus!
