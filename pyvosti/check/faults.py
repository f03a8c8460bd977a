"""Planted faults: pyvosti with one mistake that other engines have made. Each must be caught.

A battery that reports no difference is worth as much as the faults that it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import Plan
from pyvosti.check.disturbance import DisturbedRunner, start_with_tables
from pyvosti.draw import Draw
from pyvosti.limits import DEFAULTS
from pyvosti.runner import Computing, CpuRunner, Result, Runner

Rows = NDArray[np.float32]


class Spoiled(NamedTuple):
    """A step whose result is changed on the way out."""

    computing: Computing
    runner: FaultyRunner
    plan: Plan
    kept: NDArray[np.bool_]

    def wait(self) -> Result:
        """The result with the fault in it."""
        result = self.computing.wait()
        plan_rows = self.plan.logits_rows[self.kept].astype(np.int64)
        if len(plan_rows) == 0:
            return result
        return Result(
            result.tokens, self.runner.spoil_rows(self.plan, plan_rows, result.logits.copy())
        )


class FaultyRunner:
    """A runner with a mistake in its logits or in its draws."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.num_blocks, self.max_in_flight = runner.num_blocks, runner.max_in_flight

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Starts the plan; the fault is in what it gives."""
        return Spoiled(self.begin(plan, self.spoil_draws(plan, draws), kept), self, plan, kept)

    def begin(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Gives the plan to the runner behind."""
        return self.runner.start(plan, draws, kept)

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """The draws that are made instead."""
        return draws

    def spoil_rows(self, plan: Plan, rows: NDArray[np.int64], logits: Rows) -> Rows:
        """The logits f32[K, vocab] that are given instead, of these K rows of the plan."""
        return logits


class SumByBatch(FaultyRunner):
    """Subtracts each row's mean, summed in as many parts as the step has rows."""

    def spoil_rows(self, plan: Plan, rows: NDArray[np.int64], logits: Rows) -> Rows:
        """The mean's last bits depend on who else is there."""
        return logits - split_mean(logits, len(plan.token_ids))[:, np.newaxis]


class SumByChunk(FaultyRunner):
    """Subtracts each row's mean, in parts counted from where the row's chunk begins."""

    def spoil_rows(self, plan: Plan, rows: NDArray[np.int64], logits: Rows) -> Rows:
        """The mean's last bits depend on what was cached, or computed in another step."""
        owners = np.searchsorted(plan.query_start, rows, side="right") - 1
        begins = plan.query_start.astype(np.int64)[owners]
        for i, (row, begin) in enumerate(zip(rows.tolist(), begins.tolist(), strict=True)):
            logits[i] -= split_mean(logits[i : i + 1], row - begin + 1)
        return logits


class ScaleByBatch(FaultyRunner):
    """Rounds logits to 2**12 steps of the largest in the step: one scale for a batch."""

    def spoil_rows(self, plan: Plan, rows: NDArray[np.int64], logits: Rows) -> Rows:
        """A neighbour with a large value makes the steps coarser for all."""
        scale = np.float32(np.abs(logits).max() / 2**12)
        scaled: Rows = np.rint(logits / scale) * scale
        return scaled


class Unordered(FaultyRunner):
    """Adds in another order each time, as atomic additions do."""

    steps = 0

    def spoil_rows(self, plan: Plan, rows: NDArray[np.int64], logits: Rows) -> Rows:
        """The mean's last bits depend on how many steps this process has done."""
        Unordered.steps += 1
        return logits - split_mean(logits, 2 + Unordered.steps % 61)[:, np.newaxis]


class SeedByPlace(FaultyRunner):
    """Draws from one stream of noise for all, by place in the step."""

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """A request's noise depends on its place."""
        return [replace(draw, seed=draw.seed + place) for place, draw in enumerate(draws)]


