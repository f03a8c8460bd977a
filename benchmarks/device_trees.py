"""The summation trees of the matmuls and of attention, recovered by probing on the GPU.

    python benchmarks/device_trees.py --out trees.json

All terms are 1 but two, +M and -M, so large that they swallow every term added before they meet:
the result counts the terms outside the smallest subtree that holds both (FPRev: Xie et al., USENIX
ATC 2025). One member of each class is probed until its whole tree is known; the others, at several
row counts and places in a tile, must give the same counts. Exits 1 when one does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from device_attention import Cache, ints
from device_matrix import count, run, unchanged
from device_model import LLAMA_8B

from pyvosti.cuda_launch import BoundKernel
from pyvosti.triton_kernels.launches import attention_launches, linear_launch
from pyvosti.triton_kernels.schedule import Schedule, make_schedule

LARGE = 2.0**100
Probe = Callable[[int, list[int]], list[int]]
"""(i, others) -> for each j the size of the smallest subtree that holds the terms i and j."""


def tree_of(probe: Probe, leaves: list[int]) -> tuple[Any, int]:
    """The tree over `leaves` as nested lists, and the size of its root's subtree."""
    if len(leaves) == 1:
        return leaves[0], 1
    first, others = leaves[0], leaves[1:]
    sizes = dict(zip(others, probe(first, others), strict=True))
    tree: Any = first
    for size in sorted(set(sizes.values())):
        part, part_size = tree_of(probe, [j for j in others if sizes[j] == size])
        siblings = part if part_size == size and isinstance(part, list) else [part]
        tree = [tree, *siblings]
    return tree, max(sizes.values())


def spine(tree: Any) -> str:
    """The tree along its first child, from the first terms added: how many join at each node."""
    joins = []
    while isinstance(tree, list):
        flat = all(not isinstance(child, list) for child in tree[1:])
        joins.append(
            f"{len(tree) - 1} terms"
            if flat
            else " + ".join(f"({spine(c)})" if isinstance(c, list) else "1 term" for c in tree[1:])
        )
        tree = tree[0]
    runs = [(len(list(g)), join) for join, g in groupby(reversed(joins))]
    return "1 term, then " + ", ".join(f"{n} x {join}" for n, join in runs)


