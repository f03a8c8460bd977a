"""Matrix product `out[r] = x[r] @ w.T + bias`, with a static split of the inner dimension.

Fixed: K is cut into SPLITS equal parts. Each part is one chain of tensor-core products in
ascending k, started from +0.0 and accumulated in f32; the bias joins part 0 after its chain; the
parts are added in ascending order and rounded once. SPLITS belongs to the schedule class of the
weight's shape. Two members compute that one sum: with PARTIAL each program stores the f32 sum of
one part and the kernel that reads it adds the parts (small row counts, where splitting fills the
GPU); without, one program walks all the parts and adds them itself (large row counts).

A row's result cannot depend on the batch: an element of a tile is a function of its own row of x
and its own column of w (the named tensor-core assumption), and the tile shape only decides
which other rows are computed beside it. Rows at or past `rows` are read (the buffers are padded
to a whole tile) and store nothing.
"""

import triton
import triton.language as tl


@triton.jit
def linear(
    rows_ptr,  # i32[1]
    x_ptr,  # [R padded, K]
    w_ptr,  # [N, K]
    bias_ptr,  # [N], read with HAS_BIAS only
    out_ptr,  # PARTIAL: f32[SPLITS, SPLIT_STRIDE / N, N]; else [R, N]
    N: tl.constexpr,
    K: tl.constexpr,
    SPLITS: tl.constexpr,
    PARTIAL: tl.constexpr,
    SPLIT_STRIDE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    GROUP_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Grid (GROUP_N, row tiles, column groups x (SPLITS if PARTIAL else 1)).

    Programs that run at the same time share GROUP_N column tiles: the weights come from memory
    once. SPLITS * BLOCK_K divides K.
    """
    parts: tl.constexpr = SPLITS if PARTIAL else 1
    part = tl.program_id(2) % parts
    tile_n = (tl.program_id(2) // parts) * GROUP_N + tl.program_id(0)
    tile_m = tl.program_id(1)
    rows = tl.load(rows_ptr)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = column < N
    inner = tl.arange(0, BLOCK_K)
    length: tl.constexpr = K // SPLITS
    x_tile = x_ptr + row.to(tl.int64)[:, None] * K + inner[None, :]
    w_tile = w_ptr + column.to(tl.int64)[None, :] * K + inner[:, None]
    steps: tl.constexpr = 1 if PARTIAL else SPLITS
    whole: tl.constexpr = N % (BLOCK_N * GROUP_N) == 0
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in tl.static_range(steps):
        first = (part + step) * length
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, length, BLOCK_K):
            x = tl.load(x_tile + (first + k))
            if whole:
                w = tl.load(w_tile + (first + k))
            else:
                w = tl.load(w_tile + (first + k), mask=inside[None, :], other=0.0)
            sums = tl.dot(x, w, sums, input_precision=PRECISION)
        if HAS_BIAS:
            if part + step == 0:
                bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
                sums += bias[None, :]
        if step == 0:
            total = sums
        else:
            total += sums
    place = row.to(tl.int64)[:, None] * N + column[None, :]
    if PARTIAL:
        place += part.to(tl.int64) * SPLIT_STRIDE
    keep = (row < rows)[:, None] & inside[None, :]
    tl.store(out_ptr + place, total.to(out_ptr.dtype.element_ty), mask=keep)
