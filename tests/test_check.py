"""`pyvosti check`: its cells hold on tiny models, its faults are caught, its reports say so.

What each kind of comparison and each file can get wrong is tried out on its own; that the cells
themselves can fail is what the planted faults show.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from pyvosti import ConfigError, RequestError, SamplingParams
from pyvosti._core import Plan
from pyvosti.check.battery import Battery
from pyvosti.check.cells import EXTENTS, make_cells, make_requests, select_cells
from pyvosti.check.controls import run_control
from pyvosti.check.engines import lacks, lone_cell
from pyvosti.check.engines.own import OwnEngine
from pyvosti.check.explain import explain
from pyvosti.check.faults import FAULTS, Fault, sums
from pyvosti.check.faults.runner import FaultyRunner
from pyvosti.check.observation import Observed, first_difference
from pyvosti.check.report import Progress, passed
from pyvosti.check.scenario import Arrival, Cell, Job
from pyvosti.cli import app
from pyvosti.draw import Draw
from pyvosti.runner import Computing, CpuRunner
from tiny_models import FAMILIES, save_tiny_model

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture(scope="module")
def windows_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Layer 0 sees everything, layers 1 and 2 a window: two groups of layers."""
    folder = tmp_path_factory.mktemp("tiny") / "windows"
    save_tiny_model(FAMILIES["qwen2-windows"], folder)
    return folder


@pytest.fixture(scope="module")
def engine(tiny_folder: Path) -> OwnEngine:
    return OwnEngine(str(tiny_folder), "cpu", threads=2)


def quick_cells(engine: OwnEngine, *names: str) -> list[Cell]:
    requests = make_requests(engine.prompt_ids(), engine.page, "quick")
    return select_cells(make_cells(requests, "quick"), names)


@pytest.mark.parametrize(("family", "page"), [("qwen3", 16), ("windows", 16), ("qwen3", 64)])
def test_every_cell_is_equal(
    family: str, page: int, tiny_folder: Path, windows_folder: Path
) -> None:
    """64 is the page of the GPU backend: its cells are tried out here."""
    folder = tiny_folder if family == "qwen3" else windows_folder
    battery = Battery(OwnEngine(str(folder), "cpu", threads=2, page=page), explain)
    for cell in quick_cells(battery.engine):  # type: ignore[arg-type]
        outcome = battery.run(cell)
        if lacks(battery.engine, cell) is None:
            assert outcome.status == "equal", outcome
            assert outcome.rows > 0
        else:
            assert outcome.status == "skipped" and outcome.reason
    skipped = {name for name, o in battery.outcomes.items() if o.status == "skipped"}
    gpu = ("graphs-off", "padding-2", "padding-8", "padding-33", "strict-kernels", "one-in-flight")
    assert skipped == set(gpu)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_fault_is_caught(engine: OwnEngine, fault: Fault) -> None:
    assert run_control(engine, fault).failed
    assert engine.wrapper is None


def test_a_sum_in_a_fixed_order_is_no_fault(engine: OwnEngine) -> None:
    fixed = Fault("fixed", "a sum in four parts", sums.SplitSum, ("neighbours-7", "chunks-48"))
    assert run_control(engine, fixed).failed == []


def test_the_list_of_the_issue_is_there(engine: OwnEngine) -> None:
    requests = make_requests(engine.prompt_ids(), engine.page, "full")
    names = {cell.name for cell in make_cells(requests, "full")}
    assert EXTENTS["full"][0] >= 256 and EXTENTS["full"][2] >= 2000
    for wanted in (
        *(f"neighbours-{n}" for n in (1, 7, 63, 255, 256, 299)),
        *(f"place-{n}" for n in range(8)),
        *(f"prefill-beside-{n}" for n in (1, 9, 10, 129)),
        *(f"chunks-{n}" for n in (1, 7, 48, 64, 100, 256, 333, 512, 2048)),
        *(f"prefill-by-{n}" for n in range(2, 9)),
        *(f"preempted-at-{n}" for n in (1, 8, 31)),
        "poison-nan", "poison-1e30", "tails-live", "pages-permuted", "twins", "donor-half-done",
        "donor-aborted-1-step", "graphs-off", "order-reversed", "samplers-6", "logprobs-asked",
        "samples-3", "long-output", "repeat-step",
    ):  # fmt: skip
        assert wanted in names


