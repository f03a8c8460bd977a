"""The GPU backend's memory: static buffers, KV pools and block tables, sized before serving."""

from __future__ import annotations

import torch

from pyvosti.cuda_step import STATE_ROWS
from pyvosti.triton_kernels.schedule import LinearClass, Schedule

LOGITS_ROWS = 256
"""Rows of logits that are computed at once."""


def buffer_shapes(
    schedule: Schedule, max_rows: int, max_seqs: int
) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Name -> (shape, dtype) of every activation buffer of the launch sequence."""
    shape = schedule.shape
    kind, f32, i32 = getattr(torch, shape.dtype), torch.float32, torch.int32
    rows = -(-max_rows // 256) * 256  # a tile of any member may read past the last row
    splits = -(-shape.max_model_len // schedule.attention.split)
    states = (STATE_ROWS, shape.heads, splits)

    def sums(linear: LinearClass) -> tuple[tuple[int, ...], torch.dtype]:
        many = linear.splits > 1
        return ((rows, linear.splits, linear.n), f32) if many else ((rows, linear.n), kind)

    buffers: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
        "residual_0": ((rows, shape.hidden), kind),
        "residual_1": ((rows, shape.hidden), kind),
        "normed": ((rows, shape.hidden), kind),
        "qkv": sums(schedule.qkv),
        "q": ((rows, shape.heads * shape.head_dim), kind),
        "attended": ((rows, shape.heads * shape.head_dim), kind),
        "o_sums": sums(schedule.o),
        "down_sums": sums(schedule.down),
        "activated": ((rows, shape.ffn), kind),
        "split_m": (states, f32),
        "split_l": (states, f32),
        "split_acc": ((*states, shape.head_dim), f32),
        "head_in": ((LOGITS_ROWS, shape.hidden), kind),
        "logits": ((LOGITS_ROWS, shape.vocab), f32),
        "greedy_tokens": ((LOGITS_ROWS,), i32),
        "last_tokens": ((max_seqs,), i32),
    }
    for group in range(len(shape.windows)):
        buffers[f"tables.{group}"] = ((max_seqs, shape.max_pages), i32)
    return buffers


def block_bytes(schedule: Schedule) -> list[int]:
    """Bytes of one KV block of each layer group."""
    shape = schedule.shape
    size = getattr(torch, shape.dtype).itemsize
    one = 2 * shape.kv_heads * shape.page * shape.head_dim * size
    return [one * shape.layer_groups.count(group) for group in range(len(shape.windows))]


def fitting_blocks(schedule: Schedule, share: float) -> list[int]:
    """Blocks of each group that fit in `share` of the free GPU memory, equally many tokens each."""
    free, _ = torch.cuda.mem_get_info()
    blocks = int(free * share) // sum(block_bytes(schedule))
    return [min(blocks, (2**31 - 1) // schedule.shape.page)] * len(schedule.shape.windows)


def allocate(
    schedule: Schedule, max_rows: int, max_seqs: int, num_blocks: list[int] | None, share: float
) -> tuple[dict[str, torch.Tensor], list[int]]:
    """All buffers and KV pools (zeroed), and the blocks of each pool.

    `num_blocks` None: as many as fit in `share` of what is left free. Raises MemoryError, naming
    what was asked for, when it does not fit: then, never while serving.
    """
    shape = schedule.shape
    wanted = buffer_shapes(schedule, max_rows, max_seqs)
    try:
        buffers = {
            name: torch.zeros(size, dtype=kind, device="cuda")
            for name, (size, kind) in wanted.items()
        }
        if num_blocks is None:
            num_blocks = fitting_blocks(schedule, share)
        for layer, group in enumerate(shape.layer_groups):
            size = (num_blocks[group], shape.kv_heads, shape.page, shape.head_dim)
            for name in ("k_cache", "v_cache"):
                buffers[f"{name}.{layer}"] = torch.zeros(
                    size, dtype=getattr(torch, shape.dtype), device="cuda"
                )
    except torch.cuda.OutOfMemoryError:
        free, total = torch.cuda.mem_get_info()
        raise MemoryError(
            f"the GPU has {free / 2**30:.1f} of {total / 2**30:.1f} GiB free: not enough for "
            f"{max_rows} rows a step, {max_seqs} sequences and {num_blocks} blocks of "
            f"{shape.page} tokens; lower max_batched_tokens, max_seqs or num_blocks"
        ) from None
    if min(num_blocks) < 1:
        raise MemoryError("no GPU memory is left for a single KV block")
    return buffers, num_blocks
