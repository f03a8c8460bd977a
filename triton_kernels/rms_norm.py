"""Residual addition and RMSNorm of one row (Zhang and Sennrich, 2019).

Fixed: one program per row, BLOCK lanes over the row, one `tl.sum` over them. The tree of that sum
depends on BLOCK and on the number of warps, both constants of the schedule class, and on nothing
else: not on how many rows there are, nor on which row this is. Lanes past HIDDEN hold +0.0, whose
square adds nothing. The addend may come as SPLITS partial sums in f32 (a split-K matmul): they
are added in ascending order and rounded once.

The residual is read from one buffer and written to another, so no load can meet a store.
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm(
    rows_ptr,  # i32[1]
    delta_ptr,  # [R, HIDDEN], or f32[R, SPLITS, HIDDEN] when SPLITS > 1
    residual_ptr,  # [R, HIDDEN]
    weight_ptr,  # [HIDDEN]
    residual_out_ptr,  # [R, HIDDEN]
    out_ptr,  # [R, HIDDEN]
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,  # 0: no addend, the residual stays where it is
    EPS: tl.constexpr,
):
    """Grid (R,). Rounds `residual + delta` to the residual's type, then norms that."""
    row = tl.program_id(0)
    rows = tl.load(rows_ptr)
    columns = tl.arange(0, BLOCK)
    inside = columns < HIDDEN
    place = row * HIDDEN + columns
    kind = out_ptr.dtype.element_ty
    x = tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
    if SPLITS > 0:
        part = row * SPLITS * HIDDEN + columns
        delta = tl.load(delta_ptr + part, mask=inside, other=0.0).to(tl.float32)
        for split in tl.static_range(1, SPLITS):
            delta += tl.load(delta_ptr + part + split * HIDDEN, mask=inside, other=0.0)
        total = (x + delta.to(kind).to(tl.float32)).to(kind)
        tl.store(residual_out_ptr + place, total, mask=inside & (row < rows))
        x = total.to(tl.float32)
    mean = tl.sum(x * x, axis=0) / HIDDEN
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    normed = x * tl.math.rsqrt(mean + EPS) * weight
    tl.store(out_ptr + place, normed.to(kind), mask=inside & (row < rows))
