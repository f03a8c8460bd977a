"""Plans in flight: a backend that computes ahead gives the same bits, also when it is stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyvosti import LLM, SamplingParams
from pyvosti._core import Plan
from pyvosti.draw import Draw
from pyvosti.runner import Computed, CpuRunner

UNKNOWN = 0xFFFFFFFF
GREEDY = SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True)
PROMPTS = [list(range(5, 5 + n)) for n in (3, 17, 40, 16)]
PARAMS = [
    GREEDY,
    SamplingParams(max_tokens=31, temperature=0.9, seed=4, ignore_eos=True),
    SamplingParams(max_tokens=9, temperature=0.7, seed=5, n=3, top_k=20),
    SamplingParams(max_tokens=40, temperature=1.2, seed=6, stop=["e", "a"]),
]
PENALISED = SamplingParams(
    max_tokens=12, temperature=0.0, repetition_penalty=1.3, frequency_penalty=0.5, ignore_eos=True
)


class PlanWithTokens:
    """A plan whose unknown tokens have been filled in."""

    def __init__(self, plan: Plan, token_ids: NDArray[np.uint32]) -> None:
        self._plan = plan
        self.token_ids = token_ids

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)


class AheadRunner(CpuRunner):
    """The CPU backend as a GPU would be driven: three plans in flight, tokens kept by seat."""

    max_in_flight = 3

    def __init__(self, runner: CpuRunner, max_seqs: int) -> None:
        self.__dict__.update(runner.__dict__)
        self.last_tokens = np.full(max_seqs, UNKNOWN, np.uint32)
        self.unknown = 0

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computed:
        counts = np.diff(plan.query_start.astype(np.int64))
        last = self.last_tokens[np.repeat(plan.seats, counts)]
        token_ids = np.where(plan.token_ids == UNKNOWN, last, plan.token_ids).astype(np.uint32)
        assert UNKNOWN not in token_ids
        self.unknown += int((plan.token_ids == UNKNOWN).sum())
        filled: Any = PlanWithTokens(plan, token_ids)
        computed = super().start(filled, draws, kept)
        self.last_tokens[plan.seats[plan.sample_seqs]] = computed.result.tokens
        return computed


@pytest.fixture
def ahead(tiny_folder: Path) -> LLM:
    llm = LLM(tiny_folder, backend="cpu", num_blocks=64, record_digests=True)
    assert isinstance(llm.session.runner, CpuRunner)
    llm.session.runner = AheadRunner(llm.session.runner, llm.limits.max_seqs)
    return llm


def bits(llm: LLM, params: Sequence[SamplingParams] = PARAMS) -> list[Any]:
    outputs = llm.generate(prompt_token_ids=PROMPTS[: len(params)], sampling_params=list(params))
    return [[(sample.digests, sample.token_ids) for sample in o.outputs] for o in outputs]


def is_idle(llm: LLM) -> bool:
    stats = llm.stats()
    names = ("referenced_blocks", "plans", "running", "waiting")
    return not any(stats[name] for name in names)


def test_plans_in_flight_change_no_bit(tiny: LLM, ahead: LLM) -> None:
    assert bits(ahead) == bits(tiny)
    assert isinstance(ahead.session.runner, AheadRunner)
    assert ahead.session.runner.unknown > 0
    assert is_idle(ahead)


def test_a_draw_that_needs_every_token_waits_for_them(tiny: LLM, ahead: LLM) -> None:
    params = [PENALISED, GREEDY]
    assert bits(ahead, params) == bits(tiny, params)
    assert is_idle(ahead)


@pytest.mark.parametrize("nth", range(2, 12, 3))
@pytest.mark.parametrize("where", ["start", "_record", "_finish"])
def test_plans_that_were_run_and_then_cancelled_change_no_bit(
    tiny: LLM, ahead: LLM, monkeypatch: pytest.MonkeyPatch, where: str, nth: int
) -> None:
    """The seats' last tokens are those of cancelled plans: nothing may read them."""
    target: Any = ahead.session.runner if where == "start" else ahead.session
    original, calls = getattr(target, where), []

    def fail_once(*arguments: Any) -> Any:
        calls.append(1)
        result = original(*arguments) if where == "start" else None
        if len(calls) == nth:
            raise KeyboardInterrupt
        return result if where == "start" else original(*arguments)

    stream = ahead.generate_stream(prompt_token_ids=PROMPTS[1], sampling_params=PARAMS[1])
    chunks = [next(stream)]
    monkeypatch.setattr(target, where, fail_once)
    with pytest.raises(KeyboardInterrupt):
        ahead.generate(prompt_token_ids=PROMPTS[0], sampling_params=GREEDY)
    monkeypatch.undo()
    chunks += stream
    output = chunks[-1].output
    assert output is not None
    survived = output.outputs[0]
    want = tiny.generate(prompt_token_ids=PROMPTS[1], sampling_params=PARAMS[1])[0].outputs[0]
    if where == "_record":  # committed, and never handed out: it ended, and lost no bit until then
        assert survived.finish_reason == "abort"
        assert survived.digests == (want.digests or [])[: len(survived.token_ids)]
    else:
        assert survived.digests == want.digests
    assert is_idle(ahead)


def test_closing_a_stream_leaves_no_plan(ahead: LLM) -> None:
    stream = ahead.generate_stream(prompt_token_ids=PROMPTS[1], sampling_params=GREEDY)
    next(stream)
    assert ahead.stats()["plans"] > 0
    stream.close()
    assert is_idle(ahead)
