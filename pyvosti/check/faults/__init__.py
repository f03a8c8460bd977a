"""Planted faults: pyvosti with one mistake that other engines have made. Each must be caught.

A battery that reports no difference is worth as much as the faults that it finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyvosti.check.faults import draws, pages, sums
from pyvosti.runner import Runner


class Fault(NamedTuple):
    """A planted fault and the cells of which one must show it."""

    name: str
    says: str
    make: Callable[[Runner], Runner]
    cells: tuple[str, ...]


FAULTS = (
    Fault("sum-by-batch", "a sum split by the rows of the step", sums.SumByBatch,
          ("neighbours-7",)),
    Fault("block-by-rows", "tiles picked by the rows of the step", sums.BlockByRows,
          ("neighbours-1",)),
    Fault("tile-by-query", "a tile picked by the longest query", sums.TileByQuery,
          ("prefill-beside-10", "prefill-beside-129")),
    Fault("sum-by-chunk", "a sum split from the chunk's start", sums.SumByChunk,
          ("hit-half", "chunks-48", "prefill-whole")),
    Fault("one-row-kernel", "another kernel for one row", sums.OneRowKernel, ("prefill-whole",)),
    Fault("cascade", "another kernel for a shared prefix", sums.Cascade, ("shared-prefix",)),
    Fault("late-drift", "a difference in late rows only", sums.LateDrift, ("long-output",)),
    Fault("unordered-sum", "another order of adding each time", sums.Unordered, ("repeat-step",)),
    Fault("scale-by-batch", "one scale for a step's rows", sums.ScaleByBatch, ("order-together",)),
    Fault("seed-by-place", "noise by place in the step", draws.SeedByPlace, ("order-reversed",)),
    Fault("penalty-leak", "penalties of a neighbour", draws.PenaltyLeak, ("samplers-0",)),
    Fault("mask-leak", "the logit_bias of a neighbour", draws.MaskLeak, ("samplers-0",)),
    Fault("processed-logits", "logits after the temperature", draws.ProcessedLogits,
          ("raw-logits",)),
    Fault("mixed-up", "the rows of another request", draws.MixedUp, ("order-together",)),
    Fault("stale-rows", "prompt rows left from the step before", draws.StaleRows,
          ("prompt-rows-warm",)),
    Fault("noise-repeated", "the sampler's state lost in a preemption", draws.NoiseRepeated,
          ("preempted-at-8",)),
    Fault("token-repeated", "a token twice after a preemption", draws.TokenRepeated,
          ("preempted-at-8",)),
    Fault("wrong-page", "two pages of a sequence exchanged", pages.WrongPage,
          ("prefill-beside-9",)),
    Fault("free-page", "a page that holds nothing", pages.FreePage, ("hit-crowd",)),
)  # fmt: skip
"""In the order in which they are run."""
