"""Times the members of each kernel's schedule classes on the GPU, and checks their bits.

    python benchmarks/device_tune.py [linear|attention|small ...] --out results.json

Every member of one class must give the same bits: the script says so for each class, and exits 1
when one does not. What it prints is what `pyvosti/triton_kernels/schedule.py` is written from.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import multiprocessing
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from pyvosti.certified import allow_uncertified
from pyvosti.cuda_launch import BoundKernel
from pyvosti.triton_kernels.compile import Spec, compiled

allow_uncertified("measurements launch kernels of every kind")

SHARED_LIMIT = 227 * 1024
SHAPES = {"qkv": (6144, 4096), "o": (4096, 4096), "down": (4096, 14336), "head": (128256, 4096)}


def warm(spec: Spec) -> int:
    """Compiles into the disk cache; returns the shared memory that the kernel needs, in bytes."""
    try:
        return compiled(spec, 90).metadata.shared
    except Exception:
        return 1 << 30


def usable(specs: list[Spec]) -> list[Spec]:
    with concurrent.futures.ProcessPoolExecutor(
        14, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        shared = list(pool.map(warm, specs, chunksize=4))
    return [spec for spec, size in zip(specs, shared, strict=True) if size <= SHARED_LIMIT]


def time_us(launches: list[BoundKernel], target_us: float = 3000.0) -> float:
    """Microseconds of one launch: the median of five replays of a graph that cycles through."""
    for launch in launches:
        launch()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for launch in launches:
        launch()
    end.record()
    torch.cuda.synchronize()
    rough = begin.elapsed_time(end) * 1000 / len(launches)
    repeats = max(1, int(target_us / max(rough, 5.0) / len(launches)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            for launch in launches:
                launch()
    times = []
    for _ in range(6):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / (repeats * len(launches)))
    return sorted(times[1:])[2]


def time_torch_us(calls: list) -> float:
    """As `time_us`, for torch calls."""
    return time_us(calls)  # a call is a call


def copy_rate() -> float:
    """TB/s, bytes read and written, of a copy of 4 GiB (in a graph an engine would do it)."""
    source = torch.empty(1 << 30, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(7):
        begin.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return 8 * source.numel() / sorted(times)[3] / 1e9


def digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(tensor.contiguous().view(torch.uint8).cpu().numpy()).hexdigest()[:12]


def linear_candidates(n: int, k: int, rows: int, gated: bool) -> list[Spec]:
    """Specs of `linear` (or `gate_up`) worth timing at one row count."""
    tiles: list[tuple[int, int, int, int, int]] = []
    if rows <= 16:
        tiles += itertools.product([16], [16, 32, 64], [128, 256], [4], [3, 4, 6])
    elif rows <= 64:
        tiles += itertools.product([64], [32, 64, 128], [64, 128], [4], [3, 4, 5])
    elif rows <= 256:
        shapes = ((64, 64, 4), (64, 128, 4), (128, 32, 4), (128, 64, 4), (128, 128, 4))
        shapes += ((128, 128, 8), (128, 256, 8), (256, 128, 8), (64, 256, 4))
        tiles += [(m, n, b, w, s) for m, n, w in shapes for b in (64, 128) for s in (2, 3, 4)]
    else:
        shapes = ((128, 128, 4), (128, 128, 8), (128, 256, 8), (256, 128, 8), (64, 256, 4))
        tiles += [(m, n, 64, w, s) for m, n, w in shapes for s in (3, 4)]
    specs = []
    for block_m, block_n, block_k, warps, stages in tiles:
        if gated:
            block_n //= 2
            if block_n < 16:
                continue
            columns = n // block_n
            group = columns if rows <= 64 else 8
            constants = dict(
                N=n, K=k, GROUP_N=group, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
                PRECISION="tf32",
            )  # fmt: skip
            specs.append(
                Spec("gate_up", ("i32", *["bf16"] * 3), tuple(constants.items()), warps, stages)
            )
            continue
        head = n > 100_000
        for splits in (1,) if head else (1, 2) if rows > 64 else (1, 2, 4):
            columns = -(-n // block_n)
            group = columns if rows <= 64 else 8
            constants = dict(
                N=n, K=k, SPLITS=splits, HAS_BIAS=False, GROUP_N=group, BLOCK_M=block_m,
                BLOCK_N=block_n, BLOCK_K=block_k, PRECISION="tf32",
            )  # fmt: skip
            kind = "fp32" if splits > 1 or head else "bf16"
            pointers = ("i32", *["bf16"] * 3, kind)
            specs.append(Spec("linear", pointers, tuple(constants.items()), warps, stages))
    return specs


def linear_grid(spec: Spec, rows: int) -> tuple[int, int, int]:
    c = dict(spec.constants)
    groups = -(-c["N"] // (c["BLOCK_N"] * c["GROUP_N"]))
    return c["GROUP_N"], -(-rows // c["BLOCK_M"]), groups * c.get("SPLITS", 1)


def tune_linear(results: list[dict], row_counts: list[int], names: list[str]) -> bool:
    shapes = {**SHAPES, "gate_up": (14336, 4096)}
    shapes = {name: shapes[name] for name in names or shapes}
    plan = {
        (name, rows): linear_candidates(*shapes[name], rows, name == "gate_up")
        for name in shapes
        for rows in row_counts
        if name != "head" or rows <= 256
    }
    kept = set(usable([spec for specs in plan.values() for spec in specs]))
    generator = torch.Generator("cuda").manual_seed(1)
    agree = True
    for name, (n, k) in shapes.items():
        height = 2 * n if name == "gate_up" else n
        copies = max(1, min(12, int(400e6 / (height * k * 2))))
        weights = [
            torch.randn(height, k, device="cuda", generator=generator, dtype=torch.bfloat16)
            / k**0.5
            for _ in range(copies)
        ]
        x_full = torch.randn(4096, k, device="cuda", generator=generator, dtype=torch.bfloat16)
        classes: dict[int, set[str]] = {}
        for rows in row_counts:
            if (name, rows) not in plan:
                continue
            x = x_full[: max(rows, 256)].contiguous()
            count = torch.tensor([rows], dtype=torch.int32, device="cuda")
            calls = [lambda w=w, x=x, rows=rows: x[:rows] @ w.T for w in weights]
            base = time_torch_us(calls)
            lines = []
            for spec in plan[name, rows]:
                if spec not in kept:
                    continue
                c = dict(spec.constants)
                splits = c.get("SPLITS", 1)
                kind = torch.float32 if splits > 1 or name == "head" else torch.bfloat16
                shape = (max(rows, 256), splits, n)
                out = torch.zeros(shape, dtype=kind, device="cuda")
                grid = linear_grid(spec, rows)
                if spec.kernel == "gate_up":
                    launches = [BoundKernel(spec, grid, [count, x, w, out]) for w in weights]
                else:
                    launches = [BoundKernel(spec, grid, [count, x, w, x, out]) for w in weights]
                launches[0]()
                total = out[0, 0].clone()
                for part in out[0, 1:]:
                    total += part
                row_bits = digest(total.to(torch.bfloat16))
                classes.setdefault(splits, set()).add(row_bits)
                us = time_us(launches)
                lines.append((us, spec))
                results.append(
                    {
                        "shape": name,
                        "rows": rows,
                        "us": us,
                        "cublas_us": base,
                        "warps": spec.num_warps,
                        "stages": spec.num_stages,
                        **c,
                    }
                )
            for splits in sorted({dict(s.constants).get("SPLITS", 1) for _, s in lines}):
                some = [
                    line for line in lines if dict(line[1].constants).get("SPLITS", 1) == splits
                ]
                for us, spec in sorted(some, key=lambda line: line[0])[:2]:
                    c = dict(spec.constants)
                    tbs = height * k * 2 / us / 1e6
                    print(
                        f"{name} M={rows} S={splits} {c['BLOCK_M']}x{c['BLOCK_N']}x{c['BLOCK_K']} "
                        f"w{spec.num_warps} s{spec.num_stages}: {us:.1f} us {tbs:.2f} TB/s "
                        f"{2 * rows * height * k / us / 1e6:.0f} TF; cuBLAS {base:.1f} us "
                        f"ratio {base / us:.2f}",
                        flush=True,
                    )
        for splits, seen in classes.items():
            print(f"{name} S={splits}: {len(seen)} bit class(es) of row 0 over rows and tiles")
            agree &= len(seen) == 1
        del weights, x_full
    return agree


def attention_spec(
    kernel: str,
    page: int,
    split: int,
    block_m: int,
    block_n: int,
    warps: int,
    stages: int,
    max_len: int,
    stride: int = 1,
) -> Spec:
    constants = dict(
        SCALE=1.4426950408889634 / 128**0.5,
        KV_HEADS=8,
        GROUP=4,
        HEAD_DIM=128,
        PAGE=page,
        MAX_PAGES=max_len // page,
        SPLIT=split,
    )
    if kernel == "attention_splits":
        constants |= dict(MAX_SPLITS=max_len // split, STRIDE=stride)
    constants |= dict(WINDOW=0, BLOCK_M=block_m, BLOCK_N=block_n, PRECISION="tf32")
    outs = ["fp32"] * 3 if kernel == "attention_splits" else ["bf16"]
    whole = kernel == "attention_whole"
    pointers = ("bf16", "bf16", "bf16", *["i32"] * (5 if whole else 6), *outs)
    return Spec(kernel, pointers, tuple(constants.items()), warps, stages)


def combine_spec(split: int, max_len: int, block_h: int, warps: int, unroll: int) -> Spec:
    constants = dict(
        HEADS=32,
        HEAD_DIM=128,
        SPLIT=split,
        MAX_SPLITS=max_len // split,
        WINDOW=0,
        BLOCK_H=block_h,
        UNROLL=unroll,
    )
    pointers = ("i32", "i32", "i32", "fp32", "fp32", "fp32", "bf16")
    return Spec("attention_combine", pointers, tuple(constants.items()), warps, 1)


def ints(values, device="cuda") -> torch.Tensor:
    return torch.tensor(list(values), dtype=torch.int32, device=device)


def tune_attention(results: list[dict]) -> bool:
    max_len = 32768
    work = [(1, 640), (8, 4224), (64, 384), (64, 4096), (256, 384)]
    tiles = [(16, bn, 1, st) for bn in (32, 64) for st in (2, 3, 4)]
    tiles += [(16, 64, 2, 3), (16, 64, 4, 3), (64, 64, 4, 3)]
    strides = {1: (32,), 8: (16,), 64: (2, 8, 16), 256: (1, 2)}
    specs = {
        (batch, context): [
            attention_spec("attention_splits", 64, split, *tile, max_len, stride)
            for split in (256, 512)
            for tile in tiles
            for stride in strides[batch]
        ]
        for batch, context in work
    }
    combines = {
        split: [
            combine_spec(split, max_len, h, w, u)
            for h, w, u in ((4, 1, 2), (4, 2, 4), (4, 1, 4), (2, 1, 4), (8, 4, 2))
        ]
        for split in (256, 512)
    }
    whole = [
        attention_spec("attention_whole", 64, split, bm, 64, w, st, max_len)
        for split in (256, 512)
        for bm, w in ((64, 4), (128, 8), (128, 4))
        for st in (2, 3)
    ]
    everything = [s for group in specs.values() for s in group] + whole
    kept = set(usable(everything + [s for group in combines.values() for s in group]))
    generator = torch.Generator("cuda").manual_seed(2)
    for batch, context in work:
        pages = -(-context // 64)
        copies = max(1, int(150e6 / (batch * context * 4096)))
        k, v = (
            torch.randn(
                copies * batch * pages,
                8,
                64,
                128,
                device="cuda",
                generator=generator,
                dtype=torch.bfloat16,
            )
            for _ in range(2)
        )
        order = torch.randperm(copies * batch * pages, device="cuda", generator=generator)
        tables = torch.zeros(copies, batch, max_len // 64, dtype=torch.int32, device="cuda")
        tables[:, :, :pages] = order.reshape(copies, batch, pages).int()
        q = torch.randn(batch, 32, 128, device="cuda", generator=generator, dtype=torch.bfloat16)
        positions, index = ints([context - 1] * batch), ints(range(batch))
        counts = ints([1] * batch)
        lines = []
        for spec in specs[batch, context]:
            if spec not in kept:
                continue
            c = dict(spec.constants)
            splits = c["MAX_SPLITS"]
            m, l = torch.zeros(2, batch, 32, splits, device="cuda")
            acc = torch.zeros(batch, 32, splits, 128, device="cuda")
            grid = (batch, 8, c["STRIDE"])
            launches = [
                BoundKernel(
                    spec,
                    grid,
                    [q, k, v, tables[i], positions, index, counts, index, index, m, l, acc],
                )
                for i in range(copies)
            ]
            us = time_us(launches)
            lines.append((us, spec))
            results.append(
                {
                    "attention": "splits",
                    "batch": batch,
                    "context": context,
                    "us": us,
                    "warps": spec.num_warps,
                    "stages": spec.num_stages,
                    **c,
                }
            )
        moved = batch * context * 4096
        for us, spec in sorted(lines, key=lambda line: line[0])[:8]:
            c = dict(spec.constants)
            print(
                f"splits batch {batch} context {context} SPLIT {c['SPLIT']} {c['BLOCK_M']}x"
                f"{c['BLOCK_N']} w{spec.num_warps} s{spec.num_stages} stride {c['STRIDE']}: "
                f"{us:.1f} us {moved / us / 1e6:.2f} TB/s",
                flush=True,
            )
        for split, group in combines.items():
            m, l = torch.zeros(2, batch, 32, max_len // split, device="cuda")
            acc = torch.zeros(batch, 32, max_len // split, 128, device="cuda")
            out = torch.zeros(batch, 32, 128, device="cuda", dtype=torch.bfloat16)
            for spec in group:
                c = dict(spec.constants)
                grid = (batch, 32 // c["BLOCK_H"])
                launch = BoundKernel(spec, grid, [ints([batch]), positions, index, m, l, acc, out])
                print(
                    f"combine batch {batch} context {context} SPLIT {split} H{c['BLOCK_H']} "
                    f"w{spec.num_warps} u{c['UNROLL']}: {time_us([launch]):.1f} us"
                )
        del k, v
    for context in (1024, 4096, 16384):
        pages = context // 64
        k, v = (
            torch.randn(pages, 8, 64, 128, device="cuda", generator=generator, dtype=torch.bfloat16)
            for _ in range(2)
        )
        tables = torch.zeros(1, max_len // 64, dtype=torch.int32, device="cuda")
        tables[0, :pages] = torch.randperm(pages, device="cuda", generator=generator).int()
        q = torch.randn(context, 32, 128, device="cuda", generator=generator, dtype=torch.bfloat16)
        out = torch.zeros_like(q)
        flops = 4 * context * context / 2 * 128 * 32
        heads = [
            torch.randn(1, h, context, 128, device="cuda", dtype=torch.bfloat16) for h in (32, 8, 8)
        ]
        base = time_torch_us(
            [
                lambda h=heads: torch.nn.functional.scaled_dot_product_attention(
                    *h, is_causal=True, enable_gqa=True
                )
            ]
        )
        print(f"SDPA context {context}: {base:.1f} us {flops / base / 1e6:.0f} TF")
        seen: dict[int, set[str]] = {}
        for spec in whole:
            if spec not in kept:
                continue
            c = dict(spec.constants)
            step = c["BLOCK_M"] // 4
            starts = range(0, context, step)
            launch = BoundKernel(
                spec,
                (len(starts), 8),
                [
                    q,
                    k,
                    v,
                    tables,
                    ints(range(context)),
                    ints(starts),
                    ints([step] * len(starts)),
                    ints([0] * len(starts)),
                    out,
                ],
            )
            us = time_us([launch])
            seen.setdefault(c["SPLIT"], set()).add(digest(out))
            results.append(
                {
                    "attention": "whole",
                    "context": context,
                    "us": us,
                    "sdpa_us": base,
                    "warps": spec.num_warps,
                    "stages": spec.num_stages,
                    **c,
                }
            )
            print(
                f"whole context {context} SPLIT {c['SPLIT']} {c['BLOCK_M']}x{c['BLOCK_N']} "
                f"w{spec.num_warps} s{spec.num_stages}: {us:.1f} us {flops / us / 1e6:.0f} TF",
                flush=True,
            )
        print("bit classes by SPLIT:", {split: len(v) for split, v in seen.items()})
    return True


def tune_small(results: list[dict]) -> bool:
    """Norm, rope, argmax: latencies by warps (a warp count is part of the schedule class)."""

    def spec(kernel, pointers, warps, **constants):
        return Spec(kernel, tuple(pointers.split()), tuple(constants.items()), warps, 1)

    for rows in (1, 64, 256, 4096):
        count = ints([rows])
        x, y, out = (
            torch.randn(max(rows, 256), 4096, device="cuda", dtype=torch.bfloat16) for _ in range(3)
        )
        parts = torch.randn(256, 2, 4096, device="cuda")
        w = torch.randn(4096, device="cuda", dtype=torch.bfloat16)
        for warps in (2, 4, 8, 16):
            for splits in (1, 2):
                if splits == 2 and rows > 256:
                    continue
                kind = "fp32" if splits == 2 else "bf16"
                s = spec(
                    "rms_norm",
                    f"i32 {kind} bf16 bf16 bf16 bf16",
                    warps,
                    HIDDEN=4096,
                    BLOCK=4096,
                    SPLITS=splits,
                    EPS=1e-5,
                )
                delta = parts if splits == 2 else x
                us = time_us([BoundKernel(s, (rows,), [count, delta, x, w, y, out])])
                print(f"rms_norm rows {rows} splits {splits} w{warps}: {us:.2f} us")
        width = 48 * 128
        parts = torch.randn(256, 2, width, device="cuda")
        flat = torch.randn(max(rows, 256), width, device="cuda", dtype=torch.bfloat16)
        cos = torch.randn(8192, 64, device="cuda")
        cache = torch.zeros(128, 8, 64, 128, device="cuda", dtype=torch.bfloat16)
        for warps in (1, 2, 4):
            for splits in (1, 2):
                if splits == 2 and rows > 256:
                    continue
                kind = "fp32" if splits == 2 else "bf16"
                s = spec(
                    "rope_kv_write",
                    f"i32 {kind} fp32 fp32 i32 i32 bf16 bf16 bf16 bf16 bf16",
                    warps,
                    HEADS=32,
                    KV_HEADS=8,
                    HALF=64,
                    GROUP=4,
                    GROUP_BLOCK=4,
                    PAGE=64,
                    SPLITS=splits,
                    QK_NORM=False,
                    EPS=1e-6,
                )
                us = time_us(
                    [
                        BoundKernel(
                            s,
                            (rows, 8),
                            [
                                count,
                                parts if splits == 2 else flat,
                                cos,
                                cos,
                                ints(range(rows)),
                                ints(range(rows)),
                                w,
                                w,
                                x,
                                cache,
                                cache,
                            ],
                        )
                    ]
                )
                print(f"rope rows {rows} splits {splits} w{warps}: {us:.2f} us")
        if rows <= 256:
            logits = torch.randn(rows, 128256, device="cuda")
            for warps, block in ((8, 4096), (16, 8192), (32, 8192), (32, 16384)):
                s = spec("argmax", "i32 fp32 i32 i32 i32", warps, VOCAB=128256, BLOCK=block)
                us = time_us(
                    [
                        BoundKernel(
                            s,
                            (rows,),
                            [count, logits, ints(range(rows)), ints([0] * rows), ints([0] * rows)],
                        )
                    ]
                )
                print(f"argmax rows {rows} w{warps} block {block}: {us:.2f} us")
            s = spec("log_softmax", "fp32 fp32", 16, VOCAB=128256, BLOCK=8192)
            us = time_us([BoundKernel(s, (rows,), [logits, torch.empty_like(logits)])])
            print(f"log_softmax rows {rows}: {us:.2f} us", flush=True)
            s = spec(
                "sample",
                "fp32 i64 i32 i32 fp32 i32 fp32 fp32 i32 i32 i32",
                16,
                VOCAB=128256,
                BLOCK=4096,
            )
            f = lambda v, rows=rows: torch.full((rows,), v, device="cuda")  # noqa: E731
            for top_k, top_p in ((0, 1.0), (50, 1.0), (50, 0.9)):
                us = time_us(
                    [
                        BoundKernel(
                            s,
                            (rows,),
                            [
                                logits,
                                torch.arange(rows, device="cuda"),
                                ints([0] * rows),
                                ints([5] * rows),
                                f(1.0),
                                ints([top_k] * rows),
                                f(top_p),
                                f(float("-inf")),
                                ints(range(rows)),
                                ints([0] * rows),
                                ints([0] * rows),
                            ],
                        )
                    ]
                )
                print(f"sample rows {rows} top_k {top_k} top_p {top_p}: {us:.1f} us", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["small", "attention", "linear"])
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 64, 256, 4096])
    parser.add_argument("--shapes", nargs="*", default=[], help="qkv, o, gate_up, down, head")
    parser.add_argument("--out", type=Path, default=Path("tune.json"))
    arguments = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    print(f"copy: {copy_rate():.2f} TB/s")
    results: list[dict] = []
    agree = True
    for what in arguments.what:
        if what == "linear":
            agree &= tune_linear(results, arguments.rows, arguments.shapes)
        elif what == "attention":
            agree &= tune_attention(results)
        else:
            agree &= tune_small(results)
        arguments.out.write_text(json.dumps(results))
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