def test_select_cells(engine: OwnEngine) -> None:
    cells = quick_cells(engine)
    assert [c.name for c in select_cells(cells, ["chunks-7", "place-*"])] == [
        "place-0", "place-3", "place-7", "chunks-7"
    ]  # fmt: skip
    assert {c.group for c in select_cells(cells, ["lengths"])} == {"lengths"}
    with pytest.raises(RequestError, match="no cell is called 'nonsense'"):
        select_cells(cells, ["nonsense"])


ALONE = Observed(3, 4, [5, 6, 7, 8], {2: "a", 3: "b", 4: "c", 5: "d"})


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (ALONE, None),
        (replace(ALONE, rows=ALONE.rows | {4: "x"}), (4, "logits")),
        (replace(ALONE, tokens=[5, 6, 9, 8]), (4, "token")),
        (replace(ALONE, tokens=[5, 9, 7, 8], rows=ALONE.rows | {3: "x"}), (3, "logits")),
        (replace(ALONE, tokens=[5, 6, 7], rows={2: "a", 3: "b", 4: "c"}), (5, "length")),
        (Observed(3, 2, [5, 6], {2: "a", 3: "b"}), None),
        (Observed(5, 1, [7], {0: "z", 3: "b", 4: "c"}), None),
        (Observed(5, 1, [7], {3: "b", 4: "x"}), (4, "logits")),
        (Observed(5, 2, [9], {4: "c"}), (4, "token")),
    ],
)
def test_first_difference(other: Observed, found: tuple[int, str] | None) -> None:
    result = first_difference([[ALONE], [ALONE]], [[ALONE], [other]])
    if found is None:
        assert result is None
    else:
        assert result is not None
        assert (result.watched, result.position, result.kind) == (1, *found)


def test_a_cell_that_is_not_what_it_claims_is_blind(engine: OwnEngine) -> None:
    (cell,) = quick_cells(engine, "warm")
    battery = Battery(engine)
    outcome = battery.run(replace(cell, counters={"hits": 10**6}))
    assert outcome.status == "blind" and "hits grew by" in str(outcome.reason)
    (cell,) = quick_cells(engine, "preempted-at-8")
    outcome = battery.run(replace(cell, preempted_at=9))
    assert outcome.status == "blind" and "preempted at outputs" in str(outcome.reason)
    nothing = replace(cell, phases=((replace(cell.phases[0][0], watched=False),),), counters={})
    outcome = battery.run(replace(nothing, preempted_at=None))
    assert (outcome.status, outcome.reason) == ("blind", "no row of logits could be compared")


def test_an_engine_that_raises_has_failed(engine: OwnEngine) -> None:
    class Broken(FaultyRunner):
        def begin(self, plan: Plan, draws: Any, kept: Any) -> Computing:
            if len(plan.seats) > 1:
                raise RuntimeError("two are too many")
            return super().begin(plan, draws, kept)

    broken = OwnEngine(engine.model, "cpu", loaded=engine.loaded, wrapper=Broken)
    battery = Battery(broken)
    cells = quick_cells(engine, "order-together", "alone-again")
    assert [battery.run(cell).status for cell in cells] == ["equal", "failed"]
    assert "two are too many" in str(battery.outcomes["order-together"].reason)


class SpoilsWindows(CpuRunner):
    """Overwrites, before a plan of several sequences, what the layers with a window have kept."""

    def __init__(self, runner: CpuRunner) -> None:
        self.__dict__.update(runner.__dict__)

    def start(self, plan: Plan, draws: list[Draw], kept: NDArray[np.bool_]) -> Any:
        for k, seat in enumerate(plan.seats.tolist()):
            several = len(plan.seats) > 1 and len(self.num_blocks) > 1
            if several and plan.positions[plan.query_start[k]] > 0:
                self.model.fill_slot(1, int(self.tables.arrays[1][seat, 0]) * 16, 3.0)
        return super().start(plan, draws, kept)


def test_a_difference_names_bits_and_layer(windows_folder: Path) -> None:
    wrapper: Any = SpoilsWindows
    engine = OwnEngine(str(windows_folder), "cpu", wrapper=wrapper)
    (cell,) = quick_cells(engine, "neighbours-1")
    job = Job(cell.watched[0].job.prompt[:4], cell.watched[0].job.params)
    company, _ = cell.phases[0]
    found = Battery(engine, explain).run(
        replace(cell, phases=((company, Arrival(job, watched=True)),))
    )
    assert found.status == "different" and found.difference is not None
    assert re.search(
        r"of 400 logits differ, first number \d+: alone [0-9a-f]{8} \(.*\), here [0-9a-f]{8} \(",
        found.difference["bits"],
    )
    assert found.difference["layer"] == "layer 1 of 3, counted from 0"
    by_batch = OwnEngine(str(windows_folder), "cpu", wrapper=sums.SumByBatch)
    found = Battery(by_batch, explain).run(cell)
    assert found.difference is not None
    assert found.difference["layer"].startswith("layer 0, or what is no layer")


