"""The engines that the battery can be run on, behind one method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pyvosti.check.observation import Observed
from pyvosti.check.scenario import Cell, Job

NEEDS = {
    "batch": "takes one request at a time",
    "arrivals": "takes no request while others run",
    "abort": "has no way to give a request up",
    "budget": "has no budget of tokens in a step that could be varied from here",
    "pool": "has no KV pool whose size could be varied from here",
    "cache": "reuses no prefixes",
    "salt": "has no salt that keeps caches apart",
    "rows": "gives no logits of prompt positions",
    "prompt ids": "takes no token ids as prompts",
    "samples": "gives one sample a request",
    "drawing": "draws by its own sampler, whose parameters mean other things",
    "logprobs": "has no choice of logprobs that could be varied from here",
    "raw logits": "does not say whether its logprobs are those of the raw logits",
    "pages": "has no pages that could be reached from here",
    "threads": "has no threads that could be varied from here",
    "isa": "has no builds for several instruction sets",
    "graphs": "has no CUDA graphs",
    "tiles": "has no choice of kernels by the number of rows",
    "in flight": "has one plan in flight",
}
"""What a cell may need of an engine -> why an engine that lacks it skips the cell."""


class Place(NamedTuple):
    """A row of a cell."""

    watched: int
    sample: int
    position: int


@dataclass
class Sighting:
    """What a run of a cell has shown."""

    samples: list[list[Observed]]
    """Per watched request: its samples."""
    kept: dict[Place, NDArray[np.float32]] = field(default_factory=dict)
    """The rows that were to be kept, f32[vocab] each."""
    trouble: str | None = None
    """Why the run was not what the cell claims, if so: then it has shown nothing."""


class Engine(Protocol):
    """An engine under test."""

    title: str
    """Name and version."""
    row_of: str
    """What a row of it holds."""
    can: frozenset[str]
    """Of NEEDS."""
    page: int
    """Tokens of a page of its KV cache, as far as cells depend on it."""
    context: int
    """Tokens of the longest sequence."""

    def prompt_ids(self) -> list[int]:
        """Token ids of a text, from which prompts are cut."""
        ...

    def observe(self, cell: Cell, keep: frozenset[Place] = frozenset()) -> Sighting:
        """Runs a cell. An engine's own failure is an exception."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the report says of the engine besides its title."""
        ...

    def close(self) -> None:
        """Frees what it holds."""
        ...


def lacks(engine: Engine, cell: Cell) -> str | None:
    """Why the engine cannot run the cell; None when it can."""
    for need in sorted(cell.needs):
        if need not in engine.can:
            return f"{engine.title} {NEEDS[need]}"
    if cell.longest > engine.context:
        return f"a sequence of {cell.longest} tokens is longer than the model's {engine.context}"
    return None


def lone_cell(job: Job) -> Cell:
    """The request alone, with no prefix cache: what every cell is compared with."""
    from pyvosti.check.scenario import Arrival

    arrival = Arrival(job, watched=True)
    return Cell("alone", "baseline", "alone", ((arrival,),), {"prefix_cache": False})
