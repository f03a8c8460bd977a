//! The group's abstract state and its invariant.
use super::LayerGroup;
#[cfg(verus_only)]
use super::{SeatView, NO_ANCHOR};
#[cfg(verus_only)]
use crate::block_pool::Holder;
use crate::block_pool::PoolView;
use crate::prefix_tree::TreeView;
use vstd::prelude::*;

verus! {

/// A layer group, abstractly.
#[verifier::ext_equal]
pub ghost struct State {
    /// Positions in a block.
    pub size: int,
    /// Most blocks in a table.
    pub row_len: int,
    /// By seat: its table.
    pub rows: Seq<Seq<u32>>,
    /// By seat: leading entries given back.
    pub freed: Seq<usize>,
    pub sealed: Seq<usize>,
    pub anchor: Seq<u64>,
    pub pool: PoolView,
    pub tree: TreeView,
    pub content: Seq<Seq<Option<Seq<u32>>>>,
}

/// What a block of KV holds when it ends the token prefix `prefix`.
pub open spec fn filled(slots: Seq<Option<Seq<u32>>>, prefix: Seq<u32>, size: int) -> bool {
    &&& prefix.len() >= size
    &&& forall|o: int|
        0 <= o < size ==> #[trigger] slots[o] == Some(prefix.take(prefix.len() - size + o + 1))
}

/// By position: the content of the slots of a table, from position `kept` on.
pub open spec fn kv_of(
    content: Seq<Seq<Option<Seq<u32>>>>,
    row: Seq<u32>,
    size: int,
    kept: int,
) -> Seq<Option<Seq<u32>>> {
    Seq::new(
        (row.len() * size) as nat,
        |p: int|
            if p < kept {
                None
            } else {
                content[row[p / size] as int][p % size]
            },
    )
}

pub open spec fn seat_view(st: State, s: int) -> SeatView {
    SeatView {
        table: st.rows[s],
        freed: st.freed[s] as nat,
        kept: st.kept(s) as nat,
        sealed: st.sealed[s] as nat,
        kv: kv_of(st.content, st.rows[s], st.size, st.kept(s)),
    }
}

pub open spec fn cached_as(st: State, b: int) -> Option<(u64, Seq<u32>)> {
    if 0 <= b < st.tree.nodes.len() && st.tree.nodes[b] is Some {
        let x = st.tree.nodes[b]->0;
        Some((x.salt, st.tree.prefixes[x.id as int]))
    } else {
        None
    }
}

impl State {
    /// Dimensions as in `was`, and every seat but `s` as it was, up to anchors and content.
    pub open spec fn only(self, was: State, s: int) -> bool {
        &&& self.size == was.size
        &&& self.row_len == was.row_len
        &&& self.n() == was.n()
        &&& self.rows =~= was.rows.update(s, self.rows[s])
        &&& self.freed =~= was.freed.update(s, self.freed[s])
        &&& self.sealed =~= was.sealed.update(s, self.sealed[s])
    }

    pub open spec fn n(self) -> nat {
        self.pool.holders.len()
    }

    /// `(s, i)` is an entry of a table, not given back.
    pub open spec fn entry(self, s: int, i: int) -> bool {
        0 <= s < self.rows.len() && self.freed[s] <= i < self.rows[s].len()
    }

    /// The first position of seat `s` whose block is not given back.
    pub open spec fn kept(self, s: int) -> int {
        self.freed[s] * self.size
    }

    pub open spec fn ok(self) -> bool {
        &&& self.sizes_ok()
        &&& self.freed_ok()
        &&& self.pool.ok()
        &&& self.tree.ok(self.size)
        &&& self.entries_held()
        &&& self.holders_real()
        &&& self.unsealed_private()
        &&& self.queue_ok()
        &&& self.content_ok()
        &&& self.anchors_ok()
    }

    pub open spec fn sizes_ok(self) -> bool {
        &&& self.size >= 1
        &&& self.n() * self.size < 0xffff_ffff
        &&& self.n() < 0xffff_ffff
        &&& self.tree.nodes.len() == self.n()
        &&& self.content.len() == self.n()
        &&& self.freed.len() == self.rows.len()
        &&& self.sealed.len() == self.rows.len()
        &&& self.anchor.len() == self.rows.len()
        &&& self.rows.len() * self.row_len <= 0xffff_ffff
        &&& forall|b: int| 0 <= b < self.n() ==> (#[trigger] self.content[b]).len() == self.size
        &&& forall|s: int|
            0 <= s < self.rows.len() ==> self.sealed[s] <= (#[trigger] self.rows[s]).len()
                <= self.row_len
    }

    /// A seat keeps its last sealed block, which its anchor stands for; and also what it gave back
    /// is a block of the pool.
    pub open spec fn freed_ok(self) -> bool {
        &&& forall|s: int|
            0 <= s < self.rows.len() ==> #[trigger] self.freed[s] < self.sealed[s] || self.freed[s]
                == 0
        &&& forall|s: int, i: int|
            #![trigger self.rows[s][i]]
            0 <= s < self.rows.len() && 0 <= i < self.rows[s].len() ==> self.rows[s][i] < self.n()
    }

    /// Whatever a table lists, and has not given back, that table holds.
    pub open spec fn entries_held(self) -> bool {
        forall|s: int, i: int|
            #![trigger self.rows[s][i]]
            self.entry(s, i) ==> self.rows[s][i] < self.n()
                && self.pool.holders[self.rows[s][i] as int].contains((s, i))
    }

    /// Every holder is a table that lists the block: counts are neither too low nor too high.
    pub open spec fn holders_real(self) -> bool {
        forall|b: int, h: Holder|
            0 <= b < self.n() && #[trigger] self.pool.holders[b].contains(h) ==> self.entry(
                h.0,
                h.1,
            ) && self.rows[h.0][h.1] == b
    }

    /// A block that is still written has one holder and is not in the prefix tree.
    pub open spec fn unsealed_private(self) -> bool {
        forall|s: int, i: int|
            #![trigger self.rows[s][i]]
            self.entry(s, i) && self.sealed[s] <= i ==> self.private(s, i)
    }

    pub open spec fn private(self, s: int, i: int) -> bool {
        &&& self.tree.nodes[self.rows[s][i] as int] is None
        &&& forall|h: Holder| #[trigger]
            self.pool.holders[self.rows[s][i] as int].contains(h) ==> h == (s, i)
    }

    /// The queue's front is unregistered, all behind it is registered.
    pub open spec fn queue_ok(self) -> bool {
        forall|k: int|
            #![trigger self.pool.order[k]]
            0 <= k < self.pool.order.len() ==> self.ordered(k)
    }

    pub open spec fn ordered(self, k: int) -> bool {
        self.pool.plain <= k <==> self.tree.nodes[self.pool.order[k] as int] is Some
    }

    /// A registered block holds what it is registered as.
    pub open spec fn content_ok(self) -> bool {
        forall|b: int|
            0 <= b < self.n() && (#[trigger] self.tree.nodes[b]) is Some ==> self.filled_at(b)
    }

    pub open spec fn filled_at(self, b: int) -> bool {
        let prefix = self.tree.prefixes[(self.tree.nodes[b]->0).id as int];
        filled(self.content[b], prefix, self.size)
    }

    /// A seat's anchor is the prefix that its sealed blocks hold; an empty seat's is the root.
    pub open spec fn anchors_ok(self) -> bool {
        forall|s: int| #![trigger self.anchor[s]] 0 <= s < self.rows.len() ==> self.anchored(s)
    }

    pub open spec fn anchored(self, s: int) -> bool {
        self.anchor_ok(s, self.sealed[s] as int, self.anchor[s])
    }

    pub open spec fn anchor_ok(self, s: int, sealed: int, a: u64) -> bool {
        &&& self.rows[s].len() == 0 ==> a == 0
        &&& a != NO_ANCHOR ==> {
            &&& a < self.tree.prefixes.len()
            &&& sealed == 0 ==> a == 0
            &&& sealed > 0 ==> self.content[self.rows[s][sealed - 1] as int][self.size - 1] == Some(
                self.tree.prefixes[a as int],
            )
        }
    }
}

impl LayerGroup {
    pub open(super) spec fn state(&self) -> State {
        State {
            size: self.block_size as int,
            row_len: self.tables.row_len() as int,
            rows: self.tables.rows(),
            freed: self.freed@,
            sealed: self.sealed@,
            anchor: self.anchor@,
            pool: self.pool.view(),
            tree: self.tree.view(),
            content: self.content@,
        }
    }

    pub open(super) spec fn inv(&self) -> bool {
        &&& self.pool.inv()
        &&& self.tree.inv()
        &&& self.tables.inv()
        &&& self.tree.block_size() == self.block_size
        &&& self.state().ok()
    }
}

} // verus!
