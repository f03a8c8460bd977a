"""The contracts of the shipped kernels, from a specialisation's constants."""

from typing import Any

from pyvosti.analyzer.contracts import (
    MAX_POSITION,
    MAX_ROWS,
    MAX_SEATS,
    MAX_SLOTS,
    At,
    Cache,
    Contract,
    Count,
    Ints,
    Live,
    Out,
    Row,
    Same,
    Table,
    TileArray,
    Unused,
)
from pyvosti.triton_kernels.compile import Spec

ROWS = ("rows_bounded", "buffers_disjoint")


def dense(*extents: int) -> At:
    """A row of a contiguous array, indexed by `extents`."""
    strides = [1]
    for extent in reversed(extents):
        strides.insert(0, strides[0] * extent)
    return At(tuple(zip(extents, strides[1:], strict=True)), strides[0])


def by(key: str, at: At) -> At:
    """The same place, found through an argument's entry for the row."""
    return At(at.dims, at.stride, key)


def linear(c: dict[str, Any]) -> Contract:
    """out[r] = x[r] @ w.T, in SPLITS parts."""
    groups = -(-c["N"] // (c["BLOCK_N"] * c["GROUP_N"])) * c["SPLITS"]
    return Contract(
        "linear",
        (
            ("rows_ptr", Count()),
            ("x_ptr", Row(dense(c["K"]))),
            ("w_ptr", Same()),
            ("bias_ptr", Same() if c["HAS_BIAS"] else Unused()),
            ("out_ptr", Out(dense(c["SPLITS"], c["N"]))),
        ),
        (c["GROUP_N"], f"rows/{c['BLOCK_M']}", groups),
        premises=ROWS,
    )


def gate_up(c: dict[str, Any]) -> Contract:
    """out[r] = silu(x[r] @ gate.T) * (x[r] @ up.T)."""
    groups = -(-c["N"] // (c["BLOCK_N"] * c["GROUP_N"]))
    return Contract(
        "gate_up",
        (
            ("rows_ptr", Count()),
            ("x_ptr", Row(dense(c["K"]))),
            ("w_ptr", Same()),
            ("out_ptr", Out(dense(c["N"]))),
        ),
        (c["GROUP_N"], f"rows/{c['BLOCK_M']}", groups),
        premises=ROWS,
    )


def embedding(c: dict[str, Any]) -> Contract:
    """out[r] = table[token of r]."""
    return Contract(
        "embedding",
        (
            ("rows_ptr", Count()),
            ("tokens_ptr", Row(At())),
            ("seats_ptr", Ints(0, MAX_SEATS)),
            ("last_tokens_ptr", Row(At(key="seats_ptr"))),
            ("table_ptr", Same()),
            ("out_ptr", Out(dense(c["HIDDEN"]))),
        ),
        ("rows",),
        premises=ROWS,
    )


def gather_rows(c: dict[str, Any]) -> Contract:
    """out[i] = x[index[i]]."""
    return Contract(
        "gather_rows",
        (
            ("rows_ptr", Count()),
            ("index_ptr", Ints(0, MAX_ROWS)),
            ("x_ptr", Row(by("index_ptr", dense(c["HIDDEN"])))),
            ("out_ptr", Out(dense(c["HIDDEN"]))),
        ),
        ("rows",),
        premises=ROWS,
    )


def rms_norm(c: dict[str, Any]) -> Contract:
    """Residual addition and RMSNorm of a row."""
    splits, hidden = c["SPLITS"], c["HIDDEN"]
    return Contract(
        "rms_norm",
        (
            ("rows_ptr", Count()),
            ("delta_ptr", Row(dense(splits, hidden)) if splits else Unused()),
            ("residual_ptr", Row(dense(hidden))),
            ("weight_ptr", Same()),
            ("residual_out_ptr", Out(dense(hidden)) if splits else Unused()),
            ("out_ptr", Out(dense(hidden))),
        ),
        ("rows",),
        premises=ROWS,
    )


def sandwich_norm(c: dict[str, Any]) -> Contract:
    """RMSNorm of the addend, residual addition and RMSNorm of a row."""
    splits, hidden = c["SPLITS"], c["HIDDEN"]
    return Contract(
        "sandwich_norm",
        (
            ("rows_ptr", Count()),
            ("delta_ptr", Row(dense(splits, hidden))),
            ("delta_weight_ptr", Same()),
            ("residual_ptr", Row(dense(hidden))),
            ("weight_ptr", Same()),
            ("residual_out_ptr", Out(dense(hidden))),
            ("out_ptr", Out(dense(hidden))),
        ),
        ("rows",),
        premises=ROWS,
    )


def rope_kv_write(c: dict[str, Any]) -> Contract:
    """RoPE of a row's queries and key; key and value go to the row's slot."""
    dims, heads, kv_heads, page = 2 * c["HALF"], c["HEADS"], c["KV_HEADS"], c["PAGE"]
    slot = At(((kv_heads, page * dims), (dims, 1)), dims, "slots_ptr", page, kv_heads * page * dims)
    live = Live(nonnegative="slots_ptr")
    norm = Same() if c["QK_NORM"] else Unused()
    return Contract(
        "rope_kv_write",
        (
            ("rows_ptr", Count()),
            ("qkv_ptr", Row(dense(c["SPLITS"], (heads + 2 * kv_heads) * dims))),
            ("cos_ptr", Same()),
            ("sin_ptr", Same()),
            ("positions_ptr", Row(At(), 0, MAX_POSITION)),
            ("slots_ptr", Ints(-1, MAX_SLOTS, distinct=True)),
            ("q_norm_ptr", norm),
            ("k_norm_ptr", norm),
            ("q_out_ptr", Out(dense(heads, dims))),
            ("k_cache_ptr", Out(slot, live=live)),
            ("v_cache_ptr", Out(slot, finite=True, live=live)),
        ),
        ("rows", kv_heads),
        positions="positions_ptr",
        premises=(*ROWS, "slots_distinct"),
    )


ATTENTION = (
    *("rows_bounded", "buffers_disjoint", "tiles_contiguous", "tiles_one_seat"),
    *("tiles_disjoint", "tables_cover", "past_equal", "cache_finite"),
)


def attention_inputs(c: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Queries, KV, block tables, positions and tiles."""
    heads, dim, page, pages = c["KV_HEADS"], c["HEAD_DIM"], c["PAGE"], c["MAX_PAGES"]
    return (
        ("q_ptr", Row(dense(heads * c["GROUP"], dim))),
        ("k_ptr", Cache(heads, page, dim, finite=False, window=c["WINDOW"])),
        ("v_ptr", Cache(heads, page, dim, finite=True, window=c["WINDOW"])),
        ("tables_ptr", Table(pages, page)),
        ("positions_ptr", Row(At(), 0, pages * page)),
        ("tile_rows_ptr", TileArray("first")),
        ("tile_counts_ptr", TileArray("count")),
        ("tile_seats_ptr", TileArray("seat")),
    )


def attention_splits(c: dict[str, Any]) -> Contract:
    """The partial state of each split that a row sees, stored at the row's state."""
    heads, splits, dim = c["KV_HEADS"] * c["GROUP"], c["MAX_SPLITS"], c["HEAD_DIM"]
    live = Live(nonnegative="states_ptr", in_tile=True, splits=(1, c["SPLIT"], c["WINDOW"]))
    return Contract(
        "attention_splits",
        (
            *attention_inputs(c),
            ("states_ptr", Ints(-1, MAX_ROWS, distinct=True)),
            ("m_ptr", Out(by("states_ptr", dense(heads, splits)), live=live)),
            ("l_ptr", Out(by("states_ptr", dense(heads, splits)), live=live)),
            ("acc_ptr", Out(by("states_ptr", dense(heads, splits, dim)), True, live=live)),
        ),
        ("tiles", c["KV_HEADS"], c["STRIDE"]),
        tile_rows=c["BLOCK_M"] // c["GROUP"],
        positions="positions_ptr",
        premises=(*ATTENTION, "states_distinct", "tiles_have_states"),
    )


def attention_whole(c: dict[str, Any]) -> Contract:
    """All splits of a row, folded."""
    return Contract(
        "attention_whole",
        (
            *attention_inputs(c),
            ("out_ptr", Out(dense(c["KV_HEADS"] * c["GROUP"], c["HEAD_DIM"]), live=Live("", True))),
        ),
        ("tiles", c["KV_HEADS"]),
        tile_rows=c["BLOCK_M"] // c["GROUP"],
        positions="positions_ptr",
        premises=ATTENTION,
    )


def attention_combine(c: dict[str, Any]) -> Contract:
    """The split states of a row, folded."""
    heads, splits, dim = c["HEADS"], c["MAX_SPLITS"], c["HEAD_DIM"]
    seen = Live(splits=(1, c["SPLIT"], c["WINDOW"]))
    states = by("states_ptr", dense(heads, splits))
    return Contract(
        "attention_combine",
        (
            ("rows_ptr", Count()),
            ("positions_ptr", Row(At(), 0, splits * c["SPLIT"])),
            ("states_ptr", Ints(-1, MAX_ROWS)),
            ("m_ptr", Row(states, live=seen)),
            ("l_ptr", Row(states, live=seen)),
            ("acc_ptr", Row(by("states_ptr", dense(heads, splits, dim)), None, None, True, seen)),
            ("out_ptr", Out(dense(heads, dim), live=Live(nonnegative="states_ptr"))),
        ),
        ("rows", -(-heads // c["BLOCK_H"])),
        positions="positions_ptr",
        premises=(*ROWS, "states_distinct"),
    )


def argmax(c: dict[str, Any]) -> Contract:
    """The most likely token of a row, kept for its seat."""
    return Contract(
        "argmax",
        (
            ("rows_ptr", Count()),
            ("logits_ptr", Row(dense(c["VOCAB"]))),
            ("seats_ptr", Ints(-1, MAX_SEATS, distinct=True)),
            ("tokens_ptr", Out(At())),
            ("last_tokens_ptr", Out(At(key="seats_ptr"), live=Live(nonnegative="seats_ptr"))),
        ),
        ("rows",),
        premises=(*ROWS, "seats_distinct"),
    )


def log_softmax(c: dict[str, Any]) -> Contract:
    """Log-probabilities of a row; every row of the grid is one."""
    return Contract(
        "log_softmax",
        (("logits_ptr", Row(dense(c["VOCAB"]))), ("out_ptr", Out(dense(c["VOCAB"])))),
        ("rows!",),
        premises=ROWS,
    )


def adjust(c: dict[str, Any]) -> Contract:
    """Bias, penalties and temperature; every row of the grid is one."""
    row, one = dense(c["VOCAB"]), At()
    bias = Row(row) if c["HAS_BIAS"] else Unused()
    counts = Row(row) if c["HAS_PENALTIES"] else Unused()
    penalty = Row(one) if c["HAS_PENALTIES"] else Unused()
    return Contract(
        "adjust",
        (
            ("logits_ptr", Row(by("logits_rows_ptr", row))),
            ("logits_rows_ptr", Ints(0, MAX_ROWS)),
            ("bias_ptr", bias),
            ("prompt_counts_ptr", counts),
            ("output_counts_ptr", counts),
            ("temperature_ptr", Row(one)),
            ("repetition_ptr", penalty),
            ("presence_ptr", penalty),
            ("frequency_ptr", penalty),
            ("out_ptr", Out(row)),
        ),
        ("rows!", -(-c["VOCAB"] // c["BLOCK"])),
        premises=ROWS,
    )


def sample(c: dict[str, Any]) -> Contract:
    """One draw from a row; every row of the grid is one."""
    inputs = (
        *("seeds_ptr", "sample_indices_ptr", "positions_ptr", "temperature_ptr"),
        *("top_k_ptr", "top_p_ptr", "log_min_p_ptr"),
    )
    return Contract(
        "sample",
        (
            ("adjusted_ptr", Row(dense(c["VOCAB"]))),
            *((name, Row(At())) for name in inputs),
            ("seats_ptr", Ints(0, MAX_SEATS, distinct=True)),
            ("tokens_ptr", Out(At())),
            ("last_tokens_ptr", Out(At(key="seats_ptr"))),
        ),
        ("rows!",),
        premises=(*ROWS, "seats_distinct"),
    )


BUILDERS = {
    "adjust": adjust,
    "argmax": argmax,
    "attention_combine": attention_combine,
    "attention_splits": attention_splits,
    "attention_whole": attention_whole,
    "embedding": embedding,
    "gate_up": gate_up,
    "gather_rows": gather_rows,
    "linear": linear,
    "log_softmax": log_softmax,
    "rms_norm": rms_norm,
    "rope_kv_write": rope_kv_write,
    "sample": sample,
    "sandwich_norm": sandwich_norm,
}


def contract_of(spec: Spec) -> Contract:
    """The contract of a shipped kernel's specialisation. Raises KeyError for another kernel."""
    return BUILDERS[spec.kernel](dict(spec.constants))
