"""A step's results on their way from the GPU to the host."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pyvosti.runner import Result


class Pending:
    """Tokens and logits that are being copied, on the current stream, into pinned memory."""

    def __init__(self, tokens: int, vocab: int) -> None:
        self._tokens = np.zeros(tokens, np.uint32)
        self._taken: list[tuple[NDArray[np.int64], torch.Tensor, NDArray[np.int64]]] = []
        self._logits: list[torch.Tensor] = []
        self._vocab = vocab
        self._done = torch.cuda.Event()

    def take(
        self, places: NDArray[np.int64], source: torch.Tensor, rows: NDArray[np.int64]
    ) -> None:
        """Result token `places[i]` is entry `rows[i]` of `source`, i32 on the device."""
        if len(rows):
            self._taken.append((places, on_host(source[: rows.max() + 1]), rows))

    def keep(self, logits: torch.Tensor, rows: NDArray[np.int64]) -> None:
        """The result has these rows of `logits` next: f32[any, vocab] on the device."""
        if len(rows) == 0:
            return
        if rows[-1] != len(rows) - 1:
            logits = logits[torch.from_numpy(rows).pin_memory().cuda(non_blocking=True)]
        self._logits.append(on_host(logits[: len(rows)]))

    def close(self) -> None:
        """Nothing is added any more."""
        self._done.record()

    def wait(self) -> Result:
        """The results, once the GPU has sent them."""
        self._done.synchronize()
        for places, source, rows in self._taken:
            self._tokens[places] = source.numpy()[rows]
        parts = [part.numpy() for part in self._logits]
        logits = np.concatenate(parts) if parts else np.empty((0, self._vocab), np.float32)
        return Result(self._tokens, logits)


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in pinned memory, complete when the current stream has come here."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    return host
