"""What to print of a difference: the bits, the layer, the command that repeats it.

The two runs are repeated with the one row kept that differs. The layer is found by running both
on the model without its last layers, with the tokens of the whole model forced upon it: a row of
logits of the first k layers differs when what layer k - 1 gives does. Halving k finds the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import Plan
from pyvosti.check.engines import Engine, Place, Sighting
from pyvosti.check.engines.own import OwnEngine, truncated
from pyvosti.check.observation import Difference
from pyvosti.check.scenario import Cell
from pyvosti.draw import Draw
from pyvosti.runner import Computed, Computing, Result, Runner

Row = NDArray[np.float32]


def explain(engine: Engine, cell: Cell, lone: Cell, found: Difference) -> dict[str, Any]:
    """`bits` and `layer` of a difference, each a sentence."""
    rows = [_row(engine, lone, 0, found), _row(engine, cell, found.watched, found)]
    told: dict[str, Any] = {"bits": _bits(engine.row_of, rows[0], rows[1])}
    if found.kind == "logits":
        told["layer"] = first_layer(engine, cell, lone, found)
    return told


def first_layer(engine: Engine, cell: Cell, lone: Cell, found: Difference) -> str:
    """The first layer whose output differs, in words; says so where that cannot be found."""
    if not isinstance(engine, OwnEngine):
        return "unknown: the engine's layers cannot be looked at"
    tokens = _Tokens()
    for which in (lone, cell):
        _repeat(engine, which, tokens.learn)
    layers = engine.loaded.config.n_layers

    def differs(count: int) -> bool:
        cut = truncated(engine.loaded, count)
        short = OwnEngine(
            engine.model, engine.backend, threads=engine.threads, loaded=cut,
            wrapper=lambda runner: tokens.force(_inner(engine.wrapper, runner)),
        )  # fmt: skip
        pair = [_row(short, lone, 0, found), _row(short, cell, found.watched, found)]
        short.close()
        return not _same(pair[0], pair[1])

    engine.close()
    if not differs(layers):
        return "unknown: with one plan in flight and tokens forced, the runs are equal"
    low, high = 0, layers
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle, high)
    if low == 0:
        return "layer 0, or what is no layer: embedding, final norm, head, what comes after"
    return f"layer {low} of {layers}, counted from 0"


class _Tokens:
    """The tokens that a run has drawn, to be drawn again by a model that would draw others."""

    def __init__(self) -> None:
        self.drawn: dict[tuple[Any, ...], int] = {}

    def learn(self, runner: Runner) -> Runner:
        """A runner that notes what is drawn."""
        return _Noting(runner, self._note)

    def force(self, runner: Runner) -> Runner:
        """A runner that gives the noted tokens."""
        return _Noting(runner, self._replace)

    def _note(self, draws: Sequence[Draw], tokens: NDArray[np.uint32]) -> None:
        for draw, token in zip(draws, tokens.tolist(), strict=True):
            self.drawn.setdefault(_key(draw), token)

    def _replace(self, draws: Sequence[Draw], tokens: NDArray[np.uint32]) -> None:
        for i, draw in enumerate(draws):
            tokens[i] = self.drawn.get(_key(draw), tokens[i])


class _Noting:
    """A runner with one plan in flight, whose tokens are shown before they are handed on."""

    max_in_flight = 1

    def __init__(
        self, runner: Runner, show: Callable[[Sequence[Draw], NDArray[np.uint32]], None]
    ) -> None:
        self.runner, self.show = runner, show
        self.num_blocks = runner.num_blocks

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Computes the plan at once."""
        result = self.runner.start(plan, draws, kept).wait()
        tokens = result.tokens.copy()
        self.show(draws, tokens)
        return Computed(Result(tokens, result.logits))


def _key(draw: Draw) -> tuple[Any, ...]:
    settings = (draw.temperature, draw.top_k, draw.top_p, draw.min_p, draw.repetition_penalty)
    return (draw.prompt.tobytes(), draw.seed, draw.sample_index, draw.position, settings)


def _repeat(engine: OwnEngine, cell: Cell, wrapper: Callable[[Runner], Runner]) -> Sighting:
    own = engine.wrapper
    engine.wrapper = lambda runner: wrapper(_inner(own, runner))
    try:
        return engine.observe(cell)
    finally:
        engine.wrapper = own


def _inner(wrapper: Callable[[Runner], Runner] | None, runner: Runner) -> Runner:
    return runner if wrapper is None else wrapper(runner)


def _row(engine: Engine, cell: Cell, watched: int, found: Difference) -> Row | None:
    place = Place(watched, found.sample, found.position)
    return engine.observe(replace(cell, counters={}), frozenset({place})).kept.get(place)


def _same(one: Row | None, other: Row | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.tobytes() == other.tobytes()


def _bits(row_of: str, one: Row | None, other: Row | None) -> str:
    if one is None or other is None:
        return "the row came in only one of the runs when they were repeated"
    if one.shape != other.shape:
        return f"{len(one)} {row_of} alone, {len(other)} here"
    left, right = one.view(np.uint32), other.view(np.uint32)
    unequal = np.flatnonzero(left != right)
    if len(unequal) == 0:
        return f"the {row_of} were equal when both runs were repeated"
    i = int(unequal[0])
    return (
        f"{len(unequal)} of {len(left)} {row_of} differ, first number {i}: alone "
        f"{left[i]:08x} ({float(one[i])!r}), here {right[i]:08x} ({float(other[i])!r})"
    )