def check(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["check", *arguments])


def test_command_line(tiny_folder: Path, tmp_path: Path) -> None:
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    result = check(
        "--model", str(tiny_folder), "--cells", "chunks-*,graphs", "--json",
        "--report", str(report), "--html", str(page),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1]) == {
        "cells": 15, "equal": 9, "skipped": 6, "controls": 0, "controls_failed": 0
    }  # fmt: skip
    data = json.loads(report.read_text())
    assert next(iter(data)) == "summary"
    assert re.fullmatch(r"pyvosti .* on cpu: 6 of 15 cells SKIPPED, 9 equal", data["summary"])
    text = page.read_text()
    assert text.count("<title>") == 1 + 15
    assert data["summary"] in text
    assert not re.search(r"https?://|src=|<link|<script|@import", text)


def test_command_line_fails_when_a_cell_differs(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pyvosti.check.command.make_engine",
        lambda settings: OwnEngine(settings.model, "cpu", wrapper=sums.SumByBatch),
    )
    result = check("--model", str(tiny_folder), "--cells", "neighbours-7")
    assert result.exit_code == 1
    for said in ("1 DIFFERENT", "at position", "bits: ", "layer: ", "repeat: pyvosti check"):
        assert said in result.stdout
    assert f"--model {tiny_folder} --quick --cells neighbours-7" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cells", "nonsense"], "no cell is called"),
        (["--engine", "vllm"], "engine must be"),
        (["--report", "/nowhere/report.json"], "/nowhere/report.json cannot be written"),
        (["--html", "/"], "/ cannot be written"),
        (["--server", "http://127.0.0.1:9"], "no OpenAI-compatible server answers"),
        (["--engine", "transformers", "--dtype", "int3"], "dtype must be"),
    ],
)
def test_command_line_mistakes(tiny_folder: Path, arguments: list[str], said: str) -> None:
    result = check("--model", str(tiny_folder), *arguments)
    assert result.exit_code == 2
    assert said in result.stderr and result.stderr.count("\n") == 1


def test_pieces(tiny_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    wanted = ["--model", str(tiny_folder), "--cells", "place-*", "--resume", str(file), "--json"]
    first = check(*wanted, "--minutes", "0")
    assert first.exit_code == 1, "nothing was run"
    assert "3 of 3 cells SKIPPED" in first.stderr and "not reached in 0 minutes" in first.stderr
    second = check(*wanted)
    assert second.exit_code == 0
    known = json.loads(file.read_text())
    known["cells"][0]["status"] = "different"
    file.write_text(json.dumps(known))
    third = check(*wanted)
    assert third.exit_code == 1, "what the file holds is not run again"
    assert '"equal": 2' in third.stdout
    other = check(*wanted, "--full")
    assert other.exit_code == 2 and "name another file" in other.stderr
    file.write_text("{}")
    assert "no file to resume from" in check(*wanted).stderr


def test_progress_keeps_fingerprints(engine: OwnEngine, tmp_path: Path) -> None:
    cells = quick_cells(engine, "sample-0", "rows-copies")
    battery = Battery(engine)
    battery.prepare(cells)
    progress = Progress(tmp_path / "state", engine, "quick")
    progress.save(battery, [])
    again = Battery(engine)
    assert progress.load(again) == []
    assert again.alone == battery.alone
    with pytest.raises(ConfigError, match="name another file"):
        Progress(tmp_path / "state", engine, "full").load(again)


def test_passed() -> None:
    fine = {"cells": 4, "equal": 3, "skipped": 1, "controls": 2, "controls_failed": 2}
    assert passed(fine)
    assert not passed(fine | {"equal": 2})
    assert not passed(fine | {"controls_failed": 1})
    assert not passed(fine | {"equal": 0, "skipped": 4})


def test_what_is_too_long_is_skipped(engine: OwnEngine) -> None:
    job = Job((1,) * 500, SamplingParams(max_tokens=100, seed=1))
    assert "longer than the model's 512" in str(lacks(engine, lone_cell(job)))
    cell = Cell("long", "long", "too long", ((Arrival(job, watched=True),),))
    assert Battery(engine).run(cell).status == "skipped"
