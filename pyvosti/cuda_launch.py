"""Launching compiled kernels: an artifact, a grid and device addresses, resolved once."""

from collections.abc import Sequence
from typing import Any

import torch

from pyvosti.certified import check_admitted
from pyvosti.triton_kernels.compile import Spec, check_pointers, compiled


def device_arch() -> int:
    """10 * major + minor of the current CUDA device, e.g. 90."""
    major, minor = torch.cuda.get_device_capability()
    return int(10 * major + minor)


class BoundKernel:
    """One kernel with its grid and arguments; calling it enqueues it on the current stream.

    The tensors must stay alive and in place: only their addresses are kept. Raises ConfigError
    for a kernel that was not admitted by `certified.require`.
    """

    def __init__(self, spec: Spec, grid: tuple[int, ...], tensors: Sequence[torch.Tensor]):
        self.spec = spec
        self.tensors = list(tensors)
        addresses = [tensor.data_ptr() for tensor in tensors]
        check_pointers(spec.kernel, addresses)
        check_admitted(spec, device_arch())
        self._kernel = compiled(spec, device_arch())
        self._run = self._kernel.run
        self._grid = (*grid, 1, 1)[:3]
        self._arguments = (*addresses, *(value for _, value in spec.constants))

    def __call__(self, stream: int | None = None, grid: tuple[int, ...] | None = None) -> None:
        """Enqueues on `stream` (a CUDA stream handle), by default PyTorch's current one.

        `grid` replaces the one given when the kernel was bound.
        """
        if stream is None:
            stream = torch.cuda.current_stream().cuda_stream
        kernel: Any = self._kernel
        grid = self._grid if grid is None else (*grid, 1, 1)[:3]
        self._run(
            *grid, stream, kernel.function, kernel.packed_metadata, None, None, None,
            *self._arguments,
        )  # fmt: skip
