"""Models that the tests share: smollm2, and tiny random ones of each family."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyvosti import LLM
from tiny_models import FAMILIES, save_tiny_model


@pytest.fixture(scope="session")
def on_the_cpu() -> Iterator[None]:
    """These tests are the CPU's, also on a machine with a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyvosti.llm.default_backend", lambda: "cpu")
        yield


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The GGUF file of smollm2; without it the tests fail with the command that installs it."""
    from pyvosti.models import resolve

    return resolve("smollm2")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3 with a tokenizer, as a Hugging Face folder: 0.1 million parameters."""
    folder = tmp_path_factory.mktemp("tiny") / "qwen3"
    save_tiny_model(FAMILIES["qwen3"], folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path, on_the_cpu: None) -> LLM:
    """The tiny model, loaded once."""
    from pyvosti import LLM

    return LLM(tiny_folder, record_logits=True, record_digests=True)
