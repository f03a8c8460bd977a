"""What the scheduler may vary without changing a bit: pool, budgets, threads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from pyvosti._core import cpu_isas
from pyvosti.config import ModelConfig
from pyvosti.errors import ConfigError

DEFAULTS = {"cpu": (16, 128, 256), "cuda": (64, 256, 2048)}
"""By backend: block_size, max_seqs, max_batched_tokens."""
_CERTIFIED = {"max_batched_tokens": 1 << 16, "max_seqs": 1 << 14, "max_model_len": 1 << 20}
"""What the GPU kernels' certificates take for granted (analyzer/contracts.py)."""
_DEFAULT_KV_TOKENS = 65_536
"""On the CPU: 512 tokens for each of the 128 sequences that a step may have, so that ordinary chats
are not preempted. Memory is taken when a page is first written, so the bound that matters is
_MEMORY_SHARE, for a process that runs until its prefix cache has filled the pool."""
_MEMORY_SHARE = 0.25
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""On Linux with cgroup v2: the bytes that this container may take, or "max"."""
_MAX_THREADS = 1024


class Limits(NamedTuple):
    """Sizes of one engine, checked."""

    num_blocks: int | None
    """Blocks in the pool of each layer group; None: as many as fit in the GPU's memory."""
    block_size: int
    """Tokens of a block."""
    max_seqs: int
    """Most sequences in one step."""
    max_batched_tokens: int
    """Most rows in one step; longer prompts are computed in chunks."""
    max_model_len: int
    """Most tokens of a sequence, prompt and output."""
    threads: int
    isa: str | None
    """Build of the CPU kernels, one of `cpu_isas()`; None: the fastest."""
    gpu_memory_utilization: float
    """The share of the GPU's free memory that the pool may take when `num_blocks` is None."""

    @property
    def max_blocks(self) -> int:
        """Length of a block table's row."""
        return -(-self.max_model_len // self.block_size)


def make_limits(
    config: ModelConfig,
    backend: str,
    *,
    num_blocks: int | None = None,
    kv_cache_tokens: int | None = None,
    block_size: int | None = None,
    max_seqs: int | None = None,
    max_batched_tokens: int | None = None,
    max_model_len: int | None = None,
    threads: int | None = None,
    isa: str | None = None,
    gpu_memory_utilization: float = 0.9,
) -> Limits:
    """Fills in the backend's defaults.

    The pool: what fits in the GPU's memory; on the CPU up to 65,536 tokens, within a quarter of
    the machine's memory. Raises ConfigError with one sentence for a value that cannot work.
    """
    defaults = DEFAULTS.get(backend, DEFAULTS["cpu"])
    block_size = defaults[0] if block_size is None else block_size
    max_seqs = defaults[1] if max_seqs is None else max_seqs
    max_batched_tokens = defaults[2] if max_batched_tokens is None else max_batched_tokens
    _positive("block_size", block_size)
    _positive("max_seqs", max_seqs)
    _positive("max_batched_tokens", max_batched_tokens)
    if num_blocks is not None and kv_cache_tokens is not None:
        raise ConfigError("give num_blocks or kv_cache_tokens, not both")
    if num_blocks is None and kv_cache_tokens is None and backend != "cuda":
        kv_cache_tokens = max(block_size, _default_kv_tokens(config))
    if kv_cache_tokens is not None:
        _positive("kv_cache_tokens", kv_cache_tokens)
        num_blocks = kv_cache_tokens // block_size
        if num_blocks == 0:
            raise ConfigError(
                f"kv_cache_tokens = {kv_cache_tokens} holds no block of {block_size} tokens"
            )
    if num_blocks is not None:
        _positive("num_blocks", num_blocks)
        if num_blocks * block_size >= 2**31:
            raise ConfigError(
                f"{num_blocks} blocks of {block_size} tokens are too many: below 2**31"
            )
    if max_model_len is None:
        pool = config.context if num_blocks is None else num_blocks * block_size
        max_model_len = min(config.context, pool)
    _positive("max_model_len", max_model_len)
    if max_model_len > config.context:
        raise ConfigError(
            f"max_model_len = {max_model_len}, but the model was made for {config.context} tokens"
        )
    if backend == "cuda":
        sizes = (max_batched_tokens, max_seqs, max_model_len)
        for (name, most), value in zip(_CERTIFIED.items(), sizes, strict=True):
            if value > most:
                raise ConfigError(f"{name} must be at most {most} on a GPU, not {value}")
    threads = _default_threads() if threads is None else threads
    _positive("threads", threads)
    if threads > _MAX_THREADS:
        raise ConfigError(f"threads must be at most {_MAX_THREADS}, not {threads}")
    if isa is not None and isa not in cpu_isas():
        raise ConfigError(f"isa must be one of {', '.join(cpu_isas())}, not {isa!r}")
    if not 0 < gpu_memory_utilization <= 1:
        raise ConfigError(
            f"gpu_memory_utilization must be above 0 and at most 1, not {gpu_memory_utilization!r}"
        )
    return Limits(
        num_blocks, block_size, max_seqs, max_batched_tokens, max_model_len, threads, isa,
        gpu_memory_utilization,
    )  # fmt: skip


def _positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name} must be a whole number, not {value!r}")
    if not 1 <= value < 2**31:
        raise ConfigError(f"{name} must be at least 1 and below 2**31, not {value}")


def _default_kv_tokens(config: ModelConfig) -> int:
    fitting = int(_memory() * _MEMORY_SHARE) // config.kv_bytes_per_token()
    return max(1, min(_DEFAULT_KV_TOKENS, fitting))


def _memory() -> int:
    """Bytes of memory of the machine, or of the container (cgroup v2) if it may take less."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = _CONTAINER_LIMIT.read_text(encoding="ascii").strip()
    except OSError:
        return memory
    return min(memory, int(limit)) if limit.isdigit() else memory


def _default_threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
