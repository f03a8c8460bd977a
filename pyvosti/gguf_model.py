"""GGUF models: metadata to configuration, ggml's tensor names to ours."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from pyvosti.config import ModelConfig, rope_scaling, same_window
from pyvosti.errors import ModelError
from pyvosti.gguf_file import GgufFile, read_gguf
from pyvosti.weights import Tensor, check_tensors

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")

_WHOLE = {
    "token_embd.weight": "embed",
    "output_norm.weight": "norm",
    "output.weight": "head",
}
_LAYER = {
    "attn_norm.weight": "attn_norm",
    "attn_q.weight": "q",
    "attn_k.weight": "k",
    "attn_v.weight": "v",
    "attn_output.weight": "o",
    "attn_q.bias": "q_bias",
    "attn_k.bias": "k_bias",
    "attn_v.bias": "v_bias",
    "attn_q_norm.weight": "q_norm",
    "attn_k_norm.weight": "k_norm",
    "ffn_norm.weight": "ffn_norm",
    "ffn_gate.weight": "gate",
    "ffn_up.weight": "up",
    "ffn_down.weight": "down",
    "post_attention_norm.weight": "attn_out_norm",
    "post_ffw_norm.weight": "ffn_out_norm",
}


def read_gguf_model(
    path: Path,
) -> tuple[ModelConfig, dict[str, Tensor], dict[str, Any]]:
    """Configuration, weights and metadata (for the tokenizer) of a GGUF file."""
    file = read_gguf(path)
    config = _config(file, path)
    heads = {"q": config.n_heads, "k": config.n_kv_heads}
    tensors: dict[str, Tensor] = {}
    for gguf_name, tensor in file.tensors.items():
        if gguf_name == "rope_freqs.weight":
            continue
        name = _name(gguf_name)
        matrix = name.rpartition(".")[2]
        if config.architecture == "llama" and matrix in heads and name != gguf_name:
            tensor = rotate_half_order(tensor, heads[matrix])
        tensors[name] = tensor
    check_tensors(config, tensors, path)
    return config, tensors, file.metadata


def rotate_half_order(tensor: Tensor, heads: int) -> Tensor:
    """Puts a Q or K matrix of a llama GGUF file back into the order of Hugging Face's RoPE.

    The converter stores row (half, i) of each head at (i, half), so that neighbours rotate
    together. Rows move whole; the bytes of a quantised row stay as they are.
    """
    rows = tensor.shape[0]
    if rows % (2 * heads):
        raise ModelError(f"a Q or K matrix of {rows} rows cannot hold {heads} heads")
    split = tensor.data.reshape(heads, rows // heads // 2, 2, -1)
    data = np.ascontiguousarray(split.swapaxes(1, 2)).reshape(-1)
    return Tensor(tensor.dtype, tensor.shape, data)


def _config(file: GgufFile, path: Path) -> ModelConfig:
    architecture = file.metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ModelError(
            f"{path} holds a model of the kind {architecture!r}; "
            f"supported in GGUF: {', '.join(ARCHITECTURES)}"
        )
    if "token_embd.weight" not in file.tensors:
        raise ModelError(f"{path} has no tensor token_embd.weight")

    def get(name: str, default: Any = None) -> Any:
        value = file.metadata.get(f"{architecture}.{name}", default)
        if value is None or isinstance(value, (list, str)):
            raise ModelError(f"{path} has {value!r} for {architecture}.{name}: not supported")
        return value

    n_layers, hidden = get("block_count"), get("embedding_length")
    n_heads = get("attention.head_count")
    head_dim = get("attention.key_length", hidden // max(n_heads, 1))
    if get("attention.value_length", head_dim) != head_dim:
        raise ModelError(f"{path} has keys and values of different size: not supported")
    if get("rope.dimension_count", head_dim) != head_dim:
        raise ModelError(f"{path} rotates only a part of each head: not supported")
    window = get("attention.sliding_window", 0)
    windows = same_window(window or None, n_layers)
    special: dict[str, Any] = {}
    if architecture == "gemma3":
        windows = tuple(None if i % 6 == 5 else window for i in range(len(windows)))
        special = _gemma3_constants(hidden, n_heads, n_layers, head_dim)
        special["window_rope_theta"] = get("rope.freq_base_swa", 10000.0)
    return ModelConfig(
        architecture=architecture,
        n_layers=n_layers,
        hidden=hidden,
        n_heads=n_heads,
        n_kv_heads=get("attention.head_count_kv", n_heads),
        head_dim=head_dim,
        ffn=get("feed_forward_length"),
        vocab=file.tensors["token_embd.weight"].shape[0],
        rms_eps=get("attention.layer_norm_rms_epsilon"),
        rope_theta=get("rope.freq_base", 10000.0),
        rope_scaling=_rope_scaling(file, architecture, path),
        tie_embeddings="output.weight" not in file.tensors,
        context=get("context_length"),
        windows=windows,
        **special,
    )


def _gemma3_constants(hidden: int, n_heads: int, n_layers: int, head_dim: int) -> dict[str, Any]:
    """What GGUF does not say: the 27B model (62 layers) scales scores by another size."""
    size = hidden // n_heads if n_layers == 62 else head_dim
    return {"attention_scale": size**-0.5, "embed_scale": float(np.float32(math.sqrt(hidden)))}


def _rope_scaling(file: GgufFile, architecture: str, path: Path) -> dict[str, Any] | None:
    kind = file.metadata.get(f"{architecture}.rope.scaling.type", "none")
    if kind == "linear":
        factor = file.metadata.get(f"{architecture}.rope.scaling.factor", 1.0)
        return rope_scaling({"rope_type": "linear", "factor": factor})
    if kind != "none":
        raise ModelError(f"{path} scales RoPE by {kind!r}: not supported")
    factors = file.tensors.get("rope_freqs.weight")
    if factors is None:
        return None
    return _llama3_scaling(file, factors, architecture, path)


def _llama3_scaling(
    file: GgufFile, tensor: Tensor, architecture: str, path: Path
) -> dict[str, Any] | None:
    """Llama 3.1's scaling, of which GGUF keeps only the resulting divisor per frequency.

    Its largest divisor is the factor; the other constants are the same in every release. The
    divisors are computed again (formula: Hugging Face `_compute_llama3_parameters`) and a
    file whose divisors are others is refused.
    """
    divisors = tensor.data.view("<f4") if tensor.dtype == "F32" else np.zeros(1, "<f4")
    factor, low, high, original = float(divisors.max()), 1.0, 4.0, 8192.0
    base = float(file.metadata.get(f"{architecture}.rope.freq_base", 10000.0))
    expected = []
    for i in range(len(divisors)):
        wavelength = 2 * math.pi * base ** (i / len(divisors))
        if wavelength < original / high:
            expected.append(1.0)
        elif wavelength > original / low:
            expected.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            expected.append(1 / ((1 - smooth) / factor + smooth))
    if not np.allclose(divisors, expected, rtol=1e-5, atol=0):
        raise ModelError(f"{path} has RoPE divisors of an unknown kind in rope_freqs.weight")
    return rope_scaling(
        {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": low,
            "high_freq_factor": high,
            "original_max_position_embeddings": original,
        }
    )


def _name(gguf_name: str) -> str:
    """Our name of a tensor; its own when it is unknown."""
    if gguf_name in _WHOLE:
        return _WHOLE[gguf_name]
    match = re.fullmatch(r"blk\.(\d+)\.(.+)", gguf_name)
    if match and match[2] in _LAYER:
        return f"layers.{match[1]}.{_LAYER[match[2]]}"
    return gguf_name
