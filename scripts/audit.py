"""`just audit`: every escape hatch in the verified code is in TRUSTED.md, and nothing else is.

TRUSTED.md holds one table with the header `| item | kind | file | reason | attack |`. A row is one
occurrence (`name × 3` in `item`: three). The scanned kinds must equal what audit_scan finds, row
for row; other kinds (FREE) are assumptions that no scan can see, and must name a word of `file`.
Every row gives a reason, and an attack: backticked `path::name`s that exist, or `none: why`.
Outside verus-proofs/src/trusted/ no verified crate may have any, listed or not.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from audit_scan import Finding, crates, scan
from rust_source import SourceError

HEADER = ["item", "kind", "file", "reason", "attack"]
FREE = {"hypothesis", "contract", "tool", "hardware", "rust", "python"}
TRUSTED_FOLDER = "verus-proofs/src/trusted/"
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Row:
    """One row of TRUSTED.md; `line` counts from 1."""

    item: str
    kind: str
    file: str
    reason: str
    attack: str
    line: int

    @property
    def name(self) -> str:
        """The item without its count."""
        return re.sub(r"\s*×\s*\d+$", "", self.item)

    @property
    def count(self) -> int:
        """How many occurrences the row stands for."""
        times = re.search(r"×\s*(\d+)$", self.item)
        return int(times[1]) if times else 1


def read_table(path: Path) -> list[Row]:
    """The rows of TRUSTED.md. Raises ValueError when there is no such table or a row is ragged."""
    rows: list[Row] | None = None
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = text.strip()
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if rows is None or not line.startswith("|"):
            rows = [] if cells == HEADER and rows is None else rows
        elif not re.fullmatch(r"[|:\s-]+", line):
            if len(cells) != len(HEADER):
                raise ValueError(f"{path}:{number}: {len(cells)} cells, not {len(HEADER)}")
            item, kind, file = (cell.strip("`") for cell in cells[:3])
            rows.append(Row(item.replace("`", ""), kind, file, cells[3], cells[4], number))
    if rows is None:
        raise ValueError(f"{path}: no table with the header | {' | '.join(HEADER)} |")
    return rows


def differences(root: Path, findings: list[Finding], rows: list[Row]) -> list[str]:
    """One sentence for each way in which the code and TRUSTED.md disagree."""
    scanned: Counter[Key] = Counter((f.file, f.kind, f.item) for f in findings)
    listed: Counter[Key] = Counter()
    for row in rows:
        if row.kind not in FREE:
            listed[(row.file, row.kind, row.name)] += row.count
    out = []
    for key in sorted(scanned.keys() | listed.keys()):
        file, kind, item = key
        if scanned[key] != listed[key]:
            lines = [str(f.line) for f in findings if (f.file, f.kind, f.item) == key]
            where = f" (line {', '.join(lines)})" if lines else ""
            out.append(
                f"{file}{where}: {kind} `{item}`: {scanned[key]} in the code, "
                f"{listed[key]} in TRUSTED.md"
            )
    for row in rows:
        out += [f"TRUSTED.md:{row.line}: {fault}" for fault in _faults(root, row)]
    return out + _outside_trusted(root, findings)


def _outside_trusted(root: Path, findings: list[Finding]) -> list[str]:
    verified = [c.folder.relative_to(root).as_posix() + "/" for c in crates(root) if c.verified]
    others = [c.folder.relative_to(root).as_posix() + "/" for c in crates(root) if not c.verified]
    return [
        f"{f.file}:{f.line}: {f.kind} `{f.item}` outside {TRUSTED_FOLDER}, where there must be none"
        for f in findings
        if f.file.startswith(tuple(verified))
        and not f.file.startswith(tuple(others))
        and not f.file.startswith(TRUSTED_FOLDER)
    ]


def _faults(root: Path, row: Row) -> list[str]:
    faults = [f"`{row.item}` has no {cell}" for cell in ("reason", "attack") if not _of(row, cell)]
    if row.file != "-" and not (root / row.file).is_file():
        return [*faults, f"`{row.item}`: there is no file {row.file}"]
    if row.kind in FREE and row.file != "-":
        text = (root / row.file).read_text(encoding="utf-8")
        if not re.search(rf"\b{re.escape(row.name)}\b", text):
            faults.append(f"`{row.item}` does not occur in {row.file}")
    if row.attack and not row.attack.startswith("none: "):
        attacks = re.findall(r"`([^`]+)`", row.attack)
        if not attacks:
            faults.append(f"`{row.item}`: the attack names no `path::test`, nor says `none: why`")
        faults += [f"`{row.item}`: no attack {a}" for a in attacks if not _attack(root, a)]
    return faults


def _of(row: Row, cell: str) -> str:
    return row.reason if cell == "reason" else row.attack


def _attack(root: Path, attack: str) -> bool:
    """Whether `path` exists and holds every `::name` after it; a bare recipe is `just name`."""
    if attack.startswith("just "):
        recipes = (root / "justfile").read_text(encoding="utf-8")
        return re.search(rf"^{re.escape(attack[5:])}\b.*:", recipes, re.MULTILINE) is not None
    path, *names = attack.split("::")
    if not (root / path).is_file():
        return False
    text = (root / path).read_text(encoding="utf-8")
    return all(re.search(rf"\b{re.escape(name)}\b", text) for name in names)


def audit(root: Path) -> tuple[list[Finding], list[Row], list[str]]:
    """Findings, rows and differences. ValueError or SourceError where either cannot be read."""
    findings = scan(root)
    rows = read_table(root / "verus-proofs" / "TRUSTED.md")
    return findings, rows, differences(root, findings, rows)


def main(root: Path) -> int:
    """Prints the counts and each difference; 1 when there is one."""
    try:
        findings, rows, faults = audit(root)
    except (OSError, ValueError, SourceError) as error:
        print(f"audit: {error}")
        return 1
    places = [(f.kind, f.file) for f in findings]
    places += [(row.kind, row.file) for row in rows if row.kind in FREE]
    for kind, count in sorted(Counter(kind for kind, _ in places).items()):
        files = len({file for found, file in places if found == kind})
        print(f"  {kind:<28} {count:>4}  in {files} files")
    unattacked = [row for row in rows if row.attack.startswith("none: ")]
    for row in unattacked:
        print(f"  not attacked: {row.item} ({row.attack.removeprefix('none: ')})")
    for fault in faults:
        print(f"  {fault}")
    verdict = f"{len(faults)} differences" if faults else "the code and TRUSTED.md agree"
    print(f"audit: {len(findings)} escape hatches, {len(rows)} rows: {verdict}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