class PenaltyLeak(FaultyRunner):
    """Applies the first request's penalties to all that are drawn with it."""

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """A request without penalties is drawn with its neighbour's."""
        most = max((draw.repetition_penalty for draw in draws), default=1.0)
        return [replace(draw, repetition_penalty=most) for draw in draws]


class ForgetsOnResume(FaultyRunner):
    """Starts the stream of noise again when a sequence is computed again."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.computed: dict[int, int] = {}
        self.resumed: set[int] = set()

    def spoil_draws(self, plan: Plan, draws: Sequence[Draw]) -> Sequence[Draw]:
        """A preempted request repeats its first noise."""
        for k, sequence in enumerate(plan.seq_ids.tolist()):
            if int(plan.positions[plan.query_start[k]]) < self.computed.get(sequence, 0):
                self.resumed.add(sequence)
            self.computed[sequence] = int(plan.seq_lens[k])
        owners = plan.seq_ids[plan.sample_seqs].tolist()
        return [
            replace(draw, position=draw.position + 1000) if owner in self.resumed else draw
            for owner, draw in zip(owners, draws, strict=True)
        ]


class WrongPage(FaultyRunner):
    """Takes two pages of a sequence for each other, when it is not alone in the step."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.tables: list[NDArray[np.uint32]] = []

    def begin(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Rows read keys and values of other positions."""
        behind = self.runner.runner if isinstance(self.runner, DisturbedRunner) else self.runner
        if not self.tables:
            self.tables = [np.zeros(_table_shape(behind), np.uint32) for _ in self.num_blocks]
        for table, (seats, indices, blocks) in zip(self.tables, plan.table_updates, strict=True):
            table[seats, indices] = blocks
        seen = [table.copy() for table in self.tables]
        first = plan.positions[plan.query_start[:-1]]
        past = plan.seats[first >= 2 * _page(behind)]
        if len(plan.seats) > 1:
            seen[0][past, 0], seen[0][past, 1] = seen[0][past, 1], seen[0][past, 0]
        return start_with_tables(behind, seen, plan, draws, kept)


class Fault(NamedTuple):
    """A planted fault and the cells that must show it."""

    name: str
    says: str
    make: type[FaultyRunner]
    cells: tuple[str, ...]


FAULTS = (
    Fault("sum-by-batch", "a sum split by the rows of the step", SumByBatch, ("neighbours-7",)),
    Fault("sum-by-chunk", "a sum split from the chunk's start", SumByChunk,
          ("hit-half", "chunks-48", "prefill-whole")),
    Fault("scale-by-batch", "one scale for a step's rows", ScaleByBatch, ("order-together",)),
    Fault("unordered-sum", "another order of adding each time", Unordered, ("repeat-step",)),
    Fault("seed-by-place", "noise by place in the step", SeedByPlace, ("order-reversed",)),
    Fault("penalty-leak", "penalties of a neighbour", PenaltyLeak, ("samplers-0",)),
    Fault("noise-repeated", "noise starts again after preemption", ForgetsOnResume,
          ("preempted-at-8",)),
    Fault("wrong-page", "two pages of a sequence exchanged", WrongPage, ("prefill-beside-9",)),
)  # fmt: skip


def split_mean(logits: Rows, parts: int) -> NDArray[np.float32]:
    """f32[K]: the mean of each row f32[vocab], its sum taken in so many parts."""
    sums = [part.sum(axis=1) for part in np.array_split(logits, parts, axis=1)]
    total = np.zeros(len(logits), np.float32)
    for part in sums:
        total += part
    mean: NDArray[np.float32] = total / np.float32(logits.shape[1])
    return mean


def _page(runner: Any) -> int:
    return DEFAULTS["cpu"][0] if isinstance(runner, CpuRunner) else runner.schedule.shape.page


def _table_shape(runner: Any) -> tuple[int, int]:
    on_cpu = isinstance(runner, CpuRunner)
    table = runner.tables.arrays[0] if on_cpu else runner.buffers["tables.0"]
    return int(table.shape[0]), int(table.shape[1])
