"""A plan as the kernels read it: one array of i32 on the device, filled by one copy a step.

Rows past the plan's are padding: their slot is -1, their token 0, they belong to no tile. A tile
is up to `rows` consecutive rows of one sequence. Sequences with few rows go to the kernel that
runs their splits in parallel ("tiles"), the others to the one that walks them ("whole").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyvosti._core import Plan

Ints = NDArray[np.int64]

STATE_ROWS = 256
"""Rows whose split states can be kept at once."""


class DeviceArrays:
    """Named i32 arrays in one device tensor; each is filled on the host and sent in one copy.

    Two host copies alternate, so that a step can be prepared while the last one is on its way.
    """

    def __init__(self, lengths: dict[str, int]) -> None:
        self.offsets, total = {}, 0
        for name, length in lengths.items():
            self.offsets[name] = (total, length)
            total += -(-length // 4) * 4  # every array starts on 16 bytes
        self.device = torch.zeros(total, dtype=torch.int32, device="cuda")
        self._host = [torch.zeros(total, dtype=torch.int32, pin_memory=True) for _ in range(2)]
        self._sent = [torch.cuda.Event() for _ in range(2)]
        self._turn = 0

    def tensor(self, name: str) -> torch.Tensor:
        """The device array of that name."""
        offset, length = self.offsets[name]
        return self.device[offset : offset + length]

    def begin(self) -> None:
        """Turns to the other host copy, once the device has read it."""
        self._turn = 1 - self._turn
        self._sent[self._turn].synchronize()

    def put(self, name: str, values: NDArray[Any], padding: int) -> None:
        """Sets an array: the values, then padding to its end."""
        offset, length = self.offsets[name]
        host = self._host[self._turn].numpy()[offset : offset + length]
        host[: len(values)] = values
        host[len(values) :] = padding

    def send(self) -> None:
        """Copies all arrays to the device, on the current stream."""
        self.device.copy_(self._host[self._turn], non_blocking=True)
        self._sent[self._turn].record()


class Step:
    """A plan's rows and tiles, and what the names in a launch's grid stand for."""

    def __init__(self, plan: Plan, tile_rows: int, whole_rows: int, allow_whole: bool) -> None:
        starts = plan.query_start.astype(np.int64)
        counts = np.diff(starts)
        self.rows = int(starts[-1])
        self.row_seats = np.repeat(plan.seats, counts)
        is_whole = np.zeros(len(counts), bool)
        if allow_whole:
            is_whole = counts > tile_rows
            kept = np.cumsum(np.where(is_whole, 0, counts))
            is_whole |= kept > STATE_ROWS
        self.tiles = tiles_of(starts, counts, plan.seats, ~is_whole, tile_rows)
        self.whole_tiles = tiles_of(starts, counts, plan.seats, is_whole, whole_rows)
        split_row = ~np.repeat(is_whole, counts)
        self.states = np.where(split_row, np.cumsum(split_row) - 1, -1)

    def put(self, arrays: DeviceArrays, plan: Plan) -> None:
        """Fills the arrays of `row_arrays`."""
        arrays.put("row_count", np.array([self.rows]), 0)
        arrays.put("tokens", plan.token_ids.view(np.int32), 0)
        arrays.put("row_seats", self.row_seats, 0)
        arrays.put("positions", plan.positions, 0)
        for group, slots in enumerate(plan.slots):
            arrays.put(f"slots.{group}", slots.view(np.int32), -1)
        arrays.put("states", self.states, -1)
        for prefix, (rows, counts, seats) in (
            ("tile", self.tiles),
            ("whole_tile", self.whole_tiles),
        ):
            arrays.put(f"{prefix}_rows", rows, 0)
            arrays.put(f"{prefix}_counts", counts, 0)
            arrays.put(f"{prefix}_seats", seats, 0)


def tiles_of(
    starts: Ints, counts: Ints, seats: NDArray[np.uint32], chosen: NDArray[np.bool_], size: int
) -> tuple[Ints, Ints, NDArray[np.uint32]]:
    """(first row, rows, seat) of each tile of the chosen sequences, `size` rows at most."""
    per_sequence = np.where(chosen, -(-counts // size), 0)
    owner = np.repeat(np.arange(len(counts)), per_sequence)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(per_sequence) - per_sequence, per_sequence)
    first = nth * size
    return starts[owner] + first, np.minimum(counts[owner] - first, size), seats[owner]


def row_arrays(rows: int, groups: int, tiles: int, whole_tiles: int) -> dict[str, int]:
    """Lengths of a step's arrays for `rows` padded rows."""
    lengths = {"row_count": 1, "tokens": rows, "row_seats": rows, "positions": rows}
    lengths |= {f"slots.{group}": rows for group in range(groups)}
    lengths |= {"states": rows}
    lengths |= {f"tile_{name}": tiles for name in ("rows", "counts", "seats")}
    return lengths | {f"whole_tile_{name}": whole_tiles for name in ("rows", "counts", "seats")}
