"""A short soak; `just soak` is the long one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import soak
from pyvosti.check.faults import FAULTS

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("soak") / "model"
    soak.two_layers(folder)
    return str(folder)


def test_b34_random_requests_give_what_they_give_alone(model: str) -> None:
    result = soak.soak(model, 400)
    assert result["fine"], result
    assert result["preemptions"] > 50 and result["hits"] > 50 and result["aborted"] > 20, result
    assert result["finished"] + result["aborted"] == 400


@pytest.mark.parametrize("name", ["sum-by-batch", "wrong-page", "seed-by-place"])
def test_the_soak_sees_a_planted_fault(
    model: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fault,) = [fault for fault in FAULTS if fault.name == name]
    start = soak.Soak.run

    def run(self: soak.Soak, todo: list[soak.Plan]) -> Any:
        self.llm.session.runner = fault.make(self.llm.session.runner)
        return start(self, todo)

    monkeypatch.setattr(soak.Soak, "run", run)
    result = soak.soak(model, 60)
    assert result["differ"] > 0 and not result["fine"]


def test_memory_is_measured(tmp_path: Path) -> None:
    before = soak.resident()
    block = bytearray(b"x" * (64 << 20))
    assert soak.resident() - before > soak.GROWTH
    del block
