"""Mechanical faults in the shipped kernels: one operator, constant, mask or bound changed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyvosti.analyzer.corpus.bases import BASES, small_spec
from pyvosti.analyzer.patched import PatchedSpec, kernel_file

HELPERS = {
    "attention_whole": ("has_live_key", "attend_split", "folded"),
    "rope_kv_write": ("summed",),
    "sample": ("ordered_key", "passes", "weight_above", "bound_reaching"),
}
"""Functions that a kernel calls and that are mutated with it, each in one kernel only."""

COMPARISONS = {"Lt": "<=", "LtE": "<", "Gt": ">=", "GtE": ">", "Eq": "!=", "NotEq": "=="}
SIGNS = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!="}
OPERATORS = {"Add": "-", "Sub": "+", "Mult": "+", "FloorDiv": "%", "Mod": "//", "BitAnd": "|"}
WRITTEN = {"Add": "+", "Sub": "-", "Mult": "*", "FloorDiv": "//", "Mod": "%", "BitAnd": "&"}


@dataclass(frozen=True)
class Mutant:
    """`kernel` with one place changed: line `line` of its file, `before` became `after`."""

    kernel: str
    kind: str
    line: int
    before: str
    after: str
    spec: PatchedSpec


def original(kernel: str) -> PatchedSpec:
    """The small specialisation that mutants of a kernel are compared with."""
    return small_spec(kernel, **_changed(kernel))


def mutants_of(kernel: str) -> Iterator[Mutant]:
    """All mutants of a kernel and its helpers, in the order of the text."""
    text = kernel_file(kernel).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    starts = [0]
    for one in lines:
        starts.append(starts[-1] + len(one.encode()))
    raw = text.encode()
    for function in ast.parse(text).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        if function.name != kernel and function.name not in HELPERS.get(kernel, ()):
            continue
        for statement in function.body:
            for kind, node, new in _places(statement, raw, starts):
                begin, end = _span(node, starts)
                changed = (raw[:begin] + new.encode() + raw[end:]).decode()
                spec = small_spec(kernel, ((text, changed),), **_changed(kernel))
                before = raw[begin:end].decode()
                yield Mutant(kernel, kind, node.lineno, before, new, spec)


def _changed(kernel: str) -> dict[str, int]:
    """Windows and splits are turned on, so that their lines take part."""
    constants = BASES[kernel][1]
    changed = {"WINDOW": 20} if "WINDOW" in constants else {}
    return changed | ({"SPLITS": 2} if "SPLITS" in constants else {})


def _span(node: ast.expr, starts: list[int]) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return (
        starts[node.lineno - 1] + node.col_offset,
        starts[node.end_lineno - 1] + node.end_col_offset,
    )


def _places(
    statement: ast.stmt, raw: bytes, starts: list[int]
) -> Iterator[tuple[str, ast.expr, str]]:
    """(kind, the expression that is replaced, its new text)."""

    def source(node: ast.expr) -> str:
        begin, end = _span(node, starts)
        return raw[begin:end].decode()

    for node in ast.walk(statement):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = source(node.left), source(node.comparators[0])
            name = type(node.ops[0]).__name__
            yield "compare", node, f"{left} {COMPARISONS[name]} {right}"
        elif isinstance(node, ast.BinOp):
            left, right = source(node.left), source(node.right)
            name = type(node.op).__name__
            if name in OPERATORS:
                yield "operator", node, f"({left} {OPERATORS[name]} {right})"
            if name in ("Sub", "FloorDiv", "Mod", "Div"):
                sign = WRITTEN.get(name, "/")
                yield "operands swapped", node, f"({right} {sign} {left})"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield "plus one", node, str(node.value + 1)
        elif isinstance(node, ast.Call):
            yield from _calls(node, source)


def _calls(
    node: ast.Call, source: Callable[[ast.expr], str]
) -> Iterator[tuple[str, ast.expr, str]]:
    name = source(node.func)
    masks = [word for word in node.keywords if word.arg == "mask"]
    others = [word for word in node.keywords if word.arg == "other"]
    if name in ("tl.load", "tl.store") and masks:
        kept = [source(argument) for argument in node.args]
        yield "mask dropped", node, f"{name}({', '.join(kept)})"
    for word in others:
        value = source(word.value)
        yield "other changed", word.value, "0" if value == "-1" else f"({value} + 1)"
    if name in ("tl.maximum", "tl.minimum", "tl.max", "tl.min"):
        turned = {"tl.maximum": "tl.minimum", "tl.minimum": "tl.maximum"}
        turned |= {"tl.max": "tl.min", "tl.min": "tl.max"}
        yield "maximum turned", node.func, turned[name]
    if name == "tl.where":
        condition, yes, no = (source(argument) for argument in node.args)
        yield "branches swapped", node, f"{name}({condition}, {no}, {yes})"
    if name == "tl.cdiv":
        left, right = (source(argument) for argument in node.args)
        yield "rounded down", node, f"({left}) // ({right})"
