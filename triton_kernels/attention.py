"""Paged attention: one schedule for prefill, chunks and decode (online softmax, Milakov 2018).

Fixed: the keys of a sequence are cut at multiples of SPLIT *absolute* positions. Inside a split
keys are taken BLOCK_N at a time, ascending: scores, running maximum, running sum, running
product with V. Each split starts from (-inf, 0, 0); the splits' (m, l, acc) are folded in
ascending order, from (-inf, 0, 0) again. SPLIT, BLOCK_N and the layout of a score row over a
warp belong to the schedule class; so a row's sum has one shape, given by its position alone.

Three kernels: `attention_splits` stores the partial state of each split (few queries a sequence:
the splits run in parallel), `attention_combine` folds them, `attention_whole` does both in one
program (many queries). A tile holds up to BLOCK_M / GROUP consecutive rows of one sequence, each
with the GROUP query heads of one KV head.

Why the tile cannot matter: rows of a tile stop at different keys, so a row may sit through
blocks and splits in which it has no live key. Its old state is selected there, not recomputed.
Within the row's own last block the dead keys get the score -inf before the maximum, so their
weight is exactly +0.0, and V is finite (see rope_kv_write) or masked to zero: only the sign of
an exact zero could differ, and adding +0.0 at the end erases it. What is left is the named
assumption that a zero lane times a finite value leaves a tensor-core sum as it was. Keys are
found by logical position through the block table; where the pages lie is invisible.
"""

import triton
import triton.language as tl


@triton.jit
def has_live_key(position, first, last, WINDOW: tl.constexpr):
    """Whether a query at `position` (-1: none) sees a key in first..last (inclusive)."""
    live = position >= first
    if WINDOW > 0:
        live &= last > position - WINDOW
    return live


