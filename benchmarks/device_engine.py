"""The whole engine on the GPU: one request's logits however it is scheduled.

    python benchmarks/device_engine.py --out engine.json

`pyvosti.LLM` serves models of random weights under every variation of budget, pool, cache,
neighbours, graphs and plans in flight; full-vocabulary logits (by chained digests) and tokens of
each request must be the same bits, greedy and sampled. One model has full attention, one layers
with a window that give their blocks back. Exits 1 when a request differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import numpy as np

from pyvosti import LLM, SamplingParams
from pyvosti.outputs import RequestOutput
from pyvosti.runner import drawn
from tiny_models import FAMILIES, save_tiny_model

SIZES = {
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 20000,
    "max_position_embeddings": 2048,
}  # fmt: skip
WINDOWS = SIZES | {
    "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 100,
    "max_window_layers": 1,
}  # fmt: skip
KINDS = (
    SamplingParams(temperature=0.0, ignore_eos=True),
    SamplingParams(temperature=0.8, top_k=50, ignore_eos=True),
    SamplingParams(temperature=1.1, top_p=0.9, ignore_eos=True),
    SamplingParams(temperature=0.0, repetition_penalty=1.2, presence_penalty=0.4, ignore_eos=True),
    SamplingParams(temperature=0.7, min_p=0.02, logit_bias={7: 3.0}, ignore_eos=True),
    SamplingParams(temperature=0.9, n=3, ignore_eos=True),
)

VARIATIONS: dict[str, dict[str, Any]] = {
    "one by one": {"alone": True},
    "all at once": {},
    "again, warm": {"runs": 2, "must_happen": "hits"},
    "budget 64, no cache": {"max_batched_tokens": 64, "prefix_cache": False},
    "budget 300": {"max_batched_tokens": 300},
    "a pool so small that sequences are preempted": {
        "num_blocks": 40, "max_seqs": 16, "must_happen": "preemptions"
    },
    "strict kernels": {"strict_kernels": True},
    "seven sequences, one plan in flight": {"max_seqs": 7, "in_flight": 1},
    "without graphs": {"graphs": False},
}  # fmt: skip


def jobs(outputs: int) -> tuple[list[list[int]], list[SamplingParams]]:
    """24 prompts that share prefixes, of all kinds of parameters."""
    rng = np.random.default_rng(9)
    shared = rng.integers(0, SIZES["vocab_size"], 300)
    prompts = [
        [*shared[: rng.integers(0, 300)].tolist(), *rng.integers(0, 20000, n).tolist()]
        for n in rng.integers(1, 500, 24)
    ]
    params = [
        replace(KINDS[i % len(KINDS)], seed=1000 + i, max_tokens=outputs, prompt_logprobs=extra)
        for i, extra in enumerate([None, None, None, 0] * 6)
    ]
    return prompts, params


def serve(
    folder: Path, variation: dict[str, Any], prompts: list[list[int]], params: list[SamplingParams]
) -> tuple[list[RequestOutput], dict[str, int]]:
    """Runs all requests under a variation: (outputs, the engine's counters)."""
    options = {"num_blocks": 1024, "max_batched_tokens": 1024, "max_seqs": 64} | variation
    alone, runs = options.pop("alone", False), options.pop("runs", 1)
    in_flight, graphs = options.pop("in_flight", None), options.pop("graphs", True)
    must_happen = options.pop("must_happen", None)
    llm = LLM(folder, backend="cuda", record_digests=True, allow_uncertified=True, **options)
    runner: Any = llm.session.runner
    if in_flight:
        runner.max_in_flight = in_flight
    if not graphs:
        runner.graphs, runner._bodies, runner._heads = False, {}, {}
    outputs: list[RequestOutput] = []
    for _ in range(runs):
        groups = [[i] for i in range(len(prompts))] if alone else [list(range(len(prompts)))]
        outputs = []
        for group in groups:
            outputs += llm.generate(
                prompt_token_ids=[prompts[i] for i in group],
                sampling_params=[params[i] for i in group],
            )
    stats = llm.stats()
    assert must_happen is None or stats[must_happen] > 0, (variation, stats)
    assert stats["referenced_blocks"] == 0, stats
    return outputs, stats


def bits(outputs: Sequence[RequestOutput]) -> list[Any]:
    """What must be equal of each request: digests of every row of logits, and tokens."""
    return [[(sample.digests, sample.token_ids) for sample in o.outputs] for o in outputs]


def host_agreement(folder: Path, prompts: list[list[int]], params: list[SamplingParams]) -> list:
    """Whether the CPU's sampler draws the GPU's token from the GPU's logits, by draw."""
    llm = LLM(folder, backend="cuda", record_logits=True, allow_uncertified=True, num_blocks=1024)
    agree: list[bool] = []
    start = llm.session.runner.start
    llm.session.runner.start = lambda plan, draws, kept: Watched(start(plan, draws, kept), plan,
                                                                 draws, agree)  # fmt: skip
    llm.generate(prompt_token_ids=prompts, sampling_params=params)
    return agree


class Watched:
    """A step whose draws the host repeats."""

    def __init__(self, computing: Any, plan: Any, draws: Any, agree: list[bool]) -> None:
        self.computing, self.plan, self.draws, self.agree = computing, plan, draws, agree

    def wait(self) -> Any:
        result = self.computing.wait()
        rows = self.plan.query_start[self.plan.sample_seqs + 1] - 1
        rows = np.searchsorted(self.plan.logits_rows, rows)
        for row, draw, token in zip(rows, self.draws, result.tokens, strict=True):
            self.agree.append(bool(drawn(result.logits[row], draw) == token))
        return result


def judge(folder: Path, outputs: int, title: str, names: Sequence[str]) -> dict[str, Any]:
    """Serves all requests under each variation of these names: what differed, by its name."""
    prompts, params = jobs(outputs)
    found: dict[str, Any] = {}
    want: list[Any] = []
    for name in names:
        served, stats = serve(folder, VARIATIONS[name], prompts, params)
        got = bits(served)
        want = want or got
        differ = sum(a != b for a, b in zip(want, got, strict=True))
        rows = sum(len(sample.digests or []) for o in served for sample in o.outputs)
        found[title + name] = {"requests": len(got), "rows": rows, "differ": differ}
        found[title + name] |= {counter: stats[counter] for counter in ("preemptions", "hits")}
        print(f"engine: {title}{name}: {len(got)} requests, {rows} rows of logits, "
              f"{differ} requests differ, {stats}", flush=True)  # fmt: skip
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("engine.json"))
    parser.add_argument("--outputs", type=int, default=256)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        full, windows = Path(where) / "full", Path(where) / "windows"
        save_tiny_model(FAMILIES["llama"]._replace(options=SIZES), full, dtype="bfloat16")
        save_tiny_model(FAMILIES["qwen2-windows"]._replace(options=WINDOWS), windows, "bfloat16")
        report = judge(full, arguments.outputs, "", list(VARIATIONS))
        report |= judge(windows, arguments.outputs, "windows: ", list(VARIATIONS)[:6])
        prompts, params = jobs(20)
        agree = host_agreement(full, prompts[:12], params[:12])
    fine = not any(found["differ"] for found in report.values())
    report["host sampler agrees"] = [sum(agree), len(agree)]
    print(f"engine: the CPU's sampler draws the same token in {sum(agree)} of {len(agree)} draws")
    arguments.out.write_text(json.dumps(report, indent=1))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
