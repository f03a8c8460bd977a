"""The launch sequence of a step: which kernel runs on which buffers and weights, as data.

`body_launches` lists one forward pass up to the final norm, `head_launches` the logits and the
most likely tokens. Nothing but these entries runs between a step's inputs and its logits (a
gather of the wanted rows aside). Buffers are named; two residual buffers alternate, so that no
kernel reads what it writes.
"""

from dataclasses import dataclass

from .compile import Spec
from .schedule import TRITON_TYPES, LinearClass, Schedule, Shape


@dataclass(frozen=True)
class Launch:
    """One kernel launch. A grid entry is a number or a name that the step gives a value."""

    name: str
    spec: Spec
    grid: tuple[int | str, ...]
    buffers: tuple[str, ...]


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << (n - 1).bit_length()


def element(shape: Shape) -> str:
    """Triton's name of the type that activations and weights have."""
    return TRITON_TYPES[shape.dtype]


def make_spec(kernel: str, pointers: list[str], warps: int, stages: int, **constants) -> Spec:
    """A Spec with its constants in the order given."""
    return Spec(kernel, tuple(pointers), tuple(constants.items()), warps, stages)


def linear_launch(
    schedule: Schedule, kind: LinearClass, rows: int, name: str, x: str, w: str, bias: str, out: str
) -> Launch:
    """A matmul with the member for `rows` rows; sums in f32 when it is split, and for logits."""
    tile, t = kind.member(rows), element(schedule.shape)
    kept = "fp32" if kind.splits > 1 or out == "logits" else t
    spec = make_spec(
        "linear", ["i32", t, t, t, kept], tile.warps, tile.stages,
        N=kind.n, K=kind.k, SPLITS=kind.splits, HAS_BIAS=bool(bias), GROUP_N=tile.group_n,
        BLOCK_M=tile.block_m, BLOCK_N=tile.block_n, BLOCK_K=tile.block_k,
        PRECISION=schedule.precision,
    )  # fmt: skip
    groups = -(-kind.n // (tile.block_n * tile.group_n)) * kind.splits
    rows_name = "logits_count" if out == "logits" else "row_count"
    tiles = f"{'logits' if out == 'logits' else 'rows'}/{tile.block_m}"
    return Launch(name, spec, (tile.group_n, tiles, groups), (rows_name, x, w, bias or x, out))


def norm_element(shape: Shape) -> str:
    """Triton's name of the type that norms' weights have."""
    return "fp32" if shape.sandwich_norms else element(shape)


def norm_launch(
    schedule: Schedule, name: str, step: int, delta: str, delta_weight: str = ""
) -> Launch:
    """RMSNorm `step` of the pass: reads residual buffer step - 1 (mod 2), writes the other.

    `delta` names the addend, "o_sums" or "down_sums", or is empty before the first layer;
    `delta_weight` the norm of the addend, which only some models have.
    """
    shape, t = schedule.shape, element(schedule.shape)
    splits = {"": 0, "o_sums": schedule.o.splits, "down_sums": schedule.down.splits}[delta]
    weight, addend = norm_element(shape), "fp32" if splits > 1 else t
    before, after = f"residual_{(step + 1) % 2}", f"residual_{step % 2}"
    constants = dict(
        HIDDEN=shape.hidden, BLOCK=power_of_two(shape.hidden), SPLITS=splits, EPS=shape.rms_eps
    )
    if shape.sandwich_norms and delta:
        spec = make_spec(
            "sandwich_norm", ["i32", addend, weight, t, weight, t, t], schedule.norm_warps, 1,
            **constants,
        )  # fmt: skip
        buffers = ("row_count", delta, delta_weight, before, name, after, "normed")
        return Launch(name, spec, ("rows",), buffers)
    spec = make_spec(
        "rms_norm", ["i32", addend, t, weight, t, t], schedule.norm_warps, 1, **constants
    )
    return Launch(
        name, spec, ("rows",), ("row_count", delta or before, before, name, after, "normed")
    )


def rope_launch(schedule: Schedule, layer: int) -> Launch:
    """RoPE, QK norm and the KV write of one layer."""
    shape, t = schedule.shape, element(schedule.shape)
    splits, group = schedule.qkv.splits, shape.heads // shape.kv_heads
    spec = make_spec(
        "rope_kv_write",
        ["i32", "fp32" if splits > 1 else t, "fp32", "fp32", "i32", "i32",
         *[norm_element(shape)] * 2, t, t, t],
        schedule.rope_warps, 1,
        HEADS=shape.heads, KV_HEADS=shape.kv_heads, HALF=shape.head_dim // 2, GROUP=group,
        GROUP_BLOCK=power_of_two(group), PAGE=shape.page, SPLITS=splits, QK_NORM=shape.qk_norm,
        EPS=shape.rms_eps,
    )  # fmt: skip
    norms = [f"layers.{layer}.{n}_norm" if shape.qk_norm else "normed" for n in "qk"]
    rope = shape.rope(layer)
    buffers = (
        "row_count", "qkv", f"cos.{rope}", f"sin.{rope}", "positions",
        f"slots.{shape.layer_groups[layer]}",
        *norms, "q", f"k_cache.{layer}", f"v_cache.{layer}",
    )  # fmt: skip
    return Launch(f"layers.{layer}.rope_kv_write", spec, ("rows", shape.kv_heads), buffers)


def attention_launches(schedule: Schedule, layer: int, rows: int, whole: bool) -> list[Launch]:
    """The layer's attention: split and combine, and with `whole` also the one-program walk."""
    shape, kind, t = schedule.shape, schedule.attention, element(schedule.shape)
    group = shape.layer_groups[layer]
    window, max_splits = shape.windows[group], -(-shape.max_model_len // kind.split)
    tile = kind.member(rows)
    common = dict(
        SCALE=kind.scale, KV_HEADS=shape.kv_heads, GROUP=shape.heads // shape.kv_heads,
        HEAD_DIM=shape.head_dim, PAGE=shape.page, MAX_PAGES=shape.max_pages, SPLIT=kind.split,
    )  # fmt: skip
    cache = ("q", f"k_cache.{layer}", f"v_cache.{layer}", f"tables.{group}", "positions")
    split_states = ("split_m", "split_l", "split_acc")
    tiled = dict(BLOCK_N=kind.block_n, PRECISION=schedule.precision)
    programs = min(tile.programs, max_splits)
    launches = [
        Launch(
            f"layers.{layer}.attention_splits",
            make_spec(
                "attention_splits", [t, t, t, *["i32"] * 6, *["fp32"] * 3], tile.warps, tile.stages,
                **common, MAX_SPLITS=max_splits, STRIDE=programs, WINDOW=window,
                BLOCK_M=tile.block_m, **tiled,
            ),
            ("tiles", shape.kv_heads, programs),
            (*cache, "tile_rows", "tile_counts", "tile_seats", "states", *split_states),
        ),
        Launch(
            f"layers.{layer}.attention_combine",
            make_spec(
                "attention_combine", ["i32", "i32", "i32", *["fp32"] * 3, t], 1, 1,
                HEADS=shape.heads, HEAD_DIM=shape.head_dim, SPLIT=kind.split, MAX_SPLITS=max_splits,
                WINDOW=window, BLOCK_H=2, UNROLL=4,
            ),
            ("split_rows", -(-shape.heads // 2)),
            ("row_count", "positions", "states", *split_states, "attended"),
        ),
    ]  # fmt: skip
    if whole:
        walk = kind.whole
        spec = make_spec(
            "attention_whole", [t, t, t, *["i32"] * 5, t], walk.warps, walk.stages,
            **common, WINDOW=window, BLOCK_M=walk.block_m, **tiled,
        )  # fmt: skip
        grid = ("whole_tiles", shape.kv_heads)
        buffers = (*cache, "whole_tile_rows", "whole_tile_counts", "whole_tile_seats", "attended")
        launches.append(Launch(f"layers.{layer}.attention_whole", spec, grid, buffers))
    return launches


def gate_up_launch(schedule: Schedule, layer: int, rows: int) -> Launch:
    """Gate, up projection and SwiGLU of one layer."""
    kind, t = schedule.gate_up, element(schedule.shape)
    tile = kind.member(rows)
    spec = make_spec(
        "gate_up", ["i32", t, t, t], tile.warps, tile.stages, N=kind.n, K=kind.k,
        GROUP_N=tile.group_n, BLOCK_M=tile.block_m, BLOCK_N=tile.block_n, BLOCK_K=tile.block_k,
        PRECISION=schedule.precision, GELU=schedule.shape.gelu,
    )  # fmt: skip
    groups = -(-kind.n // (tile.block_n * tile.group_n))
    buffers = ("row_count", "normed", f"layers.{layer}.gate_up", "activated")
    return Launch(
        f"layers.{layer}.gate_up", spec, (tile.group_n, f"rows/{tile.block_m}", groups), buffers
    )


def body_launches(schedule: Schedule, rows: int, whole: bool) -> list[Launch]:
    """One forward pass with the members that serve `rows` rows, up to the final norm."""
    shape, t = schedule.shape, element(schedule.shape)
    spec = make_spec(
        "embedding", ["i32"] * 4 + [t, t], 4, 1, HIDDEN=shape.hidden,
        BLOCK=power_of_two(shape.hidden), SCALE=shape.embed_scale,
    )  # fmt: skip
    inputs = ("row_count", "tokens", "row_seats", "last_tokens", "embed", "residual_0")
    launches = [Launch("embedding", spec, ("rows",), inputs)]
    step, delta, delta_weight = 1, "", ""
    for layer in range(shape.layers):
        at = f"layers.{layer}."
        bias = at + "qkv_bias" if shape.qkv_bias else ""
        launches.append(norm_launch(schedule, at + "attn_norm", step, delta, delta_weight))
        step += bool(delta)
        launches += [
            linear_launch(
                schedule, schedule.qkv, rows, at + "qkv", "normed", at + "qkv", bias, "qkv"
            ),
            rope_launch(schedule, layer),
            *attention_launches(schedule, layer, rows, whole),
            linear_launch(schedule, schedule.o, rows, at + "o", "attended", at + "o", "", "o_sums"),
            norm_launch(schedule, at + "ffn_norm", step, "o_sums", at + "attn_out_norm"),
            gate_up_launch(schedule, layer, rows),
            linear_launch(
                schedule, schedule.down, rows, at + "down", "activated", at + "down", "",
                "down_sums",
            ),
        ]  # fmt: skip
        step, delta, delta_weight = step + 1, "down_sums", at + "ffn_out_norm"
    launches.append(norm_launch(schedule, "norm", step, delta, delta_weight))
    return launches


def head_launches(schedule: Schedule, rows: int) -> list[Launch]:
    """Logits of up to `rows` gathered rows, and each row's most likely token."""
    vocab, hidden, t = schedule.shape.vocab, schedule.shape.hidden, element(schedule.shape)
    gather = make_spec(
        "gather_rows", ["i32", "i32", t, t], 4, 1, HIDDEN=hidden, BLOCK=power_of_two(hidden)
    )
    spec = make_spec(
        "argmax", ["i32", "fp32", "i32", "i32", "i32"], schedule.vocab_warps, 1, VOCAB=vocab,
        BLOCK=schedule.vocab_block,
    )  # fmt: skip
    argmax = ("logits_count", "logits", "logits_seats", "greedy_tokens", "last_tokens")
    return [
        Launch(
            "gather_rows", gather, ("logits",), ("logits_count", "logits_rows", "normed", "head_in")
        ),
        linear_launch(schedule, schedule.head, rows, "head", "head_in", "head", "", "logits"),
        Launch("argmax", spec, ("logits",), argmax),
    ]


def sampler_launches(schedule: Schedule, has_bias: bool, has_penalties: bool) -> list[Launch]:
    """Seeded sampling of N rows of the logits."""
    vocab, block = schedule.shape.vocab, schedule.vocab_block
    adjust = make_spec(
        "adjust", ["fp32", "i32", "fp32", "i32", "i32", *["fp32"] * 5], 4, 1, VOCAB=vocab,
        BLOCK=1024, HAS_BIAS=has_bias, HAS_PENALTIES=has_penalties,
    )  # fmt: skip
    draw = make_spec(
        "sample", ["fp32", "i64", "i32", "i32", "fp32", "i32", "fp32", "fp32", "i32", "i32", "i32"],
        schedule.vocab_warps, 1, VOCAB=vocab, BLOCK=block,
    )  # fmt: skip
    inputs = (
        "logits", "sample_rows", "bias", "prompt_counts", "output_counts", "temperature",
        "repetition_penalty", "presence_penalty", "frequency_penalty", "adjusted",
    )  # fmt: skip
    params = (
        "adjusted", "seeds", "sample_index", "position", "temperature", "top_k", "top_p",
        "log_min_p", "sample_seats", "sampled_tokens", "last_tokens",
    )  # fmt: skip
    return [
        Launch("adjust", adjust, ("samples", -(-vocab // 1024)), inputs),
        Launch("sample", draw, ("samples",), params),
    ]


def log_softmax_launch(schedule: Schedule) -> Launch:
    """Log-probabilities of the rows of the logits."""
    spec = make_spec(
        "log_softmax", ["fp32", "fp32"], schedule.vocab_warps, 1, VOCAB=schedule.shape.vocab,
        BLOCK=schedule.vocab_block,
    )  # fmt: skip
    return Launch("log_softmax", spec, ("logits",), ("logits", "logprobs"))


ROW_COUNTS = (1, 2, 4, 8, *range(16, 257, 16))
"""Padded row counts of the steps that run as CUDA graphs."""


def all_specs(schedule: Schedule) -> list[Spec]:
    """Every specialisation that can run under a schedule, each once, in order of first use."""
    launches: list[Launch] = []
    for rows in ROW_COUNTS:
        launches += body_launches(schedule, rows, False) + head_launches(schedule, rows)
    launches += body_launches(schedule, ROW_COUNTS[-1] + 1, True)
    for has_bias in (False, True):
        for has_penalties in (False, True):
            launches += sampler_launches(schedule, has_bias, has_penalties)
    launches.append(log_softmax_launch(schedule))
    return list(dict.fromkeys(launch.spec for launch in launches))
