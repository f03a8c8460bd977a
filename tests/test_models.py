"""Where models come from: the cache of the Hub without a network, and what is listed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyvosti import LLM, ModelError, SamplingParams
from pyvosti.models import find_models, resolve

pytestmark = pytest.mark.usefixtures("on_the_cpu")
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cached(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny model as a snapshot in a Hub cache, with the network off."""
    repo = tmp_path / "models--org--tiny"
    snapshot = repo / "snapshots" / REVISION
    shutil.copytree(tiny_folder, snapshot)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(REVISION)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return snapshot


def test_hub_id_from_the_cache(cached: Path, tiny: LLM) -> None:
    assert resolve("org/tiny") == cached
    params = SamplingParams(max_tokens=4, temperature=0)
    ours = LLM("org/tiny", record_digests=True).generate("fox", params)[0]
    assert ours.outputs[0].digest == tiny.generate("fox", params)[0].outputs[0].digest


def test_incomplete_snapshots_do_not_count(cached: Path) -> None:
    (cached / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"lacks model\.safetensors"):
        LLM("org/tiny")
    assert "org/tiny" not in [model.name for model in find_models()]


def test_found_models(cached: Path, smollm2_path: Path) -> None:
    found = {model.name: model for model in find_models()}
    assert found["smollm2"].path == smollm2_path
    assert found["org/tiny"].path == cached
    assert found["org/tiny"].size > 100_000


@pytest.mark.parametrize("name", ["org/na me", "a/b/c/../d", "org/--x", "/", ""])
def test_names_that_are_no_model(cached: Path, name: str) -> None:
    with pytest.raises(ModelError):
        LLM(name)
