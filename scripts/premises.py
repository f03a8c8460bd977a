"""Whether what the analyzer assumes of a plan is what Verus proves of every plan.

A kernel's certificate rests on named premises (`PREMISES` in analyzer/contracts.py). Those that
`VERUS` lists there follow from definitions of the proof. `CLAUSES` has the text of these, clause by
clause, as it was when the premises were read off them: a definition that has changed since, or a
premise that names another one, is a fault.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from premise_clauses import CLAUSES
from rust_source import OPEN, Item, Source

CONTRACTS = Path("analyzer") / "contracts.py"
TABLE = "scripts/premise_clauses.py"


@dataclass(frozen=True)
class Clause:
    """One conjunct of a definition, and the premises that lean on it."""

    text: str
    premises: tuple[str, ...]


def normal(text: str) -> str:
    """A piece of Rust without layout, triggers and commas before a closing bracket."""
    source, words, at = Source(text), list[str](), 0
    while at < len(source.tokens):
        opening = at + 2 if source.text_at(at + 1) == "!" else at + 1
        if source.text_at(at) == "#" and source.text_at(opening + 1) == "trigger":
            at = source.match[opening] + 1
            continue
        if source.text_at(at) in OPEN.values() and words and words[-1] == ",":
            words.pop()
        words.append(source.text_at(at))
        at += 1
    return " ".join(words)


def conjuncts(source: Source, item: Item) -> list[str]:
    """The clauses of a body `let …; &&& a &&& b`, normalised; a body without `&&&` is one."""
    assert item.body is not None
    found: list[str] = []
    start = at = item.body + 1
    end = item.end - 1
    while at < end:
        if [source.text_at(at + i) for i in range(3)] == ["&"] * 3:
            found.append(between(source, start, at))
            start = at = at + 3
        else:
            at = source.match.get(at, at) + 1
    found.append(between(source, start, end))
    return [normal(text) for text in found if text]


def between(source: Source, start: int, end: int) -> str:
    """The text of a token range."""
    if start >= end:
        return ""
    last = source.tokens[end - 1]
    return source.text[source.tokens[start].at : last.at + len(last.text)]


def definition(root: Path, file: str, path: str) -> list[str] | None:
    """The clauses of a spec function, or None when the file does not define it once."""
    source = Source.read(root / file)
    items = [i for i in source.all_items() if i.kind == "fn" and i.path == path and i.body]
    return conjuncts(source, items[0]) if len(items) == 1 else None


def named_by_the_analyzer(root: Path) -> dict[str, tuple[str, ...]]:
    """`VERUS` of analyzer/contracts.py: premise -> definitions. Raises ValueError without it."""
    tree = ast.parse((root / CONTRACTS).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VERUS":
            found: dict[str, tuple[str, ...]] = ast.literal_eval(node.value)
            return found
    raise ValueError(f"{CONTRACTS} has no VERUS")


def changed(root: Path, file: str, path: str, clauses: list[Clause]) -> list[str]:
    """How a definition differs from its clauses in the table."""
    present = definition(root, file, path)
    if present is None:
        return [f"{file} does not define {path}"]
    leaning = sorted({name for clause in clauses for name in clause.premises})
    advice = (
        f"see whether {', '.join(leaning)} of {CONTRACTS} still follow, then record it in {TABLE}"
    )
    wanted = [normal(clause.text) for clause in clauses]
    faults = [f"{path} has a new clause `{c}`: {advice}" for c in present if c not in wanted]
    faults += [f"{path} has lost the clause `{c}`: {advice}" for c in wanted if c not in present]
    if not faults and present != wanted:
        faults.append(f"the clauses of {path} stand in another order: {advice}")
    return faults


def check_premises(root: Path) -> list[str]:
    """One sentence for each way in which premises and proof disagree."""
    faults: list[str] = []
    leans: dict[str, set[str]] = {}
    for (file, path), listed in CLAUSES.items():
        clauses = [Clause(text, premises) for premises, text in listed]
        faults += changed(root, file, path, clauses)
        for clause in clauses:
            for name in clause.premises:
                leans.setdefault(name, set()).add(path)
    named = named_by_the_analyzer(root)
    for name in sorted(leans.keys() | named.keys()):
        here, there = leans.get(name, set()), set(named.get(name, ()))
        if here != there:
            faults.append(
                f"{name} rests on {sorted(there)} in {CONTRACTS}, on {sorted(here)} in {TABLE}"
            )
    return faults
