"""How a plan becomes tiles and split states: plain numpy, no GPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from pyvosti.cuda_step import STATE_ROWS, Step, row_arrays, tiles_of


def plan(counts: list[int]) -> SimpleNamespace:
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    return SimpleNamespace(query_start=starts, seats=np.arange(len(counts), dtype=np.uint32) + 5)


@pytest.mark.parametrize("allow_whole", [False, True])
def test_every_row_is_in_exactly_one_tile(allow_whole: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.integers(1, 40, rng.integers(1, 30)).tolist()
        if not allow_whole:
            counts = counts[:6]
        step = Step(plan(counts), 4, 16, allow_whole)
        owner = np.repeat(np.arange(len(counts)), counts)
        seen = np.zeros(step.rows, int)
        for (firsts, sizes, seats), limit in ((step.tiles, 4), (step.whole_tiles, 16)):
            for first, size, seat in zip(firsts, sizes, seats, strict=True):
                assert 1 <= size <= limit
                assert set(owner[first : first + size] + 5) == {seat}, "a tile spans sequences"
                seen[first : first + size] += 1
        assert (seen == 1).all()
        states = step.states[step.states >= 0]
        assert len(set(states)) == len(states), "two rows share a split state"
        assert len(states) == 0 or states.max() < max(STATE_ROWS, sum(counts[:6]) + 1)
        if allow_whole:
            assert len(states) <= STATE_ROWS


def test_sequences_beyond_the_split_states_are_walked_whole() -> None:
    step = Step(plan([1] * (STATE_ROWS + 20)), 4, 16, True)
    assert len(step.tiles[0]) == STATE_ROWS and len(step.whole_tiles[0]) == 20
    assert (step.states[STATE_ROWS:] == -1).all()


def test_tiles_of_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert all(len(x) == 0 for x in tiles_of(np.zeros(1, np.int64), none, none, none > 0, 4))


def test_arrays_of_a_step() -> None:
    lengths = row_arrays(16, 2, 16, 0)
    assert lengths["slots.1"] == 16 and lengths["whole_tile_rows"] == 0
