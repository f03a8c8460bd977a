"""SamplingParams: what is refused, and that each refusal is one sentence that names the field."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pyvosti import PyvostiError, RequestError, SamplingParams

REFUSED = [
    ("max_tokens", -1),
    ("max_tokens", 0),
    ("max_tokens", 1.5),
    ("max_tokens", True),
    ("temperature", -0.1),
    ("temperature", math.nan),
    ("temperature", math.inf),
    ("temperature", "hot"),
    ("temperature", 1e300),
    ("temperature", 10**400),
    ("top_p", 1e-300),
    ("repetition_penalty", 1e300),
    ("repetition_penalty", 1e-300),
    ("logit_bias", {1: 1e300}),
    ("top_k", -2),
    ("top_k", 0.5),
    ("top_p", 0.0),
    ("top_p", 1.01),
    ("min_p", -0.01),
    ("min_p", 2),
    ("seed", -1),
    ("seed", 2**64),
    ("seed", 1.0),
    ("n", 0),
    ("n", 2**14 + 1),
    ("presence_penalty", 2.1),
    ("frequency_penalty", -3),
    ("repetition_penalty", 0),
    ("repetition_penalty", math.inf),
    ("logprobs", -1),
    ("prompt_logprobs", -1),
    ("stop", ""),
    ("stop", ["ok", ""]),
    ("stop", b"\xff"),
    ("stop", ["\ud800"]),
    ("stop", [3]),
    ("stop", 3),
    ("stop", {"a", "b"}),
    ("stop_token_ids", 3),
    ("stop_token_ids", "3"),
    ("stop_token_ids", [-1]),
    ("logit_bias", [1, 2]),
    ("logit_bias", {-1: 1.0}),
    ("logit_bias", {1: math.nan}),
    ("logit_bias", {1: "much"}),
]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_refused(name: str, value: object) -> None:
    with pytest.raises(RequestError) as caught:
        SamplingParams(**{name: value})
    message = str(caught.value)
    assert name.split("_")[0] in message
    assert "\n" not in message
    assert isinstance(caught.value, (ValueError, PyvostiError))


def test_unknown_parameter() -> None:
    with pytest.raises(TypeError, match="best_of"):
        SamplingParams(best_of=2)


def test_accepted() -> None:
    params = SamplingParams(
        max_tokens=np.int64(3),
        temperature=0,
        top_k=-1,
        top_p=1,
        seed=2**64 - 1,
        stop="\n",
        stop_token_ids=[1, 2],
        logit_bias={5: 1, 2: -100},
        logprobs=0,
    )
    assert params.stop_strings == ("\n",)
    assert params.stop_token_ids == (1, 2)
    assert list(params.logit_bias.items()) == [(2, -100.0), (5, 1.0)]
    assert SamplingParams() == SamplingParams(stop=None)
