"""Shapes that certificates ship for, as a model's default deployment has them on a GPU."""

from __future__ import annotations

import struct
from dataclasses import replace

from pyvosti.triton_kernels.compile import Spec
from pyvosti.triton_kernels.launches import all_specs
from pyvosti.triton_kernels.schedule import Shape, make_schedule

PUBLISHED = {
    "gemma-3-1b": Shape(
        layers=26, hidden=1152, heads=4, kv_heads=1, head_dim=256, ffn=6912, vocab=262144,
        rms_eps=1e-6, qkv_bias=False, qk_norm=True, layer_groups=(1, 1, 1, 1, 1, 0) * 4 + (1, 1),
        windows=(0, 512), page=64, max_model_len=32768,
        layer_ropes=(1, 1, 1, 1, 1, 0) * 4 + (1, 1), embed_scale=34.0, sandwich_norms=True,
        gelu=True,
    ),
    "llama-3.1-8b": Shape(
        layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256,
        rms_eps=1e-5, qkv_bias=False, qk_norm=False, layer_groups=(0,) * 32, windows=(0,),
        page=64, max_model_len=131072,
    ),
    "qwen3-8b": Shape(
        layers=36, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=12288, vocab=151936,
        rms_eps=1e-6, qkv_bias=False, qk_norm=True, layer_groups=(0,) * 36, windows=(0,),
        page=64, max_model_len=40960,
    ),
    "smollm2-135m": Shape(
        layers=30, hidden=576, heads=9, kv_heads=3, head_dim=64, ffn=1536, vocab=49152,
        rms_eps=1e-5, qkv_bias=False, qk_norm=False, layer_groups=(0,) * 30, windows=(0,),
        page=64, max_model_len=8192,
    ),
}  # fmt: skip
"""Shapes as models' own configurations give them. The number of layers makes no kernel."""


def in_gguf(shape: Shape) -> Shape:
    """The shape as a GGUF file gives it: its epsilon went through a float32."""
    (eps,) = struct.unpack("<f", struct.pack("<f", shape.rms_eps))
    return replace(shape, rms_eps=eps)


SHAPES = PUBLISHED | {f"{name}-gguf": in_gguf(shape) for name, shape in PUBLISHED.items()}
"""Name -> shape."""


def shipped_specs(shape: Shape, arch: int) -> list[Spec]:
    """The kernels of a shape that certificates ship for: with `strict_kernels` and without."""
    schedules = [make_schedule(shape, arch, strict) for strict in (False, True)]
    return list(dict.fromkeys(spec for one in schedules for spec in all_specs(one)))
