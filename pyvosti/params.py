"""How to sample: the parameters of a request, with the names that vLLM's users know."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from pyvosti.errors import RequestError

MAX_SEED = 2**64 - 1
MAX_SAMPLES = 2**14
"""Of one prompt; as many as vLLM's."""
FLOAT32_MAX = 3.4e38


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """Parameters of one request; wrong values raise `RequestError` with one sentence.

    The sampler is a function of one row of logits, the request's history and
    (seed, sample index, output position). Order: logit_bias, repetition penalty,
    frequency and presence penalty, temperature, top_k, top_p, min_p, then seeded noise.
    """

    max_tokens: int | None = 16
    """Most tokens to generate per sample; None: up to the model's length."""
    temperature: float = 1.0
    """0 takes the most likely token (ties: the lowest id)."""
    top_k: int = 0
    """Keep the k most likely tokens; 0 or -1: all."""
    top_p: float = 1.0
    """Keep the smallest set of likely tokens whose probability reaches this."""
    min_p: float = 0.0
    """Drop tokens less likely than this share of the most likely one."""
    seed: int | None = None
    """0..2**64-1; None: drawn once per request and reported in its output."""
    n: int = 1
    """Samples per prompt; sample 0 is what n=1 gives."""
    stop: str | Sequence[str] | None = None
    """Generation ends before the first of these strings, which are left out of the text."""
    stop_token_ids: Sequence[int] = ()
    """Generation ends after one of these tokens."""
    ignore_eos: bool = False
    """Go on after the model's end-of-sequence tokens."""
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    """Added to the logits of these token ids."""
    logprobs: int | None = None
    """Report the k most likely tokens (and the chosen one) of each output position."""
    prompt_logprobs: int | None = None
    """The same for each prompt position."""
    skip_special_tokens: bool = True
    """Leave control tokens out of the text."""

    def __post_init__(self) -> None:
        _count("max_tokens", self.max_tokens, 1, optional=True)
        _number("temperature", self.temperature, 0.0, FLOAT32_MAX)
        _count("top_k", self.top_k, -1)
        _number("top_p", self.top_p, 0.0, 1.0)
        if _is_zero(self.top_p):
            raise RequestError("top_p must be above 0; for the most likely token: temperature=0")
        _number("min_p", self.min_p, 0.0, 1.0)
        _count("seed", self.seed, 0, MAX_SEED, optional=True)
        _count("n", self.n, 1, MAX_SAMPLES)
        _number("presence_penalty", self.presence_penalty, -2.0, 2.0)
        _number("frequency_penalty", self.frequency_penalty, -2.0, 2.0)
        _number("repetition_penalty", self.repetition_penalty, 0.0, FLOAT32_MAX)
        if _is_zero(self.repetition_penalty):
            raise RequestError("repetition_penalty must be above 0 (1 means none)")
        _count("logprobs", self.logprobs, 0, optional=True)
        _count("prompt_logprobs", self.prompt_logprobs, 0, optional=True)
        object.__setattr__(self, "stop", _stop_strings(self.stop))
        object.__setattr__(self, "stop_token_ids", _token_ids(self.stop_token_ids))
        object.__setattr__(self, "logit_bias", _logit_bias(self.logit_bias))

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """`stop` as a tuple, whatever form it was given in."""
        return tuple(self.stop or ())

    @property
    def logits_from_start(self) -> bool:
        """Whether the rows of the whole prompt are wanted, not only the sampled one."""
        return self.prompt_logprobs is not None


def _count(
    name: str, value: Any, low: int, high: int | None = None, *, optional: bool = False
) -> None:
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise RequestError(f"{name} must be a whole number, not {value!r}")
    number = int(value)
    if number < low or (high is not None and number > high):
        limits = f"at least {low}" if high is None else f"{low} to {high}"
        raise RequestError(f"{name} must be {limits}, not {value}")


def _number(name: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise RequestError(f"{name} must be a number, not {value!r}")
    try:
        inside = low <= float(value) <= high
    except OverflowError:  # a whole number that no float holds
        inside = False
    if not inside:
        raise RequestError(f"{name} must be {low:g} to {high:g}, not {value}")


def _is_zero(value: float) -> bool:
    """Whether the number is zero in the single precision that the sampler computes with."""
    return bool(struct.unpack("<f", struct.pack("<f", value)) == (0.0,))


def _stop_strings(stop: Any) -> tuple[str, ...]:
    if stop is None:
        return ()
    if not isinstance(stop, (str, Sequence)):  # a set: its order would change from run to run
        raise RequestError(f"stop must be text or a list of texts, not {stop!r}")
    strings: list[Any] = [stop] if isinstance(stop, (str, bytes)) else list(stop)
    for string in strings:
        if not isinstance(string, str):
            raise RequestError(f"stop must be text, not {type(string).__name__} {string!r}")
        if not string:
            raise RequestError("a stop string is empty and would end every request at once")
        try:
            string.encode("utf-8")
        except UnicodeEncodeError:
            raise RequestError(f"the stop string {string!r} is not valid UTF-8") from None
    return tuple(strings)


def _token_ids(ids: Any) -> tuple[int, ...]:
    if not isinstance(ids, Sequence) or isinstance(ids, (str, bytes)):
        raise RequestError(f"stop_token_ids must be a list of token ids, not {ids!r}")
    for token_id in ids:
        _count("each of stop_token_ids", token_id, 0, 2**32 - 2)
    return tuple(int(token_id) for token_id in ids)


def _logit_bias(bias: Any) -> dict[int, float]:
    if not isinstance(bias, Mapping):
        raise RequestError(f"logit_bias must map token ids to numbers, not {bias!r}")
    for token_id, value in bias.items():
        _count("each token id in logit_bias", token_id, 0, 2**32 - 2)
        _number("each value in logit_bias", value, -1e30, 1e30)
    return {int(token_id): float(value) for token_id, value in sorted(bias.items())}
