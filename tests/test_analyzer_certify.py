"""`pyvosti certify` from nothing: every kernel of one shape is proved, the corpus is rejected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")
pytest.importorskip("z3")
pytest.importorskip("torch")

from pyvosti import certified
from pyvosti.analyzer import certificate as store
from pyvosti.analyzer.corpus import FAULTS, SEEDS
from pyvosti.analyzer.corpus.bases import BASES, small_spec
from pyvosti.analyzer.corpus.compiled import COMPILED
from pyvosti.analyzer.corpus.fault import KINDS
from pyvosti.analyzer.kernel_contracts import contract_of
from pyvosti.analyzer.replay.interpret import Task
from pyvosti.analyzer.replay.search import replayed
from pyvosti.analyzer.shapes import SHAPES
from pyvosti.errors import ConfigError
from pyvosti.triton_kernels.launches import all_specs
from pyvosti.triton_kernels.schedule import make_schedule


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`pyvosti certify` in a process, with an empty cache of compiled kernels."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(folder / "triton")}
    command = [sys.executable, "-m", "pyvosti", "certify", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certify")


@pytest.fixture(scope="module")
def lines(folder: Path) -> list[dict[str, Any]]:
    """What a whole run prints, certificates in `folder`/store."""
    done = run(folder, "--json", "--output", str(folder / "store"))
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_everything_is_proved_and_the_corpus_rejected(lines: list[dict[str, Any]]) -> None:
    last = lines[-1]
    specs = all_specs(make_schedule(SHAPES["llama-3.1-8b"], 90))
    assert last["kernels"] == last["proved"] == len(specs)
    assert last["corpus"] == last["rejected"] == len(FAULTS) >= 40
    certificates = [line for line in lines if "obligations" in line]
    assert len(certificates) == len(specs)
    for one in certificates:
        names = {entry["name"] for entry in one["obligations"]}
        assert {"row_locality", "stores_in_range", "stores_disjoint", "no_alias"} <= names
        assert all(entry["verdict"] == "proved" for entry in one["obligations"])
        assert {"triton_lowering", "ptxas", "launch_order"} <= set(one["assumptions"])
    whole = next(one for one in certificates if one["kernel"] == "attention_whole")
    assert "same_family" in {entry["name"] for entry in whole["obligations"]}
    assert {line["name"] for line in lines if "reason" in line} >= {one.name for one in COMPILED}


def test_every_kind_of_fault_is_in_the_corpus() -> None:
    assert {fault.kind for fault in FAULTS} | {fault.kind for fault in COMPILED} == set(KINDS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert set(SEEDS) <= {fault.name for fault in FAULTS}
    assert {fault.kernel for fault in FAULTS} == set(BASES)


def test_two_launches_show_each_fault(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        if "replay" in line:
            shown = line["replay"]
            assert line["verdict"] == "unequal" and shown["replayed"], line
            assert shown["a"] != shown["b"] or "nan" in shown["a"], line


def test_certificates_let_exactly_these_artifacts_run(
    lines: list[dict[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = make_schedule(SHAPES["llama-3.1-8b"], 90)
    monkeypatch.setattr(certified, "_admitted", set())
    monkeypatch.setattr(certified, "_uncertified_allowed", False)
    monkeypatch.setattr(certified, "_stores", lambda: [folder / "store"])
    assert certified.require(schedule) == ()
    certified.check_admitted(all_specs(schedule)[0], 90)
    with pytest.raises(ConfigError, match="no certificate on sm_80"):
        certified.check_admitted(all_specs(schedule)[0], 80)


def test_a_certificate_says_what_was_proved_of_what(
    lines: list[dict[str, Any]], folder: Path
) -> None:
    entries = store.read_store(folder / "store")
    for name, one in entries.items():
        assert name == one["name"] and one["verdict"] == "proved" and one["arch"] == 90
        assert set(one["artifacts"]) == {"ttir", "ttgir", "ptx", "cubin"}
        assert set(one["versions"]) == {"triton", "z3", "analyzer"}
        assert one["sources"][f"{store.kernel_file(one['kernel']).name}"]
        assert one["counterexample"] is None and one["lowering"]["instructions"]
    linear = next(one for one in entries.values() if one["kernel"] == "linear")
    assert "tensor_core_rows" in linear["assumptions"]


@pytest.mark.parametrize("kernel", sorted(set(BASES) - {"sample"}))
def test_no_pair_of_launches_tells_a_shipped_kernels_rows_apart(kernel: str) -> None:
    specs = [small_spec(kernel)]
    if "WINDOW" in BASES[kernel][1]:
        specs.append(small_spec(kernel, WINDOW=20))
    if "SPLITS" in BASES[kernel][1]:
        specs.append(small_spec(kernel, SPLITS=2))
    tasks = [Task(kernel, spec, contract_of(spec), None, 6) for spec in specs]
    for result in replayed(tasks):
        assert result == {"name": kernel, "replayed": False, "tries": 6, "changed": False}


def test_a_reduction_tree_in_words_and_as_a_picture(folder: Path) -> None:
    shape = ("--shape", "smollm2-135m", "--output", str(folder))
    done = run(folder, "--explain", "attention_whole", *shape)
    assert done.returncode == 0, done.stderr
    assert "splits of 256 positions, one after the other" in done.stdout
    assert "4 lanes of a warp, pairwise" in done.stdout
    drawn = ElementTree.parse(folder / "attention_whole.svg")
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}rect")) > 10


def test_wrong_arguments_are_one_sentence(folder: Path) -> None:
    for arguments, sentence in (
        (("--shape", "gpt-5"), "the shapes are"),
        (("--explain", "softmax"), "the kernels are"),
        (("--arch", "75"), "know sm_80, sm_90 and sm_100"),
        (("--shape", "qwen3-8b", "--model", "smollm2"), "not both"),
    ):
        done = run(folder, *arguments)
        assert done.returncode == 2 and sentence in done.stderr, done.stderr
