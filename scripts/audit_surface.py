"""Finds functions that unverified code can call and that nevertheless have a `requires`.

Rust's visibility says what can be called: what `lib.rs` makes public by `pub mod` and `pub use`,
and the types that those functions and fields hand out, taken to a fixed point. Names are compared
without their modules, so two types of one name are both taken as public: too strict, never too lax.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rust_source import Item, Source

CLAUSES = {"requires", "ensures", "recommends", "decreases", "returns", "opens_invariants"}
TYPES = {"struct", "enum", "union", "trait", "type"}


def conditional_calls(
    src: Path, files: dict[Path, Source]
) -> dict[Path, list[tuple[int, str, str]]]:
    """By file, `(line, "requires", item)` of each public exec function with a precondition."""
    names = public_names(src, files)
    found: dict[Path, list[tuple[int, str, str]]] = {}
    for path, source in files.items():
        for item in _callable(source, names):
            if "requires" in _signature(source, item):
                line = source.tokens[item.keyword].line
                found.setdefault(path, []).append((line, "requires", item.path))
    return found


def public_names(src: Path, files: dict[Path, Source]) -> set[str]:
    """Names that code outside the crate can reach, as types, functions or through values."""
    known = {i.name for s in files.values() for i in s.all_items() if i.kind in TYPES}
    names = _exported(src / "lib.rs", files) if src / "lib.rs" in files else set()
    while True:
        more: set[str] = set()
        for source in files.values():
            for item in _callable(source, names):
                more |= _signature(source, item) & known
            for item in source.all_items():
                if item.kind in TYPES and item.name in names:
                    more |= _fields(source, item) & known
        if more <= names:
            return names
        names |= more


def _exported(path: Path, files: dict[Path, Source]) -> set[str]:
    """Public names of a module: its own, those it re-exports, and those of its public modules."""
    source, names = files[path], set()
    here = path.parent if path.stem in ("mod", "lib") else path.with_suffix("")

    def module(name: str) -> set[str]:
        inner = [p for p in (here / f"{name}.rs", here / name / "mod.rs") if p in files]
        return _exported(inner[0], files) if inner else set()

    for item in source.items:
        if not item.public:
            continue
        if item.kind == "mod":
            names |= module(item.name) | {child.name for child in item.children if child.public}
        elif item.kind == "use":
            words = {w for _, w in source.words(item.keyword + 1, item.end)}
            names |= words
            if "*" in (t.text for t in source.tokens[item.keyword : item.end]):
                names = names.union(*map(module, words))
        else:
            names.add(item.name)
    return names


def _callable(source: Source, names: set[str]) -> Iterator[Item]:
    """Exec functions that code holding one of `names` can call."""
    for item in source.all_items():
        if item.kind == "fn" and not item.owner and item.public and item.name in names:
            yield from [item] if item.mode == "exec" else []
        elif item.kind in ("impl", "trait") and item.name in names:
            of_trait = item.kind == "trait" or "for" in _signature(source, item)
            for child in item.children:
                if child.kind == "fn" and child.mode == "exec" and (child.public or of_trait):
                    yield child


def _signature(source: Source, item: Item) -> set[str]:
    """Words of the item's head; of the clauses only `requires`, if there is one."""
    stop = item.body if item.body is not None else item.end
    words, clause = set(), False
    for _, word in source.words(item.keyword, stop):
        clause |= word in CLAUSES
        if not clause or word == "requires":
            words.add(word)
    return words


def _fields(source: Source, item: Item) -> set[str]:
    """Words in the type's public fields, and in all variants of an enum."""
    if item.kind != "struct":
        return {word for _, word in source.words(item.keyword, item.end)}
    words, public = set(), False
    for at in range(item.keyword, item.end):
        text = source.text_at(at)
        public = text == "pub" or (public and text != ",")
        if public and source.tokens[at].kind == "ident":
            words.add(text)
    return words
