"""Counts the lines of verified Rust: trusted, spec, proof, exec.

A line counts by its first token; blank lines, comments, tests and probes do not count. Everything
under `trusted/` is trusted. A spec function is spec, a proof function proof. Of an exec function
the clauses (`requires`, `ensures`, …) are spec; `proof { … }`, `assert …`, ghost lets and the
clauses of a loop are proof; the rest is exec. A type, `use` or `impl` line takes the kind that its
file is for: exec if it holds an exec function, else spec if it holds a spec function, else proof.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from audit_scan import crates, is_test, sources
from audit_surface import CLAUSES
from rust_source import OPEN, Item, Source

KINDS = ("trusted", "spec", "proof", "exec")
LOOP_CLAUSES = {"invariant", "invariant_except_break", "ensures", "decreases"}


def count(root: Path) -> dict[str, int]:
    """Lines of all verified crates of the workspace by kind."""
    total: Counter[str] = Counter()
    for crate in crates(root):
        if crate.verified:
            files = sources(crate)
            files.pop(crate.folder / "src" / "probes.rs", None)
            for path, source in files.items():
                total += count_file(source, "trusted" in path.relative_to(root).parts)
    return {kind: total[kind] for kind in KINDS}


def kinds_of(source: Source) -> list[str]:
    """The kind of each token: spec, proof, exec or test."""
    kinds = [_default(source)] * len(source.tokens)
    for item in source.all_items():
        if item.kind == "fn":
            _paint(kinds, item.start, item.end, item.mode)
            if item.mode == "exec" and item.in_verus:
                _paint_exec(source, item, kinds)
    for item in source.all_items():
        if is_test(source, item):
            _paint(kinds, item.start, item.end, "test")
    return kinds


def count_file(source: Source, trusted: bool) -> Counter[str]:
    """Lines of one file by kind."""
    kinds = kinds_of(source)
    lines: dict[int, str] = {}
    for token, kind in zip(source.tokens, kinds, strict=True):
        lines.setdefault(token.line, kind)
    found = Counter(lines.values())
    del found["test"]
    return Counter({"trusted": found.total()}) if trusted else found


def _default(source: Source) -> str:
    modes = {i.mode for i in source.all_items() if i.kind == "fn" and not is_test(source, i)}
    return next((kind for kind in ("exec", "spec", "proof") if kind in modes), "spec")


def _paint(kinds: list[str], start: int, end: int, kind: str) -> None:
    kinds[start:end] = [kind] * (end - start)


def _paint_exec(source: Source, item: Item, kinds: list[str]) -> None:
    stop = item.body if item.body is not None else item.end
    head = next((at for at, w in source.words(item.keyword, stop) if w in CLAUSES), stop)
    _paint(kinds, head, stop, "spec")
    at = stop + 1
    while at < item.end - 1:
        word, after = source.text_at(at), source.text_at(at + 1)
        ghost = word == "let" and after in ("ghost", "tracked")
        end = at + 1
        if source.tokens[at].kind == "ident":
            if word == "proof" and after == "{":
                end = source.match[at + 1] + 1
            elif ghost or (word == "assert" and after != "!"):
                end = statement_end(source, at, item.end)
            elif word in LOOP_CLAUSES:
                end = _loop_body(source, at, item.end)
            if end > at + 1:
                _paint(kinds, at, end, "proof")
        at = end


def statement_end(source: Source, at: int, limit: int) -> int:
    """Past the `;` at depth 0, or past the block of `assert … by { … }`."""
    block = False
    while at < limit:
        text = source.text_at(at)
        block |= text in ("by", "implies")
        if text == ";":
            return at + 1
        if text in OPEN and source.tokens[at].kind == "punct":
            at = source.match[at]
            if block and text == "{" and source.text_at(at + 1) != ";":
                return at + 1
        at += 1
    return limit


def _loop_body(source: Source, at: int, limit: int) -> int:
    """The `{` of the loop: the first at depth 0 that starts a line or follows a comma."""
    while at < limit:
        token = source.tokens[at]
        if token.text == "{" and token.kind == "punct":
            before = source.tokens[at - 1]
            if before.text == "," or (
                before.line < token.line and before.text not in ("=", ">", "&")
            ):
                return at
        if token.text in OPEN and token.kind == "punct":
            at = source.match[at]
        at += 1
    return limit
