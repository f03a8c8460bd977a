"""Makes mutants of the verified exec code: small faults, one at a time, each in one function.

Mechanical ones: each comparison turned, each `+ 1` and `- 1` dropped, each `&&` and `||` exchanged,
each negation dropped, each statement that has an effect dropped. Ghost code is left alone. Lines
keep their numbers, so that errors can be traced to the function that was changed.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from audit_scan import is_test
from line_count import kinds_of, statement_end
from rust_source import Item, Source

TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
TURNED |= {"&&": "||", "||": "&&"}
OPERATOR = re.compile(r" (<=|>=|==|!=|<|>|&&|\|\|) ")
NO_EFFECT = {"let", "return", "break", "continue", "if", "while", "loop", "for", "match", "proof"}
NO_EFFECT |= {"assert", "else", "reveal", "broadcast", "unsafe", "use"}


class MutationError(Exception):
    """A listed fault does not fit the code any more."""


@dataclass(frozen=True)
class Edit:
    """Replaces `[start, end)` of a file's text."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Mutant:
    """One fault: `what` says which, in words; `lines` is the function's, first to last."""

    file: str
    function: str
    lines: tuple[int, int]
    what: str
    edits: tuple[Edit, ...]

    @property
    def key(self) -> str:
        """Its name in the list of equivalent mutants: stable while the code around it changes."""
        return f"{self.function}: {self.what}"


def mechanical(root: Path, crate: Path) -> list[Mutant]:
    """Every mechanical mutant of a crate's exec functions, in the order of the code."""
    found: list[Mutant] = []
    for path in sorted((crate / "src").rglob("*.rs")):
        source = Source.read(path)
        kinds = kinds_of(source)
        for item in source.all_items():
            if item.kind == "fn" and item.mode == "exec" and item.in_verus and item.body:
                if not is_test(source, item):
                    found += _of_function(source, kinds, item, str(path.relative_to(root)))
    return _numbered(found)


def _of_function(source: Source, kinds: list[str], item: Item, file: str) -> Iterator[Mutant]:
    assert item.body is not None
    lines = source.tokens[item.start].line, source.tokens[item.end - 1].line
    inside = [at for at in range(item.body + 1, item.end - 1) if kinds[at] == "exec"]
    for at in inside:
        for edit, what in _edits_at(source, kinds, at, item.end):
            shown = " ".join(source.text[edit.start : edit.end].split())
            line = source.text.splitlines()[source.tokens[at].line - 1].strip()
            where = "" if what == "dropped" else f" in `{line}`"
            text = (
                f"`{shown}` dropped" if what == "dropped" else f"`{shown}` became `{what}`{where}"
            )
            yield Mutant(file, item.path, lines, text, (edit,))


def _edits_at(source: Source, kinds: list[str], at: int, limit: int) -> Iterator[tuple[Edit, str]]:
    """Edits that begin with token `at`, each with what the code becomes."""
    token, text = source.tokens[at], source.text
    if operator := OPERATOR.match(text, token.at - 1):
        new = TURNED[operator[1]]
        yield Edit(operator.start(1), operator.end(1), new), new
    if token.text in "+-" and source.text_at(at + 1) == "1" and text[token.at - 1] == " ":
        yield Edit(token.at, source.tokens[at + 1].at + 1, ""), "nothing"
    if token.text in "+-" and text.startswith("= 1;", token.at + 1):
        yield Edit(token.at, token.at + 4, f"{token.text}= 2"), f"{token.text}= 2"
    if token.text == "!" and text[token.at + 1] not in "= [(" and text[token.at - 1] in " (!":
        yield Edit(token.at, token.at + 1, ""), "nothing"
    if _starts_statement(source, at) and (token.kind == "ident" or token.text == "*"):
        end = statement_end(source, at, limit)
        whole = all(kinds[i] == "exec" for i in range(at, end))
        whole &= end <= _block_end(source, at) and not _sets_ghost(source, at, end)
        if token.text not in NO_EFFECT and whole and source.text_at(end - 1) == ";":
            start, stop = token.at, source.tokens[end - 1].at + 1
            yield Edit(start, stop, "\n" * text.count("\n", start, stop)), "dropped"


def _starts_statement(source: Source, at: int) -> bool:
    """Whether a statement, or a block's last expression, begins here."""
    before = source.text_at(at - 1)
    if before == "}":  # a block that is a statement, not the end of an expression
        return source.tokens[at - 1].line < source.tokens[at].line
    return before in (";", "{") and source.tokens[at - 1].kind == "punct"


def _sets_ghost(source: Source, at: int, end: int) -> bool:
    """Whether a statement sets a field that the compiler erases: `self.state = Ghost(…);`."""
    return any(
        source.text_at(i) == "=" and source.text_at(i + 1) == "Ghost" for i in range(at, end)
    )


def _block_end(source: Source, at: int) -> int:
    """The `}` of the innermost block around a token; 0 when brackets of another kind are closer."""
    around = max(open for open, close in source.match.items() if open < at < close)
    return source.match[around] if source.text_at(around) == "{" else 0


def _numbered(mutants: list[Mutant]) -> list[Mutant]:
    """Tells mutants with equal keys apart by their order."""
    total, seen = Counter(mutant.key for mutant in mutants), Counter[str]()
    numbered = []
    for mutant in mutants:
        seen[mutant.key] += 1
        again = f", number {seen[mutant.key]}" if total[mutant.key] > 1 else ""
        numbered.append(
            Mutant(mutant.file, mutant.function, mutant.lines, mutant.what + again, mutant.edits)
        )
    return numbered


def listed_faults(root: Path, listing: Path) -> list[Mutant]:
    """The semantic faults of the list. MutationError when one no longer fits the code."""
    faults = []
    for entry in tomllib.loads(listing.read_text(encoding="utf-8"))["fault"]:
        source = Source.read(root / entry["file"])
        item = next((i for i in source.all_items() if i.path == entry["function"]), None)
        if item is None or item.body is None:
            raise MutationError(f"{entry['file']} has no function {entry['function']}")
        start = source.tokens[item.start].at
        stop = source.tokens[item.end - 1].at + 1
        edits = []
        for old, new in entry["edits"]:
            if source.text.count(old, start, stop) != 1:
                raise MutationError(
                    f"{entry['what']}: {entry['function']} does not hold this text once: {old!r}"
                )
            at = source.text.index(old, start)
            lost = old.count("\n") - new.count("\n")
            if lost < 0:
                raise MutationError(f"{entry['what']}: the new text has more lines than the old")
            edits.append(Edit(at, at + len(old), new + "\n" * lost))
        lines = source.tokens[item.start].line, source.tokens[item.end - 1].line
        faults.append(Mutant(entry["file"], entry["function"], lines, entry["what"], tuple(edits)))
    return faults


def apply(text: str, edits: tuple[Edit, ...]) -> str:
    """The text with all edits made; they do not overlap."""
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text
