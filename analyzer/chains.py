"""Chains of tensor-core products: the normal form by which matmul tiles are one family.

`acc = dot(x, w, acc)` in a loop over k, or one such dot, is a fold over all k in ascending order
from a start. That the blocks by which a chain is cut do not change the fold is the named
assumption about tensor cores; it is used here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from pyvosti.analyzer.elements import Frame
from pyvosti.analyzer.loops import iteration, yielded
from pyvosti.analyzer.terms import Hole


@dataclass(frozen=True)
class Chain:
    """`length` products of elements of these types, added to `start`; lane t by `lane`."""

    kind: tuple[Any, ...]
    length: int
    start: Any
    lane: Callable[[Any], tuple[Frame, Any, Any]]


def chain(hole: Hole) -> Chain | None:
    """The chain that a dot or a loop of dots is, if it is one."""
    if hole.kind == "dot":
        a, _, start = hole.op.operands
        first = hole.frame.element(start, hole.index, hole.modulo_zero)
        kind = kind_of(hole.op)
        return Chain(kind, a.type.shape[1], first, lambda t: lanes(hole.frame, hole, hole.op, t))
    if hole.kind != "loop":
        return None
    loop, frame = hole.op, hole.frame
    dot = yielded(loop, hole.result).op
    carried = loop.regions[0].arguments[1 + hole.result]
    if dot is None or dot.name != "tt.dot" or dot.operands[2] is not carried:
        return None
    bounds = tuple(frame.element(v) for v in loop.operands[:3])
    if not all(z3.is_int_value(b) for b in bounds):
        return None
    low, high, step = (b.as_long() for b in bounds)
    block = dot.operands[0].type.shape[1]
    if step < 1 or high <= low:
        return None
    first = frame.element(loop.operands[3 + hole.result], hole.index, hole.modulo_zero)

    def lane(t: Any) -> tuple[Frame, Any, Any]:
        terms = frame.launch.terms
        trip = terms.interval(t / block, 0, (high - low - 1) // step)
        ints = frame.launch.integers
        variable = ints.binary("muli", trip, z3.IntVal(step), 64)
        variable = ints.binary("addi", variable, z3.IntVal(low), 64)
        inner = iteration(frame, loop, bounds, variable)
        place = terms.interval(t % block, 0, block - 1)
        return lanes(inner, hole, dot, place)

    return Chain(kind_of(dot), -(-(high - low) // step) * block, first, lane)


def kind_of(dot: Any) -> tuple[Any, ...]:
    """Precision and element types of a dot."""
    elements = tuple(v.type.element for v in dot.operands)
    return dot.attributes["precision"], elements


def lanes(frame: Frame, hole: Hole, dot: Any, k: Any) -> tuple[Frame, Any, Any]:
    """The two factors of product k."""
    a, b, _ = dot.operands
    row, column = hole.index
    return frame, frame.element(a, (row, k)), frame.element(b, (k, column))
