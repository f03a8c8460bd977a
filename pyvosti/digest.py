"""A fingerprint of what a request computed: one SHA-256 chain over its rows of logits.

    d_0     = SHA-256("pyvosti logits 1" | prompt length u64 | prompt token ids u32 …)
    d_{i+1} = SHA-256(d_i | position u64 | token id u32 | row float32[vocab])

All numbers little-endian; the token id is the one drawn from the row, 0xFFFFFFFF for a row
of the prompt from which none was drawn. Two runs with equal last digests computed the same
bits and tokens in every row; the first pair that differs names the first differing position.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

NO_TOKEN = 0xFFFFFFFF


def start(prompt: NDArray[np.uint32]) -> bytes:
    """The chain's first link: the prompt's token ids, u32[n]."""
    head = b"pyvosti logits 1" + struct.pack("<Q", len(prompt))
    return hashlib.sha256(head + prompt.astype("<u4").tobytes()).digest()


def extend(link: bytes, position: int, row: NDArray[np.float32], token: int = NO_TOKEN) -> bytes:
    """The next link: the row float32[vocab] at a position, and the token drawn from it."""
    state = hashlib.sha256(link)
    state.update(struct.pack("<QI", position, token))
    state.update(np.ascontiguousarray(row, dtype="<f4").data)
    return state.digest()
