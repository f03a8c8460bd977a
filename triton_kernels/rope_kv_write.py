"""Rotary position embedding (Su et al., 2021), optional QK norm, and the write into the KV cache.

Fixed: one program per row and KV head; it turns the head's group of queries and its key, and
copies its value. The parts of a split-K projection are added in ascending order and rounded once
before anything else. Each output element uses two elements of its own head, a cosine and a
sine of its own position; the QK norm adds the two halves' squares and then one `tl.sum` over
half a head, a tree fixed by HEAD_DIM and the number of warps. Nothing depends on other rows.

The cache never holds a value that is not finite: such a lane of V is written as +0.0 and the
fact is kept in the same key by writing NaN to the key's first lane. A row for which that key is
live gets a NaN score and so a NaN output; for a row that masks the key the score is replaced
before use, and `0 * v` is an exact zero because v is finite. Slot -1, or a row at or past
`rows`, stores nothing.
"""

import triton
import triton.language as tl


@triton.jit
def summed(row_ptr, lane, mask, SPLITS: tl.constexpr, WIDTH: tl.constexpr, kind):
    """The parts of a projection at `lane`, added in ascending order, rounded to `kind`: f32."""
    value = tl.load(row_ptr + lane, mask=mask, other=0.0).to(tl.float32)
    for split in tl.static_range(1, SPLITS):
        value += tl.load(row_ptr + split * WIDTH + lane, mask=mask, other=0.0)
    return value.to(kind).to(tl.float32)


@triton.jit
def rope_kv_write(
    rows_ptr,  # i32[1]
    qkv_ptr,  # [R, W], or f32[R, SPLITS, W] when SPLITS > 1; W = (HEADS + 2 KV_HEADS) 2 HALF
    cos_ptr,  # f32[max_model_len, HALF]
    sin_ptr,  # f32[max_model_len, HALF]
    positions_ptr,  # i32[R]
    slots_ptr,  # i32[R], -1: a padding row
    q_norm_ptr,  # [2 * HALF], read with QK_NORM only
    k_norm_ptr,  # [2 * HALF], read with QK_NORM only
    q_out_ptr,  # [R, HEADS, 2 * HALF]
    k_cache_ptr,  # [blocks, KV_HEADS, PAGE, 2 * HALF]
    v_cache_ptr,  # [blocks, KV_HEADS, PAGE, 2 * HALF]
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    GROUP: tl.constexpr,  # HEADS / KV_HEADS
    GROUP_BLOCK: tl.constexpr,  # the least power of two >= GROUP
    PAGE: tl.constexpr,
    SPLITS: tl.constexpr,
    QK_NORM: tl.constexpr,
    EPS: tl.constexpr,
):
    """Grid (R, KV_HEADS)."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    rows = tl.load(rows_ptr)
    slot = tl.load(slots_ptr + row)
    position = tl.load(positions_ptr + row)
    kind = q_out_ptr.dtype.element_ty
    dims: tl.constexpr = 2 * HALF
    width: tl.constexpr = (HEADS + 2 * KV_HEADS) * dims
    half = tl.arange(0, HALF)
    member = tl.arange(0, GROUP_BLOCK)
    real = (member < GROUP)[:, None] & (half >= 0)[None, :]
    cos = tl.load(cos_ptr + position * HALF + half)
    sin = tl.load(sin_ptr + position * HALF + half)

    row_ptr = qkv_ptr + row * SPLITS * width
    q_lane = (head * GROUP + member)[:, None] * dims + half[None, :]
    q_low = summed(row_ptr, q_lane, real, SPLITS, width, kind)
    q_high = summed(row_ptr, q_lane + HALF, real, SPLITS, width, kind)
    k_lane = (HEADS + head) * dims + half
    k_low = summed(row_ptr, k_lane, half >= 0, SPLITS, width, kind)
    k_high = summed(row_ptr, k_lane + HALF, half >= 0, SPLITS, width, kind)
    if QK_NORM:
        q_low_weight = tl.load(q_norm_ptr + half).to(tl.float32)
        q_high_weight = tl.load(q_norm_ptr + HALF + half).to(tl.float32)
        q_scale = tl.math.rsqrt(tl.sum(q_low * q_low + q_high * q_high, axis=1) / dims + EPS)
        q_low = q_low * q_scale[:, None] * q_low_weight[None, :]
        q_high = q_high * q_scale[:, None] * q_high_weight[None, :]
        k_scale = tl.math.rsqrt(tl.sum(k_low * k_low + k_high * k_high, axis=0) / dims + EPS)
        k_low = k_low * k_scale * tl.load(k_norm_ptr + half).to(tl.float32)
        k_high = k_high * k_scale * tl.load(k_norm_ptr + HALF + half).to(tl.float32)

    live = row < rows
    q_first = (q_low * cos[None, :] - q_high * sin[None, :]).to(kind)
    q_second = (q_high * cos[None, :] + q_low * sin[None, :]).to(kind)
    q_out = q_out_ptr + row * (HEADS * dims) + q_lane
    tl.store(q_out, q_first, mask=real & live)
    tl.store(q_out + HALF, q_second, mask=real & live)

    v_lane = (HEADS + KV_HEADS + head) * dims + half
    v_low = summed(row_ptr, v_lane, half >= 0, SPLITS, width, kind)
    v_high = summed(row_ptr, v_lane + HALF, half >= 0, SPLITS, width, kind)
    low_finite = tl.abs(v_low) < float("inf")
    high_finite = tl.abs(v_high) < float("inf")
    flagged = tl.max(tl.where(low_finite & high_finite, 0, 1), axis=0) > 0
    k_first = k_low * cos - k_high * sin
    k_second = k_high * cos + k_low * sin
    k_first = tl.where(flagged & (half == 0), float("nan"), k_first)
    page = (slot // PAGE).to(tl.int64)
    cache = ((page * KV_HEADS + head) * PAGE + slot % PAGE) * dims + half
    written = (half >= 0) & live & (slot >= 0)
    tl.store(k_cache_ptr + cache, k_first.to(kind), mask=written)
    tl.store(k_cache_ptr + cache + HALF, k_second.to(kind), mask=written)
    tl.store(v_cache_ptr + cache, tl.where(low_finite, v_low, 0.0).to(kind), mask=written)
    tl.store(v_cache_ptr + cache + HALF, tl.where(high_finite, v_high, 0.0).to(kind), mask=written)
