"""Faults in the attention kernels."""

from __future__ import annotations

from dataclasses import replace

from pyvosti.analyzer.contracts import Cache, Contract
from pyvosti.analyzer.corpus.fault import Fault

DEAD = '        scores = tl.where(live, scores, float("-inf"))\n'
LIVE = "        live = key[None, :] <= position[:, None]\n"
PRESENT = "        present = (key < key_end)[:, None]\n"
LAST = "tl.minimum(first + SPLIT, key_end)"
WALK = """\
    for split in range(key_start // SPLIT, tl.cdiv(key_end, SPLIT)):
        first = split * SPLIT
"""
CALL = """\
        m_split, l_split, acc_split = attend_split(
            q, position, table_ptr, k_ptr, v_ptr, head, first, key_start, key_end,
"""
SEAT = "    seat = tl.load(tile_seats_ptr + tile)\n"


def walk_from(border: str) -> tuple[tuple[str, str], ...]:
    """Splits of the keys before `border`, then splits that begin at it."""
    return (
        (WALK, f"""\
    border = {border}
    before = tl.cdiv(border, SPLIT)
    for split in range(0, before + tl.cdiv(key_end - border, SPLIT)):
        first = tl.where(split < before, split * SPLIT, border + (split - before) * SPLIT)
        end = tl.where(split < before, border, key_end)
"""),
        (CALL, CALL.replace("key_start, key_end", "key_start, end")),
    )  # fmt: skip


def in_order(order: str) -> tuple[tuple[str, str], ...]:
    """The same splits, folded in the order that the expression over `step` and `count` gives."""
    return (
        (WALK, f"""\
    count = tl.cdiv(key_end, SPLIT)
    for step in range(0, count):
        first = ({order}) * SPLIT
"""),
    )  # fmt: skip


def any_value(contract: Contract) -> Contract:
    """The cache may hold values that are not finite, as other engines' caches do."""
    arguments = []
    for name, role in contract.arguments:
        arguments.append((name, replace(role, finite=False) if isinstance(role, Cache) else role))
    return replace(contract, arguments=tuple(arguments))


