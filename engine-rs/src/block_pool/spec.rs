//! What the pool is, abstractly.
use super::BlockPool;
use vstd::prelude::*;

verus! {

/// Who holds a block: (seat, index in its table).
pub type Holder = (int, int);

/// The pool's abstract state.
#[verifier::ext_equal]
pub ghost struct PoolView {
    /// By block: its holders.
    pub holders: Seq<Set<Holder>>,
    /// Blocks without a holder, in the order in which they will be taken.
    pub order: Seq<u32>,
    /// The first `plain` of them are not reusable; all later ones are.
    pub plain: nat,
}

impl PoolView {
    /// The queue has each block without a holder, once.
    pub open spec fn ok(self) -> bool {
        &&& self.holders.len() < 0xffff_ffff
        &&& self.plain <= self.order.len()
        &&& self.queue_distinct()
        &&& self.queue_is_free()
        &&& self.free_is_queued()
    }

    pub open spec fn queue_distinct(self) -> bool {
        forall|i: int, j: int|
            #![trigger self.order[i], self.order[j]]
            0 <= i < j < self.order.len() ==> self.order[i] != self.order[j]
    }

    pub open spec fn queue_is_free(self) -> bool {
        forall|i: int|
            0 <= i < self.order.len() ==> (#[trigger] self.order[i]) < self.holders.len()
                && self.holders[self.order[i] as int] == Set::<Holder>::empty()
    }

    pub open spec fn free_is_queued(self) -> bool {
        forall|b: int|
            0 <= b < self.holders.len() && #[trigger] self.holders[b] == Set::<Holder>::empty()
                ==> self.order.contains(b as u32)
    }

    /// The first block of the queue gets its first holder.
    pub open spec fn alloc(self, h: Holder) -> PoolView {
        PoolView {
            holders: self.holders.update(self.order[0] as int, Set::empty().insert(h)),
            order: self.order.drop_first(),
            plain: if self.plain > 0 {
                (self.plain - 1) as nat
            } else {
                0
            },
        }
    }

    /// Block `b` gets one more holder; a free one leaves the queue.
    pub open spec fn acquire(self, b: u32, h: Holder) -> PoolView {
        PoolView {
            holders: self.holders.update(b as int, self.holders[b as int].insert(h)),
            order: if self.holders[b as int] == Set::<Holder>::empty() {
                self.order.remove(self.order.index_of(b))
            } else {
                self.order
            },
            plain: self.plain,
        }
    }

    /// Block `b` loses a holder; with the last one it joins the queue, reusable or not.
    pub open spec fn release(self, b: u32, h: Holder, reusable: bool) -> PoolView {
        let rest = self.holders[b as int].remove(h);
        let freed = rest == Set::<Holder>::empty();
        PoolView {
            holders: self.holders.update(b as int, rest),
            order: if !freed {
                self.order
            } else if reusable {
                self.order.push(b)
            } else {
                seq![b] + self.order
            },
            plain: if freed && !reusable {
                self.plain + 1
            } else {
                self.plain
            },
        }
    }

    /// No free block is reusable any more.
    pub open spec fn forget(self) -> PoolView {
        PoolView { plain: self.order.len(), ..self }
    }
}

impl BlockPool {
    pub open(super) spec fn view(&self) -> PoolView {
        self.state@
    }
}

} // verus!
