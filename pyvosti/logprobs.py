"""Log-probabilities of one row: the raw logits', whatever the sampling parameters are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import log_softmax
from pyvosti.outputs import Logprob, PositionLogprobs
from pyvosti.tokenizer import Tokenizer


def position_logprobs(
    row: NDArray[np.float32], token: int, k: int, tokenizer: Tokenizer
) -> PositionLogprobs:
    """The k most likely tokens of the row f32[vocab] (ties: the lowest id), and `token`."""
    values = log_softmax(row[np.newaxis])[0]
    top = top_k(values, k)
    return {
        token_id: Logprob(
            logprob=float(values[token_id]),
            rank=int(np.count_nonzero(values > values[token_id])) + 1,
            decoded_token=tokenizer.decode([token_id], skip_special_tokens=False),
        )
        for token_id in (top if token in top else [*top, token])
    }


def top_k(values: NDArray[np.float32], k: int) -> list[int]:
    """Ids of the k largest values, best first; equal values by ascending id."""
    k = min(k, len(values))
    if k == 0:
        return []
    threshold = np.partition(values, len(values) - k)[len(values) - k]
    candidates = np.flatnonzero(values >= threshold)
    order = np.argsort(-values[candidates], kind="stable")
    return [int(token_id) for token_id in candidates[order[:k]]]
