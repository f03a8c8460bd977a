"""Faults that only compiled artifacts show, on a GPU: one row, two batches, two results.

    python benchmarks/device_corpus.py --out corpus.json

For each pair of `pyvosti/analyzer/corpus/compiled.py` that was compiled for this GPU, the row is
computed by the artifact for few rows and by the one for many. Its bits must differ, or the fault
is none; and with the first artifact in both places they must not. Exits 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from device_attention import Cache, attend, values
from device_matrix import Control, count, run

from pyvosti.analyzer.corpus.compiled import COMPILED, SCHEDULE, Compiled
from pyvosti.cuda_launch import device_arch
from pyvosti.triton_kernels.compile import Spec
from pyvosti.triton_kernels.launches import log_softmax_launch, norm_launch

ROWS = 1024
"""Rows of the large batch."""


def members(kernel: str, few: Spec, many: Spec) -> Control:
    """Launches the one artifact of a kernel for a single row, the other for several."""

    def chosen(name: str, spec: Spec, rows: int) -> Spec:
        return spec if name != kernel else few if rows == 1 else many

    return chosen


def norm_rows(control: Control, few: Spec) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of the norm alone, and in one batch, in the type of the artifact's residual."""
    hidden, splits = SCHEDULE.shape.hidden, SCHEDULE.down.splits
    launch = norm_launch(SCHEDULE, "norm", 1, "down_sums")
    kind = torch.float32 if few.pointers[2] == "fp32" else torch.bfloat16
    weight = values("normal", 1, hidden, seed=3)[0].to(kind)
    sums = values("cancelling", ROWS, splits * hidden, seed=5).float()
    if kind == torch.float32:
        sums = sums * 1.0001 + 0.1  # more digits than bf16 has
    residual = values("cancelling", ROWS, hidden, seed=6).to(kind)

    def normed(first: int, rows: int) -> torch.Tensor:
        after, out = torch.full((2, rows, hidden), float("nan"), device="cuda").to(residual)
        inputs = [x[first : first + rows].contiguous() for x in (sums, residual)]
        run(launch, rows, [count(rows), *inputs, weight, after, out], control)
        return out

    return torch.cat([normed(i, 1) for i in range(ROWS)]), normed(0, ROWS)


def softmax_rows(control: Control, few: Spec) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of the log-softmax alone, and in one batch."""
    logits = values("normal", 64, SCHEDULE.shape.vocab, seed=8).float()

    def log_probabilities(rows: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(rows)
        run(log_softmax_launch(SCHEDULE), len(rows), [rows, out], control)
        return out

    alone = torch.cat([log_probabilities(logits[i : i + 1].clone()) for i in range(len(logits))])
    return alone, log_probabilities(logits)


def attention_rows(control: Control, few: Spec) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows at the end of a context, as in decode, and as one chunk."""
    shape, context, rows = SCHEDULE.shape, 1000, 100
    k = values("normal", context, shape.kv_heads * shape.head_dim, 11)
    v = values("normal", context, shape.kv_heads * shape.head_dim, 12)
    k, v = (x.view(context, shape.kv_heads, shape.head_dim) for x in (k, v))
    q = values("normal", rows, shape.heads * shape.head_dim, 13)
    first = context - rows

    def attended(start: int, many: int) -> torch.Tensor:
        part = q[start : start + many].contiguous()
        return attend(SCHEDULE, part, first + start, Cache(k, v, SCHEDULE, start), "16", control)

    return torch.cat([attended(i, 1) for i in range(rows)]), attended(0, rows)


ROW_MAKERS: dict[str, Callable[[Control, Spec], tuple[torch.Tensor, torch.Tensor]]] = {
    "rms_norm": norm_rows,
    "log_softmax": softmax_rows,
    "attention_splits": attention_rows,
}


def different(kernel: str, few: Spec, many: Spec) -> int:
    """Elements of all rows that differ between the two batches."""
    alone, together = ROW_MAKERS[kernel](members(kernel, few, many), few)
    kind = torch.int16 if alone.element_size() == 2 else torch.int32
    return int((alone.view(kind) != together.view(kind)).sum())


def shown(fault: Compiled) -> dict[str, Any]:
    """How many elements the fault changes, and how many its first artifact alone does."""
    few, many = fault.members
    return {
        "different": different(few.kernel, few, many),
        "control": different(few.kernel, few, few),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("corpus.json"))
    arguments = parser.parse_args()
    faults = [one for one in COMPILED if one.arch == device_arch()]
    report = {one.name: shown(one) for one in faults}
    for name, found in report.items():
        print(f"{name}: {found['different']} elements differ, control {found['control']}")
    arguments.out.write_text(json.dumps(report, indent=1))
    fine = all(one["different"] and not one["control"] for one in report.values())
    return 0 if fine and report else 1


if __name__ == "__main__":
    sys.exit(main())
