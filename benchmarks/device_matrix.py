"""The row-invariance matrix: every kernel, one row alone and among others, compared bit for bit.

    python benchmarks/device_matrix.py --out matrix.json

A cell is one kernel, one kind of input and one way of batching; it holds when every test row has
the bits it has alone. The schedule is the deployed one (Llama-3.1-8B's shape). Then the negative
controls: three schedules with a known fault, each of which must make cells fail. Exits 1 when a
cell of the real schedule fails or a control does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from device_attention import ROW_KINDS, attention_cells, values
from device_model import LLAMA_8B

from pyvosti.cuda_launch import BoundKernel
from pyvosti.triton_kernels.compile import Spec
from pyvosti.triton_kernels.compile_all import compile_all
from pyvosti.triton_kernels.launches import (
    Launch,
    all_specs,
    gate_up_launch,
    linear_launch,
    norm_launch,
    rope_launch,
)
from pyvosti.triton_kernels.schedule import Schedule, make_schedule

ROWS = (1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 4096)
PLACES = range(130)


class Cells:
    """Counts of cells by kernel, and the first failures in words."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.failed: dict[str, int] = {}
        self.first: list[str] = []

    def check(self, kernel: str, cell: str, got: torch.Tensor, want: torch.Tensor) -> None:
        same = torch.equal(got.view(torch.uint8), want.view(torch.uint8))
        counts = self.held if same else self.failed
        counts[kernel] = counts.get(kernel, 0) + 1
        if not same and len(self.first) < 40:
            wrong = int((got != want).sum())
            self.first.append(f"{kernel}, {cell}: {wrong} of {got.numel()} elements differ")


Control = Callable[[str, Spec, int], Spec]


def unchanged(kernel: str, spec: Spec, rows: int) -> Spec:
    return spec


