"""Finds the theorems, and the assumptions that their statements rest on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from audit_scan import crates, sources
from rust_source import Item, Source

Files = dict[str, Source]


@dataclass(frozen=True)
class Theorem:
    """A `proof fn theorem_…`, and every name that its statement leads to in trusted files."""

    name: str
    file: str
    line: int
    names: frozenset[str]


def find_theorems(root: Path) -> list[Theorem]:
    """In order of file and line. Only files in a verified crate's module tree count."""
    files: Files = {}
    for crate in crates(root):
        if crate.verified:
            for path, source in sources(crate).items():
                files[path.relative_to(root).as_posix()] = source
    definitions = _definitions({f: s for f, s in files.items() if "/trusted/" in f})
    found = []
    for file, source in sorted(files.items()):
        for item in source.all_items():
            proof = item.kind == "fn" and item.mode == "proof" and item.in_verus
            if proof and item.name.startswith("theorem_"):
                stop = item.body if item.body is not None else item.end
                names = _reached(_words(source, item.keyword, stop), definitions)
                line = source.tokens[item.keyword].line
                found.append(Theorem(item.name, file, line, names))
    return found


def probes(folder: Path) -> list[str]:
    """Names of the functions in a crate's probes.rs: each must fail to verify."""
    path = folder / "src" / "probes.rs"
    items = Source.read(path).all_items() if path.is_file() else ()
    return [i.name for i in items if i.kind == "fn" and i.mode == "proof" and i.in_verus]


def _definitions(files: Files) -> dict[str, set[str]]:
    """Words of each definition in the files that is no proof, by name."""
    found: dict[str, set[str]] = {}
    for source in files.values():
        for item in source.all_items():
            if item.name and item.in_verus and not _is_proof(item):
                words = _words(source, item.keyword, item.end)
                found.setdefault(item.name, set()).update(words)
    return found


def _is_proof(item: Item) -> bool:
    return item.kind == "fn" and item.mode == "proof"


def _words(source: Source, start: int, end: int) -> set[str]:
    return {word for _, word in source.words(start, end)}


def _reached(words: set[str], definitions: dict[str, set[str]]) -> frozenset[str]:
    reached, todo = set(words), list(words)
    while todo:
        more = definitions.get(todo.pop(), set()) - reached
        reached |= more
        todo += more
    return frozenset(reached)
