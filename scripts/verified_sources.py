"""What `verified.json` pins: the verified sources by content, and the versions they go with."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from audit_scan import crates, rust_files

VERUS = "0.2026.07.12.0b42f4c"
RECORD = Path("verus-proofs") / "verified.json"


def hashes(root: Path) -> dict[str, str]:
    """SHA-256 of every file that decides what Verus verifies, by path."""
    files = [root / "Cargo.toml"]
    for crate in crates(root):
        if crate.verified:
            tests = crate.folder / "tests"  # programs of their own: Cargo gives Verus none of them
            files += [crate.folder / "Cargo.toml"]
            files += [path for path in rust_files(crate) if not path.is_relative_to(tests)]
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


def pins(root: Path) -> dict[str, str]:
    """Version and checksum of vstd and of Verus's macros in Cargo.lock, and Verus's own version.

    Raises ValueError when Cargo.toml, Cargo.lock and the Verus version here are not of one day.
    """
    manifest = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    wanted = str(manifest["workspace"]["dependencies"]["vstd"])
    lock = tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))
    found = {
        package["name"]: f"{package['version']} {package.get('checksum', '')}".strip()
        for package in lock["package"]
        if package["name"] == "vstd" or package["name"].startswith("verus")
    }
    day = re.search(r"\d{4}\.\d\d\.\d\d", VERUS)
    if day is None or day[0].replace(".", "-") not in wanted:
        raise ValueError(f"Cargo.toml has vstd {wanted}, which is not the twin of Verus {VERUS}")
    if not wanted.startswith("=") or found["vstd"].split()[0] != wanted.removeprefix("="):
        raise ValueError(f"Cargo.lock has vstd {found['vstd']}, Cargo.toml wants {wanted}")
    return {"verus": VERUS, **found}


def read_record(root: Path) -> dict[str, Any]:
    """The record of the last full verification. Raises OSError or ValueError without one."""
    record: dict[str, Any] = json.loads((root / RECORD).read_text(encoding="utf-8"))
    return record
