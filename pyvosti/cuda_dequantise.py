"""File tensors to device tensors: plain floats are copied, GGML's block formats expanded once.

Formats: github.com/ggml-org/ggml, `ggml-common.h` (block layouts) and `ggml-quants.c`. Elementwise
in f32; a value depends on its own block alone.
"""

from __future__ import annotations

import torch

from pyvosti.weights import BLOCKS, Tensor

PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def to_device(tensor: Tensor, device: str = "cuda") -> torch.Tensor:
    """The tensor's values on the device: its own type if plain, else f32."""
    raw = torch.from_numpy(tensor.data.copy()).to(device)
    if tensor.dtype in PLAIN:
        return raw.view(PLAIN[tensor.dtype]).reshape(tensor.shape)
    elements, size = BLOCKS[tensor.dtype]
    blocks = raw.reshape(-1, size)
    values = EXPAND[tensor.dtype](blocks)
    return values.reshape(-1, elements).reshape(tensor.shape)


def half(blocks: torch.Tensor, first: int) -> torch.Tensor:
    """f32[n, 1]: the f16 at byte `first` of each block."""
    return blocks[:, first : first + 2].contiguous().view(torch.float16).float()


def nibbles(packed: torch.Tensor) -> torch.Tensor:
    """f32[n, 2 m] of u8[n, m]: all low halves, then all high halves."""
    return torch.cat([packed & 15, packed >> 4], dim=1).float()


def q8_0(blocks: torch.Tensor) -> torch.Tensor:
    """scale f16, 32 x i8."""
    return half(blocks, 0) * blocks[:, 2:].contiguous().view(torch.int8).float()


def q4_0(blocks: torch.Tensor) -> torch.Tensor:
    """scale f16, 32 x u4, less 8."""
    return half(blocks, 0) * (nibbles(blocks[:, 2:]) - 8.0)


def q4_1(blocks: torch.Tensor) -> torch.Tensor:
    """scale f16, minimum f16, 32 x u4."""
    return half(blocks, 0) * nibbles(blocks[:, 4:]) + half(blocks, 2)


def q4_k(blocks: torch.Tensor) -> torch.Tensor:
    """scale f16, minimum f16, 8 x (6-bit scale, 6-bit minimum) in 12 bytes, 256 x u4."""
    packed = blocks[:, 4:16]
    low, middle, high = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = torch.cat([low & 63, (high & 15) | ((low >> 6) << 4)], dim=1).float()
    minima = torch.cat([middle & 63, (high >> 4) | ((middle >> 6) << 4)], dim=1).float()
    quants = blocks[:, 16:].reshape(-1, 4, 32)
    quants = torch.stack([quants & 15, quants >> 4], dim=2).reshape(-1, 8, 32).float()
    scale, minimum = half(blocks, 0) * scales, half(blocks, 2) * minima
    return scale[:, :, None] * quants - minimum[:, :, None]


def q6_k(blocks: torch.Tensor) -> torch.Tensor:
    """256 x u6 (low 4 bits, high 2 bits), 16 x i8 scales, scale f16; less 32."""
    low = blocks[:, :128].reshape(-1, 2, 2, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 32)
    first, second = low[:, :, 0], low[:, :, 1]
    low = torch.stack([first & 15, second & 15, first >> 4, second >> 4], dim=2)
    top = torch.stack([(high >> (2 * i)) & 3 for i in range(4)], dim=2)
    quants = (low | (top << 4)).float() - 32.0
    scales = blocks[:, 192:208].contiguous().view(torch.int8).float()
    return half(blocks, 208)[:, :, None] * scales[:, :, None] * quants.reshape(-1, 16, 16)


EXPAND = {"Q8_0": q8_0, "Q4_0": q4_0, "Q4_1": q4_1, "Q4_K": q4_k, "Q6_K": q6_k}
