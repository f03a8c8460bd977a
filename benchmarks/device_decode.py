"""Decode of whole models of random weights on the GPU: milliseconds a step beside the roofline.

    python benchmarks/device_decode.py --out decode.json

The runner alone (plans made by hand while the GPU runs), by batch and context, and the session with
engine and text. Exits 1 when a figure is above its floor.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
from device_model import LLAMA_8B, greedy_step, make_runner
from device_plans import UNKNOWN, Pages

from pyvosti import SamplingParams
from pyvosti._core import Engine
from pyvosti.cuda_runner import CudaRunner
from pyvosti.request import Recording, Request
from pyvosti.session import Session
from pyvosti.tokenizer import Tokenizer
from pyvosti.triton_kernels.schedule import Shape

WORK = ((1, 128, 512, 6.0), (64, 128, 512, 6.5), (256, 256, 256, 13.0), (8, 4096, 256, 6.8))
PEAK_BYTES, PEAK_FLOPS = 4.8e12, 790e12
QWEN3_8B = replace(
    LLAMA_8B, layers=36, layer_groups=(0,) * 36, ffn=12288, vocab=151936, qk_norm=True,
    rms_eps=1e-6,
)  # fmt: skip
BLOCKS = 9600


def weight_bytes(shape: Shape) -> int:
    """Bytes of bf16 weights that a decode step reads: matrices and head."""
    qkv_o = 2 * shape.heads * shape.head_dim + 2 * shape.kv_heads * shape.head_dim
    layer = shape.hidden * (qkv_o + 3 * shape.ffn)
    return 2 * (shape.layers * layer + shape.vocab * shape.hidden)


def bound_ms(shape: Shape, batch: int, context: float) -> float:
    """The roofline of a decode step: weights and KV read once, or the arithmetic."""
    weights = weight_bytes(shape)
    kv = batch * context * shape.layers * 4 * shape.kv_heads * shape.head_dim
    return 1e3 * max((weights + kv) / PEAK_BYTES, batch * weights / PEAK_FLOPS)


def prefill(runner: CudaRunner, pages: Pages, prompts: list[np.ndarray], budget: int) -> list:
    """Prompts in full steps of at most `budget` rows; returns the last greedy tokens' handles."""
    handles, work, room = [], [], budget
    for seat, prompt in enumerate(prompts):
        at = 0
        while at < len(prompt):
            part = prompt[at : at + room]
            work.append((seat, at, part))
            at += len(part)
            room -= len(part)
            if room == 0:
                handles.append(greedy_step(runner, pages.plan(work)))
                work, room = [], budget
    if work:
        handles.append(greedy_step(runner, pages.plan(work)))
    return handles


def speed(report: dict) -> bool:
    fine = True
    for model, shape in (("Qwen3-8B", QWEN3_8B), ("Llama-3.1-8B", LLAMA_8B)):
        shape = replace(shape, max_model_len=32768)
        begin = time.perf_counter()
        runner = make_runner(shape, rows=8192, seqs=256, blocks=BLOCKS)
        runner.capture()
        torch.cuda.synchronize()
        print(f"{model}: loaded and captured in {time.perf_counter() - begin:.1f} s", flush=True)
        for batch, prompt, outputs, floor in WORK:
            line = decode_line(runner, batch, prompt, outputs)
            goal = floor if model.startswith("Llama") else None
            fine &= goal is None or line["ms_per_step"] <= goal
            report.setdefault("speed", []).append({"model": model, "floor_ms": goal} | line)
            print(f"{model} decode {batch}/{prompt}/{outputs}: {line['ms_per_step']:.2f} ms a step "
                  f"(floor {goal}), bound {line['bound_ms']:.2f}, first token "
                  f"{line['first_token_s']:.3f} s, {line['tokens_per_s']:.0f} tok/s",
                  flush=True)  # fmt: skip
        if model.startswith("Llama"):
            contexts(report, runner)
            served(report, runner)
            profile(report, runner)
        del runner
        torch.cuda.empty_cache()
    return fine


def decode_line(runner: CudaRunner, batch: int, prompt: int, outputs: int) -> dict:
    """Prefill and decode of `batch` greedy sequences, the better of two runs."""
    shape = runner.schedule.shape
    rng = np.random.default_rng(8)
    prompts = [rng.integers(0, shape.vocab, prompt) for _ in range(batch)]
    best = 1e9
    for _ in range(2):
        pages = Pages(BLOCKS, 64, 1, 3)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for handle in prefill(runner, pages, prompts, 8192):
            handle.wait()
        first = time.perf_counter() - start
        decode_steps(runner, pages, batch, prompt, outputs - 1)
        best = min(best, (time.perf_counter() - start - first) / (outputs - 1))
    return {
        "batch": batch,
        "prompt": prompt,
        "outputs": outputs,
        "ms_per_step": best * 1e3,
        "first_token_s": first,
        "tokens_per_s": batch * outputs / (first + best * (outputs - 1)),
        "bound_ms": bound_ms(shape, batch, prompt + outputs / 2),
    }


