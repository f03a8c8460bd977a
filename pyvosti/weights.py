"""Weights as they lie in a file: raw bytes under a name, mapped, never converted here."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyvosti.config import ModelConfig
from pyvosti.errors import ModelError

BLOCKS: dict[str, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q8_0": (32, 34),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q4_K": (256, 144),
    "Q6_K": (256, 210),
}
"""Data type -> (elements, bytes) of one block; a row is a whole number of blocks."""


class Tensor(NamedTuple):
    """One weight: its data type (a key of BLOCKS), shape [rows, columns] or [n], raw bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: NDArray[np.uint8]


def map_file(path: Path) -> NDArray[np.uint8]:
    """The file's bytes, read-only, paged in as they are touched."""
    try:
        with path.open("rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except ValueError:
        raise ModelError(f"{path} is empty: download the model again") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None


def row_bytes(dtype: str, columns: int, name: str) -> int:
    """Bytes of one row; raises ModelError when a row would split a block."""
    elements, size = BLOCKS[dtype]
    if columns % elements:
        raise ModelError(
            f"tensor {name} has rows of {columns}, but {dtype} comes in blocks of {elements}"
        )
    return columns // elements * size


def check_tensors(config: ModelConfig, tensors: Mapping[str, Tensor], source: Path) -> None:
    """Raises ModelError unless there is exactly what the configuration calls for."""
    shapes = config.tensor_shapes()
    for name, shape in shapes.items():
        tensor = tensors.get(name)
        if tensor is None:
            raise ModelError(f"{source} has no tensor {name}, which {config.architecture} needs")
        if tensor.shape != shape:
            raise ModelError(
                f"tensor {name} in {source} has shape {list(tensor.shape)}, "
                f"but the configuration says {list(shape)}"
            )
        if len(shape) == 1 and tensor.dtype not in ("F32", "F16", "BF16"):
            raise ModelError(f"tensor {name} in {source} is a vector of type {tensor.dtype}")
    unknown = sorted(tensors.keys() - shapes.keys())
    if unknown:
        raise ModelError(f"{source} has a tensor {unknown[0]} that the model would ignore")
