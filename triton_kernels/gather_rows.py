"""Gather of the rows whose logits are wanted: `out[i] = x[index[i]]`.

Fixed: nothing is added; each row is a copy. Rows at or past `rows` store nothing.
"""

import triton
import triton.language as tl


@triton.jit
def gather_rows(
    rows_ptr,  # i32[1]
    index_ptr,  # i32[N]
    x_ptr,  # [R, HIDDEN]
    out_ptr,  # [N, HIDDEN]
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Grid (N,)."""
    row = tl.program_id(0)
    rows = tl.load(rows_ptr)
    source = tl.load(index_ptr + row)
    column = tl.arange(0, BLOCK)
    inside = column < HIDDEN
    values = tl.load(x_ptr + source * HIDDEN + column, mask=inside, other=0.0)
    tl.store(out_ptr + row * HIDDEN + column, values, mask=inside & (row < rows))
