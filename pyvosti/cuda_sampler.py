"""Seeded sampling on the GPU: rows of the runner's logits, one draw each, by our kernels.

Histories become integer counts (a scatter of ones); every float is computed by `adjust` and
`sample`. A draw is a function of its row, its parameters and its history.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from pyvosti.cuda_launch import BoundKernel
from pyvosti.draw import Draw
from pyvosti.triton_kernels.launches import sampler_launches
from pyvosti.triton_kernels.schedule import Schedule

_DECIMAL = Context(prec=40, traps=[])
"""Not the thread's, which a caller may have changed."""

INTEGERS = ("sample_index", "position", "top_k")
FLOATS = (
    "temperature",
    "top_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)


def draw_tokens(
    schedule: Schedule,
    logits: torch.Tensor,
    last_tokens: torch.Tensor,
    rows: NDArray[np.int64],
    seats: NDArray[np.int64],
    draws: Sequence[Draw],
) -> torch.Tensor:
    """i32[N] tokens on the device, enqueued on the current stream.

    `logits`: f32[any, vocab]; draw i reads row `rows[i]` of it, and its token also becomes the
    last token of seat `seats[i]`.
    """
    vocab = schedule.shape.vocab
    biased = any(draw.logit_bias for draw in draws)
    penalised = any(draw.penalised for draw in draws)
    seeds = np.array([draw.seed for draw in draws], np.uint64).view(np.int64)
    min_p = [natural_log(draw.min_p) for draw in draws]
    buffers = {
        "logits": logits,
        "last_tokens": last_tokens,
        "adjusted": torch.empty(len(draws), vocab, device="cuda"),
        "sampled_tokens": torch.empty(len(draws), dtype=torch.int32, device="cuda"),
        "sample_rows": sent(rows.astype(np.int32)),
        "sample_seats": sent(seats.astype(np.int32)),
        "seeds": sent(seeds),
        "log_min_p": sent(np.array(min_p, np.float32)),
        **{name: column(draws, name, np.int32) for name in INTEGERS},
        **{name: column(draws, name, np.float32) for name in FLOATS},
    }
    unused = buffers["adjusted"]
    buffers["bias"] = bias_of(draws, vocab) if biased else unused
    for name in ("prompt", "output"):
        counts = counts_of([getattr(d, name) for d in draws], vocab) if penalised else unused
        buffers[f"{name}_counts"] = counts
    for launch in sampler_launches(schedule, biased, penalised):
        grid = tuple(len(draws) if entry == "samples" else int(entry) for entry in launch.grid)
        BoundKernel(launch.spec, grid, [buffers[name] for name in launch.buffers])()
    return buffers["sampled_tokens"]


@lru_cache(maxsize=1024)
def natural_log(value: float) -> float:
    """ln of a number of at least 0, correctly rounded: libm's depends on the host processor."""
    return float(Decimal(value).ln(_DECIMAL)) if value > 0 else -math.inf


def sent(values: NDArray[np.generic]) -> torch.Tensor:
    """A copy on the device, without waiting for it."""
    return torch.from_numpy(values).pin_memory().cuda(non_blocking=True)


def column(draws: Sequence[Draw], name: str, kind: type[np.generic]) -> torch.Tensor:
    """One parameter of all draws, on the device."""
    return sent(np.array([getattr(draw, name) for draw in draws], kind))


def bias_of(draws: Sequence[Draw], vocab: int) -> torch.Tensor:
    """f32[N, vocab]: the logit biases, 0 elsewhere."""
    bias = np.zeros((len(draws), vocab), np.float32)
    for row, draw in zip(bias, draws, strict=True):
        for token, value in draw.logit_bias.items():
            row[token] = value
    return sent(bias)


def counts_of(histories: Sequence[NDArray[np.uint32]], vocab: int) -> torch.Tensor:
    """i32[N, vocab]: how often each token occurs in each history."""
    counts = [np.bincount(history.astype(np.int64), minlength=vocab) for history in histories]
    return sent(np.stack(counts).astype(np.int32))
