"""Small specialisations of the shipped kernels: what the corpus edits, and what is interpreted.

f32 throughout: the interpreter computes `tl.dot` of bf16 on bit patterns as integers.
"""

from __future__ import annotations

from typing import Any

from pyvosti.analyzer.patched import PatchedSpec
from pyvosti.triton_kernels.launches import make_spec

F32 = "fp32"
_TILED = dict(SCALE=0.36, KV_HEADS=2, GROUP=2, HEAD_DIM=16, PAGE=16, MAX_PAGES=6, SPLIT=32)
_ATTENTION = [F32] * 3 + ["i32"] * 5
BASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "adjust": (
        [F32, "i32", F32, "i32", "i32", *[F32] * 5],
        dict(VOCAB=40, BLOCK=32, HAS_BIAS=True, HAS_PENALTIES=True),
    ),
    "argmax": (["i32", F32, "i32", "i32", "i32"], dict(VOCAB=40, BLOCK=32)),
    "attention_combine": (
        ["i32", "i32", "i32", *[F32] * 4],
        dict(HEADS=4, HEAD_DIM=16, SPLIT=32, MAX_SPLITS=3, WINDOW=0, BLOCK_H=2, UNROLL=2),
    ),
    "attention_splits": (
        [*_ATTENTION, "i32", F32, F32, F32],
        dict(**_TILED, MAX_SPLITS=3, STRIDE=2, WINDOW=0, BLOCK_M=16, BLOCK_N=16, PRECISION="ieee"),
    ),
    "attention_whole": (
        [*_ATTENTION, F32],
        dict(**_TILED, WINDOW=0, BLOCK_M=16, BLOCK_N=16, PRECISION="ieee"),
    ),
    "embedding": (["i32"] * 4 + [F32] * 2, dict(HIDDEN=24, BLOCK=32, SCALE=1.0)),
    "gate_up": (
        ["i32", F32, F32, F32],
        dict(
            N=16, K=64, GROUP_N=1, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, PRECISION="ieee", GELU=False
        ),
    ),
    "gather_rows": (["i32", "i32", F32, F32], dict(HIDDEN=24, BLOCK=32)),
    "linear": (
        ["i32", *[F32] * 4],
        dict(
            N=16, K=64, SPLITS=1, HAS_BIAS=False, GROUP_N=1, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16,
            PRECISION="ieee",
        ),
    ),
    "log_softmax": ([F32, F32], dict(VOCAB=40, BLOCK=32)),
    "rms_norm": (["i32", *[F32] * 5], dict(HIDDEN=24, BLOCK=32, SPLITS=1, EPS=1e-5)),
    "rope_kv_write": (
        ["i32", F32, F32, F32, "i32", "i32", *[F32] * 5],
        dict(
            HEADS=4, KV_HEADS=2, HALF=8, GROUP=2, GROUP_BLOCK=2, PAGE=4, SPLITS=1, QK_NORM=True,
            EPS=1e-6,
        ),
    ),
    "sample": (
        [F32, "i64", "i32", "i32", F32, "i32", F32, F32, "i32", "i32", "i32"],
        dict(VOCAB=40, BLOCK=32),
    ),
    "sandwich_norm": (["i32", *[F32] * 6], dict(HIDDEN=24, BLOCK=32, SPLITS=1, EPS=1e-6)),
}  # fmt: skip
"""Kernel -> (pointer types, constants)."""


def small_spec(kernel: str, edits: tuple[tuple[str, str], ...] = (), **changed: Any) -> PatchedSpec:
    """The kernel's small specialisation with edits and other constants."""
    pointers, constants = BASES[kernel]
    spec = make_spec(kernel, pointers, 1, 1, **(constants | changed))
    return PatchedSpec(
        spec.kernel, spec.pointers, spec.constants, spec.num_warps, spec.num_stages, edits=edits
    )
