"""One call from a model's name to its configuration, weights and tokenizer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from pyvosti.config import ModelConfig
from pyvosti.errors import ModelError
from pyvosti.gguf_model import read_gguf_model
from pyvosti.hf_model import read_hf_model
from pyvosti.models import resolve
from pyvosti.tokenizer import Tokenizer, tokenizer_from_folder, tokenizer_from_gguf
from pyvosti.weights import Tensor


class LoadedModel(NamedTuple):
    """What a backend needs, and the tokenizer. Tensors are mapped from the files at `path`."""

    name: str
    path: Path
    config: ModelConfig
    tensors: dict[str, Tensor]
    tokenizer: Tokenizer


def load_model(model: str | os.PathLike[str]) -> LoadedModel:
    """Finds and reads a model. Raises ModelError with one sentence when that is impossible."""
    path = resolve(model)
    name = os.fspath(model)
    if path.is_dir():
        config, tensors = read_hf_model(_single_folder(path))
        tokenizer = tokenizer_from_folder(path)
    else:
        config, tensors, metadata = read_gguf_model(path)
        tokenizer = tokenizer_from_gguf(metadata, path)
    for token_id in tokenizer.eos_token_ids:
        if token_id >= config.vocab:
            raise ModelError(
                f"{path} names the end-of-sequence token {token_id}, but has {config.vocab} tokens"
            )
    return LoadedModel(name, path, config, tensors, tokenizer)


def _single_folder(path: Path) -> Path:
    if not (path / "config.json").is_file():
        gguf = sorted(path.glob("*.gguf"))
        hint = f"; give one file of it, for example {gguf[0]}" if gguf else ""
        raise ModelError(f"{path} is no model folder: it has no config.json{hint}")
    return path