@triton.jit
def attend_split(
    q,  # [BLOCK_M, HEAD_DIM]
    position,  # i32[BLOCK_M], -1: no row
    table_ptr,  # i32, the sequence's row of the block table
    k_ptr,
    v_ptr,
    head,
    first,  # the split's first key, a multiple of SPLIT
    key_start,  # the tile's first live key
    key_end,  # one past the tile's last live key
    SCALE: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PAGE: tl.constexpr,
    SPLIT: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The state (m [BLOCK_M], l [BLOCK_M], acc [BLOCK_M, HEAD_DIM]) of one split, f32."""
    lane = tl.arange(0, BLOCK_N)
    dim = tl.arange(0, HEAD_DIM)
    tile = lane[:, None] * HEAD_DIM + dim[None, :]
    nth = tl.arange(0, SPLIT // PAGE)
    pages = tl.load(table_ptr + first // PAGE + nth, mask=first + nth * PAGE < key_end, other=0)
    m = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    begin = first
    if WINDOW > 0:
        begin = tl.maximum(first, key_start // BLOCK_N * BLOCK_N)
    for start in range(begin, tl.minimum(first + SPLIT, key_end), BLOCK_N):
        key = start + lane
        present = (key < key_end)[:, None]
        if WINDOW > 0:
            present &= (key >= key_start)[:, None]
        page = tl.sum(tl.where(nth == (start - first) // PAGE, pages, 0), axis=0).to(tl.int64)
        base = ((page * KV_HEADS + head) * PAGE + start % PAGE) * HEAD_DIM
        k = tl.load(k_ptr + base + tile, mask=present, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * SCALE
        live = key[None, :] <= position[:, None]
        if WINDOW > 0:
            live &= key[None, :] > position[:, None] - WINDOW
        scores = tl.where(live, scores, float("-inf"))
        m_next = tl.maximum(m, tl.max(scores, axis=1))
        weights = tl.math.exp2(scores - m_next[:, None])
        rescale = tl.math.exp2(m - m_next)
        l_next = l * rescale + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + base + tile, mask=present, other=0.0)
        scaled = acc * rescale[:, None]
        acc_next = tl.dot(weights.to(v.dtype), v, scaled, input_precision=PRECISION)
        sees = has_live_key(position, start, start + BLOCK_N - 1, WINDOW)
        m = tl.where(sees, m_next, m)
        l = tl.where(sees, l_next, l)
        acc = tl.where(sees[:, None], acc_next, acc)
    return m, l, acc


@triton.jit
def folded(m, l, acc, m_split, l_split, acc_split, sees):
    """Two states joined, the earlier splits first; a row that sees no key keeps its state."""
    m_next = tl.maximum(m, m_split)
    before = tl.math.exp2(m - m_next)
    after = tl.math.exp2(m_split - m_next)
    l_next = l * before + l_split * after
    acc_next = acc * before[:, None] + acc_split * after[:, None]
    m = tl.where(sees, m_next, m)
    l = tl.where(sees, l_next, l)
    acc = tl.where(sees[:, None], acc_next, acc)
    return m, l, acc


@triton.jit
def attention_splits(
    q_ptr,  # [R, HEADS, HEAD_DIM]
    k_ptr,  # [blocks, KV_HEADS, PAGE, HEAD_DIM]
    v_ptr,  # [blocks, KV_HEADS, PAGE, HEAD_DIM]
    tables_ptr,  # i32[seats, MAX_PAGES]
    positions_ptr,  # i32[R]
    tile_rows_ptr,  # i32[T]: the tile's first row
    tile_counts_ptr,  # i32[T]: its rows, 0 for a padding tile
    tile_seats_ptr,  # i32[T]
    states_ptr,  # i32[R]: where a row's split states are kept, distinct
    m_ptr,  # f32[states, HEADS, MAX_SPLITS]
    l_ptr,  # f32[states, HEADS, MAX_SPLITS]
    acc_ptr,  # f32[states, HEADS, MAX_SPLITS, HEAD_DIM]
    SCALE: tl.constexpr,  # log2(e) / sqrt(HEAD_DIM), or the model's own
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PAGE: tl.constexpr,
    MAX_PAGES: tl.constexpr,
    SPLIT: tl.constexpr,
    MAX_SPLITS: tl.constexpr,
    STRIDE: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Grid (T, KV_HEADS, STRIDE): program z does splits z, z + STRIDE, ... of its tile.

    STRIDE only says which program does a split. BLOCK_N divides PAGE, PAGE divides SPLIT.
    """
    tile = tl.program_id(0)
    head = tl.program_id(1)
    row_first = tl.load(tile_rows_ptr + tile)
    count = tl.load(tile_counts_ptr + tile)
    seat = tl.load(tile_seats_ptr + tile)
    index = tl.arange(0, BLOCK_M)
    real = index // GROUP < count
    row = row_first + index // GROUP
    position = tl.load(positions_ptr + row, mask=real, other=-1)
    key_end = tl.load(positions_ptr + row_first + count - 1, mask=count > 0, other=-1) + 1
    key_start = 0
    if WINDOW > 0:
        key_start = tl.maximum(tl.load(positions_ptr + row_first) - WINDOW + 1, 0)
    dim = tl.arange(0, HEAD_DIM)
    place = row.to(tl.int64) * (KV_HEADS * GROUP) + head * GROUP + index % GROUP
    q_place = place[:, None] * HEAD_DIM + dim[None, :]
    q = tl.load(q_ptr + q_place, mask=real[:, None], other=0.0)
    state = tl.load(states_ptr + row, mask=real, other=0).to(tl.int64)
    state = state * (KV_HEADS * GROUP) + head * GROUP + index % GROUP
    table_ptr = tables_ptr + seat * MAX_PAGES
    first_split = key_start // SPLIT
    for split in range(first_split + tl.program_id(2), tl.cdiv(key_end, SPLIT), STRIDE):
        first = split * SPLIT
        m, l, acc = attend_split(
            q, position, table_ptr, k_ptr, v_ptr, head, first, key_start, key_end,
            SCALE, KV_HEADS, HEAD_DIM, PAGE, SPLIT, WINDOW, BLOCK_M, BLOCK_N, PRECISION,
        )  # fmt: skip
        sees = real & has_live_key(position, first, first + SPLIT - 1, WINDOW)
        part = state * MAX_SPLITS + split
        tl.store(m_ptr + part, m, mask=sees)
        tl.store(l_ptr + part, l, mask=sees)
        tl.store(acc_ptr + part[:, None] * HEAD_DIM + dim[None, :], acc, mask=sees[:, None])


@triton.jit
def attention_combine(
    rows_ptr,  # i32[1]
    positions_ptr,  # i32[R]
    states_ptr,  # i32[R]: where a row's split states are kept, -1: attention_whole did the row
    m_ptr,  # f32[states, HEADS, MAX_SPLITS]
    l_ptr,  # f32[states, HEADS, MAX_SPLITS]
    acc_ptr,  # f32[states, HEADS, MAX_SPLITS, HEAD_DIM]
    out_ptr,  # [R, HEADS, HEAD_DIM]
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    SPLIT: tl.constexpr,
    MAX_SPLITS: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK_H: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Grid (R, HEADS / BLOCK_H rounded up). UNROLL states are loaded at once, folded one by one."""
    row = tl.program_id(0)
    state = tl.load(states_ptr + row)
    live = (row < tl.load(rows_ptr)) & (state >= 0)
    position = tl.load(positions_ptr + row)
    position = tl.where(live, position, -1)
    first_split = 0
    if WINDOW > 0:
        first_split = tl.maximum(position - WINDOW + 1, 0) // SPLIT
    last_split = tl.where(live, position // SPLIT, -1)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    real = (head < HEADS) & live
    dim = tl.arange(0, HEAD_DIM)
    place = row.to(tl.int64) * HEADS + head
    state_place = state.to(tl.int64) * HEADS + head
    m = tl.full((BLOCK_H,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_H,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_H, HEAD_DIM), dtype=tl.float32)
    for base in range(first_split, last_split + 1, UNROLL):
        for step in tl.static_range(UNROLL):
            split = base + step
            sees = real & (split <= last_split)
            part = state_place * MAX_SPLITS + split
            m_split = tl.load(m_ptr + part, mask=sees, other=0.0)
            l_split = tl.load(l_ptr + part, mask=sees, other=0.0)
            acc_place = part[:, None] * HEAD_DIM + dim[None, :]
            acc_split = tl.load(acc_ptr + acc_place, mask=sees[:, None], other=0.0)
            m, l, acc = folded(m, l, acc, m_split, l_split, acc_split, sees)
    out = (acc + 0.0) / l[:, None]
    out_place = place[:, None] * HEAD_DIM + dim[None, :]
    tl.store(out_ptr + out_place, out.to(out_ptr.dtype.element_ty), mask=real[:, None])


@triton.jit
def attention_whole(
    q_ptr,  # [R, HEADS, HEAD_DIM]
    k_ptr,  # [blocks, KV_HEADS, PAGE, HEAD_DIM]
    v_ptr,  # [blocks, KV_HEADS, PAGE, HEAD_DIM]
    tables_ptr,  # i32[seats, MAX_PAGES]
    positions_ptr,  # i32[R]
    tile_rows_ptr,  # i32[T]
    tile_counts_ptr,  # i32[T]
    tile_seats_ptr,  # i32[T]
    out_ptr,  # [R, HEADS, HEAD_DIM]
    SCALE: tl.constexpr,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PAGE: tl.constexpr,
    MAX_PAGES: tl.constexpr,
    SPLIT: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Grid (T, KV_HEADS): one program walks every split of its tile and folds as it goes."""
    tile = tl.program_id(0)
    head = tl.program_id(1)
    row_first = tl.load(tile_rows_ptr + tile)
    count = tl.load(tile_counts_ptr + tile)
    seat = tl.load(tile_seats_ptr + tile)
    index = tl.arange(0, BLOCK_M)
    real = index // GROUP < count
    row = row_first + index // GROUP
    position = tl.load(positions_ptr + row, mask=real, other=-1)
    key_end = tl.load(positions_ptr + row_first + count - 1, mask=count > 0, other=-1) + 1
    key_start = 0
    if WINDOW > 0:
        key_start = tl.maximum(tl.load(positions_ptr + row_first) - WINDOW + 1, 0)
    dim = tl.arange(0, HEAD_DIM)
    place = row.to(tl.int64) * (KV_HEADS * GROUP) + head * GROUP + index % GROUP
    q_place = place[:, None] * HEAD_DIM + dim[None, :]
    q = tl.load(q_ptr + q_place, mask=real[:, None], other=0.0)
    table_ptr = tables_ptr + seat * MAX_PAGES
    m = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    for split in range(key_start // SPLIT, tl.cdiv(key_end, SPLIT)):
        first = split * SPLIT
        m_split, l_split, acc_split = attend_split(
            q, position, table_ptr, k_ptr, v_ptr, head, first, key_start, key_end,
            SCALE, KV_HEADS, HEAD_DIM, PAGE, SPLIT, WINDOW, BLOCK_M, BLOCK_N, PRECISION,
        )  # fmt: skip
        sees = has_live_key(position, first, first + SPLIT - 1, WINDOW)
        m, l, acc = folded(m, l, acc, m_split, l_split, acc_split, sees)
    out = (acc + 0.0) / l[:, None]
    tl.store(out_ptr + q_place, out.to(out_ptr.dtype.element_ty), mask=real[:, None])
