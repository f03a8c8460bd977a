"""Reads safetensors files: a JSON header and raw tensors behind it.

The format is described in github.com/huggingface/safetensors. That package's numpy side has no
bfloat16 and copies; here the bytes stay mapped.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyvosti.errors import ModelError
from pyvosti.weights import Tensor, map_file, row_bytes

READABLE = ("F32", "F16", "BF16")


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Tensors by name. Raises ModelError for a damaged file and unreadable types."""
    data = map_file(path)
    length = int.from_bytes(data[:8].tobytes(), "little")
    start = 8 + length
    if len(data) < 8 or start > len(data):
        raise ModelError(f"{path} is truncated or not a safetensors file; download it again")
    try:
        header = json.loads(data[8:start].tobytes())
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        fields = {
            name: (
                str(entry["dtype"]),
                tuple(int(size) for size in entry["shape"]),
                int(entry["data_offsets"][0]),
                int(entry["data_offsets"][1]),
            )
            for name, entry in entries.items()
        }
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
    ):
        raise ModelError(f"{path} is damaged: its header cannot be read") from None
    tensors: dict[str, Tensor] = {}
    for name, (dtype, shape, begin, end) in fields.items():
        if dtype not in READABLE:
            raise ModelError(
                f"tensor {name} in {path} has type {dtype}; readable: {', '.join(READABLE)}"
            )
        rows = 1
        for size in shape[:-1]:
            rows *= size
        size = rows * row_bytes(dtype, shape[-1], name) if shape else 0
        if not 0 <= begin <= end <= len(data) - start or end - begin != size:
            raise ModelError(
                f"{path} is truncated or damaged: tensor {name} needs {size} bytes at {begin} "
                f"to {end} of {len(data) - start}; download it again"
            )
        tensors[name] = Tensor(dtype, shape, data[start + begin : start + end])
    return tensors
