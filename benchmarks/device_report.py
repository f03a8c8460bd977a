"""Turns the JSON files of the device scripts into the report that is committed.

    python benchmarks/device_report.py FOLDER > docs/reports/h200.md

FOLDER holds the JSON files of one run of matrix, trees, engine, model, decode and speed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

FILES = ("matrix", "trees", "engine", "model", "decode", "speed")

INTRODUCTION = """\
# The Triton kernels on an NVIDIA H200

Measured with `benchmarks/device_*.py` on {device}, torch {torch}, Triton 3.6.0; all
figures are from one run. Weights and inputs are random, made on the device from seeds. Times are
medians of five replays of a CUDA graph, or the better of two whole runs for models; another
machine of the kind, or a warmer one, moves them by up to 8 percent.

Repeat it: `for s in matrix trees engine model decode speed; do python benchmarks/device_$s.py --out
$s.json; done` and `python benchmarks/device_report.py . > docs/reports/h200.md`.
"""

MATRIX = """\
## One row, alone and among others

Llama-3.1-8B's shape. A cell is one kernel, one kind of input (mixed signs; magnitudes over many
powers of e; terms that nearly cancel) and one batch: 1 to 4,096 rows, every place in a tile of up
to 130, contexts to 32,768, query lengths 1 to 129, every attention member, pages permuted anew in
each cell, free pages and padding rows poisoned with NaN and infinity, values of V at the largest
finite magnitude where they are dead for one row and live for the next. A cell holds when the bits
of every row it looks at are those of the row alone.
"""

CONTROLS = """\
Negative controls: the same cells with a known fault planted. Each must be caught.
"""

TREES = """\
## The order of addition, recovered from outside

All terms are 1 but two, +M and -M, that swallow what is added before they meet (FPRev): the result
tells the size of the smallest subtree that holds both. The trees below are complete; the other
members of a class, row counts and places in a tile gave the same answers.
"""

BITS = """\
## Whole models

Full-vocabulary logits, compared bit for bit with a single prefill: chunks of 5 to 900 rows,
teacher-forced decode, decode among 1 to 300 neighbours, beside prefills of 1 to 3,000 tokens,
with and without CUDA graphs, free pages poisoned, `strict` kernels.
"""

ENGINE = """\
`pyvosti.LLM` on the GPU: 24 requests that share prefixes, 256 outputs each, greedy, sampled,
penalised, biased, with n = 3 and with prompt log-probabilities, against the same requests served
one by one; compared are the chained digests of every row of full-vocabulary logits, and tokens.
`windows` is a model of three layers of which two see 100 positions and give older blocks back:
"""

PARITY = """\
Against transformers on the same weights (4 layers, 700 positions, the last hundred as decode
steps): relative error of all logits to transformers in float64, and the error that transformers
has itself in bf16.
"""

SPEED = """\
## Decode

bf16, greedy, plans made on the host while the GPU runs, tokens read back each step. The bound is
weights and KV once at 4.8 TB/s, or the arithmetic at 790 TFLOP/s; the floor is vLLM's newest
batch-invariant mode on the same kind of GPU.
"""

CONTEXTS = """\
Llama-3.1-8B by context: twenty decode steps over KV that fills the context.
"""

SERVED = """\
Llama-3.1-8B through `pyvosti`'s session: requests, verified engine, GPU sampler, text as it comes;
two plans in flight. Milliseconds between two tokens of all sequences, the median of the run.
"""

KERNELS = """\
## Kernels

