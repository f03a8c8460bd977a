"""Models that the tests share: smollm2, and tiny random ones of each family."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyvosti import LLM
from pyvosti.models import resolve
from tiny_models import FAMILIES, save_tiny_model


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The GGUF file of smollm2; without it the tests fail with the command that installs it."""
    return resolve("smollm2")


@pytest.fixture(scope="session")
def smollm2() -> LLM:
    """smollm2, loaded once; its tests must not care what is in the prefix cache."""
    return LLM("smollm2", kv_cache_tokens=8192)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3 with a tokenizer, as a Hugging Face folder: 0.1 million parameters."""
    folder = tmp_path_factory.mktemp("tiny") / "qwen3"
    save_tiny_model(FAMILIES["qwen3"], folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> LLM:
    """The tiny model, loaded once."""
    return LLM(tiny_folder, record_logits=True, record_digests=True)