def decode_steps(runner: CudaRunner, pages: Pages, batch: int, context: int, steps: int) -> None:
    """Greedy decode steps, each prepared while the one before runs; tokens are read back."""
    unknown, handles = np.array([UNKNOWN]), []
    for i in range(steps):
        plan = pages.plan([(s, context + i, unknown) for s in range(batch)])
        handles.append(greedy_step(runner, plan))
        if i >= 1:
            handles[i - 1].wait()
    handles[-1].wait()


def contexts(report: dict, runner: CudaRunner) -> None:
    """Decode by batch and context, as far as the pool goes."""
    for batch in (1, 8, 64, 256):
        for context in (256, 1024, 4096, 16384):
            if batch * -(-(context + 40) // 64) > BLOCKS:
                continue
            pages = Pages(BLOCKS, 64, 1, 3)
            decode_steps(runner, pages, batch, context, 3)
            torch.cuda.synchronize()
            start = time.perf_counter()
            decode_steps(runner, pages, batch, context + 3, 20)
            ms = (time.perf_counter() - start) * 1e3 / 20
            bound = bound_ms(runner.schedule.shape, batch, context)
            report.setdefault("contexts", []).append(
                {"batch": batch, "context": context, "ms_per_step": ms, "bound_ms": bound}
            )
            print(f"decode {batch} at {context}: {ms:.2f} ms, bound {bound:.2f}", flush=True)


def served(report: dict, runner: CudaRunner) -> None:
    """Greedy requests through the session, with the text of every token."""
    shape = runner.schedule.shape
    tokenizer = words(shape.vocab)
    rng = np.random.default_rng(8)
    for batch, prompt, outputs, _ in WORK:
        engine = Engine(runner.num_blocks, 64, 256, 8192, shape.max_model_len, shape.vocab, True)
        session = Session(engine, runner)
        params = SamplingParams(temperature=0.0, max_tokens=outputs, ignore_eos=True)
        requests = [
            Request(
                index=i, text=None, prompt=rng.integers(0, shape.vocab, prompt).astype(np.uint32),
                params=params, seed=i, max_tokens=outputs, salt=0, vocab=shape.vocab,
                tokenizer=tokenizer, recording=Recording(), inbox={},
            )
            for i in range(batch)
        ]  # fmt: skip
        for request in requests:
            session.add(request)
        ends = []
        while not all(request.finished for request in requests):
            session.step()
            ends.append(time.perf_counter())
        ms = float(np.median(np.diff(ends[-outputs + 16 : -16]))) * 1e3
        alone = next(s["ms_per_step"] for s in report["speed"]
                     if s["batch"] == batch and s["model"] == "Llama-3.1-8B")  # fmt: skip
        report.setdefault("served", []).append(
            {"batch": batch, "prompt": prompt, "outputs": outputs, "ms_per_step": ms,
             "runner_ms": alone}
        )  # fmt: skip
        print(f"served {batch}/{prompt}/{outputs}: {ms:.2f} ms a step ({alone:.2f})", flush=True)


def words(vocab: int) -> Tokenizer:
    """A tokenizer with one word for each token."""
    from tokenizers import Tokenizer as Backend
    from tokenizers.models import WordLevel

    backend = Backend(WordLevel({f"w{i}": i for i in range(vocab)}, unk_token="w0"))
    return Tokenizer(backend, eos_token_ids=(), chat_template=None, special_tokens={})


def profile(report: dict, runner: CudaRunner) -> None:
    """GPU time by kernel of one decode step, from the profiler."""
    for batch, context in ((1, 640), (64, 384), (256, 384), (8, 4224)):
        pages = Pages(BLOCKS, 64, 1, 3)
        plan = pages.plan([(s, context - 1, np.array([5])) for s in range(batch)])
        greedy_step(runner, plan).wait()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
            greedy_step(runner, plan).wait()
            torch.cuda.synchronize()
        times = {e.key: e.device_time_total for e in trace.key_averages() if e.device_time_total}
        report.setdefault("profile", {})[f"{batch}/{context}"] = times
        top = sorted(times.items(), key=lambda item: -item[1])[:9]
        print(
            f"profile {batch}/{context}: total {sum(times.values()) / 1e3:.2f} ms: "
            + ", ".join(f"{name[:20]} {us / 1e3:.2f}" for name, us in top),
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("decode.json"))
    arguments = parser.parse_args()
    report: dict = {}
    fine = speed(report)
    arguments.out.write_text(json.dumps(report, indent=1))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
