"""Executes plans. A runner decides nothing: it computes exactly the rows that a plan names.

One step, as data flows: the engine plans, the runner computes, the sampler draws, the engine
commits. That each plan is executed once, in order and unmodified is the hypothesis
`runner_faithful` of the proof; this file is short so that it can be checked against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import CpuModel, Plan
from pyvosti.config import ModelConfig
from pyvosti.errors import ConfigError
from pyvosti.limits import Limits
from pyvosti.weights import Tensor


class Runner(Protocol):
    """What a backend offers."""

    def execute(self, plan: Plan) -> NDArray[np.float32]:
        """Computes the plan's rows, writes their KV, returns f32[L, vocab] for its L rows."""
        ...


class BlockTables:
    """The runner's copy of the engine's block tables: one u32[max_seqs, max_blocks] per group.

    The engine reports only the entries that changed.
    """

    def __init__(self, groups: int, limits: Limits) -> None:
        shape = (limits.max_seqs, limits.max_blocks)
        self.arrays = [np.zeros(shape, np.uint32) for _ in range(groups)]

    def apply(self, plan: Plan) -> None:
        """Writes the plan's updates, in their order: a later one to the same entry wins."""
        for table, (seats, indices, blocks) in zip(self.arrays, plan.table_updates, strict=True):
            table[seats, indices] = blocks


class CpuRunner:
    """Runs plans on the CPU backend."""

    def __init__(self, config: ModelConfig, tensors: Mapping[str, Tensor], limits: Limits) -> None:
        layer_groups, group_windows = config.layer_groups(limits.max_model_len)
        self.tables = BlockTables(len(group_windows), limits)
        self.model = CpuModel(
            core_config(config, layer_groups, group_windows),
            dict(tensors),
            [limits.num_blocks * limits.block_size] * len(group_windows),
            limits.block_size,
            limits.threads,
            limits.isa,
        )

    def execute(self, plan: Plan) -> NDArray[np.float32]:
        """f32[L, vocab]: the logits of the plan's L rows that are wanted."""
        self.tables.apply(plan)
        return self.model.forward(
            plan.token_ids,
            plan.positions,
            plan.slots,
            plan.query_start,
            plan.seq_lens,
            plan.seats,
            self.tables.arrays,
            plan.logits_rows,
        )


def default_backend() -> str:
    """cuda where there is an NVIDIA GPU and what drives it, else cpu; imports nothing."""
    gpu = Path("/dev/nvidia0").exists()
    return "cuda" if gpu and find_spec("torch") and find_spec("triton") else "cpu"


def make_runner(
    backend: str, config: ModelConfig, tensors: Mapping[str, Tensor], limits: Limits
) -> Runner:
    """The runner of a backend, "cpu" or "cuda". Raises ConfigError when it cannot be had."""
    if backend == "cpu":
        return CpuRunner(config, tensors, limits)
    if backend != "cuda":
        raise ConfigError(f"backend must be auto, cpu or cuda, not {backend!r}")
    if not (find_spec("torch") and find_spec("triton")):
        raise ConfigError(
            "backend 'cuda' needs PyTorch and Triton; run: pip install 'pyvosti[cuda]'"
        )
    from pyvosti.cuda_model import make_cuda_runner

    return make_cuda_runner(config, tensors, limits)


def core_config(
    config: ModelConfig, layer_groups: list[int], group_windows: list[int | None]
) -> dict[str, object]:
    """The configuration as `CpuModel` takes it."""
    return {
        "n_layers": config.n_layers,
        "hidden": config.hidden,
        "n_heads": config.n_heads,
        "n_kv_heads": config.n_kv_heads,
        "head_dim": config.head_dim,
        "ffn": config.ffn,
        "vocab": config.vocab,
        "rms_eps": config.rms_eps,
        "rope_theta": config.rope_theta,
        "rope_scaling": config.rope_scaling,
        "qk_norm": config.qk_norm,
        "tie_embeddings": config.tie_embeddings,
        "layer_groups": layer_groups,
        "group_windows": group_windows,
    }
