"""Runs cells on an engine and judges them: each watched row against the row of the request alone.

The requests alone are run first, in one go for all cells, and remembered as fingerprints; so are
the results of cells. A report file holds both, so that a long battery can be run in pieces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pyvosti.check.engines import Engine, lacks, lone_cell
from pyvosti.check.observation import (
    Difference,
    Observed,
    changed_outputs,
    compared_rows,
    first_difference,
)
from pyvosti.check.scenario import Arrival, Cell, Job
from pyvosti.errors import PyvostiError

Status = Literal["equal", "different", "failed", "skipped", "blind"]
"""`failed`: the engine raised an exception. `blind`: the run was not what the cell claims, or gave
no row, so it shows nothing."""
STATUSES: tuple[Status, ...] = ("equal", "different", "failed", "blind", "skipped")

Explain = Callable[[Engine, Cell, Cell, Difference], dict[str, Any]]
"""Takes the engine, the cell, the lone cell that it differs from, and where: what to print."""


@dataclass
class Outcome:
    """What became of a cell."""

    cell: str
    group: str
    says: str
    status: Status
    rows: int = 0
    """Rows of logits that were compared."""
    outputs_changed: int = 0
    """Samples whose tokens differ, not only bits of their logits."""
    seconds: float = 0.0
    reason: str | None = None
    """Why it was skipped, failed or blind."""
    difference: dict[str, Any] | None = None


class Battery:
    """The cells of one engine."""

    def __init__(self, engine: Engine, explain: Explain | None = None) -> None:
        self.engine = engine
        self.explain = explain
        self.alone: dict[str, list[Observed]] = {}
        """Key of a job -> its samples when it ran alone."""
        self.outcomes: dict[str, Outcome] = {}

    def prepare(self, cells: Iterable[Cell]) -> None:
        """Runs alone, in one go, every request that the cells compare with and that is new."""
        for cell in cells:
            if lacks(self.engine, cell) is None and cell.name not in self.outcomes:
                for arrival in cell.watched:
                    if lacks(self.engine, lone_cell(arrival.baseline)) is None:
                        self._alone(arrival.baseline)

    def run(self, cell: Cell) -> Outcome:
        """Runs a cell, unless there is a reason not to, and keeps what became of it."""
        start = time.monotonic()
        outcome = Outcome(cell.name, cell.group, cell.says, "skipped")
        outcome.reason = lacks(self.engine, cell)
        if outcome.reason is None:
            try:
                self._judge(cell, outcome)
            except (PyvostiError, NotImplementedError) as error:
                outcome.status, outcome.reason = "skipped", str(error)
            except Exception as error:  # the engine's own: a result, and the battery goes on
                outcome.status, outcome.reason = "failed", f"{type(error).__name__}: {error}"
                self.engine.close()
        outcome.seconds = round(time.monotonic() - start, 2)
        self.outcomes[cell.name] = outcome
        return outcome

    def skip(self, cell: Cell, reason: str) -> Outcome:
        """Notes that a cell was not run."""
        outcome = Outcome(cell.name, cell.group, cell.says, "skipped", reason=reason)
        self.outcomes[cell.name] = outcome
        return outcome

    def _judge(self, cell: Cell, outcome: Outcome) -> None:
        alone = [self._alone(arrival.baseline) for arrival in cell.watched]
        resolved = self.resolve(cell)
        sighting = self.engine.observe(resolved)
        for arrival, samples in zip(resolved.watched, sighting.samples, strict=True):
            if arrival.rows_only:
                for sample in samples:
                    sample.tokens, sample.wanted = [], 0
        outcome.rows = compared_rows(alone, sighting.samples)
        found = first_difference(alone, sighting.samples)
        if found is not None:
            outcome.status = "different"
            outcome.outputs_changed = changed_outputs(alone, sighting.samples)
            outcome.difference = self._describe(resolved, found)
        elif sighting.trouble is not None or outcome.rows == 0:
            outcome.status = "blind"
            outcome.reason = sighting.trouble or "no row of logits could be compared"
        else:
            outcome.status = "equal"

    def resolve(self, cell: Cell) -> Cell:
        """The cell with the outputs that it prefills written into the prompts."""

        def forced(arrival: Arrival) -> Arrival:
            if not arrival.forced:
                return arrival
            job = arrival.baseline
            outputs = self._alone(job)[0].tokens[: arrival.forced]
            own = replace(arrival.job, prompt=job.prompt + tuple(outputs))
            return replace(arrival, job=own, against=job, forced=0)

        phases = tuple(tuple(forced(arrival) for arrival in phase) for phase in cell.phases)
        return replace(cell, phases=phases)

    def _alone(self, job: Job) -> list[Observed]:
        if job.key not in self.alone:
            cell = lone_cell(job)
            reason = lacks(self.engine, cell)
            if reason is not None:
                raise NotImplementedError(reason)
            self.alone[job.key] = self.engine.observe(cell).samples[0]
        return self.alone[job.key]

    def _describe(self, cell: Cell, found: Difference) -> dict[str, Any]:
        arrival = cell.watched[found.watched]
        output = found.position - (len(arrival.baseline.prompt) - 1)
        where = found._asdict() | {"output": output if output >= 0 else None}
        if self.explain is not None:
            where |= self.explain(self.engine, cell, lone_cell(arrival.baseline), found)
        return where


def totals(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many cells there are, and how many of each status."""
    counts = {"cells": len(outcomes)}
    for status in STATUSES:
        counts[status] = sum(outcome.status == status for outcome in outcomes)
    return counts
