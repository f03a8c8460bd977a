"""The GPU kernels of a deployment as data: schedule classes and the launch sequence.

Made from the model's shape and the device kind alone; needs no GPU. What `pyvosti plan` prints is
what the runner executes.
"""

from __future__ import annotations

import hashlib
import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyvosti.config import ModelConfig
from pyvosti.errors import ConfigError
from pyvosti.limits import Limits

if TYPE_CHECKING:
    from pyvosti.triton_kernels.launches import Launch
    from pyvosti.triton_kernels.schedule import Schedule, Shape

_TABLE_LEN = 131_072
"""Positions that block tables have room for, whatever a deployment's `max_model_len` below it: so
one model has the same kernels, and the same certificates, at all of them."""
OPERATIONS = ("qkv", "o", "gate_up", "down", "head")


def kernel_shape(config: ModelConfig, limits: Limits, dtype: str = "bfloat16") -> Shape:
    """What the schedule classes depend on."""
    from pyvosti.triton_kernels.schedule import Shape

    groups, windows = config.layer_groups()
    return Shape(
        layers=config.n_layers,
        hidden=config.hidden,
        heads=config.n_heads,
        kv_heads=config.n_kv_heads,
        head_dim=config.head_dim,
        ffn=config.ffn,
        vocab=config.vocab,
        rms_eps=config.rms_eps,
        qkv_bias=config.qkv_bias,
        qk_norm=config.qk_norm,
        layer_groups=tuple(groups),
        windows=tuple(window or 0 for window in windows),
        page=limits.block_size,
        max_model_len=min(config.context, max(limits.max_model_len, _TABLE_LEN)),
        dtype=dtype,
        layer_ropes=tuple(config.layer_ropes),
        attention_scale=config.attention_scale,
        embed_scale=config.embed_scale,
        sandwich_norms=config.sandwich_norms,
        gelu=config.activation == "gelu",
    )


def kernel_schedule(config: ModelConfig, limits: Limits, arch: int, strict: bool) -> Schedule:
    """The schedule classes for sm_`arch`: 80, 90 or 100; `strict` pins one member of each.

    Raises ConfigError for a model or a device kind that the kernels do not cover.
    """
    if not find_spec("triton"):
        raise ConfigError("the GPU kernels need Triton; run: pip install 'pyvosti[analyzer]'")
    return shape_schedule(kernel_shape(config, limits), arch, strict)


def shape_schedule(shape: Shape, arch: int, strict: bool) -> Schedule:
    """The schedule classes of a shape; raises ConfigError as `kernel_schedule` does."""
    from pyvosti.triton_kernels.schedule import SHARED_MEMORY, make_schedule

    if arch not in SHARED_MEMORY:
        raise ConfigError(f"the GPU kernels know sm_80, sm_90 and sm_100, not sm_{arch}")
    try:
        return make_schedule(shape, arch, strict)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def schedule_id(schedule: Schedule) -> str:
    """SHA-256 of everything that the schedule fixes."""
    return hashlib.sha256(json.dumps(schedule.describe(), sort_keys=True).encode()).hexdigest()


def step_launches(schedule: Schedule, rows: int) -> list[Launch]:
    """The launches of a step of `rows` rows, all of which give logits."""
    from pyvosti.triton_kernels.launches import ROW_COUNTS, body_launches, head_launches

    padded = next((count for count in ROW_COUNTS if rows <= count), rows)
    head = min(padded, ROW_COUNTS[-1])
    body = body_launches(schedule, padded, whole=padded > ROW_COUNTS[-1])
    return [*body, *head_launches(schedule, head)]


def plan_as_data(schedule: Schedule, rows: int) -> dict[str, Any]:
    """The schedule and the launches of a step of `rows` rows, for JSON."""
    launches = [
        {
            "launch": launch.name,
            "kernel": launch.spec.kernel,
            "specialisation": launch.spec.key(),
            "grid": launch.grid,
            "buffers": launch.buffers,
            "warps": launch.spec.num_warps,
            "stages": launch.spec.num_stages,
            "constants": dict(launch.spec.constants),
        }
        for launch in step_launches(schedule, rows)
    ]
    return {
        "schedule_id": schedule_id(schedule),
        "schedule": schedule.describe(),
        "rows": rows,
        "launches": launches,
    }


def class_rows(schedule: Schedule) -> list[tuple[str, str, str]]:
    """For each operation: its name, the order of its sums, its members by row count."""
    rows = []
    for name in OPERATIONS:
        kind = getattr(schedule, name)
        order = f"{kind.n} x {kind.k}, " + _chains(kind.splits)
        members = [
            f"{_rows(t.rows)}: {t.block_m}x{t.block_n}x{t.block_k}, {t.warps} warps"
            for t in kind.members
        ]
        rows.append((name, order, "\n".join(members)))
    attention = schedule.attention
    order = f"splits of {attention.split} positions, {attention.block_n} keys at a time, ascending"
    members = [
        f"{_rows(t.rows)}: {t.block_m} rows, {t.warps} warps, {t.programs} programs"
        for t in attention.decode
    ]
    walk = attention.whole
    members.append(f"many queries: {walk.block_m} rows, {walk.warps} warps, one program")
    rows.append(("attention", order, "\n".join(members)))
    rows.append(("RMSNorm", f"one tree over the row, {schedule.norm_warps} warps", "all rows"))
    rows.append(("QK norm", f"one tree over half a head, {schedule.rope_warps} warps", "all rows"))
    vocab = f"{schedule.vocab_block} lanes, {schedule.vocab_warps} warps, ascending"
    rows.append(("sampler", vocab, "all rows"))
    return rows


def _chains(splits: int) -> str:
    return "one chain" if splits == 1 else f"{splits} chains, added in ascending order"


def _rows(bound: int) -> str:
    return "any rows" if bound == 2**31 - 1 else f"to {bound} rows"
