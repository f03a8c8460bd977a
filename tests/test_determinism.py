"""The claim, tried out: a request's logits do not depend on how it was run, bit for bit.

40 requests of 64 outputs on smollm2, whole vocabulary: one after the other and together, in
chunks of several sizes, with a cold and a warm cache, preempted in a pool that is too small, on
one and two threads. The same comparison must fail on a sum whose order depends on the batch.

To repeat one variation: pytest tests/test_determinism.py -k NAME
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from comparison import Difference, Job, Variation, digests, explain, first_difference, run
from pyvosti import SamplingParams
from pyvosti._core import Plan
from pyvosti.loader import load_model
from pyvosti.runner import CpuRunner

pytestmark = pytest.mark.usefixtures("on_the_cpu")
MODEL = "smollm2"
OUTPUTS = 64
TEXT = (
    "Determinism is not a property of a model but of the way it is run. A sum of floating point "
    "numbers depends on the order of its terms, and the order on the shape of the batch, unless "
    "somebody has fixed it. def step(self):\n    plan = self.engine.schedule()\n    return plan\n"
    "In 1,234 of 56,789 cases nobody had. 🙂 Être ou ne pas être, c'est là la question."
)
TOGETHER = {"threads": 2, "max_seqs": 64, "max_batched_tokens": 256, "kv_cache_tokens": 8192}
ALONE = Variation("alone", TOGETHER | {"prefix_cache": False}, alone=True)
VARIATIONS = [
    Variation("together", TOGETHER),
    Variation("warm", TOGETHER, runs=2, must_happen="hits"),
    Variation("chunks-of-1", TOGETHER | {"max_batched_tokens": 1}),
    Variation("chunks-of-7", TOGETHER | {"max_batched_tokens": 7}),
    Variation("chunks-of-16", TOGETHER | {"max_batched_tokens": 16, "prefix_cache": False}),
    Variation("chunks-of-64", TOGETHER | {"max_batched_tokens": 64}),
    Variation(
        "preempted",
        {"threads": 2, "num_blocks": 20, "max_model_len": 192, "max_seqs": 12},
        must_happen="preemptions",
    ),
    Variation("one-thread", TOGETHER | {"threads": 1}),
]


def make_jobs(count: int = 40, outputs: int = OUTPUTS) -> list[Job]:
    """Prompts of 1 to 100 tokens, some of which share beginnings; greedy and seeded, some with
    the logits of the whole prompt."""
    ids = load_model(MODEL).tokenizer.encode(TEXT).tolist()
    lengths = [1, 2, 15, 16, 17, 31, 32, 33, 48, 100]
    jobs = []
    for i in range(count):
        length, start = lengths[i % len(lengths)], i // len(lengths) * 3
        temperature = 0.0 if i % 3 else 0.9
        params = SamplingParams(
            max_tokens=outputs,
            temperature=temperature,
            top_p=0.95,
            seed=i,
            ignore_eos=True,
            prompt_logprobs=0 if i % 8 == 3 else None,
        )
        jobs.append(Job((ids[start:] + ids)[:length], params))
    return jobs


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    return make_jobs()


@pytest.fixture(scope="module")
def baseline(jobs: list[Job]) -> list[list[list[str]]]:
    """Each request alone, on a cold cache."""
    chains = digests(run(MODEL, jobs, ALONE))
    for job, (chain,) in zip(jobs, chains, strict=True):
        prompt_rows = len(job.prompt) - 1 if job.params.logits_from_start else 0
        assert len(chain) == prompt_rows + OUTPUTS
    return chains


@pytest.mark.parametrize("variation", VARIATIONS, ids=lambda variation: variation.name)
def test_same_bits(jobs: list[Job], baseline: list[list[list[str]]], variation: Variation) -> None:
    found = first_difference(baseline, digests(run(MODEL, jobs, variation)))
    assert found is None, explain(MODEL, jobs, (ALONE, variation), found)


class SplitSum(CpuRunner):
    """A runner that subtracts each row's mean, summed in `splits` parts: the kind of kernel that
    other engines use, where the number of splits is taken from the batch."""

    def __init__(self, runner: CpuRunner, splits: int | None) -> None:
        self.__dict__.update(runner.__dict__)
        self.splits = splits

    def execute(self, plan: Plan) -> NDArray[np.float32]:
        logits = super().execute(plan)
        splits = self.splits or len(plan.token_ids)
        parts = [part.sum(axis=1) for part in np.array_split(logits, splits, axis=1)]
        total = np.zeros(len(logits), np.float32)
        for part in parts:
            total += part
        return logits - (total / np.float32(logits.shape[1]))[:, np.newaxis]


@pytest.mark.parametrize("splits", [4, None], ids=["fixed", "by-batch"])
def test_the_comparison_catches_a_sum_ordered_by_the_batch(splits: int | None) -> None:
    jobs = make_jobs(count=6, outputs=8)
    together = VARIATIONS[0]

    def wrapper(runner: CpuRunner) -> CpuRunner:
        return SplitSum(runner, splits)

    runs = [digests(run(MODEL, jobs, variation, wrapper)) for variation in (ALONE, together)]
    found = first_difference(*runs)
    if splits is not None:
        assert found is None
        return
    assert isinstance(found, Difference)
    message = explain(MODEL, jobs, (ALONE, together), found, wrapper)
    assert "alone and together differ in job" in message
    assert "first at token id" in message
