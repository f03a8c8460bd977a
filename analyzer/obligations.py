"""What is shown of a kernel: each obligation as queries, with the launches that break it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import z3

from pyvosti.analyzer.contracts import MAX_ROWS, Out
from pyvosti.analyzer.launch import Launch
from pyvosti.analyzer.radix import equations
from pyvosti.analyzer.relate import Relation
from pyvosti.analyzer.stores import Store, execute, sites
from pyvosti.analyzer.terms import Terms, subterms
from pyvosti.analyzer.ttir import Block, Function, NotAnalysable, Op


@dataclass(frozen=True)
class Broken:
    """An obligation that does not hold: the executions, and a model of how."""

    model: Any
    a: Store | None
    b: Store | None
    column: tuple[Any, ...] = ()
    output: str = ""
    detail: str = ""


Outcome = Broken | None


def operations(block: Block) -> list[Op]:
    """All operations, at any depth."""
    found = []
    for op in block.ops:
        found.append(op)
        for region in op.regions:
            found += operations(region)
    return found


def no_forbidden_operations(function: Function) -> Outcome:
    """No atomics: the order in which they happen is nobody's."""
    for op in operations(function.body):
        if op.name == "tt.atomic_rmw":
            return Broken(None, None, None, detail=f"an atomic {op.attributes['kind']}")
    return None


def pointer_argument(op: Op) -> Any:
    """The argument that an access goes to, through the address arithmetic."""
    value = op.operands[0]
    while value.op is not None:
        value = value.op.operands[0]
    return value


def no_alias(a: Launch) -> Outcome:
    """Nothing that is loaded is stored to: loads see the memory as it was before the launch."""
    arguments = a.function.body.arguments
    reached: dict[str, set[Any]] = {"tt.load": set(), "tt.store": set()}
    for op in operations(a.function.body):
        if op.name in reached:
            argument = pointer_argument(op)
            if argument not in arguments:
                raise NotAnalysable("an address that comes from a loop")
            reached[op.name].add(argument)
    for argument in arguments:
        name = a.memory.names[argument]
        stored = isinstance(a.memory.roles[name], Out)
        if argument in reached["tt.store"] and not stored:
            return Broken(None, None, None, output=name, detail=f"{name} is stored to: an input")
        if argument in reached["tt.load"] and stored:
            return Broken(None, None, None, output=name, detail=f"{name} is loaded: an output")
    return None


def columns(terms: Terms, role: Out) -> list[Any]:
    """An element of a row: any index within it."""
    return [terms.integer("column", 0, extent - 1) for extent, _ in role.at.dims]


def row_locality(a: Launch, b: Launch) -> Outcome:
    """A and B store the same bits for the shared row (up to zeros' signs, where the role says)."""
    same, met = a.function is b.function, set()
    for x, y in product(sites(a.function), sites(b.function)):
        one, two = execute(x, a), execute(y, b)
        if one.name != two.name:
            continue
        broken, meets = same_bits(one, two, same)
        if broken is not None:
            return broken
        met |= {one.name} if meets else set()
    if met != {name for name, role in a.contract.arguments if isinstance(role, Out)}:
        raise NotAnalysable("the premises contradict each other, or an output is never stored")
    return None


def at_row(store: Store, column: list[Any]) -> list[Any]:
    """What says that a store happens and writes this element of the shared row.

    Where rows lie by a key, the row is the one whose key was read: `places_distinct` says that no
    other row has the address. Raises NotAnalysable when no key was read.
    """
    launch, role = store.launch, store.role
    row, hypotheses = launch.row, list(store.conditions)
    if role.at.key:
        found = row_and_index(store)
        if found is None:
            raise NotAnalysable("no row owns the address")
        hypotheses.append(row == found[0])
        row = found[0]
    hypotheses += launch.memory.live(role.live, row, column)
    place = launch.memory.place(role.at, row, column)
    return hypotheses + equations(launch.terms, store.offset, place)


def same_bits(
    one: Store, two: Store, same: bool, column: list[Any] | None = None
) -> tuple[Outcome, bool]:
    """Two stores of one element of the shared row store equal values; and can both happen."""
    terms = one.launch.terms
    relation = Relation(terms, same)
    column = columns(terms, one.role) if column is None else column
    hypotheses = [*at_row(one, column), *at_row(two, column)]
    if one.site.op is not two.site.op and terms.refute(hypotheses) is None:
        return None, False
    hypotheses += shared_coordinates(one, two, hypotheses, same)
    for x, y in zip(one.frames, two.frames, strict=False):
        relation.join(x, y, tuple(hypotheses))
    joint = relation.join(one.frames[-1], two.frames[-1], tuple(hypotheses))
    a, b = (
        s.frames[-1].element(s.value, s.index if s.value.type.shape else (), one.role.modulo_zero)
        for s in (one, two)
    )
    if relation.equal(a, b, joint, "the stored value"):
        # With every fact about the values: were they contradictory, nothing would be shown.
        return None, terms.refute([*joint, a == b]) is not None
    model, what = relation.failure or (None, "")
    return Broken(model, one, two, tuple(column), one.name, what), False