def run(launch: Launch, rows: int, tensors: list[torch.Tensor], control: Control) -> None:
    sizes = {"rows": rows, "logits": rows}
    grid = []
    for entry in launch.grid:
        name, _, divisor = str(entry).partition("/")
        size = sizes.get(name, entry)
        grid.append(-(-size // int(divisor)) if divisor else int(size))
    spec = control(launch.spec.kernel, launch.spec, rows)
    BoundKernel(spec, tuple(grid), tensors)()


def count(rows: int) -> torch.Tensor:
    return torch.tensor([rows], dtype=torch.int32, device="cuda")


def matmul_cells(cells: Cells, schedule: Schedule, name: str, control: Control) -> None:
    """Rows alone against every row count and every place in a tile."""
    kind = getattr(schedule, name)
    height = 2 * kind.n if name == "gate_up" else kind.n
    w = values("normal", height, kind.k, seed=1) / kind.k**0.5

    def launch_for(rows: int) -> Launch:
        if name == "gate_up":
            return gate_up_launch(schedule, 0, rows)
        out = "logits" if name == "head" else name
        return linear_launch(schedule, kind, rows, name, "x", "w", "", out)

    def compute(x: torch.Tensor, rows: int) -> torch.Tensor:
        padded = torch.full((-(-rows // 256) * 256, kind.k), float("nan"), device="cuda").to(x)
        padded[:rows] = x[:rows]
        single = kind.splits == 1
        dtype = torch.float32 if name == "head" or not single else torch.bfloat16
        shape = (len(padded), kind.n) if single else (len(padded), kind.splits, kind.n)
        out = torch.full(shape, float("nan"), dtype=dtype, device="cuda")
        tensors = [count(rows), padded, w, out] if name == "gate_up" else [
            count(rows), padded, w, padded, out
        ]  # fmt: skip
        run(launch_for(rows), rows, tensors, control)
        assert out[rows:].isnan().all(), "a padding row was stored"
        return out[:rows]

    for data in ROW_KINDS:
        x = values(data, 4096, kind.k, seed=2)
        picks = [0, 1, 7, 14, 15, 16, 63, 64, 126, 127, 128, 254, 255, 256, 999, 2048, 4095]
        alone = {i: compute(x[i : i + 1], 1)[0] for i in picks}
        for rows in ROWS if name != "head" else [r for r in ROWS if r <= 256]:
            out = compute(x, rows)
            for i in picks:
                if i < rows:
                    cells.check(name, f"{data}, row {i} of {rows}", out[i], alone[i])
        for place in PLACES if data == "normal" else (0, 31, 64, 127):
            for rows in (place + 1, 129, 300 if name != "head" else 200):
                if place < rows:
                    batch = x[1000 : 1000 + rows].clone()
                    batch[place] = x[7]
                    out = compute(batch, rows)
                    cells.check(name, f"{data}, place {place} of {rows}", out[place], alone[7])


def row_kernel_cells(cells: Cells, schedule: Schedule, control: Control) -> None:
    """RMSNorm and RoPE with its KV write: rows alone against every row count."""
    shape = schedule.shape
    norm = norm_launch(schedule, "norm", 1, "down_sums")
    gemma = replace(schedule, shape=replace(shape, sandwich_norms=True))
    sandwich = norm_launch(gemma, "norm", 1, "down_sums", "ffn_out_norm")
    rope = rope_launch(schedule, 0)
    weight = values("normal", 1, shape.hidden, seed=3)[0]
    width = schedule.qkv.n
    cos, sin = values("normal", 2 * 4096, 64, seed=4).float().chunk(2)
    for data in ROW_KINDS:
        sums = values(data, 4096, 2 * shape.hidden, seed=5).float()
        residual = values(data, 4096, shape.hidden, seed=6)
        qkv = values(data, 4096, width, seed=7)
        positions = torch.randperm(4096, device="cuda").int()

        def normed(first: int, rows: int, s=sums, r=residual) -> torch.Tensor:
            after, out = torch.full((2, rows, shape.hidden), float("nan"), device="cuda").to(r)
            tensors = [count(rows), s[first:].contiguous(), r[first:].contiguous(), weight, after]
            run(norm, rows, [*tensors, out], control)
            return torch.cat([after, out], dim=1)

        def both(first: int, rows: int, s=sums, r=residual) -> torch.Tensor:
            after, out = torch.full((2, rows, shape.hidden), float("nan"), device="cuda").to(r)
            own, last = weight.float(), weight.float().flip(0)
            tensors = [count(rows), s[first:].contiguous(), own, r[first:].contiguous(), last]
            run(sandwich, rows, [*tensors, after, out], control)
            return torch.cat([after, out], dim=1)

        def turned(first: int, rows: int, qkv=qkv, positions=positions) -> torch.Tensor:
            q = torch.full((rows, shape.heads * 128), float("nan"), device="cuda").to(qkv)
            k, v = torch.zeros(2, 64, 8, 64, 128, device="cuda").to(qkv)
            slots = torch.randperm(4096, device="cuda")[:rows].int()
            run(rope, rows, [
                count(rows), qkv[first:].contiguous(), cos, sin, positions[first:].clone(), slots,
                weight, weight, q, k, v,
            ], control)  # fmt: skip
            pages, offsets = (slots // 64).long(), (slots % 64).long()
            kv = [c[pages, :, offsets].reshape(rows, -1) for c in (k, v)]
            return torch.cat([q, *kv], dim=1)

        alone = torch.stack([normed(i, 1)[0] for i in range(1024)])
        for rows in ROWS:
            few = min(rows, 1024)
            cells.check("rms_norm", f"{data}, all of {rows}", normed(0, rows)[:few], alone[:few])
        if control is not unchanged:
            continue
        alone = torch.cat([both(i, 1) for i in range(1024)])
        for rows in ROWS:
            few, cell = min(rows, 1024), f"{data}, all of {rows}"
            cells.check("sandwich_norm", cell, both(0, rows)[:few], alone[:few])
        turns = {i: turned(i, 1)[0] for i in (0, 3, 14, 63, 127, 254, 255, 256, 999, 4095)}
        for rows in ROWS:
            out = turned(0, rows)
            for i, want in turns.items():
                if i < rows:
                    cells.check("rope_kv_write", f"{data}, row {i} of {rows}", out[i], want)


def zero_lane_cells(cells: Cells, schedule: Schedule) -> None:
    """The named assumption: a zero in x leaves a sum as it was, whatever finite w it meets."""
    kind = schedule.o
    generator = torch.Generator("cuda").manual_seed(14)
    dead = torch.rand(kind.k, device="cuda", generator=generator) < 0.4
    negative = torch.rand(kind.k, device="cuda", generator=generator) < 0.5
    for dtype, name in ((torch.bfloat16, "bf16"), (torch.float16, "fp16")):
        largest = torch.finfo(dtype).max
        for data in ROW_KINDS:
            x = values(data, 256, kind.k, seed=15).clamp(-60000, 60000).to(dtype)
            x[:, dead] = torch.where(negative[dead], -0.0, 0.0).to(dtype)
            w = values("normal", kind.n, kind.k, seed=16).to(dtype)
            sums = []
            for fill in (0.0, largest):
                w[:, dead] = torch.where(negative[dead].flip(0), -fill, fill).to(dtype)
                for rows in (16, 64, 128, 256):
                    launch = linear_launch(schedule, kind, rows, "o", "x", "w", "", "logits")
                    kinds = tuple(p.replace("bf16", name) for p in launch.spec.pointers)
                    launch = replace(launch, spec=replace(launch.spec, pointers=kinds))
                    out = torch.zeros(256, kind.n, device="cuda")
                    run(launch, rows, [count(rows), x, w, x, out], unchanged)
                    sums.append(out[:rows] + 0.0)
            for i, rows in enumerate((16, 64, 128, 256)):
                cells.check(f"zero lanes, {name}", f"{data}, {rows} rows", sums[i], sums[4 + i])


def split_from_batch(kernel: str, spec: Spec, rows: int) -> Spec:
    """Fault: attention's split length depends on the rows of the batch."""
    if not kernel.startswith("attention") or rows < 8:
        return spec
    constants = dict(spec.constants) | {"SPLIT": 512}
    return replace(spec, constants=tuple(constants.items()))


def fused_reduce(kernel: str, spec: Spec, rows: int) -> Spec:
    """Fault: from 16 rows on, attention's running sums are compiled with multiply-add fusion."""
    if not kernel.startswith("attention") or rows < 16:
        return spec
    return replace(spec, options=(("enable_fp_fusion", True),))


def cliff(kernel: str, spec: Spec, rows: int) -> Spec:
    """Fault: from 256 rows on, the norm runs with another block (as vLLM's fused norm did)."""
    if kernel != "rms_norm" or rows < 256:
        return spec
    return replace(spec, num_warps=spec.num_warps // 4)


CONTROLS = {"split length from the batch": split_from_batch, "reduce with fusion on": fused_reduce,
            "another block from 256 rows on": cliff}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("matrix.json"))
    arguments = parser.parse_args()
    shape = replace(LLAMA_8B, layers=1, layer_groups=(0,), max_model_len=32768)
    schedule = make_schedule(shape, 90)
    compile_all(all_specs(schedule), 90)
    cells = Cells()
    for name in ("qkv", "o", "gate_up", "down", "head"):
        matmul_cells(cells, schedule, name, unchanged)
        print(name, cells.held.get(name, 0), "cells held,", cells.failed.get(name, 0), "failed",
              flush=True)  # fmt: skip
    row_kernel_cells(cells, schedule, unchanged)
    attention_cells(cells, schedule, unchanged)
    zero_lane_cells(cells, schedule)
    for name in (
        "rms_norm",
        "sandwich_norm",
        "rope_kv_write",
        "attention",
        "zero lanes, bf16",
        "zero lanes, fp16",
    ):
        print(name, cells.held.get(name, 0), "cells held,", cells.failed.get(name, 0), "failed")
    print("\n".join(cells.first), flush=True)
    report: dict = {"held": cells.held, "failed": cells.failed, "first": cells.first}
    fine = not set(cells.failed) - {"zero lanes, fp16"}  # fp16 is not served
    for title, control in CONTROLS.items():
        faulty = Cells()
        if control is cliff:
            row_kernel_cells(faulty, schedule, control)
        else:
            attention_cells(faulty, schedule, control, few=True)
        caught = sum(faulty.failed.values())
        report.setdefault("controls", {})[title] = {"failed": caught, "first": faulty.first[:3]}
        print(f"control '{title}': {caught} cells fail", *faulty.first[:1], flush=True)
        fine &= caught > 0
    arguments.out.write_text(json.dumps(report, indent=1))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
