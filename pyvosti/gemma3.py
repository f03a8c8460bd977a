"""What Gemma 3 does in a way of its own: configuration, scales, norms' weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyvosti.errors import ModelError

DEFAULTS = {
    "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
    "max_position_embeddings": 131072, "tie_word_embeddings": True, "query_pre_attn_scalar": 256,
}  # fmt: skip
"""What a config.json of Gemma 3 may leave out (Hugging Face's `Gemma3TextConfig`)."""


def gemma3_text(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The text model's entries of a Gemma 3 config.json, in the form that the others have."""
    own = raw.get("text_config") or raw
    text: dict[str, Any] = (
        DEFAULTS | {"dtype": raw.get("dtype") or raw.get("torch_dtype")} | dict(own)
    )
    if text.get("use_bidirectional_attention"):
        raise ModelError("Gemma 3 models with bidirectional attention are not supported")
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        if text.get(name) is not None:
            raise ModelError(f"models with {name} are not supported")
    ropes = text.get("rope_parameters") or {}
    if "full_attention" in ropes:
        text["rope_parameters"] = ropes["full_attention"]
        text["rope_local_base_freq"] = ropes["sliding_attention"]["rope_theta"]
    text["hidden_act"] = text.get("hidden_activation") or "gelu_pytorch_tanh"
    if text.get("layer_types") is None:
        every = int(text.get("sliding_window_pattern") or 6)
        kinds = ["sliding_attention"] * (every - 1) + ["full_attention"]
        text["layer_types"] = [kinds[i % every] for i in range(int(text["num_hidden_layers"]))]
    return text


def gemma3_constants(text: Mapping[str, Any], hidden: int) -> dict[str, Any]:
    """The scales that Gemma 3 has of its own; that of embeddings is rounded as they are."""
    scale = math.sqrt(hidden)
    rounded = text.get("dtype") == "bfloat16"
    return {
        "window_rope_theta": float(text.get("rope_local_base_freq") or 10000.0),
        "attention_scale": float(text["query_pre_attn_scalar"]) ** -0.5,
        "embed_scale": bfloat16(scale) if rounded else float(np.float32(scale)),
    }


def bfloat16(value: float) -> float:
    """The nearest bfloat16, ties to even."""
    bits = int(np.float32(value).view(np.uint32))
    return float(np.uint32((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32))


def plus_one(dtype: str, shape: tuple[int, ...], data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A norm's weight as Gemma 3 means it: 1 is added to what is stored, in float32."""
    if dtype == "F32":
        values = data.view("<f4")
    elif dtype == "F16":
        values = data.view("<f2").astype(np.float32)
    elif dtype == "BF16":
        values = (data.view("<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        raise ModelError(f"a norm's weight of {list(shape)} is of type {dtype}")
    added: NDArray[np.uint8] = (values + np.float32(1)).astype("<f4").view(np.uint8)
    return added