Copy {copy:.2f} TB/s (bytes read and written), dense bf16 product {dense:.0f} TFLOP/s in this run.
`torch` is cuBLAS, or scaled_dot_product_attention over contiguous keys and values; attention decode
is both kernels, over permuted pages of 64.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A markdown table; floats get three significant digits."""

    def cell(value: Any) -> str:
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines) + "\n"


def report(read: dict[str, Any]) -> str:
    """The whole page from the five files' contents."""
    matrix, trees, engine, model, decode, speed = (read[name] for name in FILES)
    parts = [INTRODUCTION.format(**model), MATRIX]
    kernels = sorted({**matrix["held"], **matrix["failed"]})
    parts.append(table(
        ["kernel", "cells", "equal", "different"],
        [(k, matrix["held"].get(k, 0) + matrix["failed"].get(k, 0), matrix["held"].get(k, 0),
          matrix["failed"].get(k, 0)) for k in kernels],
    ))  # fmt: skip
    parts += [CONTROLS, table(
        ["control", "cells that fail", "the first"],
        [(title, c["failed"], c["first"][0]) for title, c in matrix["controls"].items()],
    ), TREES]  # fmt: skip
    parts.append(table(
        ["class", "tree of one row", "equal elsewhere"],
        [(name, t["tree"], f"{sum(t['same'].values())} of {len(t['same'])}")
         for name, t in trees.items()],
    ))  # fmt: skip
    bits = model["bits"]
    parts += [BITS, f"{bits['comparisons']} comparisons, {len(bits['failures'])} differ.\n", ENGINE]
    runs = {k: v for k, v in engine.items() if isinstance(v, dict)}
    parts.append(table(
        ["run", "requests", "rows of logits", "preemptions", "requests that differ"],
        [(title, r["requests"], r["rows"], r["preemptions"], r["differ"])
         for title, r in runs.items()],
    ))  # fmt: skip
    agree = engine["host sampler agrees"]
    parts.append(f"The CPU's sampler drew the GPU's token in {agree[0]} of {agree[1]} draws.\n")
    parts += [PARITY, table(
        ["family", "pyvosti", "transformers bf16", "same most likely token"],
        [(f, p["ours"], p["transformers_bf16"], p["argmax_equal"])
         for f, p in model["parity"].items()],
    ), SPEED]  # fmt: skip
    parts.append(table(
        ["model's shape", "batch", "prompt", "outputs", "ms a step", "floor", "bound", "tok/s",
         "first token, s"],
        [(s["model"], s["batch"], s["prompt"], s["outputs"], f"{s['ms_per_step']:.2f}",
          s["floor_ms"] or "", f"{s['bound_ms']:.2f}", round(s["tokens_per_s"]),
          s["first_token_s"]) for s in decode["speed"]],
    ))  # fmt: skip
    parts += [CONTEXTS, table(
        ["batch", "context", "ms a step", "bound", "share of the bound"],
        [(s["batch"], s["context"], f"{s['ms_per_step']:.2f}", f"{s['bound_ms']:.2f}",
          f"{s['bound_ms'] / s['ms_per_step']:.2f}") for s in decode["contexts"]],
    ), SERVED, table(
        ["batch", "prompt", "outputs", "ms a step", "the runner alone"],
        [(s["batch"], s["prompt"], s["outputs"], f"{s['ms_per_step']:.2f}",
          f"{s['runner_ms']:.2f}") for s in decode["served"]],
    )]  # fmt: skip
    parts.append("Where a step's time goes (ms by kernel, one step, batch/context):\n")
    names = ("linear", "gate_up", "attention_splits", "attention_combine", "rms_norm",
             "rope_kv_write", "argmax")  # fmt: skip
    parts.append(table(
        ["", *names],
        [(work, *(f"{times.get(n, 0) / 1e3:.2f}" for n in names))
         for work, times in decode["profile"].items()],
    ))  # fmt: skip
    parts.append(KERNELS.format(copy=speed["copy_tb_s"], dense=speed["dense_tflop_s"]))
    matmuls = [k for k in speed["kernels"] if "rows" in k]
    parts.append(table(
        ["matmul", "rows", "us", "cuBLAS us", "ratio", "TB/s of weights", "TFLOP/s"],
        [(k["kernel"], k["rows"], k["us"], k["torch_us"], f"{k['ratio']:.2f}", k["tb_s"],
          k["tflop_s"]) for k in matmuls],
    ))  # fmt: skip
    decode = [k for k in speed["kernels"] if "batch" in k]
    parts.append(table(
        ["decode", "context", "us", "torch us", "TB/s of KV", "share of copy"],
        [(f"batch {k['batch']}", k["context"], k["us"], k["torch_us"], k["tb_s"],
          f"{k['tb_s'] / speed['copy_tb_s']:.2f}") for k in decode],
    ))  # fmt: skip
    prefill = [k for k in speed["kernels"] if k["kernel"] == "attention prefill"]
    parts.append(table(
        ["prefill", "us", "torch us", "TFLOP/s", "share of dense"],
        [(k["context"], k["us"], k["torch_us"], k["tflop_s"],
          f"{k['tflop_s'] / speed['dense_tflop_s']:.2f}") for k in prefill],
    ))  # fmt: skip
    return "\n".join(parts)


def main() -> None:
    folder = Path(sys.argv[1])
    print(report({name: json.loads((folder / f"{name}.json").read_text()) for name in FILES}))


if __name__ == "__main__":
    main()
