"""Symbols of one proof: integers with intervals, uninterpreted floats, facts, holes, queries.

Integers and booleans are z3's own; an element of any float type is a term of the sort F, built by
uninterpreted functions, so that only equal computations are equal. A *fact* is a formula that
holds by a law or a premise; it joins every query in which its trigger occurs. A *hole* stands for
a reduction, a dot or a loop result; `relate` shows when two holes are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

F = z3.DeclareSort("F")
SORTS = {"int": z3.IntSort(), "bool": z3.BoolSort(), "float": F}


ATTEMPTS = (
    *((2, 0, 4_000_000), (6, 0, 1_000_000), (2, 1, 8_000_000), (6, 1, 2_000_000)),
    *((2, 2, 60_000_000), (6, 2, 10_000_000)),
)
"""(simplex of z3, old or new; seed; resource limit) in turn. Which one is fast is a matter of luck.

Limits are in z3's own units, not seconds: a verdict does not depend on the machine's load.
"""


@dataclass(eq=False)
class Hole:
    """What a hole stands for: `kind`, its operation (in `frame`), result, index and mode."""

    kind: str
    term: Any
    frame: Any
    op: Any
    result: int
    index: tuple[Any, ...]
    modulo_zero: bool


def subterms(*terms: Any) -> Iterator[Any]:
    """All subterms, each once."""
    stack, seen = list(terms), set()
    while stack:
        part = stack.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            stack += part.children()
            yield part


class Inconclusive(Exception):
    """z3 gave up: the verdict is `not analysable`."""


class Terms:
    """The store of symbols, intervals, facts and holes of one proof."""

    def __init__(self) -> None:
        self.queries = 0
        self.holes: dict[int, Hole] = {}
        self.premises: list[Callable[[list[Any]], Iterable[Any]]] = []
        self._keep: list[Any] = []
        self._count = 0
        self._intervals: dict[int, tuple[int, int]] = {}
        self._facts: dict[int, list[Any]] = {}
        self._functions: dict[tuple[str, ...], Any] = {}
        self._order: dict[int, int] = {}
        self._opaque: dict[int, frozenset[int]] = {}
        self._applications: dict[int, bool] = {}
        self.named: dict[int, Any] = {}

    # Symbols ------------------------------------------------------------------------------

    def fresh(self, name: str, sort: Any = None) -> Any:
        """A new constant (integers by default)."""
        self._count += 1
        symbol = z3.Const(f"{name}!{self._count}", sort if sort is not None else SORTS["int"])
        self._order[self.keep(symbol).get_id()] = self._count
        return symbol

    def integer(self, name: str, low: int, high: int) -> Any:
        """A new integer constant with low <= it <= high."""
        symbol = self.fresh(name)
        return self.bounded(symbol, low, high)

    def bounded(self, term: Any, low: int, high: int) -> Any:
        """States low <= term <= high as a fact, and remembers the interval."""
        self.fact(term, z3.And(term >= low, term <= high))
        return self.interval(term, low, high)

    def interval(self, term: Any, low: int, high: int) -> Any:
        """Remembers an interval that follows from the term's parts or from a proof."""
        old = self._intervals.get(self.keep(term).get_id(), (low, high))
        self._intervals[term.get_id()] = (max(low, old[0]), min(high, old[1]))
        return term

    def bounds(self, term: Any) -> tuple[int, int] | None:
        """The interval of an integer, if one is known."""
        if z3.is_int_value(term):
            return term.as_long(), term.as_long()
        return self._intervals.get(term.get_id())

    def function(self, name: str, *sorts: str) -> Any:
        """The uninterpreted function of that name and signature (the result's sort last)."""
        key = (name, *sorts)
        if key not in self._functions:
            self._functions[key] = z3.Function(name, *(SORTS[s] for s in sorts))
        return self._functions[key]

    def keep(self, term: Any) -> Any:
        """Keeps a term alive, so that its id stays its own."""
        self._keep.append(term)
        return term

    def fact(self, trigger: Any, formula: Any) -> None:
        """A formula that holds always, and is used where the trigger occurs."""
        known = self._facts.setdefault(self.keep(trigger).get_id(), [])
        if not any(formula.eq(old) for old in known):
            known.append(formula)

    def facts(self, trigger: Any) -> list[Any]:
        """The facts about a term."""
        return self._facts.get(trigger.get_id(), [])

    def hole(self, sort: str, **what: Any) -> Any:
        """A new hole."""
        term = self.fresh(what["kind"], SORTS[sort])
        self.holes[term.get_id()] = Hole(term=term, **what)
        return term

    # Structure ----------------------------------------------------------------------------

    def holes_in(self, term: Any) -> list[Hole]:
        """The holes of a term, oldest first."""
        ids = self.opaque_parts(term) & self.holes.keys()
        return [self.holes[i] for i in sorted(ids, key=self._order.__getitem__)]

    def age(self) -> int:
        """Symbols made so far."""
        return self._count

    def older(self, term: Any, age: int) -> bool:
        """Whether all constants of a term were made before."""
        return all(self._order.get(i, 0) <= age for i in self.opaque_parts(term))

    # Queries ------------------------------------------------------------------------------

    def opaque_parts(self, term: Any) -> frozenset[int]:
        """Ids of the uninterpreted constants and applications in a term; see `named`."""
        ident = term.get_id()
        found = self._opaque.get(ident)
        if found is None:
            self.keep(term)
            found = frozenset().union(*(self.opaque_parts(part) for part in term.children()))
            if term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                self.named[ident] = term
                found |= {ident}
            self._opaque[ident] = found
        return found

    def _is_application(self, ident: int) -> bool:
        if ident not in self._applications:
            self._applications[ident] = self.named[ident].num_args() > 0
        return self._applications[ident]

    def closure(self, formulas: Iterable[Any]) -> list[Any]:
        """The formulas, and all facts and premises that concern their subterms."""
        todo, found = [*formulas], []
        known: set[int] = set()
        seen: set[int] = set()
        atoms: list[Any] = []
        met = 0
        while todo:
            formula = todo.pop()
            if formula.get_id() not in known:
                known.add(formula.get_id())
                found.append(formula)
                new = self.opaque_parts(formula) - seen
                seen |= new
                for ident in sorted(new):
                    todo += self._facts.get(ident, ())
                    if self._is_application(ident):
                        atoms.append(self.named[ident])
            if not todo and len(atoms) > met:
                met = len(atoms)
                for premise in self.premises:
                    todo += premise(atoms)
        return found

    def refute(self, formulas: Iterable[Any]) -> Any | None:
        """None when the formulas contradict each other, else a model. Raises Inconclusive."""
        self.queries += 1
        closed = self.closure(formulas)
        for simplex, seed, limit in ATTEMPTS:
            solver = z3.SimpleSolver()
            solver.set("smt.arith.solver", simplex)
            solver.set("random_seed", seed)
            solver.set("rlimit", limit)
            solver.add(*closed)
            result = solver.check()
            if result != z3.unknown:
                return solver.model() if result == z3.sat else None
        raise Inconclusive(f"z3: {solver.reason_unknown()}")

    def proves(self, hypotheses: Iterable[Any], goal: Any) -> bool:
        """Whether the goal follows. Raises Inconclusive."""
        if z3.is_true(goal):
            return True
        return self.refute([*hypotheses, z3.Not(goal)]) is None
