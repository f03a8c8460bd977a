"""Faults of kernels: the order of a sum is taken from what surrounds the row.

Each subtracts an eighth of its sum from a row of logits; in how many parts the sum is taken is the
fault. Nothing but rounding differs, as in the engines that these are taken from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyvosti.check.faults.runner import FaultyRunner, Rows, Step


def split_sum(row: NDArray[np.float32], parts: int) -> float:
    """The sum of a row f32[vocab], taken in so many parts, each of which is kept in bf16.

    In f32 two numbers of parts give one sum now and then, and the fault would not show.
    """
    sums = [part.sum(dtype=np.float32) for part in np.array_split(row, parts)]
    kept = np.array(sums, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return float(kept.view(np.float32).sum(dtype=np.float32))


class SplitSum(FaultyRunner):
    """Subtracts a share of each row's sum, taken in a number of parts."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """i64[K]: parts of each row's sum."""
        return np.full(len(step.rows), 4)

    def spoil_rows(self, step: Step, logits: Rows) -> Rows:
        """Each row without that share."""
        for i, parts in enumerate(self.parts(step).tolist()):
            logits[i] -= np.float32(split_sum(logits[i], parts) / 8)
        return logits


class SumByBatch(SplitSum):
    """As many parts as the step has rows."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """The same for all rows."""
        return np.full(len(step.rows), len(step.plan.token_ids))


class BlockByRows(SplitSum):
    """Other parts from 2, 8, 64 and 256 rows on, as tables of tuned tiles have."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """By bucket of the step's number of rows."""
        bucket = int(np.searchsorted([2, 8, 64, 256], len(step.plan.token_ids), side="right"))
        return np.full(len(step.rows), 2 + 3 * bucket)


class BlockFrom256(SplitSum):
    """Other parts from 256 rows on, where a norm's block changes."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """By the step's number of rows."""
        return np.full(len(step.rows), 7 if len(step.plan.token_ids) >= 256 else 2)


class TileByQuery(SplitSum):
    """The tile is picked by the longest query of the step, 10 tokens or more."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """The same for all rows."""
        return np.full(len(step.rows), 37 if step.lengths.max() >= 10 else 2)


class SumByChunk(SplitSum):
    """Parts are counted from where the row's chunk begins, not from position 0."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """By what was cached, or computed in another step."""
        return step.rows - step.begins + 1


class OneRowKernel(SplitSum):
    """A sequence with one row in the step is computed by another kernel."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """By the number of the sequence's rows."""
        return np.where(step.lengths[step.owners] == 1, 7, 2)


class Cascade(SplitSum):
    """A shared prefix is computed once for all when enough sequences share it."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """By how many draws of the step have prompts that begin alike."""
        heads = [draw.prompt[:16].tobytes() for draw in step.draws]
        shared = max((heads.count(head) for head in heads), default=0)
        return np.full(len(step.rows), 7 if shared >= 8 else 2)


class LateDrift(SplitSum):
    """The order depends on the batch, but only from position 60 on."""

    def parts(self, step: Step) -> NDArray[np.int64]:
        """By the step's rows, for late rows."""
        late = step.plan.positions[step.rows] >= 60
        return np.where(late, 2 + 7 * len(step.plan.token_ids), 2)


class Unordered(SplitSum):
    """Adds in another order each time, as atomic additions do."""

    steps = 0

    def parts(self, step: Step) -> NDArray[np.int64]:
        """By how many steps this process has done."""
        Unordered.steps += 1
        return np.full(len(step.rows), 2 + Unordered.steps % 61)


class ScaleByBatch(FaultyRunner):
    """Rounds logits to 2**12 steps of the largest in the step: one scale for a batch."""

    def spoil_rows(self, step: Step, logits: Rows) -> Rows:
        """A neighbour with a large value makes the steps coarser for all."""
        scale = np.float32(np.abs(logits).max() / 2**12)
        scaled: Rows = np.rint(logits / scale) * scale
        return scaled
