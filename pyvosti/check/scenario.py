"""What a cell of the matrix is: requests, when they come, and what must not change their bits.

A cell is data. It names requests whose rows are watched, the company they run in, and the options
of the engine; it holds when every watched row equals, bit for bit, the row that the same request
gave at the same position when it ran alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyvosti.params import SamplingParams


@dataclass(frozen=True)
class Job:
    """One request: prompt token ids and parameters, of which `seed` and `max_tokens` are set."""

    prompt: tuple[int, ...]
    params: SamplingParams

    @property
    def key(self) -> str:
        """The same for equal requests, in this process and in any other."""
        return hashlib.sha256(repr((self.prompt, self.params)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Arrival:
    """A request of a cell, and when it comes and goes."""

    job: Job
    watched: bool = False
    """Whether its rows are compared; the others are its company."""
    after: int = 0
    """Outputs that the first request of its phase must have given before it comes."""
    abort_after: int | None = None
    """Steps of the engine after which it is aborted."""
    salt: int = 0
    against: Job | None = None
    """The request that is run alone to compare with; None: the same."""
    forced: int = 0
    """Outputs of `against` that are appended to the prompt: what was decoded is prefilled."""

    rows_only: bool = False
    """Its tokens are drawn in another way: only logits are compared."""

    @property
    def baseline(self) -> Job:
        """The request that is run alone to compare with."""
        return self.against or self.job


Phase = tuple[Arrival, ...]
"""Requests that run together. The phases of a cell follow one another in one engine."""


@dataclass(frozen=True)
class Disturbance:
    """What is done to a runner behind the engine's back, and must not matter."""

    poison: float | None = None
    """Written into every page before the cell, and into each page that is given out anew."""
    tails: bool = False
    """Unused entries of the block tables point at pages that are in use."""
    graphs: bool = True
    """Whether decode steps may be CUDA graphs."""
    in_flight: int | None = None
    """Plans in flight, if not the backend's number."""


@dataclass(frozen=True)
class Cell:
    """One variation."""

    name: str
    """Stable: what `--cells` takes and reports are compared by."""
    group: str
    says: str
    """What is varied, in a few words."""
    phases: tuple[Phase, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the engine, with the names of `pyvosti.LLM`'s arguments."""
    disturbance: Disturbance = Disturbance()
    counters: Mapping[str, int] = field(default_factory=dict)
    """The engine's counters and how much they must grow, or the cell was not what it claims."""
    still: frozenset[str] = frozenset()
    """The engine's counters that must not grow: it would have done what the cell forbids."""
    preempted_at: int | None = None
    """Outputs that the first watched request must have given when it is preempted."""
    needs: frozenset[str] = field(default_factory=frozenset)
    """What an engine must be able to do; see `engines.NEEDS`."""

    @property
    def watched(self) -> list[Arrival]:
        """The watched requests, in the order in which results are given."""
        return [arrival for phase in self.phases for arrival in phase if arrival.watched]

    @property
    def longest(self) -> int:
        """Tokens of its longest sequence."""
        return max(
            len(arrival.job.prompt) + arrival.forced + (arrival.job.params.max_tokens or 0)
            for phase in self.phases
            for arrival in phase
        )
