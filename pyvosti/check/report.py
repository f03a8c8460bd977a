"""The battery's report as data, its file for resuming, and its summary in words."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyvosti.check.battery import Battery, Outcome, totals
from pyvosti.check.controls import Control
from pyvosti.check.engines import Engine
from pyvosti.check.observation import Observed
from pyvosti.errors import ConfigError


def make_report(
    engine: Engine, extent: str, outcomes: Sequence[Outcome], controls: Sequence[Control]
) -> dict[str, Any]:
    """Everything that is known, as plain JSON values; the summary comes first."""
    failed = sum(bool(control.failed) for control in controls)
    counts = totals(outcomes) | {"controls": len(controls), "controls_failed": failed}
    return {
        "summary": summary(engine.title, counts),
        "totals": counts | {"rows": sum(outcome.rows for outcome in outcomes)},
        "engine": {"title": engine.title} | engine.describe(),
        "extent": extent,
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "cells": [asdict(outcome) for outcome in outcomes],
        "controls": [asdict(control) for control in controls],
    }


def summary(title: str, counts: dict[str, int]) -> str:
    """One sentence; names what was not run before anything else."""
    skipped = counts["skipped"]
    said = [f"{skipped} of {counts['cells']} cells SKIPPED"] if skipped else []
    said.append(f"{counts['equal']} equal")
    for status in ("different", "failed", "blind"):
        if counts[status]:
            said.append(f"{counts[status]} {status.upper()}")
    if counts["controls"]:
        said.append(f"{counts['controls_failed']} of {counts['controls']} planted faults caught")
    return f"{title}: {', '.join(said)}"


def passed(counts: dict[str, int]) -> bool:
    """Whether every cell that was run is equal, one was, and every planted fault was caught."""
    ran = counts["cells"] - counts["skipped"]
    caught = counts["controls_failed"] == counts["controls"]
    return counts["equal"] == ran > 0 and caught


def last_line(counts: dict[str, int]) -> str:
    """What `--json` ends with."""
    names = ("cells", "equal", "skipped", "controls", "controls_failed")
    return json.dumps({name: counts[name] for name in names})


class Progress:
    """What has been run, in a file, so that the rest can be run later."""

    def __init__(self, path: Path | None, engine: Engine, extent: str) -> None:
        self.path = path
        self.settings = {"engine": engine.title, "extent": extent} | engine.describe()

    def load(self, battery: Battery) -> list[Control]:
        """Takes over what the file holds; returns the controls in it.

        Raises ConfigError when it is not a battery's file, or one of another engine.
        """
        if self.path is None or not self.path.exists():
            return []
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if data["settings"] != self.settings:
                raise ConfigError(
                    f"{self.path} holds the results of {data['settings']}, not of {self.settings}: "
                    "name another file"
                )
            for key, samples in data["alone"].items():
                battery.alone[key] = [Observed.from_dict(sample) for sample in samples]
            battery.outcomes = {item["cell"]: Outcome(**item) for item in data["cells"]}
            return [Control(**item) for item in data["controls"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{self.path} is no file to resume from: {error}") from None

    def save(self, battery: Battery, controls: Sequence[Control]) -> None:
        """Writes the file anew, all or nothing."""
        if self.path is None:
            return
        data = {
            "settings": self.settings,
            "alone": {k: [s.to_dict() for s in v] for k, v in battery.alone.items()},
            "cells": [asdict(outcome) for outcome in battery.outcomes.values()],
            "controls": [asdict(control) for control in controls],
        }
        half = self.path.with_suffix(self.path.suffix + ".part")
        half.write_text(json.dumps(data), encoding="utf-8")
        half.replace(self.path)
