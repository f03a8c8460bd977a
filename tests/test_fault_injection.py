"""A runner that fails in any way: the state stays whole, and a request is retried or ended.

Faults are injected between the engine and the session. Where nothing was committed, stepping on
must give the bits of an undisturbed run; where something was, the requests concerned end, the
others do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyvosti import LLM, RequestOutput, SamplingParams
from pyvosti._core import Plan
from pyvosti.draw import Draw
from pyvosti.runner import Computed, Result, Runner

pytestmark = pytest.mark.usefixtures("on_the_cpu")
PROMPTS = [list(range(5, 5 + n)) for n in (3, 40, 17)]
PARAMS = [
    SamplingParams(max_tokens=10, temperature=0.9, seed=4, ignore_eos=True),
    SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True),
    SamplingParams(max_tokens=6, temperature=0.7, seed=5, n=2, repetition_penalty=1.3),
]
HARMLESS = ("no memory", "interrupted", "late", "token", "too few tokens", "other plan", "twice")
"""Faults after which nothing has been committed that was not handed out."""


class Failing:
    """A runner whose n-th plan fails."""

    def __init__(self, runner: Runner, kind: str, nths: set[int]) -> None:
        self.runner, self.kind, self.nths = runner, kind, nths
        self.num_blocks, self.max_in_flight = runner.num_blocks, runner.max_in_flight
        self.count = 0

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Any:
        self.count += 1
        if self.count not in self.nths:
            return self.runner.start(plan, draws, kept)
        if self.kind == "no memory":
            raise MemoryError("the step's buffers")
        result = self.runner.start(plan, draws, kept).wait()
        if self.kind == "interrupted":
            raise KeyboardInterrupt
        if self.kind == "token":
            return Computed(Result(result.tokens + np.uint32(400), result.logits))
        if self.kind == "too few tokens":
            return Computed(Result(result.tokens[:-1], result.logits))
        if self.kind == "too few rows":
            return Computed(Result(result.tokens, result.logits[:-1]))
        if self.kind == "late":
            return Late()
        return Computed(result)


class Late:
    """A step that fails while it is waited for."""

    def wait(self) -> Result:
        raise RuntimeError("the device is gone")


class Confused:
    """An engine that is told of other plans than those that were run."""

    def __init__(self, engine: Any, kind: str, runner: Failing) -> None:
        self._engine, self._kind, self._runner = engine, kind, runner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def commit(self, plan_id: int, tokens: NDArray[np.uint32]) -> Any:
        chosen = self._runner.count in self._runner.nths
        if chosen and self._kind == "other plan":
            return self._engine.commit(plan_id + 1, tokens)
        statuses = self._engine.commit(plan_id, tokens)
        if chosen and self._kind == "twice":
            with pytest.raises(RuntimeError, match="no plan is in flight"):
                self._engine.commit(plan_id, tokens)
        return statuses


@pytest.fixture(scope="module")
def llm(tiny_folder: Path, on_the_cpu: None) -> LLM:
    # 12 blocks: some requests are preempted, too.
    return LLM(tiny_folder, num_blocks=12, max_batched_tokens=24, record_digests=True)


@pytest.fixture(scope="module")
def want(tiny: LLM) -> list[Any]:
    return [bits(output) for output in tiny.generate(None, PARAMS, prompt_token_ids=PROMPTS)]


def bits(output: RequestOutput) -> list[Any]:
    return [(sample.token_ids, sample.digests) for sample in output.outputs]


def run(llm: LLM, kind: str, nths: set[int]) -> tuple[list[RequestOutput], int]:
    """The outputs of a run that steps on after each failure, and how many there were."""
    session = llm.session
    engine, healthy, step = session.engine, session.runner, session.step
    failing = Failing(healthy, kind, nths)
    confused: Any = Confused(engine, kind, failing)
    session.runner, session.engine = failing, confused
    failures = []

    def stepping_on() -> None:
        try:
            step()
        except (MemoryError, RuntimeError, ValueError, KeyboardInterrupt) as error:
            failures.append(error)

    session.step = stepping_on  # type: ignore[method-assign]
    try:
        llm.reset_prefix_cache()
        outputs = llm.generate(None, PARAMS, prompt_token_ids=PROMPTS)
    finally:
        del session.step  # type: ignore[method-assign]
        session.runner, session.engine = healthy, engine
    assert failing.count >= max(nths), "the fault had no chance"
    return outputs, len(failures)


def is_idle(llm: LLM) -> bool:
    stats = llm.stats()
    return not any(stats[n] for n in ("referenced_blocks", "plans", "running", "waiting"))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(HARMLESS), nths=st.sets(st.integers(1, 9), min_size=1, max_size=4))
def test_a_step_that_fails_is_repeated(
    llm: LLM, want: list[Any], kind: str, nths: set[int]
) -> None:
    outputs, failures = run(llm, kind, nths)
    assert [bits(output) for output in outputs] == want
    unseen = {"twice"} | ({"token", "too few tokens"} if failures == 0 else set())
    assert failures > 0 or kind in unseen, "a step without draws has no token to be wrong"
    assert is_idle(llm)


@pytest.mark.parametrize("nth", range(1, 10, 2))
def test_what_was_committed_and_lost_ends_its_requests(llm: LLM, want: list[Any], nth: int) -> None:
    """A row is missing: what had come before stays, and no request goes on without it."""
    outputs, failures = run(llm, "too few rows", {nth})
    assert failures == 1
    reasons = [{sample.finish_reason for sample in output.outputs} for output in outputs]
    assert {"abort"} & set().union(*reasons)
    for output, alone in zip(outputs, want, strict=True):
        for (tokens, digests), (all_tokens, all_digests) in zip(bits(output), alone, strict=True):
            assert tokens == all_tokens[: len(tokens)]
            assert digests == all_digests[: len(digests)]
    assert is_idle(llm)
    again = llm.generate(None, PARAMS, prompt_token_ids=PROMPTS)
    assert [bits(output) for output in again] == want
