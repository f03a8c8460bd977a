"""`just check-verified`: the sources here are those that Verus verified, file by file.

Needs no Verus: it compares hashes and pinned versions with verus-proofs/verified.json, what the
README says of lines and theorems with the counts there, and the premises of the GPU kernels'
certificates with the definitions that they were read off.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from premises import check_premises
from rust_source import SourceError
from verified_sources import RECORD, hashes, pins, read_record


def changes(recorded: dict[str, str], present: dict[str, str], what: str) -> list[str]:
    """One line for each name whose value was changed, removed or added."""
    out = []
    for name in sorted(recorded.keys() | present.keys()):
        old, new = recorded.get(name), present.get(name)
        if old != new:
            verb = "added" if old is None else "removed" if new is None else "changed"
            out.append(f"{what} {verb}: {name}")
    return out


def readme_faults(readme: str, record: dict[str, Any]) -> list[str]:
    """One line for each count or theorem in the README that is not the record's."""
    counts = "| " + " | ".join(f"{n:,}" for n in record["lines"].values()) + " |"
    faults = [] if counts in readme else [f"README.md does not have the line counts {counts}"]
    proved = {theorem["theorem"] for theorem in record["theorems"]}
    named = set(re.findall(r"\btheorem_\w+", readme))
    faults += [f"README.md names {name}, which is not proved" for name in sorted(named - proved)]
    return faults + [f"README.md leaves out {name}" for name in sorted(proved - named)]


def main(root: Path) -> int:
    """Prints what differs; 1 when anything does."""
    try:
        record = read_record(root)
        faults = changes(record["sources"], hashes(root), "file")
        faults += changes(record["pins"], pins(root), "version")
        stale = bool(faults)
        faults += readme_faults((root / "README.md").read_text(encoding="utf-8"), record)
        faults += check_premises(root)
    except (OSError, ValueError, KeyError, SourceError) as error:
        print(f"check-verified: {error}")
        return 1
    for fault in faults:
        print(f"  {fault}")
    if stale:
        print(f"{RECORD} is of other sources: with Verus installed, run `just verify --record`")
    if faults:
        return 1
    counts = ", ".join(f"{name} {count}" for name, count in record["crates"].items())
    print(f"{RECORD}: {len(record['sources'])} files as verified ({counts}; 0 errors)")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
