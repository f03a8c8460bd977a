"""Turns an assertion of a function's proof into a hint, which holds nothing up.

An assertion can fail of a mutant though its contract still holds; and where one fails, what comes
after it is checked as if it had held. A hint only points the solver at the formula: `assert(A)`
becomes `let hint = (A)`, and its proof runs where the formula does not hold. Nothing is assumed, so
an error that is left is the contract's, if the true function needs no more than the hint either.
Lines keep their numbers.
"""

from __future__ import annotations

from collections.abc import Collection

from line_count import statement_end
from mutation import Edit
from rust_source import Source


def innermost(
    source: Source, line: int, within: tuple[int, int], but: Collection[int] = ()
) -> tuple[int, int] | None:
    """The innermost `assert` statement around a line of a function, as a token range.

    `but`: places in the text of assertions that are hints already.
    """
    found = None
    for at, word in source.words(0, len(source.tokens)):
        token = source.tokens[at]
        if word == "assert" and source.text_at(at + 1) != "!" and within[0] <= token.line <= line:
            end = statement_end(source, at, len(source.tokens))
            if source.tokens[end - 1].line >= line and token.at not in but:
                found = at, end
    return found


def hint(source: Source, start: int, end: int) -> tuple[Edit, ...]:
    """The edits that make a hint of an assertion. One by a solver of its own is dropped if need be.

    Edits leave the inside of a proof alone, so that its assertions can become hints as well.
    """
    by = _at_depth_0(source, "by", start, end)
    if by is None:
        binder = "let hint =" if _in_proof(source, start) else "let ghost hint ="
        return (_replaced(source, start, start + 1, binder),)
    if source.text_at(by + 1) != "{":
        return (_alone(source, start, by, end),)
    opening, closing = ("", "") if _in_proof(source, start) else ("proof { ", " }")
    if source.text_at(start + 1) != "forall":
        head = [_replaced(source, start, start + 1, opening + "let hint =")]
        last = _replaced(source, by, by + 1, "; if !hint")
    else:
        head, last = _for_all(source, start, by, opening)
    brace = source.tokens[source.match[by + 1]].at + 1
    return (*head, last, Edit(brace, brace, closing))


def _for_all(source: Source, start: int, by: int, opening: str) -> tuple[list[Edit], Edit]:
    """`assert forall|x: T| P implies Q by {`: its proof is for an `x` of which it does not hold."""
    bars = [at for at in range(start, by) if source.text_at(at) == "|"][:2]
    formula = bars[1] + 1
    while source.text_at(formula) == "#" and source.text_at(formula + 1) == "!":  # triggers
        formula = source.match[formula + 2] + 1
    implies = _at_depth_0(source, "implies", formula, by)
    names = [source.text_at(at) for at in range(*bars) if source.text_at(at + 1) == ":"]
    names = [name for name in names if name != ":"]
    bound = _flat(source, bars[0], formula)
    if implies is None:
        wrong = f"!({_flat(source, formula, by)})"
    else:
        premise, conclusion = _flat(source, formula, implies), _flat(source, implies + 1, by)
        wrong = f"({premise}) && !({conclusion})"
    value = names[0] if len(names) == 1 else f"({', '.join(names)})"
    chosen = f"); if !hint {{ let {value} = choose{bound} {wrong}; "
    first = source.tokens[formula].at
    head = [_replaced(source, start, start + 1, opening + "let hint ="), Edit(first, first, "(")]
    if implies is not None:
        head = [
            *head[:1],
            Edit(first, first, "(("),
            _replaced(source, implies, implies + 1, ") ==> ("),
        ]
        chosen = ")" + chosen
    lines = source.text.count("\n", source.tokens[by].at, source.tokens[by + 1].at)
    stop = source.tokens[by + 1].at + 1
    return head, Edit(source.tokens[by].at, stop, chosen + "\n" * lines)


def _alone(source: Source, start: int, by: int, end: int) -> Edit:
    """`assert(A) by (nonlinear_arith) requires R;`: R implies A. Without `requires`: dropped."""
    solver = source.match[by + 1] + 1
    lines = source.text.count("\n", source.tokens[start].at, source.tokens[end - 1].at)
    stop = source.tokens[end - 1].at + 1
    new = ""
    if source.text_at(solver) == "requires" and source.text_at(end - 1) == ";":
        parts, first = [], solver + 1
        for at in _top_level(source, first, end):
            if source.text_at(at) in (",", ";"):
                parts += [f"({_flat(source, first, at)})"] if at > first else []
                first = at + 1
        formula = _flat(source, start + 1, by)
        new = f"assert({' && '.join(parts)} ==> {formula}) {_flat(source, by, solver)};"
    return Edit(source.tokens[start].at, stop, new + "\n" * lines)


def _in_proof(source: Source, at: int) -> bool:
    """Whether a token stands in `proof { … }` or in the proof of another assertion."""
    around = [brace for brace, close in source.match.items() if brace < at < close]
    return any(
        source.text_at(brace) == "{" and source.text_at(brace - 1) in ("proof", "by")
        for brace in around
    )


def _top_level(source: Source, at: int, end: int) -> list[int]:
    """The tokens from `at` on that stand in no bracket opened there."""
    found = []
    while at < end:
        found.append(at)
        at = source.match.get(at, at) + 1
    return found


def _at_depth_0(source: Source, word: str, start: int, end: int) -> int | None:
    return next((at for at in _top_level(source, start, end) if source.text_at(at) == word), None)


def _replaced(source: Source, start: int, end: int, new: str) -> Edit:
    last = source.tokens[end - 1]
    return Edit(source.tokens[start].at, last.at + len(last.text), new)


def _flat(source: Source, start: int, end: int) -> str:
    """Tokens on one line, as they stand, without comments."""
    parts = []
    for at in range(start, end):
        token, stop = source.tokens[at], source.tokens[at].at + len(source.tokens[at].text)
        glued = at + 1 < len(source.tokens) and source.tokens[at + 1].at == stop
        parts.append(token.text if glued else token.text + " ")
    return "".join(parts).strip()
