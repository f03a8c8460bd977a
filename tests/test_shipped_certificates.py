"""The certificates that come with the kernels are complete, and this analyzer's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

from pyvosti.analyzer.certificate import analyzer_digest, read_store, shipped_store
from pyvosti.analyzer.certify import judged, stored
from pyvosti.analyzer.shapes import PUBLISHED, SHAPES, shipped_specs
from pyvosti.triton_kernels.launches import all_specs
from pyvosti.triton_kernels.schedule import make_schedule

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from certificates import check_certificates  # noqa: E402


@pytest.mark.parametrize("name", SHAPES)
def test_every_kernel_of_a_shape_is_proved(name: str) -> None:
    specs = shipped_specs(SHAPES[name], 90)
    found = stored(specs, 90, shipped_store())
    assert set(found) == set(specs), "run `just certify`"
    assert judged(found, 90).objections == []


def test_they_were_made_by_this_analyzer() -> None:
    entries = read_store(shipped_store())
    wanted = {spec.key() for s in SHAPES.values() for spec in shipped_specs(s, 90)}
    assert {name.removesuffix("-sm90") for name in entries} == wanted
    for one in entries.values():
        assert one["verdict"] == "proved" and one["counterexample"] is None
        assert one["versions"]["analyzer"] == analyzer_digest(), "run `just certify`"
        assert all(entry["verdict"] == "proved" for entry in one["obligations"])


def test_they_are_of_these_kernels_and_row_functions() -> None:
    assert check_certificates(ROOT) == ([], [])


def test_a_gguf_file_differs_in_its_epsilon_alone() -> None:
    for name, shape in PUBLISHED.items():
        other = SHAPES[f"{name}-gguf"]
        assert other.rms_eps != shape.rms_eps
        assert other.rms_eps == pytest.approx(shape.rms_eps, rel=1e-7)
        kernels = {spec.kernel for spec in all_specs(make_schedule(other, 90))}
        assert kernels == {spec.kernel for spec in all_specs(make_schedule(shape, 90))}
