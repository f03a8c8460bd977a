"""One symbolic launch: sizes, grid, the shared row, and the program that is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from pyvosti.analyzer.contracts import MAX_ROWS, Contract
from pyvosti.analyzer.floats import Floats
from pyvosti.analyzer.integers import Integers
from pyvosti.analyzer.memory import Memory
from pyvosti.analyzer.terms import Hole, Terms
from pyvosti.analyzer.ttir import Function, NotAnalysable


class Launch:
    """A launch of `function` under `contract`, all symbols named after `side`.

    `rows` rows are live, `padded` is what the grid was made for, `row` is the shared row.
    """

    def __init__(self, side: str, terms: Terms, function: Function, contract: Contract) -> None:
        self.side, self.terms, self.function, self.contract = side, terms, function, contract
        self.integers, self.floats = Integers(terms), Floats(terms)
        if len(contract.arguments) != len(function.body.arguments):
            raise NotAnalysable(f"{function.name} does not have the arguments of its contract")
        self.rows = terms.integer(f"rows_{side}", 1, MAX_ROWS)
        self.padded = terms.integer(f"padded_{side}", 1, MAX_ROWS)
        self.tiles = terms.integer(f"tiles_{side}", 1, MAX_ROWS)
        self.row = terms.integer(f"row_{side}", 0, MAX_ROWS - 1)
        terms.fact(self.rows, self.rows <= self.padded)
        terms.fact(self.row, self.row < self.rows)
        extents = [self._extent(entry) for entry in contract.grid]
        self.grid = tuple(e for e, _ in extents) + (z3.IntVal(1),) * (3 - len(extents))
        limits = [most for _, most in extents] + [1] * (3 - len(extents))
        self.program = tuple(
            self._program(axis, extent, most)
            for axis, (extent, most) in enumerate(zip(self.grid, limits, strict=True))
        )
        self.on_hole: Callable[[Hole], None] | None = None
        """Told of every hole: `split_states` says there what another launch has stored of it."""
        self.memory = Memory(self)
        terms.premises.append(self.memory.premises)

    def _extent(self, entry: int | str) -> tuple[Any, int]:
        """A grid entry as a term, and the largest value it can have."""
        if isinstance(entry, int):
            return z3.IntVal(entry), entry
        if entry == "tiles":
            return self.tiles, MAX_ROWS
        if entry == "rows!":
            return self.rows, MAX_ROWS
        name, _, divisor = entry.partition("/")
        if name != "rows":
            raise NotAnalysable(f"grid entry {entry}")
        size = int(divisor or 1)
        whole = (self.padded + (size - 1)) / size if size > 1 else self.padded
        return whole, -(-MAX_ROWS // size)

    def _program(self, axis: int, extent: Any, most: int) -> Any:
        """A program id along an axis: any below the extent."""
        if most == 1:
            return z3.IntVal(0)
        symbol = self.terms.integer(f"program_{'xyz'[axis]}_{self.side}", 0, most - 1)
        self.terms.fact(symbol, symbol < extent)
        return symbol

    def other_program(self, program: tuple[Any, ...] | None = None) -> Launch:
        """The same launch, looked at in another program: any, or the one given."""
        twin = Launch.__new__(Launch)
        twin.__dict__.update(self.__dict__)
        if program is None:
            program = tuple(
                self._program(axis, extent, (self.terms.bounds(old) or (0, 0))[1] + 1)
                for axis, (extent, old) in enumerate(zip(self.grid, self.program, strict=True))
            )
        twin.program = program
        return twin
