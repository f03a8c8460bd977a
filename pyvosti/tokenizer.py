"""Text to token ids and back, over the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Backend

from pyvosti.errors import ModelError, RequestError
from pyvosti.gguf_tokenizer import build_from_gguf
from pyvosti.hf_model import read_json


class Tokenizer:
    """A model's tokenizer with what generation must know: special tokens and chat template."""

    def __init__(
        self,
        backend: Backend,
        *,
        eos_token_ids: Sequence[int],
        chat_template: str | None,
        special_tokens: dict[str, str],
    ) -> None:
        self.backend = backend
        self.eos_token_ids = tuple(eos_token_ids)
        self.chat_template = chat_template
        self.special_tokens = special_tokens
        """bos_token, eos_token, … by role, as chat templates name them."""
        added = backend.get_added_tokens_decoder()
        self._control = frozenset(token for token, entry in added.items() if entry.special)

    def encode(self, text: str, add_special_tokens: bool = True) -> NDArray[np.uint32]:
        """Token ids u32[n]. Raises RequestError for text that is not valid Unicode."""
        try:
            ids = self.backend.encode(text, add_special_tokens=add_special_tokens).ids
        except (TypeError, UnicodeEncodeError):
            raise RequestError(f"the prompt {text[:40]!r} is not valid text") from None
        return np.array(ids, dtype=np.uint32)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Text of token ids; ids that the tokenizer does not know give nothing."""
        return self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def has_text(self, token_id: int, skip_special_tokens: bool = True) -> bool:
        """Whether `decode` makes anything of this id; without it, it decodes the others alike."""
        if skip_special_tokens and token_id in self._control:
            return False
        return self.backend.id_to_token(token_id) is not None


def tokenizer_from_folder(folder: Path) -> Tokenizer:
    """Reads tokenizer.json and the files beside it that a Hugging Face folder has."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{folder} has no tokenizer.json; pyvosti reads no other tokenizer file")
    try:
        backend = Backend.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"{path} cannot be read as a tokenizer: {error}") from None
    settings = _optional(folder / "tokenizer_config.json")
    special = {
        role: text
        for role, value in settings.items()
        if role.endswith("_token") and (text := _content(value)) is not None
    }
    # The ids that end generation are in the files about the model; the tokenizer's last.
    generation, model = (
        _optional(folder / "generation_config.json"),
        read_json(folder / "config.json"),
    )
    eos = generation.get("eos_token_id", model.get("eos_token_id"))
    if eos is None and "eos_token" in special:
        eos = backend.token_to_id(special["eos_token"])
    return Tokenizer(
        backend,
        eos_token_ids=_ids(eos),
        chat_template=_template(folder, settings),
        special_tokens=special,
    )


def tokenizer_from_gguf(metadata: dict[str, Any], source: Path) -> Tokenizer:
    """Builds the tokenizer that a GGUF file describes in its metadata."""
    backend = build_from_gguf(metadata, source)
    special = {}
    for role, key in (
        ("bos_token", "bos"),
        ("eos_token", "eos"),
        ("pad_token", "padding"),
    ):
        token_id = metadata.get(f"tokenizer.ggml.{key}_token_id")
        text = backend.id_to_token(token_id) if isinstance(token_id, int) else None
        if text is not None:
            special[role] = text
    keys = ("eos_token_id", "eot_token_id", "eom_token_id")
    eos = [metadata[f"tokenizer.ggml.{key}"] for key in keys if f"tokenizer.ggml.{key}" in metadata]
    template = metadata.get("tokenizer.chat_template")
    return Tokenizer(
        backend,
        eos_token_ids=_ids(eos),
        chat_template=template if isinstance(template, str) else None,
        special_tokens=special,
    )


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _content(value: Any) -> str | None:
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def _ids(value: Any) -> tuple[int, ...]:
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(token_id, int) and 0 <= token_id < 2**32 for token_id in ids):
        raise ModelError(f"the model's end-of-sequence token ids are {value!r}")
    return tuple(sorted(set(ids)))


def _template(folder: Path, settings: dict[str, Any]) -> str | None:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # named templates
        entries = [entry for entry in template if isinstance(entry, dict)]
        named = [entry.get("template") for entry in entries if entry.get("name") == "default"]
        template = named[-1] if named else None
    return template if isinstance(template, str) else None
