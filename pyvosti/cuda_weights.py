"""Weights on the GPU: fused matrices in the activations' type, rotary tables, their bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyvosti.config import Rope
from pyvosti.cuda_dequantise import to_device
from pyvosti.triton_kernels.schedule import Shape
from pyvosti.weights import Tensor

Fetch = Callable[[str], torch.Tensor]


def fused_weights(
    shape: Shape, fetch: Fetch, tied: bool, device: str = "cuda"
) -> dict[str, torch.Tensor]:
    """The tensors that the launch sequence names, from those that a model file names.

    `fetch(name)` returns one tensor ([out, in] or [n]) of the file's; q, k and v become one
    matrix, gate and up another. All are contiguous, in the shape's dtype (Gemma's norms in f32).
    """
    weights = dict(each_weight(shape, fetch, tied, device))
    return {"head": weights["embed"], **weights}


def each_weight(
    shape: Shape, fetch: Fetch, tied: bool, device: str = "cuda"
) -> Iterator[tuple[str, torch.Tensor]]:
    """The same one by one, so that no more than one has to be there; no head if it is tied."""
    kind = getattr(torch, shape.dtype)
    norm_kind = torch.float32 if shape.sandwich_norms else kind

    def get(*names: str) -> torch.Tensor:
        to = norm_kind if names[0].endswith("norm") else kind
        parts = [fetch(name).to(device=device, dtype=to) for name in names]
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).contiguous()

    for name in ("embed", "norm") if tied else ("embed", "norm", "head"):
        yield name, get(name)
    names = ["attn_norm", "ffn_norm", "o", "down"]
    names += ["q_norm", "k_norm"] if shape.qk_norm else []
    names += ["attn_out_norm", "ffn_out_norm"] if shape.sandwich_norms else []
    for layer in range(shape.layers):
        at = f"layers.{layer}."
        for name in names:
            yield at + name, get(at + name)
        yield at + "qkv", get(at + "q", at + "k", at + "v")
        yield at + "gate_up", get(at + "gate", at + "up")
        if shape.qkv_bias:
            yield at + "qkv_bias", get(at + "q_bias", at + "k_bias", at + "v_bias")


def file_fetch(tensors: Mapping[str, Tensor]) -> Fetch:
    """Fetches tensors as the loader maps them, dequantised on the device."""
    return lambda name: to_device(tensors[name])


def rotary_tables(shape: Shape, ropes: Sequence[Rope]) -> dict[str, torch.Tensor]:
    """`cos.i` and `sin.i` for each kind: f32[max_model_len, head_dim / 2].

    Computed in float64 on the host.
    """
    tables = {}
    for index, (theta, scaling) in enumerate(ropes):
        frequencies = rotary_frequencies(shape.head_dim, theta, scaling)
        angles = np.arange(shape.max_model_len, dtype=np.float64)[:, None] * frequencies[None, :]
        for name, function in (("cos", np.cos), ("sin", np.sin)):
            table = torch.from_numpy(function(angles).astype(np.float32))
            tables[f"{name}.{index}"] = table.cuda()
    return tables


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
