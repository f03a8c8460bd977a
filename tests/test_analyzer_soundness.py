"""Random kernels that the analyzer calls proved are run in pairs of launches, bit for bit.

A single difference in a proved kernel is an unsound analyzer. PYVOSTI_SOUNDNESS sets how many
kernels are drawn (150 unless set); the search for a difference takes 12 pairs of launches each.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("triton")
pytest.importorskip("torch")
pytest.importorskip("z3")

from generated_kernels import GeneratedSpec, kernels
from pyvosti.analyzer.analyse import analyse
from pyvosti.analyzer.compiler import read_spec
from pyvosti.analyzer.contracts import Contract
from pyvosti.analyzer.replay.interpret import Task
from pyvosti.analyzer.replay.search import replayed
from pyvosti.analyzer.ttir import NotAnalysable

DRAWN = int(os.environ.get("PYVOSTI_SOUNDNESS", "150"))


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interpreter's process reads the generated kernels' class from this folder."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    yield


def drawn_kernels() -> dict[GeneratedSpec, Contract]:
    """Distinct kernels of the grammar."""
    found: dict[GeneratedSpec, Contract] = {}

    @settings(
        max_examples=DRAWN, database=None, deadline=None, derandomize=DRAWN == 150,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(kernels())
    def draw(kernel: tuple[GeneratedSpec, Contract]) -> None:
        found[kernel[0]] = kernel[1]

    draw()
    return found


def test_no_proved_kernel_has_two_launches_that_differ() -> None:
    verdicts: Counter[str] = Counter()
    proved, refuted = [], []
    for spec, contract in drawn_kernels().items():
        try:
            report = analyse(read_spec(spec)[1], contract)
        except NotAnalysable:
            verdicts["not analysable"] += 1
            continue
        verdicts[report.verdict] += 1
        task = Task(spec.text, spec, contract, None, 12)
        (proved if report.verdict == "proved" else refuted).append(task)
    wrong = [found for found in replayed(proved) if found["replayed"]]
    assert not wrong, f"{wrong[0]}\n{wrong[0]['name']}"
    shown = sum(found["replayed"] for found in replayed(refuted[:40]))
    print(verdicts, f"{shown} of {len(refuted[:40])} others shown to differ")
    # The test would be blind if hardly any kernel were proved, or no difference could be seen.
    assert verdicts["proved"] >= sum(verdicts.values()) // 8, verdicts
    assert shown >= len(refuted[:40]) // 3, shown