def matmul_sizes(
    schedule: Schedule, name: str, rows: int, place: int, pairs: list[tuple[int, int]]
) -> list[int]:
    """Subtree sizes by one matmul class, through its member for `rows` rows."""
    kind = getattr(schedule, name)
    launch = linear_launch(schedule, kind, rows, name, "x", "w", "", "logits")
    w = torch.ones(kind.n, kind.k, dtype=torch.bfloat16, device="cuda")
    found = []
    usable_rows = 1 if rows == 1 else rows - place
    for start in range(0, len(pairs), usable_rows):
        some = pairs[start : start + usable_rows]
        x = torch.ones(-(-max(rows, 256) // 256) * 256, kind.k, device="cuda").bfloat16()
        index = torch.arange(place, place + len(some), device="cuda")
        plus, minus = torch.tensor(some, device="cuda").T
        x[index, plus], x[index, minus] = LARGE, -LARGE
        out = torch.zeros(len(x), kind.splits, kind.n, device="cuda")
        run(launch, rows, [count(rows), x, w, x, out], unchanged)
        total = out[index, 0, 0]
        for part in range(1, kind.splits):
            total = total + out[index, part, 0]
        found += (kind.k - total).int().tolist()
    return found


def attention_sizes(
    schedule: Schedule, keys: int, member: str, length: int, i: int, others: list[int]
) -> list[int]:
    """Subtree sizes of the last of `length` rows; each of 8 x 128 output columns is a probe."""
    shape = schedule.shape
    found: list[int] = []
    width = shape.kv_heads * shape.head_dim
    for start in range(0, len(others), width):
        some = torch.tensor(others[start : start + width], device="cuda")
        v = torch.ones(keys, width, device="cuda").bfloat16()
        v[i, : len(some)] = LARGE
        v[some, torch.arange(len(some), device="cuda")] = -LARGE
        v = v.view(keys, shape.kv_heads, shape.head_dim)
        q = torch.zeros(length, shape.heads * shape.head_dim, device="cuda").bfloat16()
        out = last_row(
            schedule, q, keys - length, Cache(torch.ones_like(v), v, schedule, i), member
        )
        per_head = out.view(shape.kv_heads, -1, shape.head_dim)[:, 0].reshape(-1)
        found += (keys - (per_head[: len(some)] * keys).round()).int().tolist()
    return found


def last_row(
    schedule: Schedule, q: torch.Tensor, first: int, cache: Cache, member: str
) -> torch.Tensor:
    """f32[heads * head_dim] of the last row, from the members' kernels with an f32 output."""
    shape, rows, whole = schedule.shape, len(q), member == "whole"
    splits, combine, *walk = attention_launches(schedule, 0, 4096 if whole else int(member), whole)
    spec = walk[0].spec if whole else splits.spec
    constants = dict(spec.constants)
    size = constants["BLOCK_M"] // constants["GROUP"]
    starts = range(0, rows, size)
    tiles = [ints(starts), ints(min(size, rows - s) for s in starts),
             ints(cache.seat for _ in starts)]  # fmt: skip
    positions = ints(range(first, first + rows))
    out = torch.zeros(rows, shape.heads * shape.head_dim, device="cuda")
    inputs = [q, *cache.pools, cache.tables, positions, *tiles]
    if whole:
        spec = replace(spec, pointers=(*spec.pointers[:-1], "fp32"))
        BoundKernel(spec, (len(starts), shape.kv_heads), [*inputs, out])()
        return out[-1]
    states = (rows, shape.heads, constants["MAX_SPLITS"])
    m, l = torch.zeros(2, *states, device="cuda")
    acc, order = torch.zeros(*states, shape.head_dim, device="cuda"), ints(range(rows))
    grid = (len(starts), shape.kv_heads, constants["STRIDE"])
    BoundKernel(spec, grid, [*inputs, order, m, l, acc])()
    spec = replace(combine.spec, pointers=(*combine.spec.pointers[:-1], "fp32"))
    tensors = [ints([rows]), positions, order, m, l, acc, out]
    BoundKernel(spec, (rows, *combine.grid[1:]), tensors)()
    return out[-1]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("trees.json"))
    arguments = parser.parse_args()
    shape = replace(LLAMA_8B, layers=1, layer_groups=(0,))
    schedule = make_schedule(shape, 90)
    report: dict[str, Any] = {}
    fine = True
    for name in ("qkv", "down"):
        kind = getattr(schedule, name)
        k = kind.k

        def probe(i: int, others: list[int], name: str = name) -> list[int]:
            rows = 4096 if len(others) > 64 else 64
            return matmul_sizes(schedule, name, rows, 0, [(i, j) for j in others])

        text = spine(tree_of(probe, list(range(k)))[0])
        bases = (0, 5, 16, 100, k // 2, k - 1)
        pairs = [(i, j) for i in bases for j in range(3, k, 61) if j != i]
        want = matmul_sizes(schedule, name, 4096, 0, pairs)
        same = {}
        for rows, place in ((1, 0), (16, 3), (17, 1), (64, 33), (65, 2), (129, 100), (256, 7),
                            (257, 130), (1000, 400)):  # fmt: skip
            same[f"{rows} rows from place {place}"] = want == matmul_sizes(
                schedule, name, rows, place, pairs
            )
        report[name] = {"tree": text, "probes": len(pairs), "same": same}
        fine &= all(same.values())
        print(f"{name}: K = {k}: {text}; {len(pairs)} probes equal at {sum(same.values())} of "
              f"{len(same)} row counts", flush=True)  # fmt: skip
    keys = 600

    def attention_probe(i: int, others: list[int]) -> list[int]:
        return attention_sizes(schedule, keys, "whole", 1, i, others)

    text = spine(tree_of(attention_probe, list(range(keys)))[0])
    bases = (0, 5, 64, 255, 256, 599)
    lists = {i: [j for j in range(keys) if j != i] for i in bases}
    want = {i: attention_probe(i, lists[i]) for i in bases}
    same = {}
    for member in ("whole", "1", "16", "64", "256"):
        for length in (1, 3, 16, 17, 100):
            same[f"{length} rows through '{member}'"] = all(
                want[i] == attention_sizes(schedule, keys, member, length, i, lists[i])
                for i in bases
            )
    report["attention"] = {"tree": text, "same": same}
    fine &= all(same.values())
    print(f"attention: {keys} keys: {text}; equal for {sum(same.values())} of {len(same)} members "
          "and chunk lengths", flush=True)  # fmt: skip
    arguments.out.write_text(json.dumps(report, indent=1))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
