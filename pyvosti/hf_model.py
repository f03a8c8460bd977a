"""Hugging Face folders: config.json and safetensors, in one file or in shards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pyvosti.config import ModelConfig, config_from_hf
from pyvosti.errors import ModelError
from pyvosti.gemma3 import plus_one
from pyvosti.safetensors_file import read_safetensors
from pyvosti.weights import Tensor, check_tensors

_WHOLE = {
    "model.embed_tokens.weight": "embed",
    "model.norm.weight": "norm",
    "lm_head.weight": "head",
}
_LAYER = {
    "input_layernorm.weight": "attn_norm",
    "self_attn.q_proj.weight": "q",
    "self_attn.k_proj.weight": "k",
    "self_attn.v_proj.weight": "v",
    "self_attn.o_proj.weight": "o",
    "self_attn.q_proj.bias": "q_bias",
    "self_attn.k_proj.bias": "k_bias",
    "self_attn.v_proj.bias": "v_bias",
    "self_attn.q_norm.weight": "q_norm",
    "self_attn.k_norm.weight": "k_norm",
    "post_attention_layernorm.weight": "ffn_norm",
    "mlp.gate_proj.weight": "gate",
    "mlp.up_proj.weight": "up",
    "mlp.down_proj.weight": "down",
}
_GEMMA3_LAYER = _LAYER | {
    "post_attention_layernorm.weight": "attn_out_norm",
    "pre_feedforward_layernorm.weight": "ffn_norm",
    "post_feedforward_layernorm.weight": "ffn_out_norm",
}
_NOT_TEXT = re.compile(r"(model\.)?(vision_tower|multi_modal_projector)\.")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises ModelError when there is none."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise ModelError(f"{path} is not valid JSON") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} does not hold a JSON object")
    return value


def read_hf_model(folder: Path) -> tuple[ModelConfig, dict[str, Tensor]]:
    """Configuration and weights of a folder, checked against each other."""
    config = config_from_hf(read_json(folder / "config.json"))
    tensors: dict[str, Tensor] = {}
    for file in weight_files(folder):
        for hf_name, tensor in read_safetensors(file).items():
            name = _name(hf_name, config.architecture)
            ignored = name is None or (name == "head" and config.tie_embeddings)
            if name is not None and not ignored:
                is_norm = config.architecture == "gemma3" and name.endswith("norm")
                tensors[name] = (
                    Tensor("F32", tensor.shape, plus_one(*tensor)) if is_norm else tensor
                )
    check_tensors(config, tensors, folder)
    return config, tensors


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder. Raises ModelError when one is missing."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict):
            raise ModelError(f"{index} has no weight_map")
        names = sorted({str(name) for name in weight_map.values()})
        files = [folder / Path(name).name for name in names]
    else:
        files = [folder / "model.safetensors"]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ModelError(f"{folder} lacks {missing[0]}; download the model again")
    return files


def _name(hf_name: str, architecture: str) -> str | None:
    """Our name of a tensor; None for one that is not the text model's; its own when unknown."""
    if hf_name.endswith("rotary_emb.inv_freq"):
        return None
    layer_names = _LAYER
    if architecture == "gemma3":
        if _NOT_TEXT.match(hf_name):
            return None
        layer_names = _GEMMA3_LAYER
        hf_name = re.sub(r"^(model\.language_model|language_model\.model)\.", "model.", hf_name)
        hf_name = hf_name.removeprefix("language_model.")
    if hf_name in _WHOLE:
        return _WHOLE[hf_name]
    match = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", hf_name)
    if match and match[2] in layer_names:
        return f"layers.{match[1]}.{layer_names[match[2]]}"
    return hf_name
