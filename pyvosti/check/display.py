"""What is shown while the battery runs: a live table, or a line for each cell."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pyvosti.check.battery import Outcome, Status
from pyvosti.check.controls import Control

MARKS: dict[Status, tuple[str, str]] = {
    "equal": ("■", "green"), "different": ("✗", "bold red"), "failed": ("!", "bold magenta"),
    "blind": ("?", "yellow"), "skipped": ("·", "dim"),
}  # fmt: skip


class Display:
    """Shows each outcome on stderr, as a table on a terminal and as lines elsewhere."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total = title, total
        self.console = Console(stderr=True)
        self.outcomes: list[Outcome] = []
        self.status = "starting"
        self._live = Live(
            get_renderable=self._table, console=self.console, transient=False,
            refresh_per_second=4,
        )  # fmt: skip

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.status = "stopped" if kind else "done"
        if self.console.is_terminal:
            self._live.stop()

    def doing(self, what: str) -> None:
        """Says what is being run."""
        self.status = what

    def take(self, outcome: Outcome) -> None:
        """Adds an outcome."""
        self.outcomes.append(outcome)
        if not self.console.is_terminal:
            told = f": {outcome.reason}" if outcome.reason else ""
            self.console.print(
                f"{outcome.cell}: {outcome.status}, {outcome.rows} rows, {outcome.seconds} s{told}",
                markup=False, highlight=False, soft_wrap=True,
            )  # fmt: skip

    def _table(self) -> Table:
        table = Table(title=self.title, caption=self.status, title_justify="left")
        table.add_column("variation")
        table.add_column(f"{len(self.outcomes)} of {self.total} cells", min_width=36)
        groups: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            groups.setdefault(outcome.group, []).append(outcome)
        for group, members in groups.items():
            line = Text()
            for outcome in members:
                line.append(*MARKS[outcome.status])
            table.add_row(group, line)
        return table


def print_findings(
    console: Console, outcomes: Iterable[Outcome], controls: Iterable[Control]
) -> None:
    """Differences with all that is known of them, then skipped cells by reason."""
    skipped: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.difference is not None:
            console.print(_difference(outcome), markup=False, highlight=False, soft_wrap=True)
        elif outcome.status in ("failed", "blind"):
            console.print(
                f"{outcome.cell}: {outcome.status.upper()}: {outcome.reason}",
                markup=False, highlight=False, soft_wrap=True,
            )  # fmt: skip
        elif outcome.status == "skipped":
            skipped.setdefault(str(outcome.reason), []).append(outcome.cell)
    for reason, cells in skipped.items():
        console.print(
            f"skipped: {', '.join(cells)}: {reason}", markup=False, highlight=False, soft_wrap=True
        )
    for control in controls:
        if not control.failed:
            console.print(f"planted fault {control.name} was NOT caught", markup=False)


def _difference(outcome: Outcome) -> str:
    found: dict[str, Any] = outcome.difference or {}
    output = "" if found["output"] is None else f" (output {found['output']})"
    lines = [
        f"{outcome.cell}: DIFFERENT: {outcome.says}: {found['kind']} of request "
        f"{found['watched']} at position {found['position']}{output}"
    ]
    lines += [
        f"    {name}: {found[name]}" for name in ("bits", "layer", "repeat") if found.get(name)
    ]
    return "\n".join(lines)
