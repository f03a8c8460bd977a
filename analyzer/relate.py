"""Shows that an element in launch A has the bits of one in launch B.

Terms over the same uninterpreted functions are compared by z3. Holes are paired first: two
reductions are equal if they are the same operation and all their lanes are, two dots if every k
is and what they add to, two loops if a relational invariant holds (`loops`).
"""

from __future__ import annotations

from typing import Any

import z3

from pyvosti.analyzer.chains import chain
from pyvosti.analyzer.elements import Frame
from pyvosti.analyzer.loops import LoopProof
from pyvosti.analyzer.terms import Hole, Terms
from pyvosti.analyzer.ttir import NotAnalysable, Op, Value

Hypotheses = tuple[Any, ...]


class Relation:
    """Proofs about two frames. `same_program`: A and B run one module, so operations match.

    `failure` is the first query that had a model, for the counterexample: (model, what).
    """

    def __init__(self, terms: Terms, same_program: bool) -> None:
        self.terms, self.same_program = terms, same_program
        self.failure: tuple[Any, str] | None = None
        self._joint: dict[tuple[Frame, Frame], Hypotheses] = {}
        self._loops: dict[tuple[Frame, Frame, Op, Op], LoopProof] = {}
        self._pairs: dict[tuple[int, int], list[tuple[frozenset[int], bool]]] = {}
        self.open_loops: dict[tuple[Frame, Frame], LoopProof] = {}

    def join(self, a: Frame, b: Frame, hypotheses: Hypotheses) -> Hypotheses:
        """States what holds when frame a of A is compared with frame b of B."""
        unique = {h.get_id(): self.terms.keep(h) for h in (*a.hypotheses, *b.hypotheses)}
        unique |= {h.get_id(): self.terms.keep(h) for h in hypotheses}
        self._joint[a, b] = tuple(unique.values())
        return self._joint[a, b]

    def joint(self, a: Frame, b: Frame) -> Hypotheses | None:
        """What was stated, for these frames or the blocks around their branches."""
        x: Frame | None = a
        while x is not None:
            y: Frame | None = b
            while y is not None:
                if (x, y) in self._joint:
                    return self._joint[x, y]
                y = y.parent if is_branch(y) else None
            x = x.parent if is_branch(x) else None
        return None

    # Equality -----------------------------------------------------------------------------

    def equal(self, a: Any, b: Any, hypotheses: Hypotheses, what: str = "") -> bool:
        """Whether a = b follows from the hypotheses; without `what` it may well not."""
        if a.eq(b):
            return True
        return self.holds(a == b, self.pairings(a, b, hypotheses), hypotheses, what)

    def holds(self, goal: Any, paired: list[Any], hypotheses: Hypotheses, what: str) -> bool:
        """Whether a goal follows, given equal holes."""
        formulas = [*hypotheses, *paired, z3.Not(goal)]
        model = self.terms.refute(formulas)
        if model is not None and what and self.failure is None:
            self.failure = (model, what)
        return model is None

    def pairings(self, a: Any, b: Any, hypotheses: Hypotheses) -> list[Any]:
        """Equations of the holes of a with those of b that are shown to be equal.

        A hole that is only used under a condition need only be equal under it.
        """
        found = []
        for x in self.terms.holes_in(a):
            for y in self.terms.holes_in(b):
                if x is y or not self.comparable(x, y):
                    continue
                guards = (*self.guards(a, x.term), *self.guards(b, y.term))
                if self.pair(x, y, (*hypotheses, *guards)):
                    same = x.term == y.term
                    found.append(z3.Implies(z3.And(*guards), same) if guards else same)
                    break
        return found

    def guards(self, term: Any, hole: Any) -> tuple[Any, ...]:
        """Conditions of the `If`s around every use of a hole in a term."""
        uses = [
            (place, part)
            for place, part in enumerate(term.children())
            if hole.get_id() in self.terms.opaque_parts(part)
        ]
        if not uses or not z3.is_app(term):
            return ()
        (place, part), *others = uses
        inner = self.guards(part, hole)
        for _, other in others:
            kept = {g.get_id() for g in self.guards(other, hole)}
            inner = tuple(g for g in inner if g.get_id() in kept)
        if z3.is_app_of(term, z3.Z3_OP_ITE) and not others and place > 0:
            condition = self.terms.keep(term.arg(0))
            guard = condition if place == 1 else self.terms.keep(z3.Not(condition))
            return (guard, *inner)
        return inner

    def comparable(self, x: Hole, y: Hole) -> bool:
        """Whether two holes could be equal: one kind, and one operation in one program."""
        if x.modulo_zero != y.modulo_zero:
            return False
        if not self.same_program and {x.kind, y.kind} == {"loop", "dot"}:
            return True
        if (x.kind, x.result) != (y.kind, y.result):
            return False
        return x.op is y.op or not self.same_program

    def pair(self, x: Hole, y: Hole, hypotheses: Hypotheses) -> bool:
        """Whether two holes are shown to be equal; results are kept by hypotheses."""
        if x.kind == "carried":
            proof = self.open_loops.get((x.frame, y.frame))
            return proof is not None and proof.assume(x.result, x.index, y.index, x.modulo_zero)
        if x.kind == y.kind == "loop" and self._loop(x, y):
            return True
        if x.kind == "loop" or y.kind == "loop":
            return not self.same_program and self._chain(x, y, hypotheses)
        given = frozenset(h.get_id() for h in hypotheses)
        known = self._pairs.setdefault((x.term.get_id(), y.term.get_id()), [])
        for used, result in known:
            if used <= given if result else used >= given:
                return result
        result = (self._reduce if x.kind == "reduce" else self._chain)(x, y, hypotheses)
        known.append((given, result))
        return result

    def _loop(self, x: Hole, y: Hole) -> bool:
        joint = self.joint(x.frame, y.frame)
        if joint is None:
            return False
        key = (x.frame, y.frame, x.op, y.op)
        if key not in self._loops:
            self._loops[key] = LoopProof(self, x.frame, y.frame, x.op, y.op, joint)
        return self._loops[key].request(x.result, x.index, y.index, x.modulo_zero)

    def _reduce(self, x: Hole, y: Hole, hypotheses: Hypotheses) -> bool:
        """The same operation over lanes that are equal, one by one."""
        a, b = x.op.operands, y.op.operands
        axes = x.op.attributes["axis"], y.op.attributes["axis"]
        extent = a[0].type.shape[axes[0]]
        if extent != b[0].type.shape[axes[1]] or region(x.op) != region(y.op):
            return False
        lane = self.terms.integer("lane", 0, extent - 1)
        places = [
            (*h.index[:axis], lane, *h.index[axis:]) for h, axis in zip((x, y), axes, strict=True)
        ]
        return all(
            self.equal(
                x.frame.element(v, places[0]), y.frame.element(w, places[1]), hypotheses, "a lane"
            )
            for v, w in zip(a, b, strict=True)
        )

    def _chain(self, x: Hole, y: Hole, hypotheses: Hypotheses) -> bool:
        """Two folds over k: equal starts, and equal factors at every k."""
        one, two = chain(x), chain(y)
        if one is None or two is None or (one.kind, one.length) != (two.kind, two.length):
            return False
        if not self.equal(one.start, two.start, hypotheses, "the sum of a dot"):
            return False
        k = self.terms.integer("k", 0, one.length - 1)
        (frame, a, b), (other, d, e) = one.lane(k), two.lane(k)
        if (frame, other) not in self._joint and self.joint(frame, other) is None:
            hypotheses = self.join(frame, other, hypotheses)
        return self.lanes(a, b, d, e, x.modulo_zero, hypotheses)

    def lanes(
        self, a: Any, b: Any, d: Any, e: Any, modulo_zero: bool, hypotheses: Hypotheses
    ) -> bool:
        """a * b in A and d * e in B add the same: equal, or (law `dead_lane`) of weight zero."""
        paired = self.pairings(a, d, hypotheses) + self.pairings(b, e, hypotheses)
        goal = z3.And(a == d, b == e)
        if modulo_zero:
            finite = self.terms.function("finite", "float", "bool")
            dead = self.terms.function("zero_or_nan", "float", "bool")(a)
            goal = z3.And(a == d, z3.Or(b == e, z3.And(dead, finite(b), finite(e))))
        return self.holds(goal, paired, hypotheses, "a lane of a dot")


def is_branch(frame: Frame) -> bool:
    """Whether a frame is a branch of an scf.if."""
    return frame.block.owner is not None and frame.block.owner.name == "scf.if"


def region(op: Op) -> tuple[Any, ...]:
    """The combine region of a reduction, names replaced by numbers, constants by their value."""
    block = op.regions[0]
    number: dict[Value, Any] = {value: i for i, value in enumerate(block.arguments)}

    def operand(value: Value) -> Any:
        if value in number:
            return number[value]
        if value.op is None or value.op.name != "arith.constant":
            raise NotAnalysable(f"a reduction combines with {value.name}, from outside")
        return str(value.type), value.op.attributes["value"]

    found = []
    for inner in block.ops:
        operands = tuple(operand(v) for v in inner.operands)
        number |= {v: len(number) + i for i, v in enumerate(inner.results)}
        kinds = tuple(str(v.type) for v in inner.results)
        found.append((inner.name, operands, tuple(sorted(inner.attributes.items())), kinds))
    return tuple(found)
