"""Whether the specification's row functions and the kernels' certificates belong together.

A row function names its certificate (`// cert: NAME` in `row_functions.rs`); a kernel's file of
certificates names the row functions that it computes. Every row function needs a kernel with a
certificate, every kernel a file, every certificate a row function and the sources that are here.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

ROW_FUNCTIONS = Path("verus-proofs") / "src" / "trusted" / "row_functions.rs"
KERNELS = Path("triton_kernels")
CERTIFICATES = KERNELS / "certificates"
REPORTED = {"log_softmax"}
"""Kernels that no theorem speaks of: log-probabilities are reported, nothing is drawn from them."""


def row_functions(root: Path) -> set[str]:
    """Certificates that the specification's row functions name."""
    text = (root / ROW_FUNCTIONS).read_text(encoding="utf-8")
    return set(re.findall(r"// cert: (\w+)", text))


def kernels(root: Path) -> set[str]:
    """The kernels that a launch plan may name: the keys of `KERNELS` in compile.py."""
    text = (root / KERNELS / "compile.py").read_text(encoding="utf-8")
    table = re.search(r"^KERNELS = \{\n(.*?)^\}", text, flags=re.M | re.S)
    return set(re.findall(r'^ +"(\w+)": \w+\.\w+,$', table[1] if table else "", flags=re.M))


def certificates(root: Path) -> dict[str, dict[str, Any]]:
    """The files of certificates, by kernel."""
    paths = sorted((root / CERTIFICATES).glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def file_faults(root: Path, kernel: str, file: dict[str, Any], named: set[str]) -> list[str]:
    """What is wrong with one kernel's certificates; each fault once."""
    computed = set(file["row_functions"])
    faults = []
    if not computed and kernel not in REPORTED:
        faults.append(f"{kernel} computes no row function")
    faults += [
        f"{kernel} computes {name}, which is no row function" for name in sorted(computed - named)
    ]
    for one in file["certificates"].values():
        if one["verdict"] != "proved":
            faults.append(f"{kernel} {one['name']} is {one['verdict']}")
        for name, digest in one["sources"].items():
            path = root / KERNELS / name
            now = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
            if now != digest:
                faults.append(f"{kernel} was certified with another {name}: run `just certify`")
    return list(dict.fromkeys(faults))


def check_certificates(root: Path) -> tuple[list[str], list[str]]:
    """Row functions without a certificate yet, and faults.

    While there is no certificate at all, every row function is pending; once there is one, whatever
    does not belong together is a fault.
    """
    named, files = row_functions(root), certificates(root)
    if not named:
        return [], [f"{ROW_FUNCTIONS} names no certificate"]
    if not files:
        return sorted(named), []
    computed = {name for file in files.values() for name in file["row_functions"]}
    faults = [f"row function {name} has no certificate" for name in sorted(named - computed)]
    faults += [f"{kernel} has no certificate" for kernel in sorted(kernels(root) - set(files))]
    for kernel, file in files.items():
        faults += file_faults(root, kernel, file, named)
    return [], faults
