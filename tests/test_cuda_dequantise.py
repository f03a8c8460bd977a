"""Block formats expanded as the gguf package does, bit for bit, on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")

from pyvosti.cuda_dequantise import EXPAND, to_device  # noqa: E402
from pyvosti.weights import BLOCKS, Tensor  # noqa: E402


@pytest.mark.parametrize("name", sorted(EXPAND))
def test_expands_as_gguf_does(name: str) -> None:
    elements, size = BLOCKS[name]
    raw = np.random.default_rng(2).integers(0, 256, (12, size), dtype=np.uint8)
    scale = np.frombuffer(np.float16(0.037).tobytes(), np.uint8)
    for first in {"Q6_K": [208], "Q4_1": [0, 2], "Q4_K": [0, 2]}.get(name, [0]):
        raw[:, first : first + 2] = scale
    kind = getattr(gguf.GGMLQuantizationType, name)
    want = gguf.quants.dequantize(raw.reshape(6, -1), kind)
    got = to_device(Tensor(name, (6, 2 * elements), raw.reshape(-1)), "cpu").numpy()
    assert np.array_equal(want, got)


@pytest.mark.parametrize("name,kind", [("F32", np.float32), ("F16", np.float16)])
def test_plain_floats_are_copied(name: str, kind: type) -> None:
    values = np.arange(12, dtype=kind).reshape(3, 4)
    got = to_device(Tensor(name, (3, 4), values.view(np.uint8).reshape(-1)), "cpu")
    assert np.array_equal(got.numpy(), values)
