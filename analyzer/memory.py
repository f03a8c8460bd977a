"""What loads give: memory as one uninterpreted function an argument, and the premises about it.

An argument's memory is `name@side` (or `name`, when both launches hold the same), from addresses
in elements. What the launches share of a row is the function `name@row`. The premises of
`contracts.PREMISES` are instantiated for the accesses that occur in a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, TypeVar

import z3

from pyvosti.analyzer import contracts as c
from pyvosti.analyzer.integers import type_range
from pyvosti.analyzer.radix import quotient, remainder
from pyvosti.analyzer.ttir import NotAnalysable, Type, Value

if TYPE_CHECKING:
    from pyvosti.analyzer.elements import Frame
    from pyvosti.analyzer.launch import Launch

R = TypeVar("R", c.Cache, c.Table)


@dataclass(frozen=True)
class Access:
    """`name@side(place)` in a query."""

    name: str
    side: str
    term: Any
    ident: int
    place: Any
    place_ident: int


class Memory:
    """Loads and premises of one launch."""

    def __init__(self, launch: Launch) -> None:
        self.launch, self.terms = launch, launch.terms
        arguments = launch.function.body.arguments
        self.names = {
            value: name
            for value, (name, _) in zip(arguments, launch.contract.arguments, strict=True)
        }
        self.kinds = {self.names[value]: Type((), value.type.element) for value in arguments}
        self.roles = dict(launch.contract.arguments)
        self.tile_names = {r.part: n for n, r in self.roles.items() if isinstance(r, c.TileArray)}
        self.blocks = self.terms.integer(f"blocks_{launch.side}", 1, c.MAX_SLOTS)
        self._made: dict[Any, Any] = {}
        self._accesses: dict[int, Access] = {}
        states = [n for n, r in self.roles.items() if isinstance(r, c.Ints)]
        self._row_names = ("seat", "tile_of", launch.contract.positions, *states)
        self._row_ident = launch.row.get_id()

    # Accesses -----------------------------------------------------------------------------

    def access(self, name: str, offset: Any) -> Any:
        """The element at an address, with what its role says of it."""
        role, kind = self.roles[name], self.kinds[name]
        sort = "float" if kind.is_float else "int"
        label = name if isinstance(role, c.Same) else f"{name}@{self.launch.side}"
        term = self.terms.function(f"{label}:{kind.element}", "int", sort)(offset)
        key = ("access", term.get_id())
        if key not in self._made:
            self._made[key] = self.terms.keep(term)
            if sort == "int":
                self.terms.bounded(term, *type_range(kind.bits))
            if isinstance(role, c.Row):
                self._shared(name, role, kind, offset, term)
            valid = self.range(name, offset)
            if valid is not None:
                inside, low, high = valid
                self.terms.fact(term, z3.Implies(inside, z3.And(low <= term, term < high)))
        return term

    def range(self, name: str, offset: Any) -> tuple[Any, Any, Any] | None:
        """(where, low, high): entries of an integer array are in [low, high) there."""
        role, launch = self.roles[name], self.launch
        if isinstance(role, c.TileArray):
            high = {"first": c.MAX_ROWS, "count": launch.contract.tile_rows + 1}
            inside = z3.And(offset >= 0, offset < launch.tiles)
            return inside, 0, high.get(role.part, c.MAX_SEATS)
        if isinstance(role, (c.Row, c.Ints)) and role.low is not None and role.high is not None:
            return z3.And(offset >= 0, offset < launch.padded), role.low, role.high
        return None

    def load(self, frame: Frame, argument: Value, offset: Any, mask: Any, erase: bool) -> Any:
        """A loaded element, where the mask holds; `erase`: modulo the sign of zero."""
        name = self.names[argument]
        role = self.roles[name]
        if isinstance(role, c.Unused):
            raise NotAnalysable(f"{name} is read, against the contract")
        if argument.type.element == "i1":
            raise NotAnalysable(f"{name} holds booleans")
        term = self.access(name, offset)
        if isinstance(role, c.Count):
            zero = z3.IntVal(0)
            return self.launch.rows if offset.eq(zero) else term
        if erase:
            return self.launch.floats.erased(term)
        valid = self.range(name, offset)
        if valid is None:
            return term
        inside, low, high = valid
        if not self.terms.proves([*frame.hypotheses, mask], inside):
            return term
        alias = self.terms.integer(f"{name}_entry", low, high - 1)
        holds = z3.And(*frame.hypotheses, mask)
        self.terms.fact(alias, z3.Implies(holds, alias == term))
        return alias

    # Places -------------------------------------------------------------------------------

    def key(self, at: c.At, row: Any) -> Any:
        """The row, or what the key argument holds for it."""
        return self.access(at.key, row) if at.key else row

    def base(self, at: c.At, row: Any) -> Any:
        """The address of a row's first element."""
        key = self.key(at, row)
        if at.page:
            return (key / at.page) * at.page_stride + (key % at.page) * at.stride
        return key * at.stride

    def place(self, at: c.At, row: Any, index: list[Any]) -> Any:
        """The address of an element of a row."""
        parts = (i * stride for i, (_, stride) in zip(index, at.dims, strict=True))
        return sum(parts, self.base(at, row))

    def digits(self, at: c.At, relative: Any) -> tuple[list[Any], Any]:
        """The index within the row of an address relative to its base, and whether it has one."""
        index = []
        for position, (extent, stride) in enumerate(at.dims):
            digit = relative / stride if stride > 1 else relative
            if position:
                digit = digit % extent
            index.append(digit)
        inside = [z3.And(i >= 0, i < extent) for i, (extent, _) in zip(index, at.dims, strict=True)]
        dense = all(a[1] == b[0] * b[1] for a, b in zip(at.dims, at.dims[1:], strict=False))
        if dense and at.dims and at.dims[-1][1] == 1:
            width = at.dims[0][0] * at.dims[0][1]
            return index, z3.And(relative >= 0, relative < width)
        total = sum((i * s for i, (_, s) in zip(index, at.dims, strict=True)), z3.IntVal(0))
        return index, z3.And(relative == total, *inside)

    def live(self, live: c.Live, row: Any, index: list[Any]) -> list[Any]:
        """The conditions under which an element of a row exists."""
        found = []
        if live.nonnegative:
            found.append(self.access(live.nonnegative, row) >= 0)
        if live.splits:
            dim, split, window = live.splits
            position = self.access(self.launch.contract.positions, row)
            found.append(index[dim] * split <= position)
            if window:
                found.append(index[dim] * split + (split - 1) > position - window)
        if live.in_tile:
            found.append(self.in_some_tile(row))
        return found

    def tile_of(self, row: Any) -> Any:
        """The tile of a row that has one."""
        tile = self.terms.function(f"tile_of@{self.launch.side}", "int", "int")(row)
        return self.terms.bounded(tile, 0, c.MAX_ROWS)

    def in_some_tile(self, row: Any) -> Any:
        """Whether tile_of(row) holds the row."""
        tile = self.tile_of(row)
        return z3.And(tile >= 0, tile < self.launch.tiles, self.holds(tile, row))

    def part(self, part: str, tile: Any) -> Any:
        """first, count or seat of a tile."""
        return self.access(self.tile_names[part], tile)

    def holds(self, tile: Any, row: Any) -> Any:
        """Whether a tile holds a row."""
        first = self.part("first", tile)
        return z3.And(first <= row, row < first + self.part("count", tile))

    def seat(self, row: Any) -> Any:
        """The seat of a row's sequence."""
        return self.terms.function(f"seat@{self.launch.side}", "int", "int")(row)

    # Premises -----------------------------------------------------------------------------

    def _shared(self, name: str, role: c.Row, kind: Type, offset: Any, term: Any) -> None:
        """The shared row's elements are those of the other launch."""
        at, row = role.at, self.launch.row
        relative = offset - self.base(at, row)
        index, inside = self.digits(at, relative)
        if not at.dims:
            relative, inside = z3.IntVal(0), relative == 0
        sort = "float" if kind.is_float else "int"
        shared = self.terms.function(f"{name}@row:{kind.element}", "int", sort)(relative)
        left = self.launch.floats.erased(term) if role.modulo_zero else term
        conditions = [inside, *self.live(role.live, row, index)]
        self.terms.fact(term, z3.Implies(z3.And(*conditions), left == shared))

    def premises(self, atoms: list[Any]) -> Iterator[Any]:
        """Instances of the premises for the accesses among the terms of a query."""
        found: dict[str, list[Access]] = {}
        for atom in atoms:
            access = self._accesses.get(atom.get_id()) or self._named(atom)
            if access.side == self.launch.side:
                found.setdefault(access.name, []).append(access)
        for name, accesses in found.items():
            role = self.roles.get(name)
            if isinstance(role, c.Ints) and role.distinct:
                for x, y in combinations(accesses, 2):
                    yield self._once(self._distinct, x.term, y.term, x.ident, y.ident)
            if isinstance(role, c.Cache):
                yield from self._cache(role, accesses, found)
        if self.tile_names:
            yield from self._tiles(found)

    def _named(self, atom: Any) -> Access:
        """The function that an atom applies, taken apart once."""
        name, _, side = atom.decl().name().partition(":")[0].partition("@")
        place = self.terms.keep(atom.arg(0)) if side else atom
        access = Access(name, side, atom, atom.get_id(), place, place.get_id())
        self._accesses[access.ident] = access
        return access

    def _role(self, term: Any, kind: type[R]) -> R:
        """The role of the argument that a term is an access to."""
        role = self.roles[argument_of(term)]
        assert isinstance(role, kind)
        return role

    def _once(self, make: Any, x: Any, y: Any, *key: int) -> Any:
        """A formula about two terms, made once; `key` are their ids."""
        known = (make.__name__, *key)
        if known not in self._made:
            self._made[known] = self.terms.keep(make(x, y))
        return self._made[known]

    def _distinct(self, x: Any, y: Any) -> Any:
        """slots_distinct, states_distinct, seats_distinct."""
        a, b = x.arg(0), y.arg(0)
        rows = [z3.And(i >= 0, i < self.launch.padded) for i in (a, b)]
        return z3.Implies(z3.And(x >= 0, x == y, *rows), a == b)

    def _tiles(self, found: dict[str, list[Access]]) -> Iterator[Any]:
        """tiles_contiguous, tiles_one_seat, tiles_disjoint, tiles_have_states, tables_cover."""
        parts = self.tile_names.values()
        tiles = {a.place_ident: a.place for name in parts for a in found.get(name, ())}
        rows = {self._row_ident: self.launch.row}
        for name in self._row_names:
            rows |= {a.place_ident: a.place for a in found.get(name, ())}
        for i, tile in tiles.items():
            yield self._once(self._tile, tile, tile, i)
        for (i, tile), (j, row) in product(tiles.items(), rows.items()):
            yield self._once(self._tile_row, tile, row, i, j)
        for (i, x), (j, y) in combinations(tiles.items(), 2):
            yield self._once(self._tile_pair, x, y, i, j)
        for name, role in self.roles.items():
            if isinstance(role, c.Table):
                for entry, (i, tile) in product(found.get(name, ()), tiles.items()):
                    yield self._once(self._covered, entry.term, tile, entry.ident, i)

    def _tile(self, tile: Any, _: Any) -> Any:
        first, count = self.part("first", tile), self.part("count", tile)
        inside = z3.And(tile >= 0, tile < self.launch.tiles)
        bound = z3.If(count > 0, first + count <= self.launch.rows, first < self.launch.padded)
        return z3.Implies(inside, bound)

    def _tile_row(self, tile: Any, row: Any) -> Any:
        first = self.part("first", tile)
        positions = self.launch.contract.positions
        same = [
            self.access(positions, row) == self.access(positions, first) + (row - first),
            self.seat(row) == self.part("seat", tile),
            self.tile_of(row) == tile,
        ]
        for name, role in self.roles.items():
            if isinstance(role, c.Ints):
                same.append(self.access(name, row) >= 0)
        inside = z3.And(tile >= 0, tile < self.launch.tiles)
        return z3.Implies(z3.And(inside, self.holds(tile, row)), z3.And(*same))

    def _tile_pair(self, x: Any, y: Any) -> Any:
        inside = [z3.And(t >= 0, t < self.launch.tiles, self.part("count", t) > 0) for t in (x, y)]
        (a, m), (b, n) = ((self.part("first", t), self.part("count", t)) for t in (x, y))
        return z3.Implies(z3.And(*inside), z3.Or(x == y, a + m <= b, b + n <= a))

    def _covered(self, entry: Any, tile: Any) -> Any:
        """Table entries up to the tile's last position are blocks of the pool."""
        role = self._role(entry, c.Table)
        first, count = self.part("first", tile), self.part("count", tile)
        page = entry.arg(0) - self.part("seat", tile) * role.pages
        last = self.access(self.launch.contract.positions, first) + count - 1
        inside = z3.And(tile >= 0, tile < self.launch.tiles, count > 0, page >= 0)
        inside = z3.And(inside, page < role.pages, page * role.page <= last)
        return z3.Implies(inside, z3.And(entry >= 0, entry < self.blocks))

    def _cache(
        self, role: c.Cache, accesses: list[Access], found: dict[str, list[Access]]
    ) -> Iterator[Any]:
        """cache_finite and past_equal."""
        for x in accesses:
            if role.finite:
                yield self._once(self._finite, x.term, x.term, x.ident)
            for name, table in self.roles.items():
                if isinstance(table, c.Table):
                    for entry in found.get(name, ()):
                        if entry.ident in self.terms.opaque_parts(x.term):
                            key = (x.ident, entry.ident)
                            yield self._once(self._past, x.term, entry.term, *key)

    def _finite(self, term: Any, _: Any) -> Any:
        role = self._role(term, c.Cache)
        block = role.heads * role.page * role.dim
        inside = z3.And(term.arg(0) >= 0, term.arg(0) < self.blocks * block)
        return z3.Implies(inside, self.launch.floats.predicate("finite", term))

    def _past(self, term: Any, entry: Any) -> Any:
        """What lies at a position that the row sees, head h, lane d, is equal in both launches."""
        name = argument_of(term)
        role, table = self._role(term, c.Cache), self._role(entry, c.Table)
        block = role.heads * role.page * role.dim
        rest = term.arg(0) - entry * block
        page = entry.arg(0) - self.seat(self.launch.row) * table.pages
        head = quotient(self.terms, rest, role.page * role.dim)
        lane = remainder(self.terms, rest, role.dim)
        within = remainder(self.terms, quotient(self.terms, rest, role.dim), role.page)
        position = page * role.page + within
        last = self.access(self.launch.contract.positions, self.launch.row)
        inside = z3.And(rest >= 0, rest < block, page >= 0, page < table.pages, position <= last)
        if role.window:
            inside = z3.And(inside, position > last - role.window)
        shared = self.terms.function(f"{name}@past", "int", "int", "int", "float")
        return z3.Implies(inside, term == shared(head, position, lane))


def argument_of(access: Any) -> str:
    """The argument's name in `name@side(place)`."""
    name: str = access.decl().name()
    return name.partition("@")[0]
