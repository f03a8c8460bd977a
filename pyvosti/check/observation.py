"""What is seen of a request, and how two sights of it are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Kind = Literal["logits", "token", "length"]


@dataclass
class Observed:
    """One sample of a request."""

    prompt_length: int
    wanted: int
    """Outputs that were asked for."""
    tokens: list[int] = field(default_factory=list)
    """Its output."""
    rows: dict[int, str] = field(default_factory=dict)
    """Position in the sequence -> fingerprint of the row of logits there."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "prompt_length": self.prompt_length,
            "wanted": self.wanted,
            "tokens": self.tokens,
            "rows": {str(position): row for position, row in self.rows.items()},
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Observed:
        """The inverse of `to_dict`."""
        rows = {int(position): row for position, row in data["rows"].items()}
        return Observed(data["prompt_length"], data["wanted"], data["tokens"], rows)

    def wants(self, position: int) -> bool:
        """Whether an output was to be drawn from the row at this position."""
        return 0 <= position - (self.prompt_length - 1) < self.wanted


class Difference(NamedTuple):
    """The first position at which a watched request is not what it was alone."""

    watched: int
    """Index among the cell's watched requests."""
    sample: int
    position: int
    """Position in the sequence; an output position is this minus (prompt length - 1)."""
    kind: Kind
    """`token`: the logits are equal and the tokens drawn are not."""


def fingerprint(row: NDArray[np.float32] | bytes) -> str:
    """128 bits of SHA-256 over the bits of a row f32[vocab], or over what stands for one."""
    data = row if isinstance(row, bytes) else np.ascontiguousarray(row, "<f4").data
    return hashlib.sha256(data).hexdigest()[:32]


def first_difference(
    alone: Sequence[Sequence[Observed]], seen: Sequence[Sequence[Observed]]
) -> Difference | None:
    """The first difference of the first watched request that has one. None: all bits equal.

    Both hold the samples of each watched request; where one has fewer samples, those are
    compared. Rows are compared at the positions that both have, as far as the tokens agree.
    """
    for index, (ones, others) in enumerate(zip(alone, seen, strict=True)):
        for sample, (one, other) in enumerate(zip(ones, others, strict=False)):
            found = _first_of(one, other)
            if found is not None:
                return Difference(index, sample, *found)
    return None


def compared_rows(alone: Sequence[Sequence[Observed]], seen: Sequence[Sequence[Observed]]) -> int:
    """How many rows of logits `first_difference` looks at when all are equal."""
    return sum(
        len(one.rows.keys() & other.rows.keys())
        for ones, others in zip(alone, seen, strict=True)
        for one, other in zip(ones, others, strict=False)
    )


def changed_outputs(alone: Sequence[Sequence[Observed]], seen: Sequence[Sequence[Observed]]) -> int:
    """How many samples have, at a position that both have, another token."""
    return sum(
        any(drawn.get(position, token) != token for position, token in _tokens(other).items())
        for ones, others in zip(alone, seen, strict=True)
        for one, other in zip(ones, others, strict=False)
        for drawn in (_tokens(one),)
    )


def _tokens(seen: Observed) -> dict[int, int]:
    """Position of the row -> the token drawn from it."""
    return dict(enumerate(seen.tokens, seen.prompt_length - 1))


def _first_of(one: Observed, other: Observed) -> tuple[int, Kind] | None:
    tokens = _tokens(one), _tokens(other)
    end = max((*one.rows, *other.rows, *tokens[0], *tokens[1]), default=-1) + 1
    for position in range(end):
        rows = one.rows.get(position), other.rows.get(position)
        if None not in rows and rows[0] != rows[1]:
            return position, "logits"
        drawn = tokens[0].get(position), tokens[1].get(position)
        if None not in drawn and drawn[0] != drawn[1]:
            return position, "token"
        wanted = one.wants(position) and other.wants(position)
        if wanted and (drawn[0] is None) != (drawn[1] is None):
            return position, "length"
    return None
