"""Weights on the GPU: fused matrices in the activations' type, rotary tables, their bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyvosti.cuda_dequantise import to_device
from pyvosti.triton_kernels.schedule import Shape
from pyvosti.weights import Tensor

Fetch = Callable[[str], torch.Tensor]


def fused_weights(
    shape: Shape, fetch: Fetch, tied: bool, device: str = "cuda"
) -> dict[str, torch.Tensor]:
    """The tensors that the launch sequence names, from those that a model file names.

    `fetch(name)` returns one tensor ([out, in] or [n]) of the file's; q, k and v become one
    matrix, gate and up another. All are contiguous, in the shape's dtype.
    """
    kind = getattr(torch, shape.dtype)

    def get(*names: str) -> torch.Tensor:
        parts = [fetch(name).to(device=device, dtype=kind) for name in names]
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).contiguous()

    weights = {"embed": get("embed"), "norm": get("norm")}
    weights["head"] = weights["embed"] if tied else get("head")
    for layer in range(shape.layers):
        at = f"layers.{layer}."
        for name in ("attn_norm", "ffn_norm", "o", "down"):
            weights[at + name] = get(at + name)
        weights[at + "qkv"] = get(at + "q", at + "k", at + "v")
        weights[at + "gate_up"] = get(at + "gate", at + "up")
        if shape.qkv_bias:
            weights[at + "qkv_bias"] = get(at + "q_bias", at + "k_bias", at + "v_bias")
        if shape.qk_norm:
            weights[at + "q_norm"] = get(at + "q_norm")
            weights[at + "k_norm"] = get(at + "k_norm")
    return weights


def file_fetch(tensors: Mapping[str, Tensor]) -> Fetch:
    """Fetches tensors as the loader maps them, dequantised on the device."""
    return lambda name: to_device(tensors[name])


def rotary_tables(
    shape: Shape, theta: float, scaling: Mapping[str, Any] | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """f32[max_model_len, head_dim / 2] cosines and sines, computed in float64 on the host."""
    frequencies = rotary_frequencies(shape.head_dim, theta, scaling)
    angles = np.arange(shape.max_model_len, dtype=np.float64)[:, None] * frequencies[None, :]
    cos, sin = (torch.from_numpy(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
    return cos.cuda(), sin.cuda()


def rotary_frequencies(
    head_dim: int, theta: float, scaling: Mapping[str, Any] | None
) -> NDArray[np.float64]:
    """float64[head_dim / 2] radians a position; scaling as in Hugging Face's `rope_utils`."""
    exponents = np.arange(0, head_dim, 2, dtype=np.float64) / head_dim
    frequencies = np.array([theta**-x for x in exponents])
    if scaling is None:
        return frequencies
    factor = scaling["factor"]
    if scaling["rope_type"] == "linear":
        return np.asarray(frequencies / factor)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * frequencies / (2 * math.pi)
    blend = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return np.asarray((1 - blend) * frequencies / factor + blend * frequencies)
