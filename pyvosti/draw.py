"""What a sampler needs to know of one draw, whichever backend makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

NO_TOKENS = np.zeros(0, np.uint32)


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One token to draw from one row of logits; the names are those of `SamplingParams`.

    The token is a function of the row and of what stands here: noise is keyed by (`seed`,
    `sample_index`, `position`, token id), penalties count `prompt` and `output`, u32[n] each.
    """

    seed: int
    sample_index: int
    position: int
    """Output position: 0 for the first token after the prompt."""
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    prompt: NDArray[np.uint32] = field(default_factory=NO_TOKENS.copy)
    output: NDArray[np.uint32] = field(default_factory=NO_TOKENS.copy)

    @property
    def penalised(self) -> bool:
        """Whether the history changes the logits."""
        penalties = (self.repetition_penalty - 1, self.presence_penalty, self.frequency_penalty)
        return any(penalties)

    @property
    def plain(self) -> bool:
        """Whether it is the most likely token of the row as it stands."""
        return self.temperature == 0 and not self.logit_bias and not self.penalised


GREEDY = Draw(seed=0, sample_index=0, position=0, temperature=0.0)
"""The most likely token."""
