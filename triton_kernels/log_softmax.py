"""Log-softmax of each row of logits, in f32.

Fixed: one program per row. Lane i of BLOCK adds exp(x - max) of the columns i, i + BLOCK, ... in
ascending order; the lanes are then added by one `tl.sum`, whose tree depends on BLOCK and the
number of warps, constants of the schedule class. Other rows are never read.
"""

import triton
import triton.language as tl

from .noise import natural_log


@triton.jit
def log_softmax(
    logits_ptr,  # f32[N, VOCAB]
    out_ptr,  # f32[N, VOCAB]
    VOCAB: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Grid (N,). NaN anywhere in a row makes the whole row NaN."""
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    start = row.to(tl.int64) * VOCAB
    peak = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for base in range(0, VOCAB, BLOCK):
        token = base + lane
        value = tl.load(logits_ptr + start + token, mask=token < VOCAB, other=float("-inf"))
        peak = tl.maximum(peak, value)
    top = tl.max(peak, axis=0)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for base in range(0, VOCAB, BLOCK):
        token = base + lane
        value = tl.load(logits_ptr + start + token, mask=token < VOCAB, other=float("-inf"))
        sums += tl.exp(value - top)
    shift = top + natural_log(tl.sum(sums, axis=0))
    for base in range(0, VOCAB, BLOCK):
        token = base + lane
        value = tl.load(logits_ptr + start + token, mask=token < VOCAB, other=0.0)
        tl.store(out_ptr + start + token, value - shift, mask=token < VOCAB)