WHOLE = (
    Fault(
        "attention_dead_keys_score_zero", "mask with a wrong identity", "attention_whole",
        ((DEAD, DEAD.replace('float("-inf")', "0.0")),),
        "ggml-org/llama.cpp#7903",
    ),
    Fault(
        "attention_dead_keys_score_low", "mask with a wrong identity", "attention_whole",
        ((DEAD, DEAD.replace('float("-inf")', "-3.0")),),
    ),
    Fault(
        "attention_state_of_dead_blocks", "mask with a wrong identity", "attention_whole",
        (("""\
        m = tl.where(sees, m_next, m)
        l = tl.where(sees, l_next, l)
        acc = tl.where(sees[:, None], acc_next, acc)
""", "        m, l, acc = m_next, l_next, acc_next\n"),),
        changed={"WINDOW": 20},
    ),
    Fault(
        "attention_values_not_finite", "mask with a wrong identity", "attention_whole", (),
        "vllm-project/vllm#43741", contract=any_value,
    ),
    Fault(
        "attention_splits_from_the_chunk", "split boundary relative to the chunk",
        "attention_whole", walk_from("tl.load(positions_ptr + row_first) // PAGE * PAGE"),
        "sgl-project/sglang#10639",
    ),
    Fault(
        "attention_cascade", "splits or tile from the batch", "attention_whole",
        walk_from("tl.where(tl.num_programs(0) > 1, PAGE, 0)"), "vllm-project/vllm#32561",
    ),
    Fault(
        "attention_order_from_the_grid", "num_programs in the order", "attention_whole",
        in_order("tl.where(tl.num_programs(0) > 2, count - 1 - step, step)"),
        "flashinfer-ai/flashinfer#2424",
    ),
    Fault(
        "attention_order_of_pages", "physical instead of logical position", "attention_whole",
        in_order("tl.where(tl.load(table_ptr) > tl.load(table_ptr + 2), count - 1 - step, step)"),
    ),
    Fault(
        "attention_causal_by_slot", "physical instead of logical position", "attention_whole",
        ((LIVE, """\
        slot = page.to(tl.int32) * PAGE + start % PAGE + lane
        live = (slot <= 8 * PAGE)[None, :] & (key[None, :] <= position[:, None])
"""),),
    ),
    Fault(
        "attention_sees_the_tile", "mask with a wrong bound", "attention_whole",
        ((LIVE, "        live = (key < key_end)[None, :] & (position >= 0)[:, None]\n"),),
        "vllm-project/vllm#5952",
    ),
    Fault(
        "attention_one_key_too_many", "mask with a wrong bound", "attention_whole",
        ((LIVE, LIVE.replace("position[:, None]", "position[:, None] + 1")),),
        "sgl-project/sglang#22819",
    ),
    Fault(
        "attention_to_the_end_of_the_page", "stale page-table tail", "attention_whole",
        ((LIVE, "        live = key[None, :] < (position[:, None] // PAGE + 1) * PAGE\n"),
         (PRESENT, "        present = (key >= 0)[:, None]\n")),
        "vllm-project/vllm#43741",
    ),
    Fault(
        "attention_to_the_end_of_the_split", "stale page-table tail", "attention_whole",
        ((LIVE, "        live = key[None, :] < (position[:, None] // SPLIT + 1) * SPLIT\n"),
         (PRESENT, "        present = (key >= 0)[:, None]\n"), (LAST, "first + SPLIT"),
         ("mask=first + nth * PAGE < key_end", "mask=nth >= 0")),
        "vllm-project/vllm#43741",
    ),
    Fault(
        "attention_window_of_the_tile", "mask with a wrong bound", "attention_whole",
        (("            live &= key[None, :] > position[:, None] - WINDOW\n",
          "            live &= (key >= key_start)[None, :]\n"),),
        "sgl-project/sglang#34683", {"WINDOW": 20},
    ),
    Fault(
        "attention_seat_of_the_first_tile", "another row's data", "attention_whole",
        ((SEAT, "    seat = tl.load(tile_seats_ptr)\n"),), "ml-explore/mlx-lm#965",
    ),
    Fault(
        "attention_positions_count_up", "another row's data", "attention_whole",
        (("    position = tl.load(positions_ptr + row, mask=real, other=-1)\n",
          "    position = tl.where(real, tl.load(positions_ptr + row_first), -1)\n"),),
    ),
    Fault(
        "attention_rows_of_the_next_tile", "store outside of the row", "attention_whole",
        (("    real = index // GROUP < count\n", "    real = index // GROUP < BLOCK_M\n"),),
        "vllm-project/vllm#5607",
    ),
)  # fmt: skip

SPLIT_UP = (
    Fault(
        "splits_kept_by_row", "store outside of the row", "attention_splits",
        (("    state = tl.load(states_ptr + row, mask=real, other=0).to(tl.int64)\n",
          "    state = row.to(tl.int64)\n"),),
    ),
    Fault(
        "splits_counted_from_the_window", "store outside of the row", "attention_splits",
        (("        part = state * MAX_SPLITS + split\n",
          "        part = state * MAX_SPLITS + split - first_split\n"),),
        changed={"WINDOW": 20},
    ),
    Fault(
        "splits_of_the_whole_tile", "store outside of the row", "attention_splits",
        (("        sees = real & has_live_key(position, first, first + SPLIT - 1, WINDOW)\n",
          "        sees = index >= 0\n"),),
    ),
    Fault(
        "combine_turns_in_large_grids", "num_programs in the order", "attention_combine",
        (("            split = base + step\n", """\
            turned = last_split - base - step
            split = tl.where(tl.num_programs(0) > 4, turned, base + step)
"""), ("sees = real & (split <= last_split)", "sees = real & (split <= last_split) & (split >= 0)"),
        ),
        "sgl-project/sglang#33417",
    ),
    Fault(
        "combine_reads_every_split", "stale page-table tail", "attention_combine",
        (("tl.where(live, position // SPLIT, -1)", "tl.where(live, MAX_SPLITS - 1, -1)"),),
        "vllm-project/vllm#42245",
    ),
    Fault(
        "combine_starts_by_the_row_count", "row-count-dependent branch", "attention_combine",
        (("    first_split = 0\n",
          "    first_split = tl.where(tl.load(rows_ptr) > 8, 1, 0)\n"),),
    ),
)  # fmt: skip
