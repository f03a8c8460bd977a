"""Matrix product `out[r] = x[r] @ w[n].T + bias`, with a static split of the inner dimension.

Fixed: K is cut into SPLITS equal parts. Each part is one chain of tensor-core products in
ascending k, started from +0.0 and accumulated in f32, by one program; the bias joins part 0 after
its chain. With one part the sum is rounded and stored. With more, each part is stored in f32,
and the kernel that reads them adds them in ascending order and rounds once. SPLITS belongs to
the schedule class of the weight's shape: it lets a narrow matrix fill the GPU when rows are few,
and stays what it is when they are many.

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
    out_ptr,  # [R, N], or f32[R, SPLITS, N] when SPLITS > 1
    N: tl.constexpr,
    K: tl.constexpr,
    SPLITS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    GROUP_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Grid (GROUP_N, row tiles, column groups x SPLITS); SPLITS * BLOCK_K divides K.

    Programs that run at the same time share GROUP_N column tiles, so that weights come from
    memory once.
    """
    part = tl.program_id(2) % SPLITS
    tile_n = (tl.program_id(2) // SPLITS) * GROUP_N + tl.program_id(0)
    tile_m = tl.program_id(1)
    rows = tl.load(rows_ptr)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = column < N
    whole: tl.constexpr = N % (BLOCK_N * GROUP_N) == 0
    length: tl.constexpr = K // SPLITS
    inner = part * length + tl.arange(0, BLOCK_K)
    x_tile = x_ptr + row.to(tl.int64)[:, None] * K + inner[None, :]
    w_tile = w_ptr + column.to(tl.int64)[None, :] * K + inner[:, None]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, length, BLOCK_K):
        x = tl.load(x_tile + k)
        if whole:
            w = tl.load(w_tile + k)
        else:
            w = tl.load(w_tile + k, mask=inside[None, :], other=0.0)
        sums = tl.dot(x, w, sums, input_precision=PRECISION)
    if HAS_BIAS:
        bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
        sums = tl.where(part == 0, sums + bias[None, :], sums)
    place = (row.to(tl.int64) * SPLITS + part)[:, None] * N + column[None, :]
    keep = (row < rows)[:, None] & inside[None, :]
    tl.store(out_ptr + place, sums.to(out_ptr.dtype.element_ty), mask=keep)
