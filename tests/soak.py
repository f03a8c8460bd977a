"""Soak: random requests with random arrivals, aborts and sizes; each output equals its solo run.

    python tests/soak.py --requests 10000              a tiny random model of two layers
    python tests/soak.py --requests 200 --model smollm2

Memory must be flat: what the process holds after the last tenth of the requests is compared with
what it held after the first. Exits 1 when an output differs, a block is left, or memory grew.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyvosti import LLM, SamplingParams
from pyvosti.request import Recording, Request
from tiny_models import FAMILIES, save_tiny_model

GROWTH = 8 << 20
"""Bytes that the process may hold more at the end than after the first tenth."""
ALONE = {"prefix_cache": False, "num_blocks": 64}


class Plan(NamedTuple):
    """A request to come."""

    prompt: tuple[int, ...]
    params: SamplingParams
    abort_after: int | None
    """Steps after which it is aborted."""


def plans(count: int, vocab: int, seed: int, distinct: int) -> Iterator[Plan]:
    """Random requests, of which `distinct` differ, so that each solo run serves several."""
    rng = random.Random(seed)
    shared = [rng.randrange(vocab) for _ in range(64)]
    pool = []
    for i in range(distinct):
        own = [rng.randrange(vocab) for _ in range(rng.randint(1, 40))]
        params = SamplingParams(
            max_tokens=rng.randint(1, 24),
            temperature=rng.choice([0.0, 0.7, 1.2]),
            top_k=rng.choice([0, 0, 20]),
            top_p=rng.choice([1.0, 0.9]),
            repetition_penalty=rng.choice([1.0, 1.0, 1.0, 1.3]),
            prompt_logprobs=rng.choice([None] * 7 + [0]),
            n=rng.choice([1] * 9 + [3]),
            seed=i,
            ignore_eos=True,
        )
        pool.append((tuple(shared[: rng.choice([0, 0, 16, 33, 64])] + own), params))
    for _ in range(count):
        abort = rng.randint(0, 20) if rng.random() < 0.15 else None
        yield Plan(*rng.choice(pool), abort)


class Soak:
    """Runs plans on an engine that is too small for them."""

    def __init__(self, model: str, num_blocks: int, seed: int) -> None:
        self.llm = LLM(
            model, backend="cpu", num_blocks=num_blocks, max_seqs=24, max_batched_tokens=96
        )
        self.solo = LLM(model, backend="cpu", record_digests=True, **ALONE)  # type: ignore[arg-type]
        self.known: dict[tuple[int, ...], list[Any]] = {}
        self.rng = random.Random(seed)
        self.differ = self.aborted = self.finished = self.preemptions = 0

    def run(self, todo: list[Plan]) -> list[int]:
        """Runs all; bytes that the process held after each tenth."""
        open_requests: list[tuple[Plan, Request, int]] = []
        memory: list[int] = []
        step, started = 0, 0
        while started < len(todo) or open_requests:
            burst = self.rng.choice([0, 0, 0, 1, 1, 2, 5]) if len(open_requests) < 60 else 0
            for plan in todo[started : started + burst]:
                open_requests.append((plan, self._add(plan), step))
                started += 1
                if started % max(1, len(todo) // 10) == 0:
                    memory.append(resident())
            if not open_requests:
                continue
            self.llm.session.step()
            step += 1
            if self.rng.random() < 0.002:
                self.llm.reset_prefix_cache()
            open_requests = [entry for entry in open_requests if not self._ended(entry, step)]
        return memory

    def _add(self, plan: Plan) -> Request:
        params = plan.params
        assert params.seed is not None and params.max_tokens is not None
        request = Request(
            index=0, text=None, prompt=np.array(plan.prompt, np.uint32), params=params,
            seed=params.seed, max_tokens=params.max_tokens, salt=0, vocab=self.llm.config.vocab,
            tokenizer=self.llm.tokenizer, recording=Recording(digests=True), inbox={},
        )  # fmt: skip
        self.llm.session.add(request)
        return request

    def _ended(self, entry: tuple[Plan, Request, int], step: int) -> bool:
        plan, request, added = entry
        if plan.abort_after is not None and not request.finished:
            if step - added > plan.abort_after:
                self.llm.session.abort(request)
        if not request.finished:
            return False
        seen = [(s.digests, s.token_ids) for s in request.output().outputs]
        reasons = {sample.finish_reason for sample in request.samples}
        self.aborted += "abort" in reasons
        self.finished += reasons == {"length"}
        for (digests, tokens), (want, wanted) in zip(seen, self._alone(plan), strict=True):
            fine = digests == want[: len(digests)] and tokens == wanted[: len(tokens)]
            whole = len(tokens) == len(wanted) or "abort" in reasons
            self.differ += not (fine and whole)
        return True

    def _alone(self, plan: Plan) -> list[Any]:
        key = (*plan.prompt, -1, plan.params.seed or 0)
        if key not in self.known:
            output = self.solo.generate(
                prompt_token_ids=list(plan.prompt), sampling_params=plan.params
            )[0]
            self.known[key] = [(s.digests, s.token_ids) for s in output.outputs]
        return self.known[key]


def resident() -> int:
    """Bytes of memory that this process holds."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def soak(model: str, requests: int, seed: int = 1) -> dict[str, Any]:
    """Runs the soak; what came out. `fine`: nothing differed, was left or grew."""
    small = 40 if requests > 50 else 24
    run = Soak(model, small, seed)
    start = time.monotonic()
    todo = list(plans(requests, run.llm.config.vocab, seed, distinct=max(8, requests // 12)))
    for plan in todo:
        run._alone(plan)  # their memory is not the engine's
    solo = time.monotonic() - start
    memory = run.run(todo)
    stats = run.llm.stats()
    left = stats["referenced_blocks"] + stats["waiting"] + stats["running"]
    grown = memory[-1] - memory[0] if len(memory) > 1 else 0
    return {
        "requests": requests, "finished": run.finished, "aborted": run.aborted,
        "differ": run.differ, "left": left, "preemptions": stats["preemptions"],
        "hits": stats["hits"], "plans": stats["plans"],
        "MiB": [round(held / 2**20, 1) for held in memory],
        "solo seconds": round(solo, 1), "seconds": round(time.monotonic() - start, 1),
        "fine": run.differ == 0 and left == 0 and grown < GROWTH,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--model", help="default: a random one of two layers")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model
        if model is None:
            model = str(Path(folder) / "model")
            two_layers(Path(model))
        result = soak(model, arguments.requests, arguments.seed)
    print(json.dumps(result))
    return 0 if result["fine"] else 1


def two_layers(folder: Path) -> None:
    """Writes a random model of two layers, of which one has a window."""
    family = FAMILIES["qwen2-windows"]
    options = family.options | {"num_hidden_layers": 2, "sliding_window": 24}
    save_tiny_model(family._replace(options=options), folder)


if __name__ == "__main__":
    sys.exit(main())
