"""Faults of paging: rows read keys and values that are not theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import Plan
from pyvosti.check.disturbance import DisturbedRunner, start_with_tables
from pyvosti.check.faults.runner import FaultyRunner
from pyvosti.draw import Draw
from pyvosti.limits import DEFAULTS
from pyvosti.runner import Computing, CpuRunner, Runner

Table = NDArray[np.uint32]
Indices = NDArray[np.uint32]


class WrongTables(FaultyRunner):
    """Reads through block tables that are wrong for pages which have been written before."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.tables: list[Table] = []

    def begin(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Starts the plan with wrong tables."""
        behind = self.runner.runner if isinstance(self.runner, DisturbedRunner) else self.runner
        if isinstance(self.runner, DisturbedRunner):
            self.runner.prepare(plan)
        if not self.tables:
            self.tables = [np.zeros(_table_shape(behind), np.uint32) for _ in self.num_blocks]
        for table, (seats, indices, blocks) in zip(self.tables, plan.table_updates, strict=True):
            table[seats, indices] = blocks
        seen = [table.copy() for table in self.tables]
        first = plan.positions[plan.query_start[:-1]]
        whole = first // _page(behind)
        if len(plan.seats) > 1:
            self.spoil_table(seen[0], plan.seats[whole >= 2], whole[whole >= 2] - 1)
        return start_with_tables(behind, seen, plan, draws, kept)

    def spoil_table(self, table: Table, seats: Indices, newest: Indices) -> None:
        """Changes the table of the first layer group for sequences of two whole pages or more.

        `newest`: of each, the last whole page, which any window shows.
        """


class WrongPage(WrongTables):
    """Takes two pages of a sequence for each other, when it is not alone in the step."""

    def spoil_table(self, table: Table, seats: Indices, newest: Indices) -> None:
        """Keys and values of other positions."""
        older = table[seats, newest - 1]
        table[seats, newest - 1] = table[seats, newest]
        table[seats, newest] = older


class FreePage(WrongTables):
    """Reads the pool's last page, which holds nothing, when it is not alone in the step."""

    def spoil_table(self, table: Table, seats: Indices, newest: Indices) -> None:
        """Keys and values that nobody has written, or somebody else has."""
        table[seats, newest] = self.num_blocks[0] - 1


def _page(runner: Any) -> int:
    return DEFAULTS["cpu"][0] if isinstance(runner, CpuRunner) else runner.schedule.shape.page


def _table_shape(runner: Any) -> tuple[int, int]:
    on_cpu = isinstance(runner, CpuRunner)
    table = runner.tables.arrays[0] if on_cpu else runner.buffers["tables.0"]
    return int(table.shape[0]), int(table.shape[1])
