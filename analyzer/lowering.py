"""Below TTIR: what one artifact was lowered to, and whether the members of a family agree.

A family holds the artifacts that may compute the same row: the members of a schedule class, and
for attention both ways through the splits. The analyzer proves them equal down to TTIR's
reductions and dots; here those are compared as the compiler built them. Two instructions count as
one sum only where a probe on that architecture found them to be (`benchmarks/device_trees.py` and
`device_matrix.py`, `docs/reports/`); elsewhere a family that mixes them is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyvosti.analyzer.ptx import Instructions, audit_ptx
from pyvosti.analyzer.ttgir import Descriptor, LoweringError, describe
from pyvosti.triton_kernels.compile import Spec

EQUAL_UNITS: dict[int, tuple[frozenset[str], ...]] = {
    80: (frozenset({"mma.sync"}),),
    90: (frozenset({"mma.sync", "wgmma"}),),
    100: (frozenset({"mma.sync"}), frozenset({"tcgen05"})),
}
"""By architecture: instructions whose sums of 16 products were found equal bit for bit."""

TILE_CONSTANTS = {
    "linear": ("GROUP_N", "BLOCK_M", "BLOCK_N", "BLOCK_K"),
    "gate_up": ("GROUP_N", "BLOCK_M", "BLOCK_N", "BLOCK_K"),
    "attention_splits": ("BLOCK_M", "STRIDE", "MAX_SPLITS"),
    "attention_whole": ("BLOCK_M",),
}
"""Constants in which members of a family may differ; all others belong to the class."""


@dataclass(frozen=True)
class Lowering:
    """What one artifact became: reductions, dots, instructions."""

    descriptor: Descriptor
    instructions: Instructions

    def describe(self) -> dict[str, Any]:
        """As plain data, for the certificate."""
        return {
            "reduces": [[r.combine, r.extent, r.tree] for r in self.descriptor.reduces],
            "dots": [[d.unit, d.operands, d.accumulator, d.depth] for d in self.descriptor.dots],
            "instructions": self.instructions.counts,
            "approximations": list(self.instructions.approximations),
            "tensor_core": list(self.instructions.tensor_core),
        }


def lowering_of(asm: Mapping[str, Any]) -> Lowering:
    """Audits an artifact's `ttgir` and `ptx`. Raises LoweringError for what is unknown or wrong."""
    instructions = audit_ptx(asm["ptx"])
    if instructions.faults:
        raise LoweringError("; ".join(instructions.faults))
    return Lowering(describe(asm["ttgir"]), instructions)


def family_of(spec: Spec) -> str:
    """The family's name: the kernel, and a short digest of what its members have in common."""
    free = TILE_CONSTANTS.get(spec.kernel, ())
    constants = [(name, value) for name, value in spec.constants if name not in free]
    kernel, pointers = spec.kernel, spec.pointers
    if kernel in ("attention_splits", "attention_whole"):
        kernel, pointers = "attention", spec.pointers[:3]
    if free:
        key = repr((kernel, pointers, constants))
    else:
        key = repr((kernel, pointers, constants, spec.num_warps, spec.num_stages))
    return f"{kernel}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def family_faults(members: Sequence[Mapping[str, Any]], arch: int) -> list[str]:
    """Why members (as `Lowering.describe` gives them) are not one class; empty when they are."""
    faults = []
    trees = {
        tuple(sorted((c, n, tree) for c, n, tree in m["reduces"] if _rounds(c))) for m in members
    }
    if len(trees) > 1:
        differing = sorted({tree for one in trees for _, _, tree in one})
        faults.append(f"its members reduce in different trees: {', '.join(differing)}")
    types = {(operands, out) for m in members for _, operands, out, _ in m["dots"]}
    if len(types) > 1:
        faults.append(f"its members multiply different types: {sorted(types)}")
    units = {unit for m in members for unit, _, _, _ in m["dots"]}
    if units and not any(units <= equal for equal in EQUAL_UNITS[arch]):
        faults.append(
            f"it mixes {' and '.join(sorted(units))}, which no probe on sm_{arch} has found equal"
        )
    return faults


def _rounds(combine: str) -> bool:
    return any(kind in combine for kind in ("f16", "f32", "f64"))
