"""What the scheduler may vary without changing a bit: pool, budgets, threads."""

from __future__ import annotations

import os
from typing import NamedTuple

from pyvosti._core import cpu_isas
from pyvosti.config import ModelConfig
from pyvosti.errors import ConfigError

_DEFAULT_KV_TOKENS = 16_384
_MEMORY_SHARE = 0.25
_MAX_THREADS = 1024


class Limits(NamedTuple):
    """Sizes of one engine, checked."""

    num_blocks: int
    """Blocks in the pool of each layer group."""
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

    @property
    def max_blocks(self) -> int:
        """Length of a block table's row."""
        return -(-self.max_model_len // self.block_size)


def make_limits(
    config: ModelConfig,
    *,
    num_blocks: int | None,
    kv_cache_tokens: int | None,
    block_size: int,
    max_seqs: int,
    max_batched_tokens: int,
    max_model_len: int | None,
    threads: int | None,
    isa: str | None,
) -> Limits:
    """Fills in defaults: up to 16,384 tokens of KV, within a quarter of the machine's memory.

    Raises ConfigError with one sentence for a value that cannot work.
    """
    _positive("block_size", block_size)
    _positive("max_seqs", max_seqs)
    _positive("max_batched_tokens", max_batched_tokens)
    if num_blocks is not None and kv_cache_tokens is not None:
        raise ConfigError("give num_blocks or kv_cache_tokens, not both")
    if num_blocks is None:
        if kv_cache_tokens is None:
            kv_cache_tokens = _default_kv_tokens(config)
            kv_cache_tokens = max(block_size, kv_cache_tokens)
        _positive("kv_cache_tokens", kv_cache_tokens)
        num_blocks = kv_cache_tokens // block_size
        if num_blocks == 0:
            raise ConfigError(
                f"kv_cache_tokens = {kv_cache_tokens} holds no block of {block_size} tokens"
            )
    _positive("num_blocks", num_blocks)
    if num_blocks * block_size >= 2**31:
        raise ConfigError(f"{num_blocks} blocks of {block_size} tokens are too many: below 2**31")
    pool = num_blocks * block_size
    if max_model_len is None:
        max_model_len = min(config.context, pool)
    _positive("max_model_len", max_model_len)
    if max_model_len > config.context:
        raise ConfigError(
            f"max_model_len = {max_model_len}, but the model was made for {config.context} tokens"
        )
    threads = _default_threads() if threads is None else threads
    _positive("threads", threads)
    if threads > _MAX_THREADS:
        raise ConfigError(f"threads must be at most {_MAX_THREADS}, not {threads}")
    if isa is not None and isa not in cpu_isas():
        raise ConfigError(f"isa must be one of {', '.join(cpu_isas())}, not {isa!r}")
    return Limits(num_blocks, block_size, max_seqs, max_batched_tokens, max_model_len, threads, isa)


def _positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name} must be a whole number, not {value!r}")
    if not 1 <= value < 2**31:
        raise ConfigError(f"{name} must be at least 1 and below 2**31, not {value}")


def _default_kv_tokens(config: ModelConfig) -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    fitting = int(memory * _MEMORY_SHARE) // config.kv_bytes_per_token()
    return max(1, min(_DEFAULT_KV_TOKENS, fitting))


def _default_threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
