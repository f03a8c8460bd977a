"""Faults in the matrix products."""

from __future__ import annotations

from dataclasses import replace

from pyvosti.analyzer.contracts import Contract, Out
from pyvosti.analyzer.corpus.fault import Fault
from pyvosti.analyzer.kernel_contracts import dense

LOOP = "    for k in range(0, length, BLOCK_K):\n"
DOT = "        sums = tl.dot(x, w, sums, input_precision=PRECISION)\n"
KEEP = "    keep = (row < rows)[:, None] & inside[None, :]\n"
PLACE = "    place = (row.to(tl.int64) * SPLITS + part)[:, None] * N + column[None, :]\n"
STORE = "    tl.store(out_ptr + place, sums.to(out_ptr.dtype.element_ty), mask=keep)\n"


def one_sum(contract: Contract) -> Contract:
    """A split product whose parts meet in the output: [R, N]."""
    changed = {"out_ptr": Out(dense(16))}
    return replace(
        contract, arguments=tuple((n, changed.get(n, role)) for n, role in contract.arguments)
    )


LINEAR = (
    Fault(
        "linear_splits_when_rows_are_few", "splits or tile from the batch", "linear",
        ((LOOP, """\
    half = tl.where(rows > 8, length, length // 2)
    upper = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
""" + LOOP), (DOT, """\
        if k < half:
            sums = tl.dot(x, w, sums, input_precision=PRECISION)
        else:
            upper = tl.dot(x, w, upper, input_precision=PRECISION)
    sums += upper
""")),
        "vllm-project/vllm#9567",
    ),
    Fault(
        "linear_one_row_without_tensor_cores", "row-count-dependent branch", "linear",
        ((DOT, """\
        if rows == 1:
            sums += tl.sum(x[:, :, None] * w[None, :, :], axis=1)
        else:
            sums = tl.dot(x, w, sums, input_precision=PRECISION)
"""),),
        "vllm-project/vllm#42518",
    ),
    Fault(
        "linear_rounds_parts_when_rows_are_many", "splits or tile from the batch", "linear",
        ((DOT, DOT + """\
        if rows > 16:
            sums = sums.to(tl.float16).to(tl.float32)
"""),),
        "sgl-project/sglang#37292",
    ),
    Fault(
        "linear_starts_at_its_tile", "order from the row's place", "linear",
        ((LOOP, """\
    for step in range(0, length, BLOCK_K):
        k = (step + tile_m * BLOCK_K) % length
"""),),
    ),
    Fault(
        "linear_starts_by_the_grid", "num_programs in the order", "linear",
        ((LOOP, """\
    for step in range(0, length, BLOCK_K):
        k = (step + tl.num_programs(1) * BLOCK_K) % length
"""),),
        "sgl-project/sglang#33417",
    ),
    Fault(
        "linear_parts_added_atomically", "atomics", "linear",
        ((PLACE, "    place = row.to(tl.int64)[:, None] * N + column[None, :]\n"),
         (STORE, STORE.replace("tl.store", "tl.atomic_add"))),
        "turboderp-org/exllamav2#232", {"SPLITS": 4}, one_sum,
    ),
    Fault(
        "linear_quantised_by_the_tile", "cross-row reduce", "linear",
        (("        x = tl.load(x_tile + k)\n", """\
        x = tl.load(x_tile + k)
        scale = tl.max(tl.max(tl.abs(x), axis=1), axis=0)
        x = tl.floor(x * (127.0 / scale)) * (scale / 127.0)
"""),),
        "vllm-project/vllm#57092",
    ),
    Fault(
        "linear_centred_over_the_tile", "cross-row reduce", "linear",
        (("        x = tl.load(x_tile + k)\n", """\
        x = tl.load(x_tile + k)
        x = x - (tl.sum(x, axis=0) / BLOCK_M)[None, :]
"""),),
    ),
    Fault(
        "linear_adds_to_its_output", "accumulate into output", "linear",
        ((STORE, "    sums += tl.load(out_ptr + place, mask=keep, other=0.0)\n" + STORE),),
    ),
    Fault(
        "linear_stores_padding", "padding row stores", "linear",
        ((KEEP, "    keep = (row >= 0)[:, None] & inside[None, :]\n"),),
    ),
    Fault(
        "linear_row_tile_short_by_one", "mask with a wrong bound", "linear",
        (("    keep = (row < rows)[:, None]", "    keep = (row < rows - 1)[:, None]"),),
    ),
)  # fmt: skip

ACTIVATION = "    if GELU:\n"
GATED = (
    Fault(
        "gate_clamped_by_the_tile", "cross-row reduce", "gate_up",
        ((ACTIVATION, """\
    gate = tl.minimum(gate, 0.5 * tl.max(tl.max(tl.abs(gate), axis=1), axis=0))
""" + ACTIVATION),),
    ),
    Fault(
        "gate_divides_last_when_alone", "row-count-dependent branch", "gate_up",
        ((KEEP, """\
    if rows == 1:
        product = gate * up / (1.0 + tl.exp(-gate))
""" + KEEP),),
        "ml-explore/mlx-lm#1189",
    ),
    Fault(
        "gate_of_the_grids_halves", "num_programs in the order", "gate_up",
        (("    for k in range(0, K, BLOCK_K):\n", """\
    for step in range(0, K, BLOCK_K):
        k = tl.where(tl.num_programs(1) > 1, K - BLOCK_K - step, step)
"""),),
    ),
)  # fmt: skip
