"""Seeded sampling on the GPU: rows of the runner's logits, one draw each, by our kernels.

Histories become integer counts (a scatter of ones); every float is computed by `adjust` and
`sample`. A draw is a function of its row, its parameters and its history.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from pyvosti.cuda_launch import BoundKernel
from pyvosti.triton_kernels.launches import sampler_launches
from pyvosti.triton_kernels.schedule import Schedule


@dataclass
class Draw:
    """One row to sample. `position` is the output position, `seat` where the token is kept."""

    row: int
    seat: int
    seed: int
    sample_index: int
    position: int
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    prompt: NDArray[np.uint32] | Sequence[int] = ()
    output: NDArray[np.uint32] | Sequence[int] = ()

    @property
    def penalised(self) -> bool:
        """Whether the history changes the logits."""
        penalties = (self.repetition_penalty - 1, self.presence_penalty, self.frequency_penalty)
        return any(penalties)


def draw_tokens(
    schedule: Schedule, logits: torch.Tensor, last_tokens: torch.Tensor, draws: Sequence[Draw]
) -> torch.Tensor:
    """i32[N] tokens on the device; each also becomes its seat's last token.

    `logits`: f32[rows, vocab], of which each draw names one row.
    """
    vocab = schedule.shape.vocab
    biased = any(draw.logit_bias for draw in draws)
    penalised = any(draw.penalised for draw in draws)
    buffers = {
        "logits": logits,
        "last_tokens": last_tokens,
        "adjusted": torch.empty(len(draws), vocab, device="cuda"),
        "sampled_tokens": torch.empty(len(draws), dtype=torch.int32, device="cuda"),
        "sample_rows": column(draws, "row", torch.int32),
        "sample_seats": column(draws, "seat", torch.int32),
        "sample_indices": column(draws, "sample_index", torch.int32),
        "output_positions": column(draws, "position", torch.int32),
        "top_k": column(draws, "top_k", torch.int32),
        "temperature": column(draws, "temperature", torch.float32),
        "top_p": column(draws, "top_p", torch.float32),
        "repetition": column(draws, "repetition_penalty", torch.float32),
        "presence": column(draws, "presence_penalty", torch.float32),
        "frequency": column(draws, "frequency_penalty", torch.float32),
        "seeds": torch.from_numpy(
            np.array([draw.seed for draw in draws], np.uint64).view(np.int64)
        ).cuda(),
        "log_min_p": torch.tensor(
            [math.log(draw.min_p) if draw.min_p > 0 else -math.inf for draw in draws]
        ).cuda(),
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


def column(draws: Sequence[Draw], name: str, kind: torch.dtype) -> torch.Tensor:
    """One parameter of all draws, on the device."""
    return torch.tensor([getattr(draw, name) for draw in draws], dtype=kind).cuda()


def bias_of(draws: Sequence[Draw], vocab: int) -> torch.Tensor:
    """f32[N, vocab]: the logit biases, 0 elsewhere."""
    bias = torch.zeros(len(draws), vocab)
    for row, draw in zip(bias, draws, strict=True):
        for token, value in draw.logit_bias.items():
            row[token] = value
    return bias.cuda()


def counts_of(histories: Sequence[NDArray[np.uint32] | Sequence[int]], vocab: int) -> torch.Tensor:
    """i32[N, vocab]: how often each token occurs in each history."""
    counts = [np.bincount(np.asarray(h, np.int64), minlength=vocab) for h in histories]
    return torch.from_numpy(np.stack(counts).astype(np.int32)).cuda()
