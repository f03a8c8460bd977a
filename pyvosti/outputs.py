"""What a request gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyvosti.errors import RequestError

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True)
class Logprob:
    """One token's log-probability under the raw logits, before any sampling parameter."""

    logprob: float
    rank: int
    """1 for the most likely token; equal logits share a rank."""
    decoded_token: str


PositionLogprobs = dict[int, Logprob]
"""Token id -> its log-probability: the most likely ones, and the token that is there."""


@dataclass
class CompletionOutput:
    """One sample of a request."""

    index: int
    text: str
    token_ids: list[int]
    finish_reason: FinishReason | None
    stop_reason: int | str | None = None
    """The stop string or the id among stop_token_ids that ended it; None for end of sequence."""
    logprobs: list[PositionLogprobs] | None = None
    logits: NDArray[np.float32] | None = None
    """[len(token_ids), vocab]: the raw row each token was drawn from (record_logits=True)."""
    digests: list[str] | None = None
    """The digest chain after each of the request's rows, in hex (record_digests=True)."""

    @property
    def digest(self) -> str | None:
        """The end of the chain: equal digests mean equal bits in every row and equal tokens."""
        return self.digests[-1] if self.digests else None


@dataclass
class RequestOutput:
    """A request's result. A refused request has `error` set and no outputs."""

    request_id: int
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput] = field(default_factory=list)
    seed: int | None = None
    """The seed that was used, given or drawn: pass it again to repeat the request."""
    prompt_logprobs: list[PositionLogprobs | None] | None = None
    """One entry per prompt token; the first is None: nothing predicts it."""
    prompt_logits: NDArray[np.float32] | None = None
    """[prompt length - 1, vocab]: rows of the prompt (record_logits and prompt_logprobs)."""
    error: RequestError | None = None
    uncertified: bool = False
    """Whether GPU kernels took part that have no certificate: then equal bits are not promised."""

    @property
    def finished(self) -> bool:
        """Whether nothing more will come."""
        done = all(output.finish_reason is not None for output in self.outputs)
        return self.error is not None or (bool(self.outputs) and done)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values, without logits."""
        return {
            "request_id": self.request_id,
            "prompt": self.prompt,
            "prompt_token_ids": self.prompt_token_ids,
            "seed": self.seed,
            "error": None if self.error is None else str(self.error),
            "uncertified": self.uncertified,
            "prompt_logprobs": self.prompt_logprobs
            and [entry and _logprobs_dict(entry) for entry in self.prompt_logprobs],
            "outputs": [_completion_dict(output) for output in self.outputs],
        }


@dataclass(frozen=True)
class StreamChunk:
    """What is new in one sample since its last chunk."""

    request: int
    """Index of the prompt in the call."""
    index: int
    """Sample of that prompt."""
    text: str
    token_ids: list[int]
    finish_reason: FinishReason | None
    output: RequestOutput | None
    """The whole result, with the request's last chunk; None before."""


def _completion_dict(output: CompletionOutput) -> dict[str, Any]:
    return {
        "index": output.index,
        "text": output.text,
        "token_ids": output.token_ids,
        "finish_reason": output.finish_reason,
        "stop_reason": output.stop_reason,
        "logprobs": output.logprobs and [_logprobs_dict(entry) for entry in output.logprobs],
        "digest": output.digest,
    }


def _logprobs_dict(entry: PositionLogprobs) -> dict[str, dict[str, Any]]:
    return {
        str(token): {
            # A float32 may be -inf, which JSON has no word for.
            "logprob": value.logprob if np.isfinite(value.logprob) else None,
            "rank": value.rank,
            "token": value.decoded_token,
        }
        for token, value in entry.items()
    }
