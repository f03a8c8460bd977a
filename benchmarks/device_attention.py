"""Attention's part of the row-invariance matrix, and the inputs that all parts share."""

from __future__ import annotations

from typing import Any

import torch

from pyvosti.cuda_launch import BoundKernel
from pyvosti.triton_kernels.launches import attention_launches
from pyvosti.triton_kernels.schedule import Schedule

ROW_KINDS = ("normal", "wide", "cancelling")
CONTEXTS = (1, 2, 63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 16384, 32768)
QUERIES = (1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64, 65, 100, 127, 128, 129)
LARGEST = 3.3895313892515355e38


def values(kind: str, rows: int, columns: int, seed: int) -> torch.Tensor:
    """bf16[rows, columns]: mixed signs; magnitudes over e^+-12; or terms that nearly cancel."""
    generator = torch.Generator("cuda").manual_seed(seed)
    x = torch.randn(rows, columns, device="cuda", generator=generator)
    if kind == "wide":
        x *= torch.exp(4 * torch.randn(rows, columns, device="cuda", generator=generator))
    elif kind == "cancelling":
        half = columns // 2
        x[:, half : 2 * half] = -x[:, :half] * (1 + 2**-7)
        x *= 1000.0
    return x.to(torch.bfloat16)


class Cache:
    """One sequence's keys and values on pages of a fresh permutation; all else is poison."""

    def __init__(self, k: torch.Tensor, v: torch.Tensor, schedule: Schedule, seed: int) -> None:
        shape = schedule.shape
        length, page = len(k), shape.page
        pages = -(-length // page)
        generator = torch.Generator("cuda").manual_seed(seed)
        order = torch.randperm(pages + 8, device="cuda", generator=generator)[:pages]
        size = (pages + 8, page, shape.kv_heads, shape.head_dim)
        self.pools = []
        for source, poison in ((k, float("nan")), (v, float("inf"))):
            pool = torch.full(size, poison, device="cuda", dtype=k.dtype)
            pool[order[:-1]] = source[: (pages - 1) * page].view(pages - 1, *size[1:])
            tail = length - (pages - 1) * page
            pool[order[-1], :tail] = source[(pages - 1) * page :]
            self.pools.append(pool.transpose(1, 2).contiguous())
        self.seat = seed % 3
        self.tables = torch.full((3, shape.max_pages), pages + 7, dtype=torch.int32, device="cuda")
        self.tables[self.seat, :pages] = order.int()


def ints(numbers: Any) -> torch.Tensor:
    return torch.tensor(list(numbers), dtype=torch.int32, device="cuda")


def attend(
    schedule: Schedule, q: torch.Tensor, first: int, cache: Cache, member: str, control: Any
) -> torch.Tensor:
    """Rows at positions first.. through a member: "whole", or the decode one for `member` rows."""
    shape, rows = schedule.shape, len(q)
    group = shape.heads // shape.kv_heads
    whole = member == "whole"
    count = 4096 if whole else int(member)
    splits, combine, *walk = attention_launches(schedule, 0, count, whole)
    chosen = walk[0] if whole else splits
    size = dict(chosen.spec.constants)["BLOCK_M"] // group
    starts = range(0, rows, size)
    tiles = [ints(starts), ints(min(size, rows - s) for s in starts),
             ints(cache.seat for _ in starts)]  # fmt: skip
    positions = ints(range(first, first + rows))
    out = torch.full((rows, shape.heads * shape.head_dim), float("nan"), device="cuda").to(q)
    inputs = [q, *cache.pools, cache.tables, positions, *tiles]
    spec = control(chosen.spec.kernel, chosen.spec, rows)
    if whole:
        BoundKernel(spec, (len(starts), shape.kv_heads), [*inputs, out])()
        return out
    constants = dict(spec.constants)
    states = (rows, shape.heads, constants["MAX_SPLITS"])
    m, l = torch.full((2, *states), float("nan"), device="cuda")
    acc = torch.full((*states, shape.head_dim), float("nan"), device="cuda")
    order = torch.randperm(rows, device="cuda").int()
    grid = (len(starts), shape.kv_heads, constants["STRIDE"])
    BoundKernel(spec, grid, [*inputs, order, m, l, acc])()
    spec = control(combine.spec.kernel, combine.spec, rows)
    tensors = [ints([rows]), positions, order, m, l, acc, out]
    BoundKernel(spec, (rows, *combine.grid[1:]), tensors)()
    return out


def attention_cells(cells: Any, schedule: Schedule, control: Any, few: bool = False) -> None:
    """The last rows of a context: members, chunks, pages; V huge where it is dead for a row."""
    shape = schedule.shape
    seed = 0
    for data in (*ROW_KINDS, "huge") if not few else ("normal",):
        for context in CONTEXTS if not few else (257, 1000):
            if data != "normal" and context > 4096:
                continue
            width = shape.kv_heads * shape.head_dim
            scale = {"wide": 0.1, "cancelling": 0.001}.get(data, 1.0)
            k = (values(data.replace("huge", "normal"), context, width, 11) * scale).view(
                context, shape.kv_heads, shape.head_dim
            )
            v = values(data.replace("huge", "normal"), context, width, 12).view(k.shape)
            rows = min(129, context)
            if data == "huge":  # dead for the rows before it, live for those after
                for key in range(context - rows + 1, context, 7):
                    v[key] = LARGEST * (1 if key % 2 else -1)
            q = values("normal", rows, shape.heads * shape.head_dim, 13)
            first = context - rows
            want = torch.cat([
                attend(schedule, q[i : i + 1], first + i, Cache(k, v, schedule, i), "1", control)
                for i in range(0, rows, 1 if rows < 20 else 4)
            ])  # fmt: skip
            picks = range(0, rows, 1 if rows < 20 else 4)
            for length in QUERIES if not few else (16, 129):
                if length > rows:
                    continue
                for member in ("whole", "1", "16", "64", "256"):
                    seed += 1
                    start = rows - length
                    cache = Cache(k, v, schedule, seed)
                    got = attend(schedule, q[start:].contiguous(), first + start, cache, member,
                                 control)  # fmt: skip
                    kept = [(i - start, n) for n, i in enumerate(picks) if i >= start]
                    if not kept:
                        continue
                    index, number = (
                        torch.tensor(list(x), device="cuda") for x in zip(*kept, strict=True)
                    )
                    cells.check(
                        "attention",
                        f"{data}, context {context}, {length} rows through '{member}'",
                        got[index], want[number],
                    )  # fmt: skip
