"""The Rust half: the verified engine, the CPU backend, the sampler."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__version__: str

class Plan:
    """One step: what to compute, where its KV lies, which rows are sampled.

    R rows of S sequences; L of the rows give logits; N of the sequences are sampled. Lists have
    one entry per layer group.
    """

    @property
    def plan_id(self) -> int: ...
    @property
    def token_ids(self) -> NDArray[np.uint32]:
        """u32[R]; 0xFFFFFFFF: the seat's last sampled token, not yet known when planned."""
    @property
    def positions(self) -> NDArray[np.uint32]:
        """u32[R]: position of each row in its sequence."""
    @property
    def slots(self) -> list[NDArray[np.uint32]]:
        """u32[R]: block * block_size + offset of each row's KV."""
    @property
    def query_start(self) -> NDArray[np.uint32]:
        """u32[S + 1]: first row of each sequence, then R."""
    @property
    def seq_lens(self) -> NDArray[np.uint32]:
        """u32[S]: positions that the sequence's last row sees, its own included."""
    @property
    def seats(self) -> NDArray[np.uint32]:
        """u32[S]: row of the block table."""
    @property
    def seq_ids(self) -> NDArray[np.uint64]:
        """u64[S]."""
    @property
    def logits_rows(self) -> NDArray[np.uint32]:
        """u32[L], ascending: rows whose logits are wanted."""
    @property
    def sample_seqs(self) -> NDArray[np.uint32]:
        """u32[N], ascending: sequences whose last row is sampled."""
    @property
    def table_updates(
        self,
    ) -> list[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]]:
        """(seats u32[U], indices u32[U], blocks u32[U]), to be applied in order beforehand."""

class Engine:
    """Scheduler and paged, prefix-sharing KV cache. A refused call changes nothing.

    `num_blocks`, `windows`: one for each layer group. A row of a group sees the last `windows`
    positions, its own among them, or all where it is 0 (as everywhere without `windows`); blocks
    that no later row sees are given back.
    """

    def __init__(
        self,
        num_blocks: list[int],
        block_size: int,
        max_seqs: int,
        max_batched_tokens: int,
        max_model_len: int,
        vocab_size: int,
        prefix_cache: bool = True,
        windows: list[int] | None = None,
    ) -> None: ...
    def add_request(
        self,
        prompt: NDArray[np.uint32],
        max_tokens: int,
        stop_token_ids: NDArray[np.uint32],
        logits_from: int,
        salt: int = 0,
    ) -> int: ...
    def fork(self, parent_id: int) -> int: ...
    def schedule(self) -> Plan | None: ...
    def commit(self, plan_id: int, tokens: NDArray[np.uint32]) -> NDArray[np.uint8]: ...
    def cancel(self, plan_id: int) -> None: ...
    def abort(self, seq_id: int) -> bool: ...
    def plans(self) -> NDArray[np.uint64]:
        """u64[P]: ids of the plans in flight, oldest first."""
    def reset_cache(self) -> None: ...
    def load_weights(self) -> None:
        """The runner computes with other weights from the next plan on: nothing cached is used.

        Raises RuntimeError while a sequence is open.
        """
    def stats(self) -> dict[str, int]: ...

class CpuModel:
    """The CPU backend: weights and KV pools of one model."""

    def __init__(
        self,
        config: dict[str, object],
        tensors: dict[str, tuple[str, tuple[int, ...], NDArray[np.uint8]]],
        num_slots: list[int],
        block_size: int,
        threads: int,
        isa: str | None = None,
    ) -> None: ...
    @property
    def isa(self) -> str:
        """The build that runs."""
    def forward(
        self,
        token_ids: NDArray[np.uint32],
        positions: NDArray[np.uint32],
        slots: list[NDArray[np.uint32]],
        query_start: NDArray[np.uint32],
        seq_lens: NDArray[np.uint32],
        seats: NDArray[np.uint32],
        tables: list[NDArray[np.uint32]],
        logits_rows: NDArray[np.uint32],
    ) -> NDArray[np.float32]:
        """Writes the rows' KV, returns f32[L, vocab]."""
    def fill_slot(self, group: int, slot: int, value: float) -> None:
        """Overwrites a slot's keys and values, for tests that poison free pages."""
    @property
    def threads(self) -> int: ...

def measure_cpu(threads: int, rounds: int) -> tuple[float, float]:
    """Multiply-then-adds and bytes read a second, best of `rounds`."""

def rotary_table(
    head_dim: int, positions: int, rope: dict[str, object]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosines and sines, each f32[positions, head_dim / 2], the same bits on every host.

    `rope`: a `pyvosti.config.Rope` as a dictionary. Raises ValueError.
    """

def dequantize(
    tensor: tuple[str, tuple[int, ...], NDArray[np.uint8]], isa: str | None = None
) -> NDArray[np.float32]:
    """The values that the CPU backend reads from a tensor: f32[rows, columns]."""

def cpu_isas() -> list[str]:
    """Builds of the CPU kernels that this processor can run, the fastest last."""

def log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """f32[N, V] -> f32[N, V]."""

def argmax(logits: NDArray[np.float32]) -> NDArray[np.uint32]:
    """f32[N, V] -> u32[N]; ties: the lowest id; NaN never wins."""

def sample(
    logits: NDArray[np.float32],
    *,
    seed: int,
    sample_index: int,
    position: int,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    repetition_penalty: float,
    presence_penalty: float,
    frequency_penalty: float,
    logit_bias: Sequence[tuple[int, float]],
    prompt: NDArray[np.uint32],
    output: NDArray[np.uint32],
) -> int:
    """Draws from one row f32[V]; the noise is keyed by (seed, sample_index, position, id)."""
