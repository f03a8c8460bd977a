"""All cells of the battery, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from pyvosti._core import cpu_isas
from pyvosti.check.cells import batch, cache, rows
from pyvosti.check.requests import Requests
from pyvosti.check.scenario import Cell
from pyvosti.errors import RequestError

EXTENTS = {"quick": (16, 120, 64), "full": (256, 600, 2048)}
"""Outputs of a watched request; tokens of the long context; outputs of the long request."""


def make_requests(ids: Sequence[int], page: int, extent: str) -> Requests:
    """The requests of an extent, for a model whose text has these token ids."""
    return Requests(tuple(ids), page, *EXTENTS[extent])


def make_cells(requests: Requests, extent: str) -> list[Cell]:
    """Every cell of an extent, in the order in which they are run."""
    full = extent == "full"
    kinds = (
        batch.neighbour_cells, batch.crowd_cells, batch.place_cells, batch.joining_cells,
        rows.chunk_cells,
        cache.length_cells, cache.hit_cells, cache.preemption_cells, cache.page_cells,
        rows.prefill_cells, batch.flight_cells, batch.arrival_cells, batch.sampler_cells,
        rows.long_cells, rows.repeat_cells,
    )  # fmt: skip
    cells = [cell for kind in kinds for cell in kind(requests, full)]
    cells += rows.machine_cells(requests, full, cpu_isas())
    assert len({cell.name for cell in cells}) == len(cells)
    return cells


def select_cells(cells: Iterable[Cell], patterns: Sequence[str]) -> list[Cell]:
    """Those whose name or group a pattern (as of a shell) matches; all when there is none.

    Raises RequestError for a pattern that matches none.
    """
    cells = list(cells)
    chosen: set[str] = set()
    for pattern in patterns:
        found = [c.name for c in cells if any(fnmatchcase(n, pattern) for n in (c.name, c.group))]
        if not found:
            names = ", ".join(cell.name for cell in cells)
            raise RequestError(f"no cell is called {pattern!r}; there are: {names}")
        chosen.update(found)
    return [cell for cell in cells if not patterns or cell.name in chosen]
