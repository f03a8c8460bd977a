"""RMSNorm of what a layer adds, residual addition, RMSNorm of the sum: one row (Gemma 2 and 3).

Fixed: one program per row, BLOCK lanes over the row, two `tl.sum` over them, one after the other.
The tree of each depends on BLOCK and on the number of warps, both constants of the schedule class,
and on nothing else: not on how many rows there are, nor on which row this is. Lanes past HIDDEN
hold +0.0, whose square adds nothing. The addend may come as SPLITS partial sums in f32 (a split-K
matmul): they are added in ascending order and rounded once.

The residual is read from one buffer and written to another, so no load can meet a store.
"""

import triton
import triton.language as tl


@triton.jit
def sandwich_norm(
    rows_ptr,  # i32[1]
    delta_ptr,  # [R, HIDDEN], or f32[R, SPLITS, HIDDEN] when SPLITS > 1
    delta_weight_ptr,  # f32[HIDDEN]: the norm of what is added
    residual_ptr,  # [R, HIDDEN]
    weight_ptr,  # f32[HIDDEN]: the norm of the sum
    residual_out_ptr,  # [R, HIDDEN]
    out_ptr,  # [R, HIDDEN]
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    EPS: tl.constexpr,
):
    """Grid (R,). Rounds the first norm, then the sum, to the residual's type; norms the sum."""
    row = tl.program_id(0)
    rows = tl.load(rows_ptr)
    columns = tl.arange(0, BLOCK)
    inside = columns < HIDDEN
    place = row * HIDDEN + columns
    kind = out_ptr.dtype.element_ty
    part = row * SPLITS * HIDDEN + columns
    delta = tl.load(delta_ptr + part, mask=inside, other=0.0).to(tl.float32)
    for split in tl.static_range(1, SPLITS):
        delta += tl.load(delta_ptr + part + split * HIDDEN, mask=inside, other=0.0)
    delta = delta.to(kind).to(tl.float32)
    mean = tl.sum(delta * delta, axis=0) / HIDDEN
    weight = tl.load(delta_weight_ptr + columns, mask=inside, other=0.0)
    normed = (delta * tl.math.rsqrt(mean + EPS) * weight).to(kind)
    x = tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
    total = (x + normed.to(tl.float32)).to(kind)
    tl.store(residual_out_ptr + place, total, mask=inside & (row < rows))
    x = total.to(tl.float32)
    mean = tl.sum(x * x, axis=0) / HIDDEN
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0)
    out = x * tl.math.rsqrt(mean + EPS) * weight
    tl.store(out_ptr + place, out.to(kind), mask=inside & (row < rows))
