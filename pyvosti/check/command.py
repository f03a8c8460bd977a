"""`pyvosti check`: the command line of the battery."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from pyvosti import certified
from pyvosti.check.battery import Battery, Outcome
from pyvosti.check.cells import make_cells, make_requests, select_cells
from pyvosti.check.controls import Control, run_controls
from pyvosti.check.display import Display, print_findings
from pyvosti.check.engines import Engine
from pyvosti.check.engines.own import OwnEngine
from pyvosti.check.explain import explain
from pyvosti.check.page import make_page
from pyvosti.check.report import Progress, last_line, make_report, passed
from pyvosti.check.scenario import Cell
from pyvosti.errors import ConfigError


class Settings(NamedTuple):
    """What the command line says."""

    model: str
    backend: str
    extent: str
    cells: Sequence[str] = ()
    resume: Path | None = None
    minutes: float | None = None
    threads: int | None = None
    engine: str = "pyvosti"
    server: str | None = None
    dtype: str = "float32"
    controls: bool = True
    allow_uncertified: bool = False
    json: bool = False
    report: Path | None = None
    html: Path | None = None

    def repeat(self, cell: str) -> str:
        """The command that runs one cell again."""
        words = ["pyvosti", "check", "--model", self.model, f"--{self.extent}", "--cells", cell]
        if self.server is not None:
            words += ["--server", self.server]
        elif self.engine != "pyvosti":
            words += ["--engine", self.engine, "--dtype", self.dtype]
        else:
            words += ["--backend", self.backend, "--no-controls"]
            words += ["--allow-uncertified"] if self.allow_uncertified else []
        return shlex.join(words)


def run(settings: Settings) -> int:
    """Runs the battery, prints and writes what came out; the process's exit code.

    0: every cell that was run is equal and every planted fault was caught; 1: not so.
    Raises ConfigError or RequestError for settings that cannot be.
    """
    _check_files(settings)
    engine = make_engine(settings)
    requests = make_requests(engine.prompt_ids(), engine.page, settings.extent)
    cells = select_cells(make_cells(requests, settings.extent), settings.cells)
    battery = Battery(engine, explain)
    progress = Progress(settings.resume, engine, settings.extent)
    controls = progress.load(battery)
    outcomes = _run_cells(settings, battery, cells, progress, controls)
    own = isinstance(engine, OwnEngine) and settings.controls
    if own and not controls and not settings.cells:
        controls = run_controls(engine)  # type: ignore[arg-type]
        progress.save(battery, controls)
    report = make_report(engine, settings.extent, outcomes, controls)
    _write(settings, report)
    console = Console(stderr=settings.json)
    console.print(report["summary"], markup=False, highlight=False, soft_wrap=True)
    print_findings(console, outcomes, controls)
    if settings.json:
        for outcome in report["cells"]:
            sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.write(last_line(report["totals"]) + "\n")
    return 0 if passed(report["totals"]) else 1


def make_engine(settings: Settings) -> Engine:
    """The engine under test. Raises ConfigError when there is no such engine."""
    if settings.server is not None:
        from pyvosti.check.engines.server import ServerEngine

        return ServerEngine(settings.server, settings.model)
    if settings.engine == "transformers":
        from pyvosti.check.engines.hf import TransformersEngine

        return TransformersEngine(settings.model, settings.dtype, settings.threads)
    if settings.engine != "pyvosti":
        raise ConfigError(f"engine must be pyvosti or transformers, not {settings.engine!r}")
    if settings.allow_uncertified:
        certified.allow_uncertified("it was asked for")
    return OwnEngine(settings.model, settings.backend, threads=settings.threads)


def _run_cells(
    settings: Settings,
    battery: Battery,
    cells: Sequence[Cell],
    progress: Progress,
    controls: Sequence[Control],
) -> list[Outcome]:
    """Runs what is not known yet, as long as there is time for it."""
    end = None if settings.minutes is None else time.monotonic() + 60 * settings.minutes
    known = dict(battery.outcomes)
    outcomes: list[Outcome] = []
    with Display(battery.engine.title, len(cells)) as display:
        display.doing("each request alone")
        battery.prepare(cells)
        progress.save(battery, controls)
        for cell in cells:
            outcome = known.get(cell.name)
            if outcome is None and end is not None and time.monotonic() > end:
                reason = f"not reached in {settings.minutes:g} minutes; --resume goes on"
                outcome = battery.skip(cell, reason)
                del battery.outcomes[cell.name]
            elif outcome is None:
                display.doing(f"{cell.name}: {cell.says}")
                outcome = battery.run(cell)
                if outcome.difference is not None:
                    outcome.difference["repeat"] = settings.repeat(cell.name)
                progress.save(battery, controls)
            outcomes.append(outcome)
            display.take(outcome)
    return outcomes


def _check_files(settings: Settings) -> None:
    """Raises ConfigError for a file that could not be written in the end."""
    for file in (settings.resume, settings.report, settings.html):
        if file is None:
            continue
        written = file if file.exists() else file.parent
        if file.is_dir() or not os.access(written, os.W_OK):
            raise ConfigError(f"{file} cannot be written: it or its folder must be writable")


def _write(settings: Settings, report: dict[str, object]) -> None:
    if settings.report is not None:
        settings.report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if settings.html is not None:
        settings.html.write_text(make_page(report), encoding="utf-8")
