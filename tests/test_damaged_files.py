"""Damaged and foreign model files: one sentence each, never a crash, never a wrong model."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gguf_writer import write_gguf
from pyvosti import ModelError
from pyvosti.gguf_file import read_gguf
from pyvosti.loader import load_model
from pyvosti.models import SMOLLM2_COMMAND
from pyvosti.safetensors_file import read_safetensors


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model to damage."""
    return Path(shutil.copytree(tiny_folder, tmp_path / "copy"))


@pytest.fixture(scope="module")
def tiny_gguf(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(tiny_folder, path, "Q8_0")
    return path


def refusal(model: Path | str) -> str:
    """The sentence with which a model is refused."""
    with pytest.raises(ModelError) as caught:
        load_model(model)
    message = str(caught.value)
    assert "\n" not in message
    return message


def edit_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_unknown_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no model 'nonsense'" in refusal("nonsense")
    assert "config.json" in refusal(tmp_path)
    (tmp_path / "some.gguf").touch()
    assert "some.gguf" in refusal(tmp_path)
    assert "empty" in refusal(tmp_path / "some.gguf")
    assert "no model" in refusal("./missing/folder")
    monkeypatch.setattr("pyvosti.models.find_spec", lambda name: None)
    assert SMOLLM2_COMMAND in refusal("smollm2")


def test_hub_id_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "could not be fetched from the Hub" in refusal("org/no-such-model")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert name in refusal(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("kept", [0, 1, 7, 100, 0.5, 0.98])
def test_truncated_file(folder: Path, name: str, kept: float) -> None:
    data = (folder / name).read_bytes()
    size = int(kept * len(data)) if isinstance(kept, float) else kept
    (folder / name).write_bytes(data[:size])
    assert name in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "not supported"),
        ({"architectures": None}, "not supported"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"attention_bias": True}, "attention_bias"),
        ({"hidden_size": 128}, "shape"),
        ({"num_hidden_layers": 4}, "layers.3"),
        ({"num_hidden_layers": 2}, "layers.2"),
        ({"num_hidden_layers": 10**12}, "layers"),
        ({"num_hidden_layers": 0}, "layers"),
        ({"num_key_value_heads": 3}, "evenly"),
        ({"vocab_size": 401}, "shape"),
        ({"vocab_size": "many"}, "wrong type"),
        ({"rms_norm_eps": -1}, "rms_eps"),
        ({"tie_word_embeddings": False, "vocab_size": None}, "wrong type"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "lacks"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantised"),
        ({"eos_token_id": -3}, "end-of-sequence"),
        ({"eos_token_id": [0, 400]}, "end-of-sequence"),
    ],
)
def test_wrong_config(folder: Path, changes: dict[str, Any], said: str) -> None:
    edit_config(folder, **changes)
    (folder / "generation_config.json").unlink(missing_ok=True)
    assert said in refusal(folder)


def test_wrong_dtype(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["model.norm.weight"] = tensors["model.norm.weight"].astype(np.int32)
    save_file(tensors, path)
    assert "type I32" in refusal(folder)


def test_tensor_that_would_be_ignored(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    extra = {"model.layers.0.self_attn.o_proj.bias": np.zeros(64, np.float32)}
    save_file(load_file(path) | extra, path)
    assert "o_proj.bias" in refusal(folder)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"pre": "brand-new"}, "brand-new"),
        ({"model": "bert"}, "bert"),
        ({"merges": ["no such"]}, "damaged tokenizer"),
        ({"eos_token_id": 400}, "end-of-sequence"),
    ],
)
def test_wrong_gguf_tokenizer(
    tiny_folder: Path, tmp_path: Path, metadata: dict[str, Any], said: str
) -> None:
    path = tmp_path / "model.gguf"
    write_gguf(tiny_folder, path, **metadata)
    assert said in refusal(path)


def test_gguf_types_that_no_backend_reads(tiny_folder: Path, tmp_path: Path) -> None:
    write_gguf(tiny_folder, tmp_path / "model.gguf", "Q5_0")
    assert "Q5_0" in refusal(tmp_path / "model.gguf")


def test_truncated_gguf(tiny_gguf: Path, tmp_path: Path) -> None:
    data = tiny_gguf.read_bytes()
    path = tmp_path / "cut.gguf"
    for size in [0, 1, 3, 4, 8, 23, 24, 25, 100, 1000, len(data) // 2, len(data) - 1]:
        path.write_bytes(data[:size])
        assert "cut.gguf" in refusal(path)


def test_gguf_that_claims_too_much(tmp_path: Path) -> None:
    path = tmp_path / "huge.gguf"
    header = b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60)
    name = struct.pack("<Q", 1) + b"a"
    for body in (
        b"",
        struct.pack("<Q", 2**63) + b"a",
        name + struct.pack("<IIQ", 9, 4, 2**62),
        name + struct.pack("<IIQ", 9, 8, 2**62),
        name + struct.pack("<IIQ", 9, 9, 2**62) * 9,
        name + struct.pack("<I", 77),
    ):
        path.write_bytes(header + body)
        assert "huge.gguf" in refusal(path)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0))
    assert "version 1" in refusal(path)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_flipped_bytes(tiny_gguf: Path, tiny_folder: Path, tmp_path: Path, data: Any) -> None:
    """A changed header is read or refused, nothing else."""
    source, read = data.draw(
        st.sampled_from(
            [(tiny_gguf, read_gguf), (tiny_folder / "model.safetensors", read_safetensors)]
        )
    )
    content = bytearray(source.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 12_000) - 1))] = data.draw(
            st.integers(0, 255)
        )
    path = tmp_path / "flipped"
    path.write_bytes(content)
    try:
        read(path)
    except ModelError as error:
        assert "\n" not in str(error)
