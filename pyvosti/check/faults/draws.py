"""Faults of samplers and of the bookkeeping around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import Plan
from pyvosti.check.faults.runner import FaultyRunner, Rows, Step
from pyvosti.draw import Draw
from pyvosti.runner import Runner


class SeedByPlace(FaultyRunner):
    """Draws from one stream of noise for all, by place in the step."""

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """A request's noise depends on its place."""
        return [replace(draw, seed=draw.seed ^ place) for place, draw in enumerate(draws)]


class PenaltyLeak(FaultyRunner):
    """Applies the strongest penalty of the step to all that are drawn in it."""

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """A request without penalties is drawn with its neighbour's."""
        most = max((draw.repetition_penalty for draw in draws), default=1.0)
        return [replace(draw, repetition_penalty=most) for draw in draws]


class MaskLeak(FaultyRunner):
    """Adds each request's logit_bias to every row of the step: one mask, in place."""

    def spoil_rows(self, step: Step, logits: Rows) -> Rows:
        """A neighbour's banned token is banned for all."""
        for draw in step.draws:
            for token, bias in draw.logit_bias.items():
                logits[:, token] += np.float32(bias)
        return logits


class ProcessedLogits(FaultyRunner):
    """Gives logits as they are after the temperature."""

    def spoil_rows(self, step: Step, logits: Rows) -> Rows:
        """What is reported depends on how the request samples."""
        sampled = step.plan.query_start[step.plan.sample_seqs + 1].astype(np.int64) - 1
        for row, draw in zip(sampled.tolist(), step.draws, strict=True):
            for i in np.flatnonzero(step.rows == row):
                logits[i] /= np.float32(draw.temperature or 1.0)
        return logits


class MixedUp(FaultyRunner):
    """Hands the rows and tokens of a step to the next sequence over."""

    def spoil_rows(self, step: Step, logits: Rows) -> Rows:
        """One request gets another's."""
        rolled: Rows = np.roll(logits, 1, axis=0)
        return rolled

    def spoil_tokens(self, step: Step, tokens: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """One request gets another's."""
        return np.roll(tokens, 1)


class StaleRows(FaultyRunner):
    """Rows of a prompt are left as the buffer had them before."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.before: Rows | None = None

    def spoil_rows(self, step: Step, logits: Rows) -> Rows:
        """What is not sampled from keeps what the step before has written."""
        sampled = step.plan.query_start[step.plan.sample_seqs + 1].astype(np.int64) - 1
        given: Rows = logits.copy()
        if self.before is not None:
            stale = np.flatnonzero(~np.isin(step.rows, sampled))
            given[stale] = self.before[stale % len(self.before)]
        self.before = logits
        return given


class Resuming(FaultyRunner):
    """Knows which sequences are computed again after a preemption."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.computed: dict[int, int] = {}
        self.resumed: set[int] = set()

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """Looks for sequences that begin before where they were."""
        for k, sequence in enumerate(plan.seq_ids.tolist()):
            if int(plan.positions[plan.query_start[k]]) < self.computed.get(sequence, 0):
                self.resumed.add(sequence)
            self.computed[sequence] = int(plan.seq_lens[k])
        return draws


class NoiseRepeated(Resuming):
    """Starts the stream of noise elsewhere when a sequence is computed again."""

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """The sampler's state is not what it was before the preemption."""
        super().spoil_draws(plan, draws)
        owners = plan.seq_ids[plan.sample_seqs].tolist()
        return [
            replace(draw, position=draw.position + 1000) if owner in self.resumed else draw
            for owner, draw in zip(owners, draws, strict=True)
        ]


class TokenRepeated(Resuming):
    """Gives the last token before a preemption once more after it."""

    def spoil_tokens(self, step: Step, tokens: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The output's bookkeeping is off by one."""
        owners = step.plan.seq_ids[step.plan.sample_seqs].tolist()
        for i, (owner, draw) in enumerate(zip(owners, step.draws, strict=True)):
            if owner in self.resumed and len(draw.output):
                tokens[i] = draw.output[-1]
                self.resumed.discard(owner)
        return tokens


class HistoryForgotten(FaultyRunner):
    """Ignores repetition penalties."""

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """A parameter that is not plumbed through."""
        return [replace(draw, repetition_penalty=1.0) for draw in draws]


class SeedIgnored(FaultyRunner):
    """Draws with the same noise whatever the seed."""

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """A parameter that is not plumbed through."""
        return [replace(draw, seed=0) for draw in draws]
