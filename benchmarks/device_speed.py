"""Speed of each kernel of the deployed schedule, beside torch (cuBLAS, SDPA) and a copy.

    python benchmarks/device_speed.py --out speed.json

Llama-3.1-8B's shapes in bf16, random data, medians of five graph replays; weights rotate so that
none stays in the L2 cache.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from device_attention import ints
from device_model import LLAMA_8B
from device_tune import copy_rate, linear_grid, time_torch_us, time_us

from pyvosti.cuda_launch import BoundKernel
from pyvosti.triton_kernels.compile_all import compile_all
from pyvosti.triton_kernels.launches import (
    all_specs,
    attention_launches,
    gate_up_launch,
    linear_launch,
)
from pyvosti.triton_kernels.schedule import Schedule, make_schedule


def matmul_lines(schedule: Schedule) -> list[dict]:
    lines = []
    for name in ("qkv", "o", "gate_up", "down", "head"):
        kind = getattr(schedule, name)
        height = 2 * kind.n if name == "gate_up" else kind.n
        weights = [
            torch.randn(height, kind.k, device="cuda", dtype=torch.bfloat16) / kind.k**0.5
            for _ in range(max(1, min(12, int(400e6 / (height * kind.k * 2)))))
        ]
        for rows in (1, 16, 32, 64, 128, 256, 1024, 4096):
            if name == "head" and rows > 256:
                continue
            x = torch.randn(max(rows, 256), kind.k, device="cuda", dtype=torch.bfloat16)
            base = time_torch_us([lambda w=w, x=x, rows=rows: x[:rows] @ w.T for w in weights])
            single = kind.splits == 1 and name != "head"
            out = torch.zeros(len(x), kind.splits, kind.n, device="cuda",
                              dtype=torch.bfloat16 if single else torch.float32)  # fmt: skip
            if name == "gate_up":
                spec = gate_up_launch(schedule, 0, rows).spec
            else:
                goes = "logits" if name == "head" else name
                spec = linear_launch(schedule, kind, rows, name, "x", "w", "", goes).spec
            lead = [ints([rows]), x]
            launches = [
                BoundKernel(spec, linear_grid(spec, rows),
                            [*lead, w, out] if name == "gate_up" else [*lead, w, x, out])
                for w in weights
            ]  # fmt: skip
            us = time_us(launches)
            lines.append({
                "kernel": name, "rows": rows, "us": us, "torch_us": base, "ratio": base / us,
                "tb_s": height * kind.k * 2 / us / 1e6,
                "tflop_s": 2 * rows * height * kind.k / us / 1e6,
            })  # fmt: skip
    return lines


def attention_lines(schedule: Schedule) -> list[dict]:
    shape, lines = schedule.shape, []
    for batch, context in ((1, 256), (1, 4096), (8, 4096), (64, 384), (64, 4096), (256, 384),
                           (1, 16384)):  # fmt: skip
        pages = -(-context // 64)
        copies = max(1, int(150e6 / (batch * context * 4096)))
        total = copies * batch * pages
        k, v = (torch.randn(total, 8, 64, 128, device="cuda", dtype=torch.bfloat16)
                for _ in range(2))  # fmt: skip
        tables = torch.zeros(copies, batch, shape.max_pages, dtype=torch.int32, device="cuda")
        order = torch.randperm(total, device="cuda").int()
        tables[:, :, :pages] = order.view(copies, batch, pages)
        q = torch.randn(batch, 32 * 128, device="cuda", dtype=torch.bfloat16)
        out = torch.zeros_like(q)
        index, positions = ints(range(batch)), ints([context - 1] * batch)
        splits, combine = attention_launches(schedule, 0, batch, False)
        states = (batch, 32, dict(splits.spec.constants)["MAX_SPLITS"])
        m, l = torch.zeros(2, *states, device="cuda")
        acc = torch.zeros(*states, 128, device="cuda")
        launches = []
        for i in range(copies):
            inputs = [q, k, v, tables[i], positions, index, ints([1] * batch), index, index]
            grid = (batch, 8, splits.grid[2])
            launches.append(BoundKernel(splits.spec, grid, [*inputs, m, l, acc]))
            tensors = [ints([batch]), positions, index, m, l, acc, out]
            launches.append(BoundKernel(combine.spec, (batch, *combine.grid[1:]), tensors))
        us = 2 * time_us(launches)
        heads = [torch.randn(batch, h, n, 128, device="cuda", dtype=torch.bfloat16)
                 for h, n in ((32, 1), (8, context), (8, context))]  # fmt: skip
        sdpa = torch.nn.functional.scaled_dot_product_attention
        base = time_torch_us([lambda h=heads, f=sdpa: f(*h, enable_gqa=True)])
        lines.append({
            "kernel": "attention decode", "batch": batch, "context": context, "us": us,
            "torch_us": base, "tb_s": batch * context * 4096 / us / 1e6,
        })  # fmt: skip
    return lines


def prefill_lines(schedule: Schedule) -> list[dict]:
    lines = []
    for context in (1024, 4096, 16384):
        pages = context // 64
        k, v = (torch.randn(pages, 8, 64, 128, device="cuda", dtype=torch.bfloat16)
                for _ in range(2))  # fmt: skip
        tables = torch.zeros(1, schedule.shape.max_pages, dtype=torch.int32, device="cuda")
        tables[0, :pages] = torch.randperm(pages, device="cuda").int()
        q = torch.randn(context, 32 * 128, device="cuda", dtype=torch.bfloat16)
        walk = attention_launches(schedule, 0, 4096, True)[-1]
        size = dict(walk.spec.constants)["BLOCK_M"] // 4
        starts = range(0, context, size)
        tensors = [q, k, v, tables, ints(range(context)), ints(starts), ints(size for _ in starts),
                   ints(0 for _ in starts), torch.zeros_like(q)]  # fmt: skip
        us = time_us([BoundKernel(walk.spec, (len(starts), 8), tensors)])
        heads = [torch.randn(1, h, context, 128, device="cuda", dtype=torch.bfloat16)
                 for h in (32, 8, 8)]  # fmt: skip
        sdpa = torch.nn.functional.scaled_dot_product_attention
        base = time_torch_us([lambda h=heads, f=sdpa: f(*h, is_causal=True, enable_gqa=True)])
        flops = 2 * context * context * 128 * 32
        lines.append({
            "kernel": "attention prefill", "context": context, "us": us, "torch_us": base,
            "tflop_s": flops / us / 1e6,
        })  # fmt: skip
    return lines


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("speed.json"))
    arguments = parser.parse_args()
    shape = replace(LLAMA_8B, layers=1, layer_groups=(0,), max_model_len=32768)
    schedule = make_schedule(shape, 90)
    compile_all(all_specs(schedule), 90)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    dense = 2 * 8192**3 / time_torch_us([lambda: a @ a]) / 1e6
    report = {"copy_tb_s": copy_rate(), "dense_tflop_s": dense}
    print(f"copy {report['copy_tb_s']:.2f} TB/s, dense bf16 {dense:.0f} TFLOP/s", flush=True)
    lines = matmul_lines(schedule) + attention_lines(schedule) + prefill_lines(schedule)
    for line in lines:
        print(" ".join(f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}"
                       for k, v in line.items()), flush=True)  # fmt: skip
    report["kernels"] = lines
    arguments.out.write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
