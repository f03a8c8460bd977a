"""Runs the planted faults. A control that fails no cell shows that the battery is blind there."""

from __future__ import annotations

from dataclasses import dataclass

from pyvosti.check.battery import Battery
from pyvosti.check.cells import make_cells, select_cells
from pyvosti.check.engines.own import OwnEngine
from pyvosti.check.faults import FAULTS, Fault
from pyvosti.check.requests import Requests

OUTPUTS = 12
"""A control needs few rows: a fault shows in the first ones, or the cell is of no use."""


@dataclass
class Control:
    """What became of a planted fault."""

    name: str
    says: str
    cells: list[str]
    """The cells that were run on it."""
    failed: list[str]
    """Those that showed it: none, and the battery has failed."""


def run_control(engine: OwnEngine, fault: Fault) -> Control:
    """Runs the fault's cells on the faulty engine, until one shows it."""
    requests = Requests(tuple(engine.prompt_ids()), engine.page, OUTPUTS, 4 * engine.page, 80)
    control = Control(fault.name, fault.says, [], [])
    own, engine.wrapper = engine.wrapper, fault.make
    battery = Battery(engine)
    try:
        for cell in select_cells(make_cells(requests, "quick"), fault.cells):
            outcome = battery.run(cell)
            control.cells.append(cell.name)
            if outcome.status == "different":
                control.failed.append(cell.name)
                break
    finally:
        engine.wrapper = own
    return control


def run_controls(engine: OwnEngine) -> list[Control]:
    """All of them."""
    return [run_control(engine, fault) for fault in FAULTS]
