"""The verified engine with the GPU runner: one request's logits however it is scheduled.

    python benchmarks/device_engine.py --out engine.json

A model of random weights serves the same requests under every variation of budget, pool, cache,
neighbours and graphs; full-vocabulary logits of each output position must be the same bits, and so
must the tokens, greedy and sampled. Exits 1 when they are not.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from device_model import LLAMA_8B, make_runner, random_fetch

from pyvosti._core import Engine, sample
from pyvosti.cuda_runner import CudaRunner
from pyvosti.cuda_sampler import Draw, draw_tokens
from pyvosti.cuda_weights import fused_weights

SHAPE = replace(
    LLAMA_8B, layers=2, layer_groups=(0, 0), hidden=2048, heads=16, kv_heads=4, ffn=5632,
    vocab=20000, max_model_len=2048,
)  # fmt: skip


def serve(
    runner: CudaRunner, prompts: list[np.ndarray], outputs: int, *, budget: int, blocks: int,
    seqs: int, cache: bool, temperature: float,
) -> tuple[dict[tuple[int, int], np.ndarray], dict[int, list[int]], int]:  # fmt: skip
    """Runs all requests to the end: (logits by (request, position), tokens, plans)."""
    engine = Engine([blocks], SHAPE.page, seqs, budget, SHAPE.max_model_len, SHAPE.vocab, cache)
    none = np.zeros(0, np.uint32)
    names = {
        engine.add_request(p.astype(np.uint32), outputs, none, len(p) - 1): i
        for i, p in enumerate(prompts)
    }
    rows: dict[tuple[int, int], np.ndarray] = {}
    tokens: dict[int, list[int]] = {i: [] for i in names.values()}
    plans = 0
    while (plan := engine.schedule()) is not None:
        plans += 1
        logits = runner.execute(plan)
        last = plan.query_start[plan.sample_seqs + 1] - 1
        places = np.searchsorted(plan.logits_rows, last)
        draws = []
        for s, place in zip(plan.sample_seqs, places, strict=True):
            name = names[int(plan.seq_ids[s])]
            rows[name, len(tokens[name])] = logits[place]
            seat, at = int(plan.seats[s]), len(tokens[name])
            top_k, top_p = 50 * (name % 2), 0.9 if name % 3 == 0 else 1.0
            draws.append(Draw(int(place), seat, 1000 + name, 0, at, temperature, top_k, top_p))
        drawn = np.zeros(0, np.uint32)
        if draws:
            memory = runner.buffers
            drawn = draw_tokens(runner.schedule, memory["logits"], memory["last_tokens"], draws)
            drawn = drawn.cpu().numpy().astype(np.uint32)
        for s, token in zip(plan.sample_seqs, drawn, strict=True):
            tokens[names[int(plan.seq_ids[s])]].append(int(token))
        engine.commit(plan.plan_id, drawn)
    return rows, tokens, plans


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("engine.json"))
    arguments = parser.parse_args()
    rng = np.random.default_rng(9)
    shared = rng.integers(0, SHAPE.vocab, 300)
    prompts = [
        np.concatenate([shared[: rng.integers(0, 300)], rng.integers(0, SHAPE.vocab, n)])
        for n in rng.integers(1, 500, 24)
    ]
    weights = fused_weights(SHAPE, random_fetch(SHAPE, 1), False)
    sizes = dict(rows=1024, seqs=64, blocks=1024, weights=weights)
    runner = make_runner(SHAPE, **sizes)
    plain = make_runner(SHAPE, **sizes, graphs=False)
    variations = {
        "one by one": dict(budget=1024, blocks=1024, seqs=1),
        "budget 1024, all at once": dict(budget=1024, blocks=1024, seqs=64),
        "budget 64": dict(budget=64, blocks=1024, seqs=64),
        "budget 300, no cache": dict(budget=300, blocks=1024, seqs=64, cache=False),
        "a pool so small that sequences are preempted": dict(budget=256, blocks=24, seqs=16),
        "without graphs": dict(budget=200, blocks=1024, seqs=7, runner=plain),
    }
    report: dict = {}
    fine = True
    for temperature in (0.0, 0.8):
        want = None
        for title, options in variations.items():
            use = options.get("runner", runner)
            limits = {"cache": True} | {k: v for k, v in options.items() if k != "runner"}
            rows, tokens, plans = serve(use, prompts, 24, temperature=temperature, **limits)
            if want is None:
                want = (rows, tokens)
                for name, position in list(rows)[:60]:
                    case = dict(temperature=temperature, top_k=50 * (name % 2), min_p=0.0,
                                top_p=0.9 if name % 3 == 0 else 1.0)  # fmt: skip
                    host = sample(
                        rows[name, position], seed=1000 + name, sample_index=0, position=position,
                        repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0,
                        logit_bias=[], prompt=np.zeros(0, np.uint32),
                        output=np.zeros(0, np.uint32), **case,
                    )  # fmt: skip
                    same = host == tokens[name][position]
                    report.setdefault("host sampler agrees", []).append(bool(same))
            differ = [k for k in want[0] if not np.array_equal(
                want[0][k].view(np.uint32), rows[k].view(np.uint32))]  # fmt: skip
            same = not differ and want[1] == tokens
            fine &= same
            report[f"{title}, temperature {temperature}"] = {"plans": plans, "rows": len(rows),
                                                            "differ": len(differ)}  # fmt: skip
            agree = "equal" if want[1] == tokens else "DIFFER"
            print(f"engine: {title}, temperature {temperature}: {plans} plans, {len(rows)} rows of "
                  f"logits, {len(differ)} differ, tokens {agree}", flush=True)  # fmt: skip
    agree = report["host sampler agrees"]
    print(f"engine: the CPU's sampler draws the same token in {sum(agree)} of {len(agree)} rows")
    arguments.out.write_text(json.dumps(report, indent=1))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
