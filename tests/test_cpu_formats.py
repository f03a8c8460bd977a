"""The CPU backend reads weights exactly as gguf-py's `dequantize` does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pyvosti import _core

gguf = pytest.importorskip("gguf")

FORMATS = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K"]


def random_tensor(dtype: str, rows: int, columns: int, seed: int) -> NDArray[np.uint8]:
    """Any bytes, but finite scales: NaNs have no one pattern to compare."""
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[dtype]]
    random = np.random.default_rng(seed)
    raw = random.integers(0, 256, (rows * columns // elements, size), np.uint8)
    halves = {"F16": [0], "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q4_K": [0, 2], "Q6_K": [208]}
    for at in halves.get(dtype, []):
        raw[:, at + 1] &= 0xBF  # clears the highest exponent bit: below 2, subnormals included
    if dtype in ("F32", "BF16"):
        raw[:, -1] &= 0xBF
    return raw.reshape(-1)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("isa", _core.cpu_isas())
def test_values_are_those_of_gguf(dtype: str, isa: str) -> None:
    rows, columns = 37, 768
    raw = random_tensor(dtype, rows, columns, 1)
    got = _core.dequantize((dtype, (rows, columns), raw), isa)
    kind = gguf.GGMLQuantizationType[dtype]
    view = raw.view({"F32": np.float32, "F16": np.float16}.get(dtype, np.uint8))
    want = gguf.dequantize(view.reshape(rows, -1), kind).astype(np.float32)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.view(np.uint32), want.reshape(got.shape).view(np.uint32))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (("Q5_0", (1, 32), np.zeros(22, np.uint8)), "not one of"),
        (("Q4_1", (1, 40), np.zeros(25, np.uint8)), "blocks of 32"),
        (("F32", (2, 3), np.zeros(23, np.uint8)), "bytes"),
        (("F32", (0, 3), np.zeros(0, np.uint8)), "no elements"),
        (("F32", (1, 2, 3), np.zeros(24, np.uint8)), "one or two"),
        (("F32", (2**62,), np.zeros(24, np.uint8)), "24 bytes were given"),
    ],
)
def test_bad_tensors_are_refused(tensor: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.dequantize(tensor)
