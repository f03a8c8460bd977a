"""Executes plans. A runner decides nothing: it computes exactly the rows that a plan names.

One step, as data flows: the engine plans, the runner computes and draws, the engine commits. That
each plan is executed once, in order and unmodified is the hypothesis `runner_faithful` of the
proof; this file is short so that it can be checked against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import CpuModel, Plan, sample
from pyvosti.config import ModelConfig
from pyvosti.draw import Draw
from pyvosti.errors import ConfigError
from pyvosti.limits import Limits
from pyvosti.weights import Tensor


class Result(NamedTuple):
    """What a step gives."""

    tokens: NDArray[np.uint32]
    """u32[N]: one for each of the plan's `sample_seqs`."""
    logits: NDArray[np.float32]
    """f32[K, vocab]: the rows that were to be kept, of the plan's `logits_rows`."""


class Computing(Protocol):
    """A step on its way."""

    def wait(self) -> Result:
        """The step's result, once it is there."""
        ...


class Runner(Protocol):
    """What a backend offers."""

    num_blocks: list[int]
    """Blocks of each layer group's pool."""
    max_in_flight: int
    """Plans that may be started before the oldest has been waited for."""

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Begins to compute the plan's rows, to write their KV and to draw its N tokens.

        `kept`: bool[L], the `logits_rows` that the host wants to see. Plans run in the order in
        which they are started; a token that a plan does not know yet (0xFFFFFFFF) is the one
        drawn for its sequence by the plan before.
        """
        ...


class ModelRunner(Runner, Protocol):
    """A runner whose weights can be replaced."""

    def load_weights(self, tensors: Mapping[str, Tensor]) -> None:
        """Computes with these from the next plan on; called while no plan is in flight."""
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


class Computed(NamedTuple):
    """A step that is done."""

    result: Result

    def wait(self) -> Result:
        """At once."""
        return self.result


class CpuRunner:
    """Runs plans on the CPU backend, one at a time."""

    max_in_flight = 1

    def __init__(self, config: ModelConfig, tensors: Mapping[str, Tensor], limits: Limits) -> None:
        layer_groups, group_windows = config.layer_groups()
        assert limits.num_blocks is not None, "only a GPU's pool is sized by its runner"
        self.num_blocks = [limits.num_blocks] * len(group_windows)
        self.tables = BlockTables(len(group_windows), limits)
        self._config = core_config(config, layer_groups, group_windows)
        self._limits = limits
        self.load_weights(tensors)

    def load_weights(self, tensors: Mapping[str, Tensor]) -> None:
        """Computes with these from the next plan on. When it fails, the old ones stay."""
        limits = self._limits
        self.model = CpuModel(
            self._config,
            dict(tensors),
            [blocks * limits.block_size for blocks in self.num_blocks],
            limits.block_size,
            limits.threads,
            limits.isa,
        )

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computed:
        """Computes the plan and draws its tokens."""
        logits = self.execute(plan)
        rows = np.searchsorted(plan.logits_rows, plan.query_start[plan.sample_seqs + 1] - 1)
        tokens = [drawn(logits[row], draw) for row, draw in zip(rows, draws, strict=True)]
        seen = logits if kept.all() else logits[kept]
        return Computed(Result(np.array(tokens, np.uint32), seen))

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


def drawn(row: NDArray[np.float32], draw: Draw) -> int:
    """The token of one draw from its row f32[vocab], by the CPU's sampler."""
    return sample(
        row,
        seed=draw.seed,
        sample_index=draw.sample_index,
        position=draw.position,
        temperature=draw.temperature,
        top_k=draw.top_k,
        top_p=draw.top_p,
        min_p=draw.min_p,
        repetition_penalty=draw.repetition_penalty,
        presence_penalty=draw.presence_penalty,
        frequency_penalty=draw.frequency_penalty,
        logit_bias=list(draw.logit_bias.items()),
        prompt=draw.prompt,
        output=draw.output,
    )


def default_backend() -> str:
    """cuda where there is an NVIDIA GPU and what drives it, else cpu; imports nothing."""
    gpu = Path("/dev/nvidia0").exists()
    return "cuda" if gpu and find_spec("torch") and find_spec("triton") else "cpu"


def make_runner(
    backend: str,
    config: ModelConfig,
    tensors: Mapping[str, Tensor],
    limits: Limits,
    *,
    strict_kernels: bool = False,
) -> ModelRunner:
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

    return make_cuda_runner(config, tensors, limits, strict=strict_kernels)


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
        "ropes": [rope._asdict() for rope in config.ropes],
        "layer_ropes": config.layer_ropes,
        "qk_norm": config.qk_norm,
        "sandwich_norms": config.sandwich_norms,
        "gelu": config.activation == "gelu",
        "attention_scale": config.attention_scale,
        "embed_scale": config.embed_scale,
        "tie_embeddings": config.tie_embeddings,
        "layer_groups": layer_groups,
        "group_windows": group_windows,
    }
