"""Embedding gather: `out[r] = table[token[r]] * SCALE`.

Fixed: nothing is added here; each row is a copy, or one rounded product by a constant. A row whose
token is not known yet on the host (-1) takes the last token sampled for its seat, from device
memory. No value of another row is read, so the result cannot depend on the batch. Rows at or past
`rows` store nothing.
"""

import triton
import triton.language as tl


@triton.jit
def embedding(
    rows_ptr,  # i32[1]
    tokens_ptr,  # i32[R], -1: not known yet
    seats_ptr,  # i32[R]
    last_tokens_ptr,  # i32[seats]
    table_ptr,  # [vocab, HIDDEN]
    out_ptr,  # [R, HIDDEN]
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
    SCALE: tl.constexpr,  # 1.0: a plain copy
):
    """Grid (R,). BLOCK is the least power of two >= HIDDEN."""
    row = tl.program_id(0)
    rows = tl.load(rows_ptr)
    token = tl.load(tokens_ptr + row)
    seat = tl.load(seats_ptr + row)
    last = tl.load(last_tokens_ptr + seat, mask=token < 0, other=0)
    token = tl.where(token < 0, last, token).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < HIDDEN
    values = tl.load(table_ptr + token * HIDDEN + columns, mask=inside, other=0.0)
    if SCALE != 1.0:
        values = (values.to(tl.float32) * SCALE).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * HIDDEN + columns, values, mask=inside & (row < rows))
