"""Real lack of memory, in a process whose address space is limited: an error that says what to do,
a state that stays whole, and the same bits once there is memory again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STARVED = Path(__file__).with_name("starved.py")


@pytest.fixture(scope="module")
def report(tiny_folder: Path) -> dict[str, Any]:
    """What `starved.py` saw. glibc is told to map what is large, and to give it back."""
    limits = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, STARVED, tiny_folder],
        env=os.environ | limits, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def test_a_pool_that_does_not_fit_is_refused(report: dict[str, Any]) -> None:
    assert report["pool"].startswith("ConfigError: not enough memory: ")
    assert "MiB could not be allocated: lower num_blocks" in report["pool"]


def test_a_step_without_memory_is_an_error_that_says_what_to_do(report: dict[str, Any]) -> None:
    assert report["request"].startswith("MemoryError: not enough memory: ")
    assert "MiB could not be allocated for a step: lower max_batched_tokens" in report["request"]
    assert report["idle"]


def test_steps_are_made_again_and_nothing_is_lost(report: dict[str, Any]) -> None:
    assert len(report["failures"]) >= 3, "each failure grows the limit by less than the step needs"
    assert all("could not be allocated for a step" in why for why in report["failures"])
    assert report["equal"] and report["equal_after"]
