"""Gate and up projections, SwiGLU or GeGLU: `out[r] = act(x[r] @ gate.T) * (x[r] @ up.T)`.

Fixed: each of the two products is one chain of tensor-core products in ascending k from +0.0,
accumulated in f32 and not rounded before the activation; the product is rounded once. There is
no split of K: the two halves together have columns enough to fill the GPU. Tile shapes only
decide which rows and columns share a program; every element is a function of its own row of x
and its own two columns. Rows at or past `rows` store nothing.
"""

import triton
import triton.language as tl


@triton.jit
def gelu(x):
    """GELU in its tanh form (Hendrycks and Gimpel, 2016), with tanh(u) = 1 - 2 / (exp(2u) + 1)."""
    u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (2.0 - 2.0 / (tl.exp(2.0 * u) + 1.0))


@triton.jit
def gate_up(
    rows_ptr,  # i32[1]
    x_ptr,  # [R padded, K]
    w_ptr,  # [2 * N, K]: the gate's rows, then the up projection's
    out_ptr,  # [R, N]
    N: tl.constexpr,
    K: tl.constexpr,
    GROUP_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    GELU: tl.constexpr,
):
    """Grid (GROUP_N, row tiles, column groups). BLOCK_K divides K."""
    tile_n = tl.program_id(2) * GROUP_N + tl.program_id(0)
    tile_m = tl.program_id(1)
    rows = tl.load(rows_ptr)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = column < N
    inner = tl.arange(0, BLOCK_K)
    x_tile = x_ptr + row.to(tl.int64)[:, None] * K + inner[None, :]
    gate_tile = w_ptr + column.to(tl.int64)[None, :] * K + inner[:, None]
    up_tile = gate_tile + N * K
    whole: tl.constexpr = N % (BLOCK_N * GROUP_N) == 0
    gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_tile + k)
        if whole:
            gate_w = tl.load(gate_tile + k)
            up_w = tl.load(up_tile + k)
        else:
            gate_w = tl.load(gate_tile + k, mask=inside[None, :], other=0.0)
            up_w = tl.load(up_tile + k, mask=inside[None, :], other=0.0)
        gate = tl.dot(x, gate_w, gate, input_precision=PRECISION)
        up = tl.dot(x, up_w, up, input_precision=PRECISION)
    if GELU:
        product = gelu(gate) * up
    else:
        product = gate / (1.0 + tl.exp(-gate)) * up
    keep = (row < rows)[:, None] & inside[None, :]
    place = row.to(tl.int64)[:, None] * N + column[None, :]
    tl.store(out_ptr + place, product.to(out_ptr.dtype.element_ty), mask=keep)
