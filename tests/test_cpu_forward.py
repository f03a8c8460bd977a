"""The CPU forward pass against a float64 one in numpy, for each family."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyvosti import _core

Floats = NDArray[np.float64]
BLOCK = 16

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama3": {"rope_scaling": LLAMA3, "tie_embeddings": False},
    "mistral": {"window": 50},
    "qwen2": {"bias": True, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "qwen3": {"qk_norm": True, "head_dim": 48},
}


def make_model(family: str, seed: int = 0) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """A random model in f32; `config` has keys that only this file knows: window, bias, rope_*."""
    options = {"window": None, "bias": False, "qk_norm": False, "head_dim": 16}
    options |= {"rope_scaling": None, "tie_embeddings": True} | FAMILIES[family]
    config = dict(n_layers=2, hidden=64, n_heads=4, n_kv_heads=2, ffn=160, vocab=97) | options
    config |= dict(rms_eps=1e-5, rope_theta=10_000.0, layer_groups=[0, 0])
    config["group_windows"] = [config["window"]]
    random = np.random.default_rng(seed)
    q, kv = 4 * config["head_dim"], 2 * config["head_dim"]
    shapes: dict[str, tuple[int, ...]] = {"embed": (97, 64), "norm": (64,)}
    if not config["tie_embeddings"]:
        shapes["head"] = (97, 64)
    for i in range(2):
        layer = {"attn_norm": (64,), "q": (q, 64), "k": (kv, 64), "v": (kv, 64), "o": (64, q)}
        layer |= {"ffn_norm": (64,), "gate": (160, 64), "up": (160, 64), "down": (64, 160)}
        if config["bias"]:
            layer |= {"q_bias": (q,), "k_bias": (kv,), "v_bias": (kv,)}
        if config["qk_norm"]:
            layer |= {"q_norm": (config["head_dim"],), "k_norm": (config["head_dim"],)}
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    tensors = {
        name: (random.standard_normal(shape) * (0.3 if len(shape) > 1 else 1.0)).astype(np.float32)
        for name, shape in shapes.items()
    }
    return config, tensors


def core_model(config: dict[str, Any], tensors: dict[str, Any], **more: Any) -> _core.CpuModel:
    raw = {name: ("F32", t.shape, t.reshape(-1).view(np.uint8)) for name, t in tensors.items()}
    own = ("window", "bias", "rope_theta", "rope_scaling")
    rope = {"theta": config["rope_theta"], "scaling": config["rope_scaling"]}
    config = {key: config[key] for key in config if key not in own} | {
        "ropes": [rope], "layer_ropes": [0] * config["n_layers"], "sandwich_norms": False,
        "gelu": False, "attention_scale": None, "embed_scale": 1.0,
    }  # fmt: skip
    arguments = {"num_slots": [64 * BLOCK], "block_size": BLOCK, "threads": 2} | more
    return _core.CpuModel(config, raw, **arguments)


def forward(
    model: _core.CpuModel, tokens: list[int], start: int, pages: NDArray[np.uint32]
) -> NDArray[np.float32]:
    """Logits of all rows of one sequence."""
    positions = np.arange(start, start + len(tokens), dtype=np.uint32)
    slots = pages[positions // BLOCK] * BLOCK + positions % BLOCK
    return model.forward(
        np.array(tokens, np.uint32),
        positions,
        [slots.astype(np.uint32)],
        np.array([0, len(tokens)], np.uint32),
        np.array([start + len(tokens)], np.uint32),
        np.array([0], np.uint32),
        [pages[None].copy()],
        np.arange(len(tokens), dtype=np.uint32),
    )


def norm(x: Floats, weight: Floats, eps: float) -> Floats:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def frequencies(config: dict[str, Any]) -> Floats:
    dim, scaling = config["head_dim"], config["rope_scaling"]
    inverse = config["rope_theta"] ** (-np.arange(0, dim, 2) / dim)
    if scaling is None:
        return inverse
    if scaling["rope_type"] == "linear":
        return inverse / scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * inverse / (2 * np.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return inverse * smooth + inverse / scaling["factor"] * (1 - smooth)


def rotate(x: Floats, angles: Floats) -> Floats:
    """[rows, heads, head_dim] by [rows, head_dim / 2]."""
    first, second = np.split(x, 2, axis=-1)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def reference(config: dict[str, Any], tensors: dict[str, Any], tokens: list[int]) -> Floats:
    w = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    rows, dim, eps = len(tokens), config["head_dim"], config["rms_eps"]
    positions = np.arange(rows)
    # HF, too, keeps frequencies in f32 and multiplies them with the position in f32.
    single = positions[:, None].astype(np.float32) * frequencies(config).astype(np.float32)
    angles = single.astype(np.float64)
    hidden = positions[:, None] < positions[None]
    if config["window"] is not None:
        hidden |= positions[None] <= positions[:, None] - config["window"]
    x = w["embed"][tokens]
    for i in range(config["n_layers"]):
        layer = {n.split(".", 2)[2]: t for n, t in w.items() if n.startswith(f"layers.{i}.")}
        h = norm(x, layer["attn_norm"], eps)
        q, k, v = (
            (h @ layer[n].T + layer.get(f"{n}_bias", 0.0)).reshape(rows, -1, dim) for n in "qkv"
        )
        if config["qk_norm"]:
            q, k = norm(q, layer["q_norm"], eps), norm(k, layer["k_norm"], eps)
        q, k = rotate(q, angles), rotate(k, angles)
        k, v = np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(dim)
        scores = np.where(hidden, -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", weights, v).reshape(rows, -1) @ layer["o"].T
        h = norm(x, layer["ffn_norm"], eps)
        gate = h @ layer["gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ layer["up"].T)) @ layer["down"].T
    return norm(x, w["norm"], eps) @ w.get("head", w["embed"]).T


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_close_to_float64(family: str) -> None:
    config, tensors = make_model(family)
    tokens = np.random.default_rng(1).integers(0, 97, 600).tolist()
    pages = np.random.default_rng(2).permutation(64).astype(np.uint32)
    got = forward(core_model(config, tensors), tokens, 0, pages)
    want = reference(config, tensors, tokens)
    error = np.abs(got - want).max() / np.abs(want).max()
    assert error < 2e-5, f"{family}: relative error {error}"


@pytest.mark.parametrize("family", FAMILIES)
def test_decode_has_the_bits_of_prefill(family: str) -> None:
    config, tensors = make_model(family)
    tokens = np.random.default_rng(3).integers(0, 97, 300).tolist()
    pages = np.arange(64, dtype=np.uint32)
    whole = forward(core_model(config, tensors), tokens, 0, pages)
    for isa in _core.cpu_isas():
        model = core_model(config, tensors, threads=1, isa=isa)
        for slot in range(64 * BLOCK):
            model.fill_slot(0, slot, float("nan"))
        steps = [forward(model, tokens[:250], 0, pages[::-1].copy())]
        steps += [
            forward(model, [t], 250 + i, pages[::-1].copy()) for i, t in enumerate(tokens[250:])
        ]
        got = np.concatenate(steps)
        np.testing.assert_array_equal(got.view(np.uint32), whole.view(np.uint32), err_msg=isa)


def test_bad_models_are_refused() -> None:
    config, tensors = make_model("llama")

    def refused(message: str, change: dict[str, Any], without: str = "", **more: Any) -> None:
        kept = {name: tensor for name, tensor in tensors.items() if name != without}
        with pytest.raises(ValueError, match=message):
            core_model(config | change, kept, **more)

    refused("n_kv_heads", {"n_kv_heads": 3})
    refused("config\\['n_layers'\\]|n_layers", {"n_layers": -1})
    refused("layers.1.up is missing", {}, without="layers.1.up")
    refused("shape", {"ffn": 128})
    refused("not used", {"n_layers": 1, "layer_groups": [0]})
    refused("yarn", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}})
    refused("threads", {}, threads=0)
    refused("avx9", {}, isa="avx9")
    refused("multiples of block_size", {}, num_slots=[24])
    refused("one entry per layer group", {}, num_slots=[16, 16])


def test_a_refused_step_writes_nothing() -> None:
    config, tensors = make_model("llama")
    model = core_model(config, tensors)
    pages = np.arange(64, dtype=np.uint32)
    first = forward(model, [1, 2, 3], 0, pages)
    with pytest.raises(ValueError, match="token 97"):
        forward(model, [1, 97], 0, pages)
    with pytest.raises(ValueError, match="block 64"):
        forward(model, [5, 6], 0, pages + 64)
    forward(model, [4], 3, pages)
    again = forward(model, [3], 2, pages)
    np.testing.assert_array_equal(again[0].view(np.uint32), first[2].view(np.uint32))
