"""Launches of attention: sequences on permuted pages, in tiles, one row of one of them shared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from pyvosti.analyzer.contracts import Cache, Contract, Row, Table, TileArray
from pyvosti.analyzer.replay.launches import Array, Side, World, fill, floats, pointer_types
from pyvosti.triton_kernels.compile import Spec


@dataclass(frozen=True)
class Sequence:
    """Rows of one sequence in a step: positions first..last; `ours`: it has the shared row."""

    first: int
    last: int
    seat: int
    ours: bool


def add_past(spec: Spec, contract: Contract, world: World, rng: Generator) -> None:
    """The shared sequence's keys and values: [position + 1, heads, dim] of each cache."""
    kinds = pointer_types(spec, contract)
    for name, role in contract.arguments:
        if isinstance(role, Cache):
            shape = (world.position + 1, role.heads, role.dim)
            world.values[name] = floats(rng, shape, kinds[name], world.style)


def make_tiled_side(
    spec: Spec, contract: Contract, world: World, rng: Generator, alone: bool
) -> Side:
    """A launch of an attention kernel; `alone`: our row is the only one, as in decode."""
    roles = dict(contract.arguments)
    table = next(role for role in roles.values() if isinstance(role, Table))
    most = table.pages * table.page
    sequences = _sequences(world.position, most, rng, alone)
    row = 0
    positions: list[int] = []
    owners: list[int] = []
    for number, one in enumerate(sequences):
        if one.ours:
            row = len(positions) + world.position - one.first
        positions += range(one.first, one.last + 1)
        owners += [number] * (one.last - one.first + 1)
    tables = _tables(table, sequences, rng)
    tiles = _tiles(sequences, contract.tile_rows, rng)
    padding = int(rng.integers(0, 2))
    side = Side(row, len(positions), (len(tiles) + padding,), {})
    for name, role in contract.arguments:
        if isinstance(role, TileArray):
            values = [getattr(tile, role.part) for tile in tiles] + [0] * padding
            side.arrays[name] = np.array(values + [0] * 4, np.int32)
        elif isinstance(role, Table):
            side.arrays[name] = tables.reshape(-1)
        elif isinstance(role, Cache):
            ours = tables[next(s.seat for s in sequences if s.ours)]
            side.arrays[name] = _cache(name, role, world, ours, int(tables.max()) + 2, rng)
        elif name == contract.positions:
            assert isinstance(role, Row)
            extra = rng.integers(0, most, 32)
            side.arrays[name] = np.concatenate([positions, extra]).astype(np.int32)
    return fill(spec, contract, world, rng, side, len(positions))


@dataclass(frozen=True)
class Tile:
    """Rows first..first + count - 1 of the step, of one seat."""

    first: int
    count: int
    seat: int


def _sequences(position: int, most: int, rng: Generator, alone: bool) -> list[Sequence]:
    seats = rng.permutation(8)
    first = position - int(rng.integers(0, min(position, 37) + 1))
    last = position + int(rng.integers(0, min(most - 1 - position, 20) + 1))
    if alone:
        return [Sequence(position, position, int(seats[0]), True)]
    found = [Sequence(first, last, int(seats[0]), True)]
    for seat in seats[1 : 1 + int(rng.integers(0, 3))]:
        begin = int(rng.integers(0, most - 1))
        end = min(begin + int(rng.integers(0, 12)), most - 1)
        found.append(Sequence(begin, end, int(seat), False))
    return [found[i] for i in rng.permutation(len(found))]


def _tables(role: Table, sequences: list[Sequence], rng: Generator) -> Array:
    blocks = rng.permutation(8 * role.pages).astype(np.int32)
    table = blocks.reshape(8, role.pages)
    for one in sequences:
        last = one.last // role.page
        table[one.seat, last + 1 :] = rng.choice(blocks, role.pages - last - 1)
    return table


def _tiles(sequences: list[Sequence], most: int, rng: Generator) -> list[Tile]:
    tiles, start = [], 0
    for one in sequences:
        rows = one.last - one.first + 1
        done = 0
        while done < rows:
            count = min(int(rng.integers(1, most + 1)) if done == 0 else most, rows - done)
            tiles.append(Tile(start + done, count, one.seat))
            done += count
        start += rows
    return [tiles[i] for i in rng.permutation(len(tiles))]


def _cache(
    name: str, role: Cache, world: World, table: Array, blocks: int, rng: Generator
) -> Array:
    kind = world.values[name].dtype.type
    cache = floats(rng, (blocks, role.heads, role.page, role.dim), kind, world.style, True)
    if role.finite:
        largest = float(np.finfo(kind).max)
        cache = np.nan_to_num(cache, nan=largest, posinf=largest, neginf=-largest)
    for position, value in enumerate(world.values[name]):
        cache[table[position // role.page], :, position % role.page] = value
    return cache.reshape(-1)
