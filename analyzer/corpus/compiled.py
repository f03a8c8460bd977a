"""Faults that only the compiler's output shows: TTIR is as it should be, the sums are not.

Each is a pair of artifacts that one deployment would launch for the same row, by how many rows
there are. The audit of the lowering has to refuse the pair, or the second artifact alone.
`benchmarks/device_corpus.py` shows on a GPU that the row's bits differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from triton.compiler import ASTSource

from pyvosti.analyzer.lowering import family_faults, lowering_of
from pyvosti.analyzer.shapes import SHAPES
from pyvosti.analyzer.ttgir import LoweringError
from pyvosti.triton_kernels.compile import Spec, compiled
from pyvosti.triton_kernels.launches import (
    attention_launches,
    linear_launch,
    log_softmax_launch,
    norm_launch,
)
from pyvosti.triton_kernels.schedule import linear_members, make_schedule

SCHEDULE = make_schedule(replace(SHAPES["llama-3.1-8b"], max_model_len=32768), 90)


@dataclass(frozen=True)
class Unaligned(Spec):
    """A specialisation for pointers of which nothing is known, as a slice of a buffer has."""

    def source(self) -> ASTSource:
        """The shipped source without the alignment of its pointers."""
        aligned = super().source()
        return ASTSource(aligned.fn, aligned.signature, aligned.constants, {})


@dataclass(frozen=True)
class Compiled:
    """`members` are what is launched for few rows, and for many; `why` is how it is refused."""

    name: str
    kind: str
    members: tuple[Spec, Spec]
    why: str
    arch: int = 90
    seen: str = "-"


def unaligned(spec: Spec) -> Spec:
    """The same without alignment."""
    values = (spec.kernel, spec.pointers, spec.constants, spec.num_warps, spec.num_stages)
    return Unaligned(*values)


def fused(spec: Spec) -> Spec:
    """The same with contraction of products and sums left on, Triton's default."""
    return replace(spec, options=(("enable_fp_fusion", True),))


def _faults() -> tuple[Compiled, ...]:
    norm = norm_launch(SCHEDULE, "norm", 1, "down_sums").spec
    # In bf16 a square is exact in f32, so that contraction changes nothing there.
    wide = make_schedule(replace(SCHEDULE.shape, dtype="float32"), 90)
    norm32 = norm_launch(wide, "norm", 1, "down_sums").spec
    softmax = log_softmax_launch(SCHEDULE).spec
    whole = attention_launches(SCHEDULE, 0, 4096, True)[2].spec
    narrow = attention_launches(SCHEDULE, 0, 16, False)[0].spec
    blackwell = make_schedule(SCHEDULE.shape, 100)
    tiles = linear_members(SCHEDULE.o.n, SCHEDULE.o.k, 1, False, 100, 2)
    mixed = [
        linear_launch(blackwell, replace(blackwell.o, members=(tile,)), 1, "o", "x", "w", "", "out")
        for tile in (tiles[0], tiles[-1])
    ]
    batch = "splits or tile from the batch"
    return (
        Compiled("norm_fused_in_large_batches", "fp fusion left on", (norm32, fused(norm32)),
                 "contracts a product and a sum"),
        Compiled("norm_of_an_unaligned_slice", "unspecialised alignment", (norm, unaligned(norm)),
                 "reduce in different trees"),
        Compiled("norm_warps_from_the_batch", batch,
                 (norm, replace(norm, num_warps=norm.num_warps // 4)), "reduce in different trees",
                 seen="vllm-project/vllm#48271"),
        Compiled("log_softmax_warps_from_the_batch", batch,
                 (softmax, replace(softmax, num_warps=8)), "reduce in different trees"),
        Compiled("attention_warps_divide_the_keys", "layout along the reduced axis",
                 (narrow, replace(narrow, num_warps=4)), "reduce in different trees",
                 seen="flashinfer-ai/flashinfer#2424"),
        Compiled("attention_members_of_sm_80", "layout along the reduced axis", (narrow, whole),
                 "reduce in different trees", 80),
        Compiled("linear_members_of_sm_100", batch, (mixed[0].spec, mixed[1].spec),
                 "which no probe on sm_100 has found equal", 100),
    )  # fmt: skip


COMPILED = _faults()


def refusal(fault: Compiled) -> str:
    """Why the audit refuses the artifacts; empty if it does not."""
    try:
        lowered = [lowering_of(compiled(spec, fault.arch).asm).describe() for spec in fault.members]
    except LoweringError as error:
        return str(error)
    return "; ".join(family_faults(lowered, fault.arch))
