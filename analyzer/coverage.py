"""Every live element of a row is stored: by which program, in which iteration, at which index.

A witness is computed and then proved: an address is a mixed radix number whose digits are the
store's coordinates, so it is taken apart from the largest coefficient down. Where the guess is
wrong, z3 says for which element, and the kernel counts as one that leaves it unwritten.

A coordinate's value may mention what is loaded at other coordinates. Values are only used in an
order in which each rests on those before it: so there are coordinates that have these values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import z3

from pyvosti.analyzer.contracts import MAX_ROWS, Out
from pyvosti.analyzer.launch import Launch
from pyvosti.analyzer.obligations import Broken, Outcome, columns, row_and_index
from pyvosti.analyzer.stores import Store, execute, sites
from pyvosti.analyzer.terms import subterms


def schedule_coverage(a: Launch) -> Outcome:
    """For every output, row below the count and live element: some execution stores it."""
    terms = a.terms
    every = [(site, execute(site, a.other_program())) for site in sites(a.function)]
    for name, role in a.memory.roles.items():
        if not isinstance(role, Out):
            continue
        row = terms.integer("row", 0, MAX_ROWS - 1)
        column = columns(terms, role)
        live = [row < a.rows, *a.memory.live(role.live, row, column)]
        covered, links = [], []
        stores = [store for _, store in every if store.name == name]
        for store in stores:
            happens, link = witness(store, row, column)
            covered.append(happens)
            links += link
        model = terms.refute([*live, *links, z3.Not(z3.Or(*covered))])
        if model is not None:
            first = stores[0] if stores else None
            detail = "a live element that no program stores"
            return Broken(model, first, None, tuple(column), name, detail)
    return None


def witness(store: Store, row: Any, column: list[Any]) -> tuple[Any, list[Any]]:
    """(that this store writes the element, what its coordinates are then)."""
    launch, at = store.launch, store.role.at
    digits = Digits(store)
    if launch.memory.tile_names:
        digits.tile(launch.memory.tile_of(row))
    if at.key:
        place = row_and_index(store)
        if place is None:
            return z3.BoolVal(False), []
        digits.solve(place[0], row)
    target = launch.memory.place(at, row, column)
    digits.solve(store.offset, target)
    happens, links = [store.offset == target, *store.conditions], []
    for symbol, value in digits.in_order():
        low, high = launch.terms.bounds(symbol) or (0, 0)
        inside = [value >= low, value <= high]
        for program, extent in zip(launch.program, launch.grid, strict=True):
            if program.eq(symbol):
                inside.append(value < extent)
        happens += inside
        links.append(z3.Implies(z3.And(*inside), symbol == value))
    return z3.And(*happens), links


def is_known(term: Any) -> bool:
    """Whether a term is made of others, or a number: not a constant that stands for anything."""
    return bool(term.num_args() or term.decl().kind() != z3.Z3_OP_UNINTERPRETED)


@dataclass
class Digits:
    """Coordinates of a store, solved one equation after the other."""

    store: Store
    found: dict[int, Any] = field(default_factory=dict)
    """Values of whole symbols, by id."""
    parts: dict[tuple[int, str, int], Any] = field(default_factory=dict)
    """Values of `x div k` and `x mod k`, by (id, "div" or "mod", k)."""
    counts: dict[int, tuple[Any, Any, Any, int]] = field(default_factory=dict)
    """Loop variable -> (itself, its number of steps, start, step)."""

    def __post_init__(self) -> None:
        terms = self.store.launch.terms
        self.symbols = [c for c in self.store.coordinates() if not z3.is_int_value(c)]
        loops = [op for op, _ in self.store.site.path if op.name == "scf.for"]
        for loop, variable in zip(loops, self.store.variables, strict=True):
            frame = next(f for f in self.store.frames if f.block is loop.block)
            start, _, step = (frame.element(v) for v in loop.operands[:3])
            count = terms.fresh("steps")
            self.counts[variable.get_id()] = (variable, count, start, step.as_long())

    def tile(self, tile: Any) -> None:
        """A program id that reads the tile arrays is the row's tile."""
        memory = self.store.launch.memory
        for symbol in self.store.launch.program:
            first = memory.part("first", symbol)
            used = self.store.launch.terms.closure([self.store.offset == 0])
            if any(term.eq(first) for term in subterms(*used)):
                self.found[symbol.get_id()] = tile

    def solve(self, term: Any, target: Any) -> None:
        """Digits of `term == target`, largest coefficient first."""
        units: dict[tuple[int, str, int], int] = {}
        rest = target - self.linear(term, 1, units)
        for unit, coefficient in sorted(units.items(), key=lambda u: -u[1]):
            if coefficient <= 0 or self.is_zero(unit):
                continue
            value = rest / coefficient if coefficient > 1 else rest
            rest = rest - value * coefficient
            self.parts[unit] = value

    def is_zero(self, unit: tuple[int, str, int]) -> bool:
        """Whether a quotient can only be 0."""
        ident, kind, size = unit
        bounds = next(
            (self.store.launch.terms.bounds(s) for s in self.symbols if s.get_id() == ident), None
        )
        return kind == "div" and bounds is not None and bounds[1] < size

    def linear(self, term: Any, factor: int, units: dict[tuple[int, str, int], int]) -> Any:
        """Adds factor * term to `units`; returns what is not made of unknown digits."""
        if z3.is_add(term) or z3.is_sub(term):
            signs = [1, *([-1 if z3.is_sub(term) else 1] * (term.num_args() - 1))]
            parts = zip(term.children(), signs, strict=True)
            return sum((self.linear(t, s * factor, units) for t, s in parts), z3.IntVal(0))
        if z3.is_mul(term) and term.num_args() == 2:
            for x, y in (term.children(), term.children()[::-1]):
                if z3.is_int_value(x):
                    return self.linear(y, factor * x.as_long(), units)
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            return self.linear(term.arg(1), factor, units)
        unit = self.unit(term)
        if unit is not None and unit[0] in self.counts and unit[1] == "":
            _, count, start, step = self.counts[unit[0]]
            rest = self.linear(start, factor, units)
            unit, term, factor = (count.get_id(), "", 0), count, factor * step
        else:
            rest = z3.IntVal(0)
        if unit is None or unit[0] in self.found or unit in self.parts:
            return rest + term * factor
        units[unit] = units.get(unit, 0) + factor
        return rest

    def unit(self, term: Any) -> tuple[int, str, int] | None:
        """A digit: a coordinate, or its quotient or remainder by a constant."""
        ids = [s.get_id() for s in self.symbols] + [
            c.get_id() for _, c, _, _ in self.counts.values()
        ]
        if term.get_id() in ids:
            return term.get_id(), "", 0
        for kind, test in (("div", z3.is_idiv), ("mod", z3.is_mod)):
            if test(term) and term.arg(0).get_id() in ids and z3.is_int_value(term.arg(1)):
                return term.arg(0).get_id(), kind, term.arg(1).as_long()
        return None

    def values(self) -> list[tuple[Any, Any]]:
        """Each coordinate with its value; those that nothing fixes are 0."""
        result = []
        for symbol in self.symbols:
            ident = symbol.get_id()
            if ident in self.counts:
                _, count, start, step = self.counts[ident]
                steps = self.parts.get((count.get_id(), "", 0), z3.IntVal(0))
                value = self.parts.get((ident, "", 0), start + steps * step)
            else:
                value = self.found.get(ident, self.parts.get((ident, "", 0)))
            if value is None:
                value = z3.IntVal(0)
                for (owner, kind, size), digit in self.parts.items():
                    if owner == ident:
                        value = value + (digit * size if kind == "div" else digit % size)
            result.append((symbol, value))
        return result

    def in_order(self) -> list[tuple[Any, Any]]:
        """The coordinates whose values rest on earlier ones only."""
        waiting = [(symbol, value, self.depends(value)) for symbol, value in self.values()]
        ordered: list[tuple[Any, Any]] = []
        known: set[int] = set()
        while ready := [one for one in waiting if one[2] <= known]:
            ordered += [(symbol, value) for symbol, value, _ in ready]
            known |= {symbol.get_id() for symbol, _, _ in ready}
            waiting = [one for one in waiting if one[0].get_id() not in known]
        return ordered

    def depends(self, value: Any) -> set[int]:
        """Ids of the coordinates that a value rests on, through the facts about its parts.

        Where a coordinate is `d * k + m` with digits d and m below k, its quotient by k is d. A
        hole, or a constant of which nothing is known, may rest on all of them.
        """
        terms = self.store.launch.terms
        coordinates = {symbol.get_id() for symbol in self.symbols}
        found: set[int] = set()
        stack, seen = [value], set()
        while stack:
            part = stack.pop()
            if part.get_id() in seen:
                continue
            seen.add(part.get_id())
            unit, known = self.unit(part), terms.facts(part)
            if part.get_id() in coordinates:
                found.add(part.get_id())
            elif unit in self.parts and self.is_quotient(unit):
                stack.append(self.parts[unit])
            elif part.get_id() in terms.holes or not (known or is_known(part)):
                found |= coordinates
            else:
                stack += [*part.children(), *known]
        return found

    def is_quotient(self, unit: tuple[int, str, int]) -> bool:
        """Whether `values` takes this digit: the upper one of a coordinate of which nothing else is
        known, with one divisor."""
        if unit[0] in self.counts or unit[0] in self.found:
            return False
        sizes = {size for owner, _, size in self.parts if owner == unit[0]}
        return unit[1] == "div" and len(sizes) == 1
