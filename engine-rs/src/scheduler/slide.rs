//! A sequence gives back the blocks that no later row of it sees.
use super::*;
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
#[cfg(verus_only)]
use vosti_spec::trusted::deployment::first_seen;
use vstd::prelude::*;

verus! {

/// The seat gave back blocks of group `a`, none of which a row from position `computed` on sees.
pub open spec fn slid_unseen(
    a: LayerGroup,
    b: LayerGroup,
    seat: int,
    computed: int,
    block_size: u32,
) -> bool {
    let (v, w) = (a.seat(seat), b.seat(seat));
    &&& slid(v, w, w.freed)
    &&& w.freed == v.freed || w.freed * block_size <= first_seen(a.window(), computed)
    &&& seen_only(b, seat, computed, block_size)
}

/// Leading blocks that no row from position `computed` on sees.
fn unseen_blocks(window: usize, computed: u32, block_size: u32) -> (n: usize)
    requires
        block_size > 0,
    ensures
        n * block_size <= first_seen(window as nat, computed as int) < (n + 1) * block_size,
{
    let computed = computed as usize;
    let size = block_size as usize;
    if window == 0 || window > computed {
        return 0;
    }
    let seen = computed - window + 1;
    assert(seen / size * size <= seen < (seen / size + 1) * size) by (nonlinear_arith)
        requires
            size > 0,
    ;
    seen / size
}

/// Gives back, in every group, the blocks of the seat that no row from position `computed` on sees.
fn slide_all(
    Ghost(c): Ghost<Config>,
    groups: &mut Vec<LayerGroup>,
    seat: u32,
    computed: u32,
    block_size: u32,
)
    requires
        whole(c, old(groups)@, seat as int),
        block_size == c.block_size,
    ensures
        groups_frame(c, old(groups)@, final(groups)@, seat as int),
        same_cache(old(groups)@, final(groups)@),
        forall|g: int|
            0 <= g < final(groups)@.len() ==> slid_unseen(
                old(groups)@[g],
                #[trigger] final(groups)@[g],
                seat as int,
                computed as int,
                block_size,
            ),
{
    let ghost before = groups@;
    let mut g: usize = 0;
    while g < groups.len()
        invariant
            g <= groups@.len(),
            c.wf(),
            seat < c.max_seqs,
            block_size == c.block_size,
            groups_frame(c, before, groups@, seat as int),
            same_cache(before, groups@),
            forall|h: int| g <= h < groups@.len() ==> (#[trigger] groups@[h]) == before[h],
            forall|h: int|
                0 <= h < g ==> slid_unseen(
                    before[h],
                    #[trigger] groups@[h],
                    seat as int,
                    computed as int,
                    block_size,
                ),
        decreases groups@.len() - g,
    {
        let n = unseen_blocks(groups[g].count_window(), computed, block_size);
        groups[g].slide(seat as usize, n);
        proof {
            let w = groups@[g as int].seat(seat as int);
            if w.freed >= n {
                lemma_mul_le((n + 1) as nat, w.freed + 1, block_size as nat);
            }
            if w.freed <= n {
                lemma_mul_le(w.freed, n as nat, block_size as nat);
            }
        }
        g += 1;
    }
}

impl Scheduler {
    /// What is at the seat has given blocks back.
    pub open spec fn slid_any(&self, seat: int) -> bool {
        exists|g: int|
            0 <= g < self.groups@.len() && (#[trigger] self.groups@[g]).seat(seat).freed > 0
    }

    pub(super) fn has_slid(&self, seat: u32) -> (slid: bool)
        requires
            self.groups_ok(),
            seat < self.config.max_seqs,
        ensures
            slid == self.slid_any(seat as int),
    {
        let mut g: usize = 0;
        while g < self.groups.len()
            invariant
                g <= self.groups@.len(),
                self.groups_ok(),
                seat < self.config.max_seqs,
                forall|h: int|
                    0 <= h < g ==> (#[trigger] self.groups@[h]).seat(seat as int).freed == 0,
            decreases self.groups@.len() - g,
        {
            if self.groups[g].has_slid(seat as usize) {
                return true;
            }
            g += 1;
        }
        false
    }

    fn has_window(&self) -> (some: bool)
        ensures
            !some ==> forall|g: int|
                0 <= g < self.groups@.len() ==> (#[trigger] self.groups@[g]).window() == 0,
    {
        let mut g: usize = 0;
        while g < self.groups.len()
            invariant
                g <= self.groups@.len(),
                forall|h: int| 0 <= h < g ==> (#[trigger] self.groups@[h]).window() == 0,
            decreases self.groups@.len() - g,
        {
            if self.groups[g].count_window() > 0 {
                return true;
            }
            g += 1;
        }
        false
    }

    /// Each running sequence gives back what its rows to come do not see. Rows in flight are among
    /// those to come: they are not counted as computed before they are committed.
    pub(super) fn slide_running(&mut self)
        requires
            old(self).inv(),
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            final(self).see_their_blocks(final(self).running@.len() as int),
    {
        proof {
            lemma_refines_self(*self);
        }
        if !self.has_window() {
            assert forall|i: int| #[trigger] self.sees_its_blocks(i) by {
                assert forall|g: int| 0 <= g < self.groups@.len() implies seen_only(
                    #[trigger] self.groups@[g],
                    self.seqs@[i].seat as int,
                    self.seqs@[i].computed as int,
                    self.config.block_size,
                ) by {
                    let freed = self.groups@[g].seat(self.seqs@[i].seat as int).freed;
                    lemma_mul_le(1, freed + 1, self.config.block_size as nat);
                }
            }
            return;
        }
        let mut k: usize = 0;
        while k < self.running.len()
            invariant
                self.inv(),
                refines(*old(self), *self),
                *self == (Scheduler { groups: self.groups, ..*old(self) }),
                k <= self.running@.len(),
                self.see_their_blocks(k as int),
            decreases self.running@.len() - k,
        {
            let i = self.running[k];
            if self.seqs[i as usize].is_running() {
                let ghost before = *self;
                self.slide(i);
                proof {
                    lemma_refines_trans(*old(self), before, *self);
                    before.lemma_still_see(*self, i as int, self.seqs@[i as int].seat as int);
                }
            }
            k += 1;
        }
    }

    fn slide(&mut self, i: u32)
        requires
            old(self).inv(),
            i < old(self).seqs@.len(),
            old(self).seqs@[i as int].phase is Running,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            final(self).sees_its_blocks(i as int),
            final(self).only_seat(old(self), old(self).seqs@[i as int].seat as int),
    {
        let ghost before = *self;
        let seq = &self.seqs[i as usize];
        let (seat, computed) = (seq.seat, seq.computed);
        let size = self.config.block_size;
        slide_all(Ghost(self.config), &mut self.groups, seat, computed, size);
        proof {
            lemma_slide_refines(before, *self, i as int);
        }
    }
}

} // verus!
