"""Real faults of other engines (`cases.tsv`), and the table of them (`docs/cases.md`).

`python tests/cases.py` writes the table anew. A case's attack is one of

    cells NAMES | fault NAME [| model NAME]   cells of `pyvosti check` that hold, and a planted
                                              fault of the kind, which one of them must show
    test FILE::NAME                           a test of its own
    none REASON                               why it cannot apply yet
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "cases.md"
HEAD = """# Faults of other engines, and the tests of their kind

Each row is a public report of nondeterminism, or of a wrong result that looked like it, in an
inference engine. Of {tested} of these {all}, pyvosti has a test of the *kind*: cells of `pyvosti
check`, which must be equal and must catch a planted fault of that kind
(`tests/test_cases.py::test_case`), or a test of its own. Of the others the table says what is
missing. `tests/cases.tsv` holds the data; `python tests/cases.py` writes this page.

| id | engine | reported | our test |
| --- | --- | --- | --- |
"""


class Case(NamedTuple):
    """One reported fault."""

    id: str
    ref: str
    engine: str
    fault: str
    attack: str

    @property
    def kind(self) -> str:
        return self.attack.split()[0]

    def part(self, name: str) -> list[str]:
        """The words after a name in the attack."""
        for part in self.attack.split("|"):
            head, *words = part.split()
            if head == name:
                return words
        return []

    def link(self) -> str:
        """The report, as Markdown."""
        repository, number = self.ref.split("#")
        return f"[{self.ref}](https://github.com/{repository}/issues/{number})"

    def told(self) -> str:
        """The attack, as Markdown."""
        if self.kind == "cells":
            cells = ", ".join(self.part("cells"))
            return f"cells {cells}; planted fault {self.part('fault')[0]}"
        if self.kind == "test":
            return f"`{self.part('test')[0]}`"
        return f"none yet: {self.attack.removeprefix('none ')}"


def read_cases() -> list[Case]:
    with (ROOT / "tests" / "cases.tsv").open(encoding="utf-8", newline="") as file:
        return [Case(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def render(cases: list[Case]) -> str:
    """The page."""
    rows = [
        f"| {case.id} | {case.engine}, {case.link()} | {case.fault.replace('|', '/')} "
        f"| {case.told()} |"
        for case in cases
    ]
    tested = sum(case.kind != "none" for case in cases)
    return HEAD.format(tested=tested, all=len(cases)) + "\n".join(rows) + "\n"


if __name__ == "__main__":
    TABLE.write_text(render(read_cases()), encoding="utf-8")
