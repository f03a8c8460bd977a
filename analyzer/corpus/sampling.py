"""Faults in argmax, log-softmax, penalties and sampling."""

from __future__ import annotations

from pyvosti.analyzer.corpus.fault import Fault

TIE = "    token = tl.min(tl.where(best == top, where, VOCAB), axis=0)\n"
SUMS = "    sums = tl.zeros((BLOCK,), dtype=tl.float32)\n"
TEMPERATURE = "    temperature = tl.load(temperature_ptr + row)\n"

LOGITS = (
    Fault(
        "argmax_ties_by_parity", "order from the row's place", "argmax",
        ((TIE, """\
    low = tl.min(tl.where(best == top, where, VOCAB), axis=0)
    high = tl.max(tl.where(best == top, where, -1), axis=0)
    token = tl.where(row % 2 == 0, low, high)
"""),),
        "vllm-project/vllm#7627",
    ),
    Fault(
        "argmax_stores_padding", "padding row stores", "argmax",
        (("    tl.store(tokens_ptr + row, token, mask=row < rows)\n",
          "    tl.store(tokens_ptr + row, token)\n"),),
    ),
    Fault(
        "argmax_keeps_tokens_by_row", "store outside of the row", "argmax",
        (("last_tokens_ptr + seat, token", "last_tokens_ptr + row, token"),),
        "vllm-project/vllm#38624",
    ),
    Fault(
        "log_softmax_peak_of_the_batch", "cross-row reduce", "log_softmax",
        (("    top = tl.max(peak, axis=0)\n", """\
    for other in range(tl.num_programs(0)):
        value = tl.load(logits_ptr + other * VOCAB + lane)
        peak = tl.maximum(peak, value)
    top = tl.max(peak, axis=0)
"""),),
    ),
    Fault(
        "log_softmax_halves_when_alone", "row-count-dependent branch", "log_softmax",
        (("tl.sum(sums, axis=0)", "total"),
         ("    shift = ", """\
    total = tl.sum(sums, axis=0)
    if tl.num_programs(0) == 1:
        low = tl.sum(tl.where(lane < BLOCK // 2, sums, 0.0), axis=0)
        total = low + tl.sum(tl.where(lane < BLOCK // 2, 0.0, sums), axis=0)
    shift = """)),
        "EleutherAI/lm-evaluation-harness#1625",
    ),
    Fault(
        "log_softmax_lanes_past_the_row", "mask with a wrong bound", "log_softmax",
        (('mask=token < VOCAB, other=float("-inf")', 'mask=token >= 0, other=float("-inf")'),),
    ),
)  # fmt: skip

DRAWS = (
    Fault(
        "adjust_temperature_of_the_first_row", "another row's data", "adjust",
        ((TEMPERATURE, "    temperature = tl.load(temperature_ptr)\n"),),
    ),
    Fault(
        "adjust_penalties_of_any_row", "cross-row reduce", "adjust",
        (("        repetition = tl.load(repetition_ptr + row)\n", """\
        repetition = tl.load(repetition_ptr + row)
        for other in range(tl.num_programs(0)):
            repetition = tl.maximum(repetition, tl.load(repetition_ptr + other))
"""),),
        "vllm-project/vllm#5607",
    ),
    Fault(
        "adjust_writes_a_neighbour", "store outside of the row", "adjust",
        (("    tl.store(out_ptr + place, value, mask=inside)\n",
          "    tl.store(out_ptr + place, value, mask=inside)\n"
          "    before = inside & (row > 0) & (value > 2.0)\n"
          "    tl.store(out_ptr + place - VOCAB, value, mask=before)\n"),
        ),
        "vllm-project/vllm#51789",
    ),
    Fault(
        "sample_seed_of_the_first_row", "another row's data", "sample",
        (("    seed = tl.load(seeds_ptr + row)\n", "    seed = tl.load(seeds_ptr)\n"),),
        "vllm-project/vllm#51226",
    ),
    Fault(
        "sample_noise_by_the_rows_place", "order from the row's place", "sample",
        (("gumbel(seed, sample_index, position, token)",
          "gumbel(seed, sample_index, position, token + row * VOCAB)"),),
        "vllm-project/vllm#26859",
    ),
)  # fmt: skip
