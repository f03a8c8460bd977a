"""Reads Rust and Verus source as tokens and items, for the audit and the line counts.

Comments, strings and character literals never look like code here, and code can never look like
one of them. Items are found at file level, inside `verus! { … }`, and inside `mod`, `impl` and
`trait` bodies; function bodies stay token ranges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

TOKEN = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*)
    | (?P<comment>/\*)
    | (?P<raw>(?:br|cr|r)(?P<hashes>\#*)")
    | (?P<str>[bc]?"(?:[^"\\]|\\.)*")
    | (?P<char>b?'(?:[^'\\]|\\(?:x..|u\{[^}]*\}|.))')
    | (?P<life>'(?:r\#)?[A-Za-z_]\w*)
    | (?P<ident>(?:r\#)?[^\W\d]\w*)
    | (?P<num>\d(?:\w|\.(?=\d))*)
    | (?P<punct>.)
    """,
    re.VERBOSE | re.DOTALL,
)
OPEN = {"(": ")", "[": "]", "{": "}"}
KEYWORDS = {"fn", "struct", "enum", "union", "trait", "impl", "mod", "use", "type", "static"}
KEYWORDS |= {"global", "assume_specification", "macro_rules", "const"}
MODES = {"spec", "proof", "exec", "axiom", "uninterp", "broadcast", "open", "closed", "tracked"}
MODES |= {"ghost", "unsafe", "extern", "async", "default", "final"}
STARTERS = KEYWORDS | MODES | {"pub", "verus"}


class SourceError(Exception):
    """The text cannot be read as Rust tokens: nothing may be concluded from it."""


@dataclass(frozen=True)
class Token:
    """One token: `kind` is ident, life, num, str, char or punct; `line` counts from 1.

    `at` is its place in the text.
    """

    kind: str
    text: str
    line: int
    at: int


@dataclass
class Item:
    """An item as token ranges: attributes start at `start`, `[body, end)` is its `{…}` if any."""

    kind: str
    name: str
    start: int
    end: int
    keyword: int
    modes: frozenset[str] = frozenset()
    public: bool = False
    attributes: list[tuple[int, int]] = field(default_factory=list)
    body: int | None = None
    in_verus: bool = False
    owner: str = ""
    children: list[Item] = field(default_factory=list)

    @property
    def path(self) -> str:
        """`Type::method` inside an impl or a trait, else the bare name."""
        return f"{self.owner}::{self.name}" if self.owner else self.name

    @property
    def mode(self) -> str:
        """`spec`, `proof` or `exec`, as Verus reads a function."""
        if self.modes & {"spec", "uninterp"}:
            return "spec"
        return "proof" if self.modes & {"proof", "axiom"} else "exec"


def tokenize(text: str) -> list[Token]:
    """Tokens without white space and comments. Raises SourceError for an open comment or string."""
    tokens, at, line = [], 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None
        kind, end = match.lastgroup or "", match.end()
        if match["comment"]:
            kind, end = "space", _comment_end(text, at, line)
        elif match["raw"]:
            kind = "str"
            closing = text.find('"' + match["hashes"], end)
            if closing < 0:
                raise SourceError(f"line {line}: raw string without an end")
            end = closing + 1 + len(match["hashes"])
        elif kind == "punct" and match[0] == '"':
            raise SourceError(f"line {line}: string without an end")
        if kind != "space":
            tokens.append(Token(kind, text[at:end], line, at))
        line += text.count("\n", at, end)
        at = end
    return tokens


def _comment_end(text: str, at: int, line: int) -> int:
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise SourceError(f"line {line}: comment without an end")


