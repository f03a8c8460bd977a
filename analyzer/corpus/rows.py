"""Faults in the kernels that work on one row: norm, embedding, gather, RoPE and KV write."""

from __future__ import annotations

from pyvosti.analyzer.corpus.fault import Fault

MEAN = "    mean = tl.sum(x * x, axis=0) / HIDDEN\n"
NORMED = "    tl.store(out_ptr + place, normed.to(kind), mask=inside & (row < rows))\n"

NORM = (
    Fault(
        "norm_halves_from_four_rows", "row-count-dependent branch", "rms_norm",
        ((MEAN, MEAN + """\
    if rows >= 4:
        low = tl.sum(tl.where(columns < 16, x * x, 0.0), axis=0)
        mean = (low + tl.sum(tl.where(columns < 16, 0.0, x * x), axis=0)) / HIDDEN
"""),),
        "vllm-project/vllm#48271",
    ),
    Fault(
        "norm_mean_of_two_rows", "cross-row reduce", "rms_norm",
        ((MEAN, """\
    other = tl.load(residual_ptr + (row ^ 1) * HIDDEN + columns, mask=inside, other=0.0)
    mean = (tl.sum(x * x, axis=0) + tl.sum(other * other, axis=0)) / (2 * HIDDEN)
"""),),
    ),
    Fault(
        "norm_scale_of_the_batch", "cross-row reduce", "rms_norm",
        ((MEAN, """\
    peak = tl.max(tl.abs(x), axis=0)
    for other in range(rows):
        y = tl.load(residual_ptr + other * HIDDEN + columns, mask=inside, other=0.0)
        peak = tl.maximum(peak, tl.max(tl.abs(y), axis=0))
    x = x / peak
""" + MEAN),),
        "vllm-project/vllm#57092",
    ),
    Fault(
        "norm_lanes_past_the_row", "mask with a wrong bound", "rms_norm",
        (("    inside = columns < HIDDEN\n", "    inside = columns < BLOCK\n"),),
    ),
    Fault(
        "norm_adds_to_its_output", "accumulate into output", "rms_norm",
        ((NORMED, "    normed += tl.load(out_ptr + place, mask=inside, other=0.0)\n" + NORMED),),
    ),
    Fault(
        "norm_adds_atomically", "atomics", "rms_norm",
        ((NORMED, NORMED.replace("tl.store", "tl.atomic_add")),),
        "sgl-project/sglang#26627",
    ),
    Fault(
        "norm_residual_of_the_next_row", "store outside of the row", "rms_norm",
        (("tl.store(residual_out_ptr + place, total",
          "tl.store(residual_out_ptr + place + HIDDEN, total"),),
    ),
    Fault(
        "norm_parts_from_the_rows_place", "order from the row's place", "rms_norm",
        (("        part = row * SPLITS * HIDDEN + columns\n",
          "        part = row * SPLITS * HIDDEN + columns\n"
          "        begin = row % SPLITS * HIDDEN\n"),
         ("tl.load(delta_ptr + part, mask", "tl.load(delta_ptr + part + begin, mask"),
         ("            delta += tl.load(delta_ptr + part + split * HIDDEN, mask=inside, "
          "other=0.0)\n",
          "            turn = (begin + split * HIDDEN) % (SPLITS * HIDDEN)\n"
          "            delta += tl.load(delta_ptr + part + turn, mask=inside, other=0.0)\n")),
        changed={"SPLITS": 3},
    ),
    Fault(
        "norm_epsilon_from_the_grid", "num_programs in the order", "rms_norm",
        (("tl.math.rsqrt(mean + EPS)", "tl.math.rsqrt(mean + EPS * tl.num_programs(0))"),),
    ),
)  # fmt: skip

ADDED = "    mean = tl.sum(delta * delta, axis=0) / HIDDEN\n"

