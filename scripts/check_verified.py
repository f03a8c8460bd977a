"""`just check-verified`: the sources here are those that Verus verified, file by file.

Needs no Verus: it compares hashes and pinned versions with verus-proofs/verified.json.
"""

from __future__ import annotations

import sys
from pathlib import Path

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


def main(root: Path) -> int:
    """Prints what differs; 1 when anything does."""
    try:
        record = read_record(root)
        faults = changes(record["sources"], hashes(root), "file")
        faults += changes(record["pins"], pins(root), "version")
    except (OSError, ValueError, KeyError) as error:
        print(f"verified.json: {error}")
        return 1
    for fault in faults:
        print(f"  {fault}")
    if faults:
        print(f"{RECORD} is of other sources: with Verus installed, run `just verify --record`")
        return 1
    counts = ", ".join(f"{name} {count}" for name, count in record["crates"].items())
    print(f"{RECORD}: {len(record['sources'])} files as verified ({counts}; 0 errors)")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
