//! What a caller of a layer group can see and rely on.
#[cfg(verus_only)]
use super::inv::*;
use super::LayerGroup;
#[cfg(verus_only)]
use super::NO_ANCHOR;
use vstd::prelude::*;

verus! {

/// What one seat holds.
#[verifier::ext_equal]
pub ghost struct SeatView {
    /// Blocks of its table.
    pub table: Seq<u32>,
    /// Leading entries of the table that were given back.
    pub freed: nat,
    /// The first position that is not in one of them.
    pub kept: nat,
    /// Leading blocks that are full and committed: nobody writes them any more.
    pub sealed: nat,
    /// By position: the token prefix, this position included, whose KV is in its slot; nothing is
    /// known of positions before `kept`.
    pub kv: Seq<Option<Seq<u32>>>,
}

/// The first `n` positions of the seat, but for those given back, hold the KV of `toks`.
pub open spec fn holds(v: SeatView, toks: Seq<u32>, n: int) -> bool {
    &&& 0 <= n <= v.kv.len()
    &&& n <= toks.len()
    &&& forall|p: int| v.kept <= p < n ==> #[trigger] v.kv[p] == Some(toks.take(p + 1))
}

/// The slot of position `p`: where its KV lies in the pool.
pub open spec fn slot(v: SeatView, block_size: nat, p: int) -> int {
    v.table[p / block_size as int] * block_size + p % block_size as int
}

/// One entry appended to a block table.
#[verifier::ext_equal]
pub ghost struct TableUpdate {
    pub seat: u32,
    pub index: u32,
    pub block: u32,
}

/// The updates that entries `from..to` of a seat's table amount to.
pub open spec fn appended(seat: int, table: Seq<u32>, from: int, to: int) -> Seq<TableUpdate> {
    Seq::new(
        if from <= to {
            (to - from) as nat
        } else {
            0
        },
        |j: int|
            TableUpdate { seat: seat as u32, index: (from + j) as u32, block: table[from + j] },
    )
}

pub open spec fn min(a: int, b: int) -> int {
    if a <= b {
        a
    } else {
        b
    }
}

impl LayerGroup {
    /// Positions in a block.
    pub open(super) spec fn block_size(&self) -> nat {
        self.block_size as nat
    }

    /// How many positions, its own included, a row sees; 0: all up to its own.
    pub open(super) spec fn window(&self) -> nat {
        self.window as nat
    }

    pub open(super) spec fn num_blocks(&self) -> nat {
        self.pool.view().holders.len()
    }

    pub open(super) spec fn seats(&self) -> nat {
        self.tables.rows().len()
    }

    /// Most blocks in one table.
    pub open(super) spec fn row_len(&self) -> nat {
        self.tables.row_len()
    }

    /// Whether full blocks are registered and looked up.
    pub open(super) spec fn prefix_cache(&self) -> bool {
        self.prefix_cache
    }

    pub open(super) spec fn seat(&self, s: int) -> SeatView {
        seat_view(self.state(), s)
    }

    /// Blocks that nobody holds, those in the prefix tree included.
    pub open(super) spec fn num_free(&self) -> nat {
        self.pool.view().order.len()
    }

    /// Blocks that nobody holds and the prefix tree can still give back.
    pub open(super) spec fn num_cached(&self) -> nat {
        (self.pool.view().order.len() - self.pool.view().plain) as nat
    }

    /// What block `b` is registered as: its salt and the token prefix that ends in it.
    pub open(super) spec fn cached(&self, b: int) -> Option<(u64, Seq<u32>)> {
        cached_as(self.state(), b)
    }

    /// Some block is registered under `salt` as the end of `prefix`.
    pub open spec fn has_cached(&self, salt: u64, prefix: Seq<u32>) -> bool {
        exists|b: int| #[trigger] self.cached(b) == Some((salt, prefix))
    }

    /// Blocks that a request with this salt and these tokens finds, at most `max`.
    pub open(super) spec fn hit(&self, salt: u64, toks: Seq<u32>, max: int) -> int {
        if self.prefix_cache {
            self.tree.view().hit(self.block_size as int, salt, toks, 0, 0, max)
        } else {
            0
        }
    }

    /// Whether what seat `s` holds of `toks` can be found under `salt`, so that the next block
    /// that it seals will be, too.
    pub open(super) spec fn findable(&self, s: int, salt: u64, toks: Seq<u32>) -> bool {
        &&& self.prefix_cache
        &&& self.anchor@[s] != NO_ANCHOR
        &&& self.tree.view().walk(self.block_size as int, salt, toks, self.sealed@[s] as int)
            == Some(self.anchor@[s])
    }

    /// Whether no parent of a block registered under `salt` was evicted.
    pub open(super) spec fn rooted(&self, salt: u64) -> bool {
        self.tree.view().rooted(salt)
    }

    /// Whether the tree has ids left: there are 2^64 - 2.
    pub open(super) spec fn ids_left(&self) -> bool {
        self.tree.view().prefixes.len() < u64::MAX
    }

    /// Table entries appended and not yet taken by `take_updates`.
    pub open(super) spec fn updates(&self) -> Seq<TableUpdate> {
        self.tables.updates()
    }

    /// What a new group is.
    pub open spec fn created(
        &self,
        num_blocks: u32,
        block_size: u32,
        seats: u32,
        row_len: u32,
        window: u32,
        prefix_cache: bool,
    ) -> bool {
        &&& self.inv()
        &&& self.block_size() == block_size
        &&& self.window() == window
        &&& self.num_blocks() == num_blocks
        &&& self.seats() == seats
        &&& self.row_len() == row_len
        &&& self.prefix_cache() == prefix_cache
        &&& self.num_free() == num_blocks
        &&& self.num_cached() == 0
        &&& self.updates().len() == 0
        &&& forall|b: int| #[trigger] self.cached(b) is None
        &&& forall|t: u64| #[trigger] self.rooted(t)
        &&& forall|s: int|
            0 <= s < seats ==> {
                &&& (#[trigger] self.seat(s)).table.len() == 0
                &&& self.seat(s).sealed == 0
                &&& self.seat(s).kv.len() == 0
            }
    }

    /// Dimensions that no call changes, and every other seat as it was.
    pub open spec fn same_but(&self, old: &LayerGroup, s: int) -> bool {
        &&& self.inv()
        &&& self.block_size() == old.block_size()
        &&& self.window() == old.window()
        &&& self.num_blocks() == old.num_blocks()
        &&& self.seats() == old.seats()
        &&& self.row_len() == old.row_len()
        &&& self.prefix_cache() == old.prefix_cache()
        &&& forall|s2: int|
            s2 != s && 0 <= s2 < old.seats() ==> #[trigger] self.seat(s2) == old.seat(s2)
    }

    /// Seat `s` has block `b` as entry `i` of its table, not given back.
    pub open spec fn lists(&self, s: int, i: int, b: int) -> bool {
        &&& 0 <= s < self.seats()
        &&& self.seat(s).freed <= i < self.seat(s).table.len()
        &&& self.seat(s).table[i] == b
    }

    /// Blocks that some seat has.
    pub open spec fn referenced(&self) -> Set<int> {
        vstd::set_lib::set_int_range(0, self.num_blocks() as int).filter(
            |b: int| exists|s: int, i: int| #[trigger] self.lists(s, i, b),
        )
    }

    /// The prefix tree as it was.
    pub open spec fn same_cached(&self, old: &LayerGroup) -> bool {
        &&& forall|b: int| #[trigger] self.cached(b) == old.cached(b)
        &&& forall|salt: u64| #[trigger] self.rooted(salt) == old.rooted(salt)
    }
}

} // verus!
