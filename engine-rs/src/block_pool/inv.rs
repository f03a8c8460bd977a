//! How the arrays represent the abstract pool.
use super::BlockPool;
#[cfg(verus_only)]
use super::PoolView;
use vstd::prelude::*;

verus! {

/// The ring's entry `i`: the head (`n`) before the first and after the last block.
pub open spec fn ring(order: Seq<u32>, n: int, i: int) -> u32 {
    if 0 <= i < order.len() {
        order[i]
    } else {
        n as u32
    }
}

/// `next` leads around the ring.
pub open spec fn next_ok(order: Seq<u32>, n: int, next: Seq<u32>) -> bool {
    &&& next.len() == n + 1
    &&& forall|i: int|
        -1 <= i < order.len() ==> #[trigger] next[ring(order, n, i) as int] == ring(order, n, i + 1)
}

/// `prev` leads around it the other way.
pub open spec fn prev_ok(order: Seq<u32>, n: int, prev: Seq<u32>) -> bool {
    &&& prev.len() == n + 1
    &&& forall|i: int|
        0 <= i <= order.len() ==> #[trigger] prev[ring(order, n, i) as int] == ring(order, n, i - 1)
}

/// Each block's count is the number of its holders.
pub open spec fn refs_ok(v: PoolView, refs: Seq<u32>) -> bool {
    &&& refs.len() == v.holders.len()
    &&& forall|b: int| 0 <= b < refs.len() ==> #[trigger] refs[b] == v.holders[b].len()
}

impl BlockPool {
    pub open(super) spec fn inv(&self) -> bool {
        let n = self.state@.holders.len() as int;
        &&& self.state@.ok()
        &&& refs_ok(self.state@, self.refs@)
        &&& next_ok(self.state@.order, n, self.next@)
        &&& prev_ok(self.state@.order, n, self.prev@)
        &&& self.free == self.state@.order.len()
        &&& self.plain == self.state@.plain
    }

    /// What the invariant says of the abstract pool.
    pub proof fn lemma_view_ok(&self)
        requires
            self.inv(),
        ensures
            self.view().ok(),
    {
    }
}

} // verus!
