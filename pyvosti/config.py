"""The model's shape: what config.json or GGUF metadata says, in one form for every backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyvosti.errors import ModelError
from pyvosti.gemma3 import gemma3_constants, gemma3_text

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Gemma3ForCausalLM": "gemma3",
    "Gemma3ForConditionalGeneration": "gemma3",
}
ROPE_SCALINGS = ("default", "linear", "llama3")
MAX_LAYERS = 4096


class Rope(NamedTuple):
    """One kind of rotary embedding."""

    theta: float
    scaling: dict[str, Any] | None
    """As in config.json, with "rope_type" linear or llama3; None: plain RoPE."""


@dataclass(frozen=True)
class ModelConfig:
    """Shape and constants of a decoder of the Llama kind."""

    architecture: str
    """One of the values of ARCHITECTURES."""
    n_layers: int
    hidden: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    rms_eps: float
    rope_theta: float
    rope_scaling: dict[str, Any] | None
    """As in config.json, with "rope_type" linear or llama3; None: plain RoPE."""
    tie_embeddings: bool
    context: int
    """The longest sequence the model was made for, in tokens."""
    windows: tuple[int | None, ...]
    """Per layer: how many positions a row sees, its own included; None: all."""
    window_rope_theta: float | None = None
    """RoPE's base in layers with a window, unscaled; None: the same as elsewhere."""
    attention_scale: float | None = None
    """What scores are multiplied by; None: 1 / sqrt(head_dim)."""
    embed_scale: float = 1.0
    """What the token's embedding is multiplied by."""

    def __post_init__(self) -> None:
        for name in ("n_layers", "hidden", "n_heads", "n_kv_heads", "head_dim", "ffn", "vocab",
                     "context"):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value < 2**31:
                raise ModelError(f"the model's configuration has {name} = {value!r}")
        if len(self.windows) != self.n_layers:
            raise ModelError(f"{len(self.windows)} windows are given for {self.n_layers} layers")
        if self.n_heads % self.n_kv_heads:
            raise ModelError(f"{self.n_heads} heads cannot share {self.n_kv_heads} KV heads evenly")
        if self.head_dim % 2:
            raise ModelError(f"RoPE needs an even head size, not {self.head_dim}")
        if not 0 < self.rms_eps < 1 or not 0 < self.rope_theta < 1e12:
            raise ModelError(
                f"the model's configuration has rms_eps = {self.rms_eps}, "
                f"rope_theta = {self.rope_theta}"
            )

    @property
    def qk_norm(self) -> bool:
        """Whether each head of Q and K is normalised before RoPE."""
        return self.architecture in ("qwen3", "gemma3")

    @property
    def sandwich_norms(self) -> bool:
        """Whether what attention and feed-forward add is normalised, too."""
        return self.architecture == "gemma3"

    @property
    def activation(self) -> str:
        """Of the feed-forward gate: "silu", or "gelu" (its tanh form)."""
        return "gelu" if self.architecture == "gemma3" else "silu"

    @property
    def ropes(self) -> list[Rope]:
        """The kinds of rotary embedding; the second, if any, is that of layers with a window."""
        everywhere = [Rope(self.rope_theta, self.rope_scaling)]
        windowed = self.window_rope_theta
        return everywhere if windowed is None else [*everywhere, Rope(windowed, None)]

    @property
    def layer_ropes(self) -> list[int]:
        """The kind, an index of `ropes`, of each layer."""
        return [int(w is not None and len(self.ropes) > 1) for w in self.windows]

    @property
    def qkv_bias(self) -> bool:
        """Whether Q, K and V have biases."""
        return self.architecture == "qwen2"

    def layer_groups(self) -> tuple[list[int], list[int | None]]:
        """Layers that share block tables: the group of each layer, the window of each group.

        A window that covers the model's context hides nothing, so it counts as none.
        """
        windows = [w if w is not None and w < self.context else None for w in self.windows]
        groups = sorted(set(windows), key=lambda w: (w is not None, w or 0))
        return [groups.index(window) for window in windows], groups

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape of every weight; matrices are [outputs, inputs]."""
        q, kv = self.n_heads * self.head_dim, self.n_kv_heads * self.head_dim
        layer: dict[str, tuple[int, ...]] = {
            "attn_norm": (self.hidden,),
            "q": (q, self.hidden),
            "k": (kv, self.hidden),
            "v": (kv, self.hidden),
            "o": (self.hidden, q),
            "ffn_norm": (self.hidden,),
            "gate": (self.ffn, self.hidden),
            "up": (self.ffn, self.hidden),
            "down": (self.hidden, self.ffn),
        }
        if self.qkv_bias:
            layer |= {"q_bias": (q,), "k_bias": (kv,), "v_bias": (kv,)}
        if self.qk_norm:
            layer |= {"q_norm": (self.head_dim,), "k_norm": (self.head_dim,)}
        if self.sandwich_norms:
            layer |= {"attn_out_norm": (self.hidden,), "ffn_out_norm": (self.hidden,)}
        shapes: dict[str, tuple[int, ...]] = {"embed": (self.vocab, self.hidden)}
        for i in range(self.n_layers):
            shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
        shapes["norm"] = (self.hidden,)
        if not self.tie_embeddings:
            shapes["head"] = (self.vocab, self.hidden)
        return shapes

    def kv_bytes_per_token(self) -> int:
        """Float32 keys and values of one position in all layers."""
        return 2 * 4 * self.n_layers * self.n_kv_heads * self.head_dim


def same_window(window: int | None, n_layers: Any) -> tuple[int | None, ...]:
    """`windows` of a model whose layers all have the same one."""
    if not isinstance(n_layers, int) or not 1 <= n_layers <= MAX_LAYERS:
        raise ModelError(f"a model cannot have {n_layers!r} layers")
    return (window,) * n_layers


def config_from_hf(raw: Mapping[str, Any]) -> ModelConfig:
    """Reads the dictionary of a config.json. Raises ModelError for what would run wrongly."""
    try:
        return _config_from_hf(raw)
    except KeyError as missing:
        raise ModelError(f"config.json has no entry {missing}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as wrong:
        raise ModelError(f"config.json has an entry of the wrong type: {wrong}") from None


def _config_from_hf(raw: Mapping[str, Any]) -> ModelConfig:
    names = raw.get("architectures") or []
    architecture = next((ARCHITECTURES[name] for name in names if name in ARCHITECTURES), None)
    if architecture is None:
        raise ModelError(
            f"models of the kind {names or raw.get('model_type')} are not supported; "
            f"supported: {', '.join(ARCHITECTURES)}"
        )
    if architecture == "gemma3":
        raw = gemma3_text(raw)
    _refuse_unsupported(raw)
    n_heads, hidden = int(raw["num_attention_heads"]), int(raw["hidden_size"])
    n_layers = int(raw["num_hidden_layers"])
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    special = gemma3_constants(raw, hidden) if architecture == "gemma3" else {}
    return ModelConfig(
        architecture=architecture,
        n_layers=n_layers,
        hidden=hidden,
        n_heads=n_heads,
        n_kv_heads=int(raw.get("num_key_value_heads") or n_heads),
        head_dim=int(raw.get("head_dim") or hidden // max(n_heads, 1)),
        ffn=int(raw["intermediate_size"]),
        vocab=int(raw["vocab_size"]),
        rms_eps=float(raw.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta") or raw.get("rope_theta") or 10000.0),
        rope_scaling=rope_scaling(rope),
        tie_embeddings=bool(raw.get("tie_word_embeddings", False)),
        context=int(raw.get("max_position_embeddings", 2048)),
        windows=_hf_windows(raw, architecture, n_layers),
        **special,
    )


def rope_scaling(rope: Mapping[str, Any]) -> dict[str, Any] | None:
    """The scaling as the kernels take it, or None; refuses kinds that they do not compute."""
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind not in ROPE_SCALINGS:
        raise ModelError(
            f"RoPE scaling {kind!r} is not supported; supported: {', '.join(ROPE_SCALINGS)}"
        )
    if kind == "default":
        return None
    names = ["factor"]
    if kind == "llama3":
        names += [
            "low_freq_factor",
            "high_freq_factor",
            "original_max_position_embeddings",
        ]
    missing = [name for name in names if name not in rope]
    if missing:
        raise ModelError(f"RoPE scaling {kind!r} lacks {', '.join(missing)}")
    return {"rope_type": kind} | {name: float(rope[name]) for name in names}


def _refuse_unsupported(raw: Mapping[str, Any]) -> None:
    wanted = "gelu_pytorch_tanh" if "query_pre_attn_scalar" in raw else "silu"
    if raw.get("hidden_act", "silu") != wanted:
        raise ModelError(f"the activation {raw['hidden_act']!r} is not supported, only {wanted!r}")
    for name in ("attention_bias", "mlp_bias"):
        if raw.get(name):
            raise ModelError(f"models with {name} are not supported")
    if raw.get("partial_rotary_factor", 1.0) != 1.0:
        raise ModelError("models that rotate only a part of each head are not supported")
    if raw.get("quantization_config"):
        raise ModelError(
            "quantised safetensors are not supported; use the unquantised folder or a GGUF file"
        )


def _hf_windows(raw: Mapping[str, Any], architecture: str, n: int) -> tuple[int | None, ...]:
    window = raw.get("sliding_window")
    if window is None or architecture == "llama":
        return same_window(None, n)
    kinds = raw.get("layer_types")
    if kinds is not None:
        if len(kinds) != n:
            raise ModelError(f"config.json names {len(kinds)} layer_types for {n} layers")
        sliding = [kind == "sliding_attention" for kind in kinds]
    elif architecture == "mistral":
        return same_window(int(window), n)
    else:
        first = int(raw.get("max_window_layers", n)) if raw.get("use_sliding_window") else n
        sliding = [layer >= first for layer in range(len(same_window(None, n)))]
    return tuple(int(window) if slides else None for slides in sliding)
