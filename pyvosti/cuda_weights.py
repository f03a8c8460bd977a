"""Weights on the GPU: fused matrices in the activations' type, rotary tables, their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from pyvosti._core import rotary_table
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


def rotary_tables(
    shape: Shape, ropes: Sequence[Rope], device: str = "cuda"
) -> dict[str, torch.Tensor]:
    """`cos.i` and `sin.i` for each kind: f32[max_model_len, head_dim / 2].

    The CPU backend's, since numpy's depend on the host processor.
    """
    tables = {}
    for index, rope in enumerate(ropes):
        made = rotary_table(shape.head_dim, shape.max_model_len, rope._asdict())
        for name, table in zip(("cos", "sin"), made, strict=True):
            tables[f"{name}.{index}"] = torch.from_numpy(table).to(device)
    return tables
