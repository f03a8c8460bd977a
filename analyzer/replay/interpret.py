"""Runs pairs of launches under Triton's interpreter; a process of its own, driven by `search`.

Reads one pickled `Task` after another from standard input and writes one JSON line for each: a pair
of launches whose shared row got different bits, or that none was found.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyvosti.analyzer.contracts import Contract, Out, TileArray
from pyvosti.analyzer.replay.launches import (
    MOST_ROWS,
    STYLES,
    Array,
    Hint,
    Side,
    World,
    live_mask,
    make_side,
    make_world,
    places,
)
from pyvosti.analyzer.replay.sequences import add_past, make_tiled_side
from pyvosti.triton_kernels.compile import Spec

MARGIN = 4096
"""Elements around each buffer, so that a faulty address stays in memory that is ours."""


@dataclass(frozen=True)
class Task:
    """A kernel to run: pairs of launches are drawn until one differs.

    First twice with the rows that a counterexample names, then from the seed `first`, then from
    the seeds 0 to `tries`. With `original`, another kernel with the same contract, each first
    launch is also compared with that kernel's.
    """

    name: str
    spec: Spec
    contract: Contract
    hints: tuple[Hint, Hint] | None
    tries: int
    first: int = 1
    original: Spec | None = None

    def attempts(self) -> Iterator[tuple[int, tuple[Hint | None, Hint | None]]]:
        """Seeds, and which row of how many is ours in each launch, where that is given."""
        if self.hints is not None and all(0 <= h.row < h.rows <= MOST_ROWS for h in self.hints):
            yield from ((seed, self.hints) for seed in range(2))
        yield from ((seed, (None, None)) for seed in (self.first, *range(self.tries)))


def pairs(task: Task) -> Iterator[tuple[int, World, Side, Side]]:
    """Pairs of launches: first around the counterexample, then anywhere."""
    tiled = any(isinstance(role, TileArray) for _, role in task.contract.arguments)
    for seed, hints in task.attempts():
        rng = np.random.default_rng(seed)
        world = make_world(task.spec, task.contract, rng, STYLES[seed % len(STYLES)])
        if tiled:
            add_past(task.spec, task.contract, world, rng)
            a = make_tiled_side(task.spec, task.contract, world, rng, seed % 3 == 0)
            b = make_tiled_side(task.spec, task.contract, world, rng, False)
        else:
            a, b = (make_side(task.spec, task.contract, world, rng, hint) for hint in hints)
        yield seed, world, a, b


def run(spec: Spec, side: Side) -> dict[str, Array]:
    """Launches once; the arrays afterwards."""
    import torch

    tensors = []
    for name, array in side.arrays.items():
        kind = array.dtype
        filler = np.ones(MARGIN, kind) if np.issubdtype(kind, np.integer) else np.full(MARGIN, 3.0)
        whole = np.concatenate([filler.astype(kind), array, filler.astype(kind)])
        tensors.append((name, torch.from_numpy(whole)[MARGIN : MARGIN + len(array)]))
    names = spec.function.arg_names[: len(tensors)]
    by_name = dict(tensors)
    grid = (*side.grid, 1, 1)[:3]
    spec.function[grid](*(by_name[n] for n in names), *(value for _, value in spec.constants))
    return {name: by_name[name].numpy() for name in names}


def difference(
    contract: Contract, world: World, sides: tuple[Side, Side], results: list[dict[str, Array]]
) -> dict[str, Any] | None:
    """The first element of the shared row whose bits differ, or None. NaNs count as equal."""
    for name, role in contract.arguments:
        if not isinstance(role, Out):
            continue
        rows = []
        for side, result in zip(sides, results, strict=True):
            rows.append(result[name][places(role.at, side.row, side.arrays)])
        a, b = rows
        same = a.view(f"u{a.dtype.itemsize}") == b.view(f"u{a.dtype.itemsize}")
        if np.issubdtype(a.dtype, np.floating):
            same |= np.isnan(a) & np.isnan(b)
            if role.modulo_zero:
                same |= a == b
        differs = ~same & live_mask(role.live, a.shape, world.position)
        if differs.any():
            index = tuple(int(i) for i in np.argwhere(differs)[0])
            return {"output": name, "column": index, "a": str(a[index]), "b": str(b[index])}
    return None


def spilled(contract: Contract, side: Side, after: dict[str, Array]) -> dict[str, Any] | None:
    """The first element stored that belongs to no live row, with what was there before, or None."""
    for name, role in contract.arguments:
        if not isinstance(role, Out):
            continue
        before = side.arrays[name]
        kept = np.ones(len(before), bool)
        keys = [k for k in (role.at.key, role.live.nonnegative) if k]
        for row in range(side.rows):
            if all(side.arrays[key][row] >= 0 for key in keys):
                kept[places(role.at, row, side.arrays).reshape(-1)] = False
        size = f"u{before.dtype.itemsize}"
        changed = np.flatnonzero(kept & (before.view(size) != after[name].view(size)))
        if len(changed):
            at = int(changed[0])
            return {"output": name, "address": at, "a": str(before[at]), "b": str(after[name][at])}
    return None


def replay(task: Task) -> dict[str, Any]:
    """Searches; says which seed showed a difference, and the two launches in numbers."""
    changed = False
    for seed, world, a, b in pairs(task):
        results = [run(task.spec, side) for side in (a, b)]
        if task.original is not None and not changed:
            both = [results[0], run(task.original, a)]
            changed = difference(task.contract, world, (a, a), both) is not None
        found = difference(task.contract, world, (a, b), results)
        found = found or spilled(task.contract, a, results[0])
        found = found or spilled(task.contract, b, results[1])
        if found is not None:
            launches = [{"row": s.row, "rows": s.rows, "grid": s.grid} for s in (a, b)]
            return {"name": task.name, "replayed": True, "seed": seed, "launches": launches} | found
    return {"name": task.name, "replayed": False, "tries": task.tries, "changed": changed}


def main() -> None:
    """Serves tasks until the input ends."""
    out, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    np.seterr(all="ignore")
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        out.write(json.dumps(replay(task)) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