class Source:
    """One file: its tokens, matching brackets and items."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.match = self._brackets()

    @classmethod
    def read(cls, path: Path) -> Source:
        """Raises SourceError with the path when the file is not readable as Rust."""
        try:
            return cls(path.read_text(encoding="utf-8"))
        except SourceError as error:
            raise SourceError(f"{path}: {error}") from error

    def _brackets(self) -> dict[int, int]:
        match: dict[int, int] = {}
        stack: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.kind != "punct":
                continue
            if token.text in OPEN:
                stack.append(at)
            elif token.text in OPEN.values():
                if not stack or OPEN[self.tokens[stack[-1]].text] != token.text:
                    raise SourceError(f"line {token.line}: unmatched {token.text}")
                match[stack.pop()] = at
        if stack:
            raise SourceError(f"line {self.tokens[stack[-1]].line}: bracket without an end")
        return match

    def text_at(self, at: int) -> str:
        """The token's text, or an empty string past either end."""
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def words(self, start: int, end: int) -> Iterator[tuple[int, str]]:
        """Identifiers in a token range, with their places."""
        for at in range(start, end):
            if self.tokens[at].kind == "ident":
                yield at, self.tokens[at].text

    @cached_property
    def items(self) -> list[Item]:
        """Items at file level; those of `verus!` stand in its place, marked `in_verus`."""
        return self._items(0, len(self.tokens), "", False)

    def all_items(self) -> Iterator[Item]:
        """Every item, parents before children."""
        todo = list(reversed(self.items))
        while todo:
            item = todo.pop()
            yield item
            todo.extend(reversed(item.children))

    def innermost(self, at: int, kind: str = "") -> Item | None:
        """The innermost named item around a token, of that kind if one is given."""
        around = [i for i in self.all_items() if i.start <= at < i.end and i.name]
        return next((i for i in reversed(around) if kind in ("", i.kind)), None)

    def enclosing(self, at: int) -> str:
        """Path of the innermost named item around a token, `(file)` where there is none."""
        item = self.innermost(at)
        return item.path if item else "(file)"

    def _items(self, at: int, end: int, owner: str, in_verus: bool) -> list[Item]:
        items = []
        while at < end:
            if self.text_at(at) in (";", ","):
                at += 1
                continue
            item = self._item(at, end, owner, in_verus)
            if item.kind == "verus":
                assert item.body is not None
                items += self._items(item.body + 1, item.end - 1, owner, True)
            else:
                items.append(item)
            at = item.end
        return items

    def _item(self, start: int, end: int, owner: str, in_verus: bool) -> Item:
        at, attributes, modes, public = start, [], set(), False
        if self.text_at(at) == "#" and self.text_at(at + 1) == "!":
            close = self.match[at + 2]
            return Item("inner", "", at, close + 1, at, attributes=[(at + 3, close)])
        while self.text_at(at) == "#":
            close = self.match[at + 1]
            attributes.append((at + 2, close))
            at = close + 1
        while at < end:
            text, after = self.text_at(at), self.text_at(at + 1)
            if text in KEYWORDS and not (text == "const" and after in MODES | {"fn"}):
                break
            if text == "broadcast" and after in ("use", "group"):
                modes.add(text)
                at += 1
                break
            if text not in MODES | {"pub", "const"} and self.tokens[at].kind != "str":
                break
            modes.add(text)
            public |= text == "pub" and after != "("
            at = self.match[at + 1] + 1 if after == "(" else at + 1
        item = Item(self.text_at(at), "", start, end, at, frozenset(modes), public, attributes)
        item.in_verus, item.owner = in_verus, owner
        self._finish(item, end)
        return item

    def _finish(self, item: Item, limit: int) -> None:
        at = item.keyword
        if self.text_at(at + 1) == "!" and item.kind != "impl":
            brace = at + 2 if self.text_at(at + 2) in OPEN else at + 3
            item.body, item.end = brace, self.match[brace] + 1
            item.kind, item.name = ("verus" if item.kind == "verus" else "macro"), item.kind
            return
        item.body = self._body(item, limit)
        if item.body is not None:
            item.end = self.match[item.body] + 1
        item.name = self._name(item)
        if item.kind in ("impl", "trait", "mod") and item.body is not None:
            owner = item.name if item.kind != "mod" else ""
            item.children = self._items(item.body + 1, item.end - 1, owner, item.in_verus)

    def _body(self, item: Item, limit: int) -> int | None:
        """First brace at depth 0 that the next item, or the end, follows. None before a `;`."""
        at = item.keyword
        braces_are_bodies = item.kind not in ("use", "group", "const", "static", "type", "global")
        while at < limit:
            text = self.text_at(at)
            if text == ";" and self.tokens[at].kind == "punct":
                break
            if text in OPEN and self.tokens[at].kind == "punct":
                close = self.match[at]
                after = self.text_at(close + 1)
                ends = close + 1 >= limit or after == "#" or after in STARTERS
                ends |= self.text_at(close + 2) == "!" and self.tokens[close + 1].kind == "ident"
                if text == "{" and (item.kind == "group" or (braces_are_bodies and ends)):
                    return at
                at = close
            at += 1
        item.end = min(at + 1, limit)
        return None

    def _name(self, item: Item) -> str:
        if item.kind != "impl":
            at = item.keyword + 1
            while item.kind in ("const", "static") and self.text_at(at) in ("exec", "spec", "mut"):
                at += 1
            is_name = at < len(self.tokens) and self.tokens[at].kind == "ident"
            return self.text_at(at) if is_name else item.kind
        stop = item.body if item.body is not None else item.end
        name, depth = "impl", 0
        for at in range(item.keyword + 1, stop):
            text = self.text_at(at)
            depth += (text == "<") - (text == ">" and self.text_at(at - 1) not in ("-", "="))
            if depth == 0 and text == "where":
                break
            if depth == 0 and self.tokens[at].kind == "ident" and text not in ("for", "dyn"):
                name = text
        return name