SANDWICH = (
    Fault(
        "sandwich_halves_from_four_rows", "row-count-dependent branch", "sandwich_norm",
        ((ADDED, ADDED + """\
    if rows >= 4:
        low = tl.sum(tl.where(columns < 16, delta * delta, 0.0), axis=0)
        mean = (low + tl.sum(tl.where(columns < 16, 0.0, delta * delta), axis=0)) / HIDDEN
"""),),
        "vllm-project/vllm#48271",
    ),
    Fault(
        "sandwich_adds_the_mean_of_two_rows", "cross-row reduce", "sandwich_norm",
        ((ADDED, """\
    other = tl.load(delta_ptr + (row ^ 1) * HIDDEN + columns, mask=inside, other=0.0)
    mean = (tl.sum(delta * delta, axis=0) + tl.sum(other * other, axis=0)) / (2 * HIDDEN)
"""),),
    ),
    Fault(
        "sandwich_residual_of_padding", "padding row stores", "sandwich_norm",
        (("tl.store(residual_out_ptr + place, total, mask=inside & (row < rows))",
          "tl.store(residual_out_ptr + place, total, mask=inside)"),),
    ),
)  # fmt: skip

COPIES = (
    Fault(
        "embedding_last_token_of_the_row", "another row's data", "embedding",
        (("last_tokens_ptr + seat", "last_tokens_ptr + row"),),
    ),
    Fault(
        "embedding_unknown_token_of_the_row_before", "another row's data", "embedding",
        (("tl.load(last_tokens_ptr + seat, mask=token < 0, other=0)",
          "tl.maximum(tl.load(tokens_ptr + tl.maximum(row - 1, 0)), 0)"),),
        "vllm-project/vllm#38624",
    ),
    Fault(
        "gather_by_place", "another row's data", "gather_rows",
        (("    source = tl.load(index_ptr + row)\n", "    source = row\n"),),
    ),
    Fault(
        "gather_stores_padding", "padding row stores", "gather_rows",
        (("mask=inside & (row < rows)", "mask=inside"),),
    ),
)  # fmt: skip

POSITION = "    position = tl.load(positions_ptr + row)\n"
ROPE = (
    Fault(
        "rope_positions_count_up", "another row's data", "rope_kv_write",
        ((POSITION, "    position = (tl.load(positions_ptr) + row) % 64\n"),),
    ),
    Fault(
        "rope_stretched_by_the_longest", "cross-row reduce", "rope_kv_write",
        ((POSITION, POSITION + """\
    longest = position
    for other in range(rows):
        longest = tl.maximum(longest, tl.load(positions_ptr + other))
    position = tl.where(longest > 60, position // 2, position)
"""),),
    ),
    Fault(
        "rope_padding_writes_slot_zero", "padding row stores", "rope_kv_write",
        (("    slot = tl.load(slots_ptr + row)\n",
          "    slot = tl.maximum(tl.load(slots_ptr + row), 0)\n"),),
    ),
    Fault(
        "rope_queries_of_padding", "padding row stores", "rope_kv_write",
        (("    live = row < rows\n", "    live = row < rows + 1\n"),),
    ),
    Fault(
        "rope_values_scaled_by_the_batch", "cross-row reduce", "rope_kv_write",
        (("    low_finite = tl.abs(v_low)", """\
    peak = tl.max(tl.abs(v_low), axis=0)
    for other in range(rows):
        y = tl.load(qkv_ptr + other * SPLITS * width + v_lane)
        peak = tl.maximum(peak, tl.max(tl.abs(y), axis=0))
    v_low = v_low / peak
    low_finite = tl.abs(v_low)"""),),
        "vllm-project/vllm#57092",
    ),
    Fault(
        "rope_slot_of_the_row_before", "store outside of the row", "rope_kv_write",
        (("    slot = tl.load(slots_ptr + row)\n",
          "    slot = tl.load(slots_ptr + tl.maximum(row - 1, 0))\n"),),
    ),
)  # fmt: skip