def shared_coordinates(one: Store, two: Store, hypotheses: list[Any], same: bool) -> list[Any]:
    """Equations of coordinates (the first, the row's program, aside) that follow: lemmas.

    Of two kernels with different tiles only the loop variables are tried.
    """
    terms = one.launch.terms
    found: list[Any] = []
    pairs = list(zip(one.coordinates(), two.coordinates(), strict=False))[1:]
    if not same:
        pairs = list(zip(one.variables, two.variables, strict=False))
    for x, y in pairs:
        if not x.eq(y) and terms.proves([*hypotheses, *found], x == y):
            found.append(x == y)
    return found


def row_and_index(store: Store) -> tuple[Any, list[Any], Any] | None:
    """The row and index of what a store writes: (row, index, that the place is there)."""
    at, memory = store.role.at, store.launch.memory
    if not at.key:
        row = store.offset / at.stride if at.stride > 1 else store.offset
        relative = store.offset - row * at.stride
        index, inside = memory.digits(at, relative)
        return row, index, inside
    prefix = f"{at.key}@"
    formulas = store.launch.terms.closure([store.offset == 0, *store.conditions])
    for row in accesses(formulas, prefix):
        relative = store.offset - memory.base(at, row)
        index, inside = memory.digits(at, relative)
        if not at.dims:
            inside = relative == 0
        goal = z3.And(inside, row >= 0, row < store.launch.rows)
        if store.launch.terms.proves(store.conditions, goal):
            return row, index, inside
    return None


def accesses(formulas: list[Any], prefix: str) -> list[Any]:
    """Addresses at which a function of that name is applied."""
    return [
        term.arg(0)
        for term in subterms(*formulas)
        if z3.is_app(term) and term.num_args() and term.decl().name().startswith(prefix)
    ]


def stores_in_range(a: Launch) -> Outcome:
    """Every store is to a live element of a row below the row count: padding stores nothing."""
    for site in sites(a.function):
        store = execute(site, a)
        place = row_and_index(store)
        if place is None:
            return Broken(None, store, None, output=store.name, detail="no row owns the address")
        row, index, inside = place
        live = a.memory.live(store.role.live, row, index)
        goal = z3.And(inside, row >= 0, row < a.rows, *live)
        model = a.terms.refute([*store.conditions, z3.Not(goal)])
        if model is not None:
            return Broken(model, store, None, tuple(index), store.name, "a store out of range")
    return None


def places_distinct(a: Launch) -> Outcome:
    """Two rows never share an address of an output."""
    terms = a.terms
    for name, role in a.memory.roles.items():
        if not isinstance(role, Out):
            continue
        rows = [terms.integer("row", 0, MAX_ROWS - 1) for _ in range(2)]
        column = [columns(terms, role) for _ in range(2)]
        hypotheses, places = [], []
        for row, index in zip(rows, column, strict=True):
            hypotheses += [row < a.rows, *a.memory.live(role.live, row, index)]
            places.append(a.memory.place(role.at, row, index))
        same = zip([rows[0], *column[0]], [rows[1], *column[1]], strict=True)
        differ = z3.Or(*(x != y for x, y in same))
        model = terms.refute([*hypotheses, *equations(terms, *places), differ])
        if model is not None:
            return Broken(model, None, None, output=name, detail="two rows share an address")
    return None


def stores_disjoint(a: Launch) -> Outcome:
    """No element is stored twice in one launch."""
    every = sites(a.function)
    for i, first in enumerate(every):
        for second in every[i:]:
            one, two = execute(first, a), execute(second, a.other_program())
            if one.name != two.name:
                continue
            hypotheses = [*one.conditions, *two.conditions]
            hypotheses += equations(a.terms, one.offset, two.offset)
            if first is second:
                pairs = zip(one.coordinates(), two.coordinates(), strict=True)
                differ = [x != y for x, y in pairs if not x.eq(y)]
                hypotheses.append(z3.Or(*differ))
            model = a.terms.refute(hypotheses)
            if model is not None:
                return Broken(model, one, two, output=one.name, detail="an element stored twice")
    return None


def finite_values(a: Launch) -> Outcome:
    """What is stored to an output of finite numbers is finite."""
    for site in sites(a.function):
        store = execute(site, a)
        if not store.role.finite:
            continue
        value = store.frames[-1].element(store.value, store.index)
        model = a.terms.refute([*store.conditions, z3.Not(a.floats.predicate("finite", value))])
        if model is not None:
            return Broken(model, store, None, output=store.name, detail="not shown to be finite")
    return None
