"""A runner with a mistake in it: in what it reads, in what it gives, or in how it draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import Plan
from pyvosti.draw import Draw
from pyvosti.runner import Computing, Result, Runner

Rows = NDArray[np.float32]


class Step(NamedTuple):
    """What a fault may look at: the plan, its draws, and which rows of logits are given."""

    plan: Plan
    draws: Sequence[Draw]
    rows: NDArray[np.int64]
    """i64[K]: rows of the plan whose logits are given."""

    @property
    def owners(self) -> NDArray[np.int64]:
        """i64[K]: the sequence of each row."""
        return np.searchsorted(self.plan.query_start, self.rows, side="right") - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """i64[S]: rows of each sequence."""
        return np.diff(self.plan.query_start.astype(np.int64))

    @property
    def begins(self) -> NDArray[np.int64]:
        """i64[K]: the first row of each row's sequence."""
        return self.plan.query_start.astype(np.int64)[self.owners]


class Spoiled(NamedTuple):
    """A step whose result is changed on the way out."""

    computing: Computing
    runner: FaultyRunner
    step: Step

    def wait(self) -> Result:
        """The result with the fault in it."""
        result = self.computing.wait()
        tokens = self.runner.spoil_tokens(self.step, result.tokens.copy())
        if len(self.step.rows) == 0:
            return Result(tokens, result.logits)
        return Result(tokens, self.runner.spoil_rows(self.step, result.logits.copy()))


class FaultyRunner:
    """A runner with a mistake; this one has none."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.num_blocks, self.max_in_flight = runner.num_blocks, runner.max_in_flight

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Starts the plan; the fault is in what is asked for, or in what comes back."""
        computing = self.begin(plan, self.spoil_draws(plan, draws), kept)
        step = Step(plan, draws, plan.logits_rows[kept].astype(np.int64))
        return Spoiled(computing, self, step)

    def begin(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Gives the plan to the runner behind."""
        return self.runner.start(plan, draws, kept)

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """The draws that are made instead."""
        return draws

    def spoil_tokens(self, step: Step, tokens: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The tokens u32[N] that are given instead."""
        return tokens

    def spoil_rows(self, step: Step, logits: Rows) -> Rows:
        """The logits f32[K, vocab] that are given instead."""
        return logits
