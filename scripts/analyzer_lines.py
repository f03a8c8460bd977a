"""Counts the lines of the analyzer: the prover, which has a limit, and the audit below TTIR.

A line counts if it holds code: no blank lines, comments or docstrings. A bug in a file of the
prover could make a wrong `proved`; the audit compares what is printed of layouts and instructions.

    analyzer_lines.py
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

FOLDER = Path("analyzer")
LIMIT = 3000
"""Most lines of code of the prover."""
WIDTH = 100
"""Most characters of a line."""
PROVER = (
    *("analyse", "chains", "compiler", "contracts", "coverage", "elements", "floats", "integers"),
    *("kernel_contracts", "launch", "loops", "memory", "obligations", "radix", "relate"),
    *("split_states", "stores", "terms", "ttir", "ttir_operations"),
)
AUDIT = ("assumptions", "certificate", "lowering", "ptx", "ttgir")
HARMLESS = {"report", "witness"}
"""What the prover uses, and what could not make a wrong `proved`: how a verdict is written down."""
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def code_lines(text: str) -> int:
    """Lines that hold code: no blank lines, comments or docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT and token.type != tokenize.ENDMARKER:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines)


def count(root: Path, names: tuple[str, ...]) -> dict[str, int]:
    """Lines of code by file."""
    texts = {name: (root / FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in names}
    return {name: code_lines(text) for name, text in texts.items()}


def faults(root: Path) -> list[str]:
    """Too many or too long lines, and what the prover uses that is not counted."""
    total = sum(count(root, PROVER).values())
    found = [f"the prover has {total} lines of code, {LIMIT} at most"] if total > LIMIT else []
    for name in PROVER:
        text = (root / FOLDER / f"{name}.py").read_text(encoding="utf-8")
        if any(len(line) > WIDTH for line in text.splitlines()):
            found.append(f"{name}.py has lines of more than {WIDTH} characters")
        used = set(re.findall(r"pyvosti\.analyzer\.(\w+)", text))
        found += [f"{name}.py uses {u}.py" for u in sorted(used - {*PROVER, *HARMLESS})]
    return found


def main(root: Path) -> int:
    """Prints both tables; 1 when there is a fault."""
    for title, names in (("prover", PROVER), ("audit below TTIR", AUDIT)):
        table = count(root, names)
        for name, lines in table.items():
            print(f"{name:<20}{lines:>6}")
        print(f"{title:<20}{sum(table.values()):>6}\n")
    for fault in faults(root):
        print(fault)
    return 1 if faults(root) else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
