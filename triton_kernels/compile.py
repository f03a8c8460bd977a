"""One compiled artifact per entry of a launch plan, the same with and without a GPU.

A `Spec` names a kernel, the types of its pointers and every constant; compiling it leaves nothing
to specialise later. Every pointer is 16-byte aligned (checked at load, see `check_pointers`), no
integer is a run-time argument, and `enable_fp_fusion` is off: contraction across a reduction
would make lanes of one sum differ.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

from . import (
    argmax,
    attention,
    embedding,
    gate_up,
    gather_rows,
    linear,
    log_softmax,
    rms_norm,
    rope_kv_write,
    sampler,
    sandwich_norm,
)

KERNELS = {
    "adjust": sampler.adjust,
    "argmax": argmax.argmax,
    "attention_combine": attention.attention_combine,
    "attention_splits": attention.attention_splits,
    "attention_whole": attention.attention_whole,
    "embedding": embedding.embedding,
    "gate_up": gate_up.gate_up,
    "gather_rows": gather_rows.gather_rows,
    "linear": linear.linear,
    "log_softmax": log_softmax.log_softmax,
    "rms_norm": rms_norm.rms_norm,
    "rope_kv_write": rope_kv_write.rope_kv_write,
    "sample": sampler.sample,
    "sandwich_norm": sandwich_norm.sandwich_norm,
}


@dataclass(frozen=True)
class Spec:
    """A kernel with everything fixed: pointer element types in order, constants, warps, stages."""

    kernel: str
    pointers: tuple[str, ...]
    constants: tuple[tuple[str, Any], ...]
    num_warps: int = 4
    num_stages: int = 1
    options: tuple[tuple[str, Any], ...] = field(default=(("enable_fp_fusion", False),))

    @property
    def function(self) -> Any:
        """The kernel's `triton.jit` function."""
        return KERNELS[self.kernel]

    def source(self) -> ASTSource:
        """The specialisation: `*type` for pointers, constants by name, all pointers aligned."""
        function = self.function
        names = function.arg_names
        signature = {name: f"*{kind}" for name, kind in zip(names, self.pointers, strict=False)}
        signature |= {name: "constexpr" for name in names[len(self.pointers) :]}
        constants = dict(self.constants)
        if list(constants) != names[len(self.pointers) :]:
            raise ValueError(f"{self.kernel}: constants must be {names[len(self.pointers) :]}")
        attributes = {(i,): [["tt.divisibility", 16]] for i in range(len(self.pointers))}
        return ASTSource(function, signature, constants, attributes)

    def key(self) -> str:
        """A short content name: what was asked for (not what the compiler made of it)."""
        parts = [self.kernel, self.pointers, self.constants, self.num_warps, self.num_stages]
        return hashlib.sha256(json.dumps([*parts, self.options]).encode()).hexdigest()[:16]


@cache
def compiled(spec: Spec, arch: int) -> CompiledKernel:
    """Compiles for an NVIDIA target: 80, 90 or 100. Needs no GPU.

    Without line information: with it, the result would depend on the folder of the source.
    """
    options = {"num_warps": spec.num_warps, "num_stages": spec.num_stages, **dict(spec.options)}
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.disable_line_info = True
        return triton.compile(spec.source(), target=GPUTarget("cuda", arch, 32), options=options)


def fingerprint(spec: Spec, arch: int) -> dict[str, str]:
    """SHA-256 of what the compiler produced at each level, for a certificate to be held against."""
    asm = compiled(spec, arch).asm
    texts = {level: asm[level] for level in ("ttir", "ttgir", "ptx", "cubin")}
    return {
        level: hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()
        for level, text in texts.items()
    }


def check_pointers(name: str, pointers: list[int]) -> None:
    """Raises ValueError when a device address breaks the alignment that was compiled in."""
    for index, address in enumerate(pointers):
        if address % 16:
            raise ValueError(f"{name}: argument {index} at {address:#x} is not 16-byte aligned")
