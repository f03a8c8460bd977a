"""What each kernel's arguments hold, as data: the premises of a proof and what it must show.

A contract gives every argument a role. Two launches A and B are compared that agree on *one row
each* (rows r_A and r_B, the same request's) and on nothing else: grid, row counts, other rows,
block tables and places in tiles are each launch's own. A role says in which sense the launches
agree on an input, what is known of an integer array, or where a row's result must be stored.
"""

from dataclasses import dataclass, field

MAX_ROWS = 1 << 16
"""Most rows of a step (`max_batched_tokens`), padding included."""
MAX_SEATS = 1 << 14
"""Most sequences of a step (`max_seqs`)."""
MAX_POSITION = 1 << 20
"""Positions are below this where a kernel's constants give no better bound."""
MAX_SLOTS = (1 << 31) - 1
"""Slots of a KV pool (blocks times block size) are at most these: slots are i32."""


@dataclass(frozen=True)
class At:
    """Where a row's elements lie: at `key * stride + sum(i * s)` for i below extent, by dim.

    The key is the row itself, or what the named argument holds for the row. With `page` set the
    key is a slot: its place is `(key // page) * page_stride + (key % page) * stride`.
    """

    dims: tuple[tuple[int, int], ...] = ()
    """(extent, stride) of each index within the row."""
    stride: int = 1
    key: str = ""
    page: int = 0
    page_stride: int = 0


@dataclass(frozen=True)
class Live:
    """Which rows, or elements of a row, hold something. All conditions must hold.

    `nonnegative` names an argument whose entry for the row is at least 0; `in_tile`: some tile
    holds the row; `splits` (dim, split, window): index `dim` is a split that the row's position
    sees.
    """

    nonnegative: str = ""
    in_tile: bool = False
    splits: tuple[int, int, int] = ()  # type: ignore[assignment]


@dataclass(frozen=True)
class Count:
    """i32[1]: the number of rows that are not padding."""


@dataclass(frozen=True)
class Same:
    """The same in both launches: weights, tables of cosines."""


@dataclass(frozen=True)
class Row:
    """An input, equal in A and B on the shared row where it is live.

    `modulo_zero`: equal but for the sign of a zero. `low`, `high`: bounds of integers (high
    excluded).
    """

    at: At = At()
    low: int | None = None
    high: int | None = None
    modulo_zero: bool = False
    live: Live = Live()


@dataclass(frozen=True)
class Ints:
    """An integer of each row, each launch's own: low <= value < high.

    `distinct`: those that are at least 0 differ from row to row.
    """

    low: int
    high: int
    distinct: bool = False


@dataclass(frozen=True)
class TileArray:
    """i32[T] of `part` "first" (row), "count" (rows, 0: a padding tile) or "seat"."""

    part: str


@dataclass(frozen=True)
class Table:
    """i32[seats, pages]: the block of each page of a seat's sequence, each launch's own."""

    pages: int
    page: int


@dataclass(frozen=True)
class Cache:
    """[blocks, heads, page, dim]: equal in A and B at equal positions of the row's sequence.

    Only positions that the row sees count, up to its own, the last `window` of them where that is
    not 0: what other slots hold is each launch's own. With `finite` every element is a finite
    number.
    """

    heads: int
    page: int
    dim: int
    finite: bool
    window: int = 0


@dataclass(frozen=True)
class Out:
    """An output: every live element of a row that is not padding is stored, and nothing else.

    `modulo_zero`: only the sign of a zero may differ. `finite`: what is stored is finite.
    """

    at: At
    modulo_zero: bool = False
    finite: bool = False
    live: Live = Live()


@dataclass(frozen=True)
class Unused:
    """Neither read nor written under these constants."""


Role = Count | Same | Row | Ints | TileArray | Table | Cache | Out | Unused


@dataclass(frozen=True)
class Contract:
    """A kernel's arguments (name, role) in order, and its grid.

    A grid entry is a number, "rows" or "tiles", or "rows/n": that many, rounded up. `tile_rows`:
    most rows of one tile. `positions` names the argument that holds rows' positions.
    """

    kernel: str
    arguments: tuple[tuple[str, Role], ...]
    grid: tuple[int | str, ...]
    tile_rows: int = 0
    positions: str = ""
    premises: tuple[str, ...] = field(default=())
    """Names of `PREMISES` that the roles stand for."""

    def role(self, name: str) -> Role:
        """The role of the argument of that name."""
        return dict(self.arguments)[name]


PREMISES = {
    "rows_bounded": "0 < rows <= padded rows <= MAX_ROWS; a grid covers the rows, or more",
    "buffers_disjoint": "arguments are distinct buffers, save that read-only ones may coincide",
    "slots_distinct": "two rows with slots >= 0 have distinct slots, within the pool",
    "seats_distinct": "two rows that are sampled have distinct seats",
    "states_distinct": "two rows with states >= 0 have distinct states",
    "tiles_contiguous": "row first + i of a tile has the position of row first, plus i",
    "tiles_one_seat": "all rows of a tile belong to the tile's seat",
    "tiles_disjoint": "a row is in at most one tile, and its tile's rows are below the row count",
    "tiles_have_states": "a row in a tile of attention_splits has a state >= 0",
    "tables_cover": "entry p of a seat's table is a block of the pool for p <= position // page",
    "past_equal": "the KV that the row sees is equal in both launches: rows_computed",
    "cache_finite": "every V of the pool is finite: proved of rope_kv_write's stores",
}
"""Every premise about integers and memory that a proof may use, by name.

Those that `VERUS` names are parts of `plan_wf`, which the engine is proved to keep; the others say
how the runner lays out a step's arrays (`cuda_step.py`), and `past_equal` and `cache_finite` are
what the certificates of the kernels that write the cache establish.
"""

VERUS = {
    "slots_distinct": (
        "Scheduler::plan_wf", "Scheduler::arrays_ok", "Scheduler::slots_ok", "Scheduler::writes_ok",
        "plan_wf", "place", "is_row", "is_read", "first_seen", "Shape::slot",
    ),
    "seats_distinct": ("Scheduler::plan_wf", "Scheduler::sequences_ok", "Scheduler::wanted_ok"),
    "tiles_contiguous": (
        "Scheduler::plan_wf", "Scheduler::arrays_ok", "Scheduler::sequences_ok",
        "Scheduler::belongs",
    ),
    "tiles_one_seat": ("Scheduler::plan_wf", "Scheduler::sequences_ok", "Scheduler::belongs"),
    "tiles_disjoint": ("Scheduler::plan_wf", "Scheduler::sequences_ok"),
    "tables_cover": ("plan_wf", "Shape::covers"),
    "past_equal": (
        "plan_wf", "place", "is_row", "is_read", "first_seen", "Shape::slot",
        "Execution::rows_computed",
    ),
}  # fmt: skip
"""Premise -> the Verus definitions that say it (kernel_contract.rs, deployment.rs, plan.rs).

`scripts/premises.py` holds the text of these against the premises, clause by clause.
"""
