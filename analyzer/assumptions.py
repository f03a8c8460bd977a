"""What a certificate rests on below TTIR, by name; `verus-proofs/TRUSTED.md` has a row for each."""

from __future__ import annotations

from pyvosti.analyzer.lowering import Lowering

ASSUMPTIONS = {
    "triton_lowering": "Triton lowers each operation of TTIR as it is written; reductions and dots "
    "get the layout that the certificate records; copies between layouts copy bits",
    "ptxas": "ptxas and the driver keep arithmetic that names its rounding as it is, in its order",
    "launch_order": "launches of one stream run one after the other, and see each other's stores",
    "tensor_core_rows": "an element of a tensor-core product is one function of its row, column "
    "and addend, wherever it lies and whatever else is multiplied; chains add in order",
    "equal_units": "mma.sync and wgmma add 16 products in the same way",
    "dead_lane": "a product with a weight of zero leaves a tensor-core sum as it was, up to the "
    "sign of zero, whatever finite number it meets",
    "approximations": "ex2.approx, rsqrt.approx and div.full are functions of their operands",
}
"""Name -> what is believed."""


def assumptions_of(kernel: str, lowering: Lowering) -> list[str]:
    """Those that one artifact's certificate rests on, in the order of ASSUMPTIONS."""
    units = {dot.unit for dot in lowering.descriptor.dots}
    used = {"triton_lowering", "ptxas", "launch_order"}
    if units:
        used.add("tensor_core_rows")
    if "wgmma" in units:
        used.add("equal_units")
    if units and kernel.startswith("attention"):
        used.add("dead_lane")
    if lowering.instructions.approximations:
        used.add("approximations")
    return [name for name in ASSUMPTIONS if name in used]
