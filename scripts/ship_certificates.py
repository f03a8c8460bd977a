"""Makes the certificates that ship with the kernels, all shapes of `analyzer/shapes.py` anew.

What several shapes share is proved once. Writes `triton_kernels/certificates` only when all of it
is proved; needs Triton and z3, no GPU.

    ship_certificates.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyvosti.analyzer.certificate import Certificate, shipped_store, write_store
from pyvosti.analyzer.certify import add_pairs, certify, judged
from pyvosti.analyzer.shapes import SHAPES, shipped_specs
from pyvosti.triton_kernels.compile import Spec

ARCH = 90


def make(specs: list[Spec], made: dict[str, Certificate]) -> list[str]:
    """Certifies those of a shape that are not made yet; what stands against running them."""
    fresh = [spec for spec in specs if spec.key() not in made]
    for one in certify(fresh, ARCH, None):
        made[one["name"].removesuffix(f"-sm{ARCH}")] = one
    certificates = {spec: made[spec.key()] for spec in specs}
    add_pairs(certificates, ARCH)
    return judged(certificates, ARCH).objections


def main() -> int:
    """Prints a line a shape; 1 when something is not proved."""
    start = time.monotonic()
    made: dict[str, Certificate] = {}
    objections: list[str] = []
    for name, shape in SHAPES.items():
        specs = shipped_specs(shape, ARCH)
        objections += make(specs, made)
        seconds = time.monotonic() - start
        print(f"{name}: {len(specs)} kernels, {len(made)} made, {seconds:.0f} s", flush=True)
    for objection in objections:
        print(objection)
    if objections:
        return 1
    for path in shipped_store().glob("*.json"):
        path.unlink()
    write_store(shipped_store(), made.values())
    return 0


if __name__ == "__main__":
    sys.exit(main())
