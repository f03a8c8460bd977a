"""What the GPU runner makes on the host: rotary tables; numpy gives nearly the same."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Context, Decimal, Inexact, localcontext
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from pyvosti._core import rotary_table  # noqa: E402
from pyvosti.config import Rope  # noqa: E402
from pyvosti.cuda_weights import each_weight, fused_weights, rotary_tables  # noqa: E402
from pyvosti.triton_kernels.schedule import Shape  # noqa: E402

SHAPE = Shape(
    layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, ffn=96, vocab=50, rms_eps=1e-5,
    qkv_bias=False, qk_norm=False, layer_groups=(0, 0), windows=(0,), page=16, max_model_len=5000,
)  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip


@pytest.mark.parametrize("scaling", [None, {"rope_type": "linear", "factor": 4.0}, LLAMA3])
def test_rotary_tables_are_those_of_transformers(scaling: dict[str, Any] | None) -> None:
    transformers = pytest.importorskip("transformers")
    parameters = {"rope_theta": 1e4, **(scaling or {"rope_type": "default"})}
    config = transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=4, head_dim=16, max_position_embeddings=5000,
        rope_parameters=parameters,
    )  # fmt: skip
    rotary = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
    expected = rotary(torch.zeros(1), torch.arange(5000)[None])
    tables = rotary_tables(SHAPE, [Rope(500.0, None), Rope(1e4, scaling)], "cpu")
    assert sorted(tables) == ["cos.0", "cos.1", "sin.0", "sin.1"]
    for name, table in zip(("cos.1", "sin.1"), expected, strict=True):
        assert tables[name].dtype == torch.float32 and tables[name].shape == (5000, 8)
        # A frequency may differ in its last bit: at position 5,000 that is 3e-4 of a turn.
        assert torch.allclose(tables[name], table[0, :, :8], atol=4e-4)
    assert not torch.equal(tables["cos.0"], tables["cos.1"])


@pytest.mark.parametrize("head_dim", [0, 7])
def test_sizes_without_a_table(head_dim: int) -> None:
    with pytest.raises(ValueError, match="head_dim must be even"):
        rotary_table(head_dim, 4, Rope(1e4, None)._asdict())


def test_angles_beyond_the_arithmetic_are_refused() -> None:
    with pytest.raises(ValueError, match="positions"):
        rotary_table(16, 2**20 + 1, Rope(1e4, None)._asdict())
    with pytest.raises(ValueError, match="factor"):
        rotary_table(16, 4, Rope(1e4, {"rope_type": "linear", "factor": 0.01})._asdict())


def test_rotary_tables_are_the_cosines_of_the_angles() -> None:
    cos, sin = rotary_table(16, 5000, Rope(1e4, None)._asdict())
    frequencies = (1e4 ** -(np.arange(0, 16, 2) / 16)).astype(np.float32)
    angles = (np.arange(5000, dtype=np.float32)[:, None] * frequencies).astype(np.float64)
    for table, exact in ((cos, np.cos(angles)), (sin, np.sin(angles))):
        assert np.abs(table - exact).max() < 2.0**-24


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("options", [{}, {"qkv_bias": True}, {"qk_norm": True}])
def test_weights_one_by_one_are_all_weights(tied: bool, options: dict[str, bool]) -> None:
    shape = replace(SHAPE, **options)

    def fetch(name: str) -> Any:
        return torch.full((2, 3), float(len(name)))

    whole = fused_weights(shape, fetch, tied, "cpu")
    single = dict(each_weight(shape, fetch, tied, "cpu"))
    assert (whole["head"] is whole["embed"]) == tied == ("head" not in single)
    assert whole.keys() == single.keys() | {"head"}
    assert all(torch.equal(whole[name], weight) for name, weight in single.items())


def test_logarithms_are_rounded_correctly() -> None:
    from pyvosti.cuda_sampler import natural_log

    for value in (0.05, 0.1, 1 / 3, 0.999, 1.0, 1e-30):
        natural_log.cache_clear()
        with localcontext(Context(prec=6, traps=[Inexact])):
            found = natural_log(value)
        exact = Decimal(value).ln(Context(prec=60))
        near = [found * (1 + k * 2.0**-52) for k in (-1, 0, 1)]
        assert min(near, key=lambda x: abs(Decimal(x) - exact)) == found
    assert natural_log(0.0) == -math.inf and np.float32(natural_log(1.0)) == 0
