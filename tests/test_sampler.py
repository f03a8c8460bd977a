"""The sampler through its bindings, against a definition in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyvosti import _core

DEFAULTS: dict[str, Any] = {
    "seed": 1,
    "sample_index": 0,
    "position": 0,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "logit_bias": [],
    "prompt": np.array([], np.uint32),
    "output": np.array([], np.uint32),
}


def draw(logits: NDArray[np.float32], **options: Any) -> int:
    return _core.sample(logits, **(DEFAULTS | options))


def philox(ids: NDArray[Any], position: int, sample: int, seed: int) -> NDArray[np.uint64]:
    """First words of Philox4x32-10 (Salmon et al., 2011)."""
    low = np.uint64(0xFFFFFFFF)
    c = [ids.astype(np.uint64)] + [np.full(len(ids), x, np.uint64) for x in (position, sample, 0)]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]),
            b & low,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]),
            a & low,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def test_draws_are_argmax_of_score_plus_gumbel_noise() -> None:
    random = np.random.default_rng(0)
    for round_ in range(200):
        logits = (random.standard_normal(1000) * 3).astype(np.float32)
        seed, temperature = int(random.integers(1 << 63)), float(random.uniform(0.3, 2))
        words = philox(np.arange(1000), round_, round_ % 7, seed)
        uniform = ((words >> np.uint64(9)) + 0.5) / 2**23
        totals = logits.astype(np.float64) / temperature - np.log(-np.log(uniform))
        got = draw(
            logits, seed=seed, sample_index=round_ % 7, position=round_, temperature=temperature
        )
        assert totals.max() - totals[got] < 1e-4


def test_argmax() -> None:
    rows = np.array([[1, 3, 3], [np.nan, -1, -2], [np.nan, np.nan, -np.inf]], np.float32)
    assert _core.argmax(rows).tolist() == [1, 1, 2]
    assert draw(rows[0], temperature=0.0) == 1
    assert _core.argmax(np.zeros((0, 5), np.float32)).shape == (0,)


def test_log_softmax() -> None:
    logits = (np.random.default_rng(1).standard_normal((3, 5000)) * 5).astype(np.float32)
    got, wide = _core.log_softmax(logits), logits.astype(np.float64)
    want = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    assert got.shape == logits.shape
    assert np.abs(got - want).max() < 1e-5
    logits[0, 7] = np.nan
    again = _core.log_softmax(logits)
    assert np.isnan(again[0]).nonzero()[0].tolist() == [7]
    np.testing.assert_array_equal(again[1:].view(np.uint32), got[1:].view(np.uint32))


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    logits = np.random.default_rng(2).standard_normal((9, 333)).astype(np.float32)
    whole = _core.log_softmax(logits)
    for i in range(9):
        alone = _core.log_softmax(logits[i : i + 1])
        np.testing.assert_array_equal(alone[0].view(np.uint32), whole[i].view(np.uint32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"min_p": 2.0}, "min_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"logit_bias": [(5, 1.0)]}, "token 5"),
        ({"output": np.array([9], np.uint32)}, "token 9"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(np.zeros(5, np.float32), **options)
