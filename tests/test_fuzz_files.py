"""Model files with anything in them: one sentence or a model, soon, and within twice the file.

A damaged folder or GGUF file is loaded, and where that works, run. Nothing but pyvosti's own
errors may come out: no other exception, no panic, no hang.
"""

from __future__ import annotations

import copy
import json
import shutil
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gguf_writer import write_gguf
from pyvosti import LLM, PyvostiError, SamplingParams
from pyvosti.loader import load_model

pytestmark = pytest.mark.usefixtures("on_the_cpu")
SECONDS = 20.0
"""Far more than any of these files needs, on a busy machine too."""
SLACK = 6 << 20
"""Bytes besides twice the file: Python's own objects for the tokenizer's vocabulary."""
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
ODD: list[Any] = [
    None, True, 0, -1, 1, 3, 2**31, 2**63, 2**70, 10**400, 0.5, -0.0, 1e308, float("inf"),
    float("nan"), "", "x", "\ud800", "1" * 5000, [], [[]], [0] * 100, {}, {"a": {"a": {}}},
]  # fmt: skip


@pytest.fixture(scope="module")
def pristine(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as a folder, and as GGUF beside it."""
    folder = tmp_path_factory.mktemp("fuzz")
    shutil.copytree(tiny_folder, folder / "model")
    write_gguf(tiny_folder, folder / "model.gguf", "Q8_0")
    return folder


def try_to_run(path: Path) -> str | None:
    """Loads and runs a model; the sentence with which it is refused, or None."""
    size = sum(f.stat().st_size for f in path.rglob("*")) if path.is_dir() else path.stat().st_size
    start = time.monotonic()
    tracemalloc.start()
    try:
        load_model(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        llm = LLM(path, num_blocks=4, max_seqs=2, max_batched_tokens=8, threads=1)
        llm.generate(
            prompt_token_ids=[0, 1], sampling_params=SamplingParams(max_tokens=2, temperature=0)
        )
        refused = None
    except PyvostiError as error:
        peak = tracemalloc.get_traced_memory()[1] if tracemalloc.is_tracing() else 0
        refused = str(error)
        assert refused and "\n" not in refused
    finally:
        tracemalloc.stop()
    assert time.monotonic() - start < SECONDS
    assert peak <= 2 * size + SLACK, f"{peak} bytes for a file of {size}"
    return refused


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value; of long lists and objects some."""
    found = [at] if at else []
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items[:30]:
        found += paths(item, (*at, key))
    return found


def replaced(value: Any, at: tuple[Any, ...], change: Callable[[Any, Any], None]) -> None:
    for key in at[:-1]:
        value = value[key]
    change(value, at[-1])


@FUZZ
@given(data=st.data())
@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"]
)
def test_odd_values_in_json(
    pristine: Path, tmp_path_factory: pytest.TempPathFactory, name: str, data: Any
) -> None:
    folder = Path(shutil.copytree(pristine / "model", tmp_path_factory.mktemp("odd") / "model"))
    content = json.loads((folder / name).read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        places = paths(content)
        if not places:
            break
        place = data.draw(st.sampled_from(places))
        if data.draw(st.integers(0, 4)) == 0:
            replaced(content, place, lambda parent, key: parent.pop(key))
        else:
            odd = copy.deepcopy(data.draw(st.sampled_from(ODD)))
            replaced(content, place, lambda parent, key, odd=odd: parent.__setitem__(key, odd))
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    try_to_run(folder)
    shutil.rmtree(folder.parent)


def damaged(content: bytes, data: Any, head: int) -> bytes:
    """The content with bytes changed, lost, doubled or added, mostly in its first `head` bytes."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 6))):
        limit = len(changed) if data.draw(st.integers(0, 5)) == 0 else min(head, len(changed))
        at = data.draw(st.integers(0, max(0, limit - 1)))
        kind = data.draw(st.sampled_from(["byte", "number", "cut", "lose", "double"]))
        if kind == "byte":
            changed[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        elif kind == "number":
            number = data.draw(st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]))
            changed[at : at + 8] = number.to_bytes(8, "little")
        elif kind == "cut":
            del changed[max(1, at) :]
        elif kind == "lose":
            del changed[at : at + data.draw(st.integers(1, 64))]
        else:
            changed[at:at] = changed[at : at + data.draw(st.integers(1, 64))]
        if not changed:
            break
    return bytes(changed)


@FUZZ
@given(data=st.data())
@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "model.safetensors", "model.gguf"]
)
def test_damaged_bytes(
    pristine: Path, tmp_path_factory: pytest.TempPathFactory, name: str, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    if name == "model.gguf":
        path, file = folder / name, folder / name
        source = pristine / name
    else:
        path = Path(shutil.copytree(pristine / "model", folder / "model"))
        file, source = path / name, pristine / "model" / name
    file.write_bytes(damaged(source.read_bytes(), data, 12_000))
    try_to_run(path)
    shutil.rmtree(folder)


def test_the_pristine_files_run(pristine: Path) -> None:
    assert try_to_run(pristine / "model") is None
    assert try_to_run(pristine / "model.gguf") is None


def test_memory_is_seen() -> None:
    """The bound would notice a list of as many entries as a header claims."""
    tracemalloc.start()
    taken = [0] * (SLACK // 4)
    assert tracemalloc.get_traced_memory()[1] > SLACK
    tracemalloc.stop()
    del taken
