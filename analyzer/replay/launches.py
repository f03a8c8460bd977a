"""A pair of launches from a contract: one row's inputs are equal, all else is each one's own.

All that a contract leaves open is drawn anew for each launch: how many rows there are and which is
ours, padding, seats, slots, pages, tiles, other rows' data (with NaN, infinities and the largest
finite numbers among them), what outputs held before. Sizes are small: an interpreted program takes
milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pyvosti.analyzer.contracts import (
    At,
    Contract,
    Count,
    Ints,
    Live,
    Out,
    Row,
    Same,
    Unused,
)
from pyvosti.triton_kernels.compile import Spec

Array = NDArray[Any]
Kind = type[np.generic]
Shape = int | tuple[int, ...]
TYPES: dict[str, Kind] = {"i32": np.int32, "i64": np.int64, "fp32": np.float32, "fp16": np.float16}
SAME_SIZE = 1 << 14
"""Elements of an input whose size no role states."""
MOST_ROWS = 40

VALUES: dict[str, tuple[float, ...]] = {
    "tokens_ptr": (-1, 0, 1, 2, 3, 4, 5, 6, 7),
    "last_tokens_ptr": (0, 1, 2, 3, 4, 5, 6, 7),
    "prompt_counts_ptr": (0, 0, 1, 2),
    "output_counts_ptr": (0, 0, 1, 2),
    "temperature_ptr": (0.0, 0.5, 1.0, 1.5),
    "repetition_ptr": (1.0, 1.25),
    "presence_ptr": (0.0, 0.5),
    "frequency_ptr": (0.0, 0.25),
    "top_k_ptr": (0, 3, 9),
    "top_p_ptr": (1.0, 0.5, 0.9),
    "log_min_p_ptr": (-np.inf, -1.5),
}
"""Sensible values of arguments that are parameters, not data."""


@dataclass(frozen=True)
class Hint:
    """What a counterexample says of one launch: our row, and how many there are."""

    row: int
    rows: int


@dataclass
class Side:
    """One launch: our row, the rows that are not padding, the grid, an array an argument."""

    row: int
    rows: int
    grid: tuple[int, ...]
    arrays: dict[str, Array]


@dataclass
class World:
    """What both launches share, by argument, and the row's position in its sequence."""

    style: Style
    position: int
    values: dict[str, Array]


@dataclass(frozen=True)
class Style:
    """How floats are drawn. Poison shows what reaches a row, ties and flat rows show its order."""

    wide: bool
    rounded: bool
    poison: bool


STYLES = (
    Style(wide=True, rounded=False, poison=True),
    Style(wide=False, rounded=False, poison=False),
    Style(wide=False, rounded=True, poison=False),
    Style(wide=False, rounded=False, poison=True),
)
"""Taken in turn by the seeds of a search."""


def floats(rng: Generator, shape: Shape, kind: Kind, style: Style, poison: bool = False) -> Array:
    """Normal numbers; one in eight is huge or not finite where both style and caller poison."""
    x = rng.standard_normal(shape)
    if style.wide:
        x = x * np.exp2(rng.integers(-3, 4, shape))
    if style.rounded:
        x = np.round(x)
    if poison and style.poison:
        bad = rng.choice([np.nan, np.inf, -np.inf, 6e4, -6e4, -0.0], np.shape(x))
        x = np.where(rng.random(np.shape(x)) < 0.125, bad, x)
    return x.astype(kind)


def drawn(
    rng: Generator, name: str, role: Row, kind: Kind, shape: Shape, style: Style, poison: bool
) -> Array:
    """Data of a row input, within its role's bounds."""
    if name in VALUES:
        return rng.choice(np.array(VALUES[name]), shape).astype(kind)
    if role.low is not None and role.high is not None:
        return rng.integers(role.low, min(role.high, role.low + 64), shape).astype(kind)
    if np.issubdtype(kind, np.integer):
        return rng.integers(-(2**20), 2**20, shape).astype(kind)
    return floats(rng, shape, kind, style, poison)


def pointer_types(spec: Spec, contract: Contract) -> dict[str, Kind]:
    """numpy's type of each pointer argument."""
    names = [name for name, _ in contract.arguments]
    return {n: TYPES[kind] for n, kind in zip(names, spec.pointers, strict=True)}


