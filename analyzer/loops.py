"""Two loops by relational induction, iterations aligned by the value of the loop variable.

A *claim* (result, places, modulo_zero) says that an element of a carried value in A equals one in
B; a place is, by dim, either any index, the same in both, or one fixed pair. A request for a
claim brings in the claims that its proof leans on; what fails is dropped (Houdini) until the rest
is inductive: initially true, kept by an iteration that both launches run, and by one that only
one of them runs, which must leave the element as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import z3

from pyvosti.analyzer.elements import Frame, sort_of
from pyvosti.analyzer.integers import type_range
from pyvosti.analyzer.ttir import Op, Value

if TYPE_CHECKING:
    from pyvosti.analyzer.relate import Relation


@dataclass(frozen=True)
class Claim:
    """Element `places` of carried value `result` is related. A place None: any, the same in both.

    A fixed pair is kept as z3 ids (into `LoopProof.fixed`), so that claims can be compared.
    """

    result: int
    places: tuple[tuple[int, int] | None, ...]
    modulo_zero: bool


class LoopProof:
    """The claims about one pair of loops in one pair of frames."""

    def __init__(
        self, relation: Relation, a: Frame, b: Frame, loop_a: Op, loop_b: Op, joint: tuple[Any, ...]
    ) -> None:
        self.relation, self.terms, self.joint = relation, relation.terms, joint
        self.sides = ((a, loop_a), (b, loop_b))
        self.age = self.terms.age()
        self.proved: set[Claim] = set()
        self.failed: set[Claim] = set()
        self.claims: list[Claim] = []
        self.fixed: dict[int, Any] = {}
        self.bounds = [
            tuple(frame.element(v) for v in loop.operands[:3]) for frame, loop in self.sides
        ]
        self._aligned: bool | None = None
        self._same_range = False
        self._ratio = [1, 1]

    def claim(
        self, result: int, a: tuple[Any, ...], b: tuple[Any, ...], modulo_zero: bool
    ) -> Claim | None:
        """The claim that covers a pair of elements; fixed places must come from outside."""
        places: list[tuple[int, int] | None] = []
        shapes = [loop.results[result].type.shape for _, loop in self.sides]
        for x, y, m, n in zip(a, b, *shapes, strict=True):
            if x.eq(y) and m == n:
                places.append(None)
            elif self.terms.older(x, self.age) and self.terms.older(y, self.age):
                self.fixed |= {x.get_id(): x, y.get_id(): y}
                places.append((x.get_id(), y.get_id()))
            else:
                return None
        return Claim(result, tuple(places), modulo_zero)

    def request(
        self, result: int, a: tuple[Any, ...], b: tuple[Any, ...], modulo_zero: bool
    ) -> bool:
        """Whether the results' elements are shown to be related."""
        wanted = self.claim(result, a, b, modulo_zero)
        if wanted is None or wanted in self.failed:
            return False
        if wanted in self.proved:
            return True
        if not self.aligned():
            self.failed.add(wanted)
            return False
        while wanted not in self.failed:
            self.claims = [*self.proved, wanted]
            if self._inductive():
                self.proved |= set(self.claims)
                return True
        return False

    def assume(
        self, result: int, a: tuple[Any, ...], b: tuple[Any, ...], modulo_zero: bool
    ) -> bool:
        """The induction hypothesis for a pair of elements; it joins the claims to show."""
        claim = self.claim(result, a, b, modulo_zero)
        if claim is None or claim in self.failed:
            return False
        if claim not in self.claims:
            self.claims.append(claim)
        return True

    def aligned(self) -> bool:
        """Whether iterations meet: one positive constant step, starts congruent to it.

        Or one loop goes by single steps, the other by several: then it is compared with as many
        iterations of the first, of which those out of its range are left out.
        """
        if self._aligned is None:
            (low_a, high_a, one), (low_b, high_b, two) = self.bounds
            known = z3.is_int_value(one) and z3.is_int_value(two)
            steps = [one.as_long(), two.as_long()] if known else [0, 0]
            self._aligned = min(steps) > 0 and (steps[0] == steps[1] or min(steps) == 1)
            if self._aligned and steps[0] == steps[1]:
                equal = self.relation.equal
                low = equal(low_a, low_b, self.joint)
                self._same_range = low and equal(high_a, high_b, self.joint)
                self._aligned = low or equal(
                    (low_a - low_b) % one, z3.IntVal(0), self.joint, "the start of a loop"
                )
            elif self._aligned:
                self._ratio = [max(steps) // step for step in steps]
        return self._aligned

    # Induction ----------------------------------------------------------------------------

    def _inductive(self) -> bool:
        """Whether all claims hold; else the failed one is noted."""
        variable = self._variable(self.bounds)
        first, last = zip(*(self._iterations(side, variable) for side in (0, 1)), strict=True)
        joint = self.relation.join(first[0], first[1], self.joint)
        joint = self.relation.join(last[0], last[1], joint)
        self.relation.open_loops[first[0], first[1]] = self
        done = 0
        while done < len(self.claims):
            claim = self.claims[done]
            kept = self._initially(claim) and self._kept(claim, last, joint)
            if not (kept and (self._same_range or self._skipped(claim))):
                self.failed.add(claim)
                return False
            done += 1
        return True

    def _variable(self, bounds: Iterable[tuple[Any, ...]]) -> Any:
        """A loop variable, somewhere in the ranges."""
        ranges = [[self.terms.bounds(x) or type_range(64) for x in b[:2]] for b in bounds]
        low = min(start[0] for start, _ in ranges)
        return self.terms.integer("iteration", low, max(low, *(end[1] - 1 for _, end in ranges)))

    def _iterations(self, side: int, variable: Any) -> tuple[Frame, Frame]:
        """The first and last frame of the iterations of one side that are compared at once."""
        frame, loop = self.sides[side]
        if self._ratio[side] == 1:
            only = iteration(frame, loop, self.bounds[side], variable)
            return only, only
        first = after = iteration(frame, loop, self.bounds[side], variable, runs=False)
        for step in range(1, self._ratio[side]):
            after = next_iteration(after, loop, self.bounds[side], variable + step)
        return first, next_iteration(after, loop, self.bounds[side], None)

    def _elements(self, claim: Claim, value: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Indices in A and B of the element that a claim is about."""
        shape = self.sides[0][1].results[value].type.shape
        a, b = [], []
        for place, extent in zip(claim.places, shape, strict=True):
            if place is None:
                index = self.terms.integer("index", 0, extent - 1)
                a.append(index)
                b.append(index)
            else:
                a.append(self.fixed[place[0]])
                b.append(self.fixed[place[1]])
        return tuple(a), tuple(b)

    def _initially(self, claim: Claim) -> bool:
        places = self._elements(claim, claim.result)
        a, b = (
            frame.element(loop.operands[3 + claim.result], place, claim.modulo_zero)
            for (frame, loop), place in zip(self.sides, places, strict=True)
        )
        return self.relation.equal(a, b, self.joint, "before a loop")

    def _kept(self, claim: Claim, last: tuple[Frame, ...], joint: tuple[Any, ...]) -> bool:
        places = self._elements(claim, claim.result)
        values = []
        for side, (frame, place) in enumerate(zip(last, places, strict=True)):
            loop = self.sides[side][1]
            value = yielded(loop, claim.result)
            if self._ratio[side] > 1:
                value = loop.regions[0].arguments[1 + claim.result]
            values.append(frame.element(value, place, claim.modulo_zero))
        a, b = values
        return self.relation.equal(a, b, joint, "an iteration")

    def _skipped(self, claim: Claim) -> bool:
        """Iterations that only one launch runs leave the element as it is."""
        places = self._elements(claim, claim.result)
        for side in (0, 1):
            if self._ratio[1 - side] > 1:
                continue  # Its iterations are all compared with some of the other's, or none.
            low, high, _ = self.bounds[1 - side]
            frame, loop = self.sides[side]
            variable = self._variable([self.bounds[side]])
            absent = z3.Or(variable < low, variable >= high)
            inner = iteration(frame, loop, self.bounds[side], variable, (absent,))
            after = inner.element(yielded(loop, claim.result), places[side], claim.modulo_zero)
            argument = loop.regions[0].arguments[1 + claim.result]
            before = inner.element(argument, places[side], claim.modulo_zero)
            hypotheses = (*self.joint, *inner.hypotheses)
            if not self.relation.equal(after, before, hypotheses, "an iteration of one launch"):
                return False
        return True


def yielded(loop: Op, result: int) -> Value:
    """What an iteration leaves of a carried value."""
    return loop.regions[0].ops[-1].operands[result]


def iteration(
    frame: Frame,
    loop: Op,
    bounds: tuple[Any, ...],
    variable: Any,
    extra: tuple[Any, ...] = (),
    runs: bool = True,
) -> Frame:
    """The frame of an iteration; carried values are holes of their own. `runs`: it is in range."""
    low, high, step = bounds
    terms = frame.launch.terms
    block = loop.regions[0]
    known = [variable >= low, variable < high, *extra] if runs else [*extra]
    if runs and not (z3.is_int_value(step) and step.as_long() == 1):
        known.append((variable - low) % step == 0)

    def carried(value: Value, index: tuple[Any, ...], modulo_zero: bool) -> Any:
        sort = sort_of(value.type)
        term = terms.hole(
            sort, kind="carried", frame=inner, op=loop, result=block.arguments.index(value) - 1,
            index=index, modulo_zero=modulo_zero,
        )  # fmt: skip
        if sort == "int":
            terms.bounded(term, *type_range(value.type.bits))
        return term

    variables = {block.arguments[0]: variable}
    inner = Frame(frame.launch, block, frame, tuple(known), variables, carried)
    return inner


def next_iteration(before: Frame, loop: Op, bounds: tuple[Any, ...], variable: Any) -> Frame:
    """The iteration after one that may be out of range; then it leaves everything as it is."""
    low, high, _ = bounds
    block = loop.regions[0]
    was = before.variables[block.arguments[0]]

    def carried(value: Value, index: tuple[Any, ...], modulo_zero: bool) -> Any:
        made = yielded(loop, block.arguments.index(value) - 1)
        new, old = (before.element(v, index, modulo_zero) for v in (made, value))
        return before.choose(z3.And(was >= low, was < high), new, old, value.type)

    return Frame(before.launch, block, before.parent, (), {block.arguments[0]: variable}, carried)
