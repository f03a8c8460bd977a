"""Which kernels' row functions have a certificate of the analyzer: `// cert: NAME` names it."""

from __future__ import annotations

import re
from pathlib import Path

ROW_FUNCTIONS = Path("verus-proofs") / "src" / "trusted" / "row_functions.rs"
CERTIFICATES = Path("triton_kernels") / "certificates"


def row_functions(root: Path) -> set[str]:
    """Certificates that the specification's row functions name."""
    text = (root / ROW_FUNCTIONS).read_text(encoding="utf-8")
    return set(re.findall(r"// cert: (\w+)", text))


def certificates(root: Path) -> set[str]:
    """Certificates that there are, by kernel."""
    return {path.stem for path in (root / CERTIFICATES).glob("*.json")}


def check_certificates(root: Path) -> tuple[list[str], list[str]]:
    """Row functions without a certificate yet, and faults.

    While there is no certificate at all, every row function is pending; once there is one, a row
    function without a certificate, or a certificate without a row function, is a fault.
    """
    named, present = row_functions(root), certificates(root)
    if not named:
        return [], [f"{ROW_FUNCTIONS} names no certificate"]
    if not present:
        return sorted(named), []
    faults = [f"row function {name} has no certificate" for name in sorted(named - present)]
    faults += [f"certificate {name} has no row function" for name in sorted(present - named)]
    return [], faults