def live_mask(live: Live, shape: tuple[int, ...], position: int) -> Array:
    """bool[shape]: the elements of a row that exist for a row at this position."""
    mask = np.ones(shape, bool)
    if live.splits:
        dim, split, window = live.splits
        first = max(position - window + 1, 0) // split if window else 0
        index = np.indices(shape)[dim]
        mask &= (index >= first) & (index <= position // split)
    return mask


def places(at: At, row: int, arrays: Mapping[str, Array]) -> Array:
    """int[dims]: the address of each element of a row."""
    key = int(arrays[at.key][row]) if at.key else row
    base = key * at.stride
    if at.page:
        base = key // at.page * at.page_stride + key % at.page * at.stride
    total = np.full(tuple(extent for extent, _ in at.dims), base, np.int64)
    for index, (_, stride) in zip(np.indices(total.shape), at.dims, strict=True):
        total += index * stride
    return total


def shape_of(at: At) -> tuple[int, ...]:
    """Extents of a row."""
    return tuple(extent for extent, _ in at.dims)


def size_of(at: At, entries: int) -> int:
    """Elements of a buffer with so many rows (or slots)."""
    if at.page:
        return -(-entries // at.page) * at.page_stride
    return entries * at.stride


def make_world(spec: Spec, contract: Contract, rng: Generator, style: Style) -> World:
    """The shared row's inputs, weights and position."""
    kinds, values = pointer_types(spec, contract), {}
    bound = dict(contract.arguments).get(contract.positions)
    high = bound.high if isinstance(bound, Row) and bound.high else 1
    position = int(rng.integers(0, min(high, 96)))
    for name, role in contract.arguments:
        if isinstance(role, Same):
            values[name] = floats(rng, SAME_SIZE, kinds[name], style)
        elif name == contract.positions:
            values[name] = np.array(position, kinds[name])
        elif isinstance(role, Row):
            special, shape = bool(rng.random() < 0.2), shape_of(role.at)
            values[name] = drawn(rng, name, role, kinds[name], shape, style, special)
    return World(style, position, values)


def make_side(
    spec: Spec, contract: Contract, world: World, rng: Generator, hint: Hint | None
) -> Side:
    """A launch of a kernel without tiles: rows are independent entries of arrays."""
    slow = contract.kernel == "sample"  # a second a program
    rows = int(rng.choice([1, 2, 3] if slow else [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 20, 33]))
    row = int(rng.integers(rows))
    if hint is not None:
        row, rows = hint.row, hint.rows
    exact = "rows!" in contract.grid
    padded = rows if exact else rows + int(rng.choice([0, 1, 3]))
    return fill(spec, contract, world, rng, Side(row, rows, (), {}), padded)


def fill(
    spec: Spec, contract: Contract, world: World, rng: Generator, side: Side, padded: int
) -> Side:
    """Arrays and grid of a launch with `padded` rows; those set before are kept."""
    kinds, entries = pointer_types(spec, contract), -(-padded // 16) * 16 + 16
    arrays, keys = side.arrays, entries + 5
    for name, role in contract.arguments:
        if name in arrays:
            continue
        if isinstance(role, Count):
            arrays[name] = np.array([side.rows], np.int32)
        elif isinstance(role, Ints):
            arrays[name] = _integers(role, rng, side, entries, keys)
    for name, role in contract.arguments:
        if name in arrays:
            continue
        kind = kinds[name]
        if isinstance(role, Same):
            arrays[name] = world.values[name].copy()
        elif isinstance(role, Row):
            arrays[name] = _row_input(name, role, world, rng, side, kind, entries, keys)
        elif isinstance(role, Out):
            size = size_of(role.at, keys if role.at.key else entries)
            arrays[name] = _leftovers(rng, size, kind)
        elif isinstance(role, Unused):
            arrays[name] = _leftovers(rng, SAME_SIZE, kind)
        else:
            raise ValueError(f"{contract.kernel}: no launch is made for the role of {name}")
    tiles = side.grid[0] if side.grid else 0
    sizes = {"rows": padded, "rows!": side.rows, "tiles": tiles}
    side.grid = tuple(extent(entry, sizes) for entry in contract.grid)
    return side


def extent(entry: int | str, sizes: Mapping[str, int]) -> int:
    """A grid entry's value."""
    if isinstance(entry, int):
        return entry
    name, _, divisor = entry.partition("/")
    return -(-sizes[name] // int(divisor)) if divisor else sizes[name]


def _integers(role: Ints, rng: Generator, side: Side, entries: int, keys: int) -> Array:
    high = min(role.high, keys)
    low = max(role.low, 0)
    if role.distinct:
        values = low + rng.permutation(high - low)[:entries]
    else:
        values = rng.integers(low, high, entries)
    if role.low < 0:
        unset = rng.random(entries) < 0.2
        unset[side.rows :] = True
        unset[side.row] = False
        values = np.where(unset, role.low, values)
    return values.astype(np.int32)


def _row_input(
    name: str,
    role: Row,
    world: World,
    rng: Generator,
    side: Side,
    kind: Kind,
    entries: int,
    keys: int,
) -> Array:
    size = size_of(role.at, keys if role.at.key else entries)
    array = drawn(rng, name, role, kind, size, world.style, True)
    where = places(role.at, side.row, side.arrays)
    shared = live_mask(role.live, where.shape, world.position)
    array[where[shared]] = world.values[name][shared]
    return array


def _leftovers(rng: Generator, size: int, kind: Kind) -> Array:
    if np.issubdtype(kind, np.integer):
        return rng.integers(0, 8, size).astype(kind)
    return floats(rng, size, kind, STYLES[0])
