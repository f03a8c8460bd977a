"""Seeded sampling of one row: bias and penalties, temperature, top-k, top-p, min-p, Gumbel noise.

Fixed: a row is one program of `sample` and is read by nobody else; its noise is keyed by (seed,
sample index, output position, token id), so its token is a function of its logits, parameters
and history. top-k and top-p keep the tokens at or above a threshold in the order (logit, then
lowest id first): the threshold is found by bisection over the bits of the ordered key, which
needs no sort; each step adds weights lane by lane, then over lanes by one `tl.sum`. A fixed tree
of rounded additions grows with each of its terms, so the bisection is sound in f32.
"""

import triton
import triton.language as tl

from .noise import gumbel


@triton.jit
def adjust(
    logits_ptr,  # f32[L, VOCAB]
    logits_rows_ptr,  # i32[N]: row of `logits` of each sample
    bias_ptr,  # f32[N, VOCAB], read with HAS_BIAS only
    prompt_counts_ptr,  # i32[N, VOCAB], read with HAS_PENALTIES only
    output_counts_ptr,  # i32[N, VOCAB], read with HAS_PENALTIES only
    temperature_ptr,  # f32[N], 0: greedy, left unscaled
    repetition_ptr,  # f32[N]
    presence_ptr,  # f32[N]
    frequency_ptr,  # f32[N]
    out_ptr,  # f32[N, VOCAB]
    VOCAB: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_PENALTIES: tl.constexpr,
):
    """Grid (N, VOCAB / BLOCK rounded up). NaN becomes -inf: it is never drawn."""
    row = tl.program_id(0)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = token < VOCAB
    place = row.to(tl.int64) * VOCAB + token
    source = tl.load(logits_rows_ptr + row).to(tl.int64) * VOCAB
    value = tl.load(logits_ptr + source + token, mask=inside, other=0.0)
    if HAS_BIAS:
        value += tl.load(bias_ptr + place, mask=inside, other=0.0)
    if HAS_PENALTIES:
        prompt = tl.load(prompt_counts_ptr + place, mask=inside, other=0)
        output = tl.load(output_counts_ptr + place, mask=inside, other=0)
        repetition = tl.load(repetition_ptr + row)
        scaled = tl.where(value > 0.0, value / repetition, value * repetition)
        value = tl.where(prompt + output > 0, scaled, value)
        value -= tl.load(frequency_ptr + row) * output.to(tl.float32)
        value -= tl.where(output > 0, tl.load(presence_ptr + row), 0.0)
    temperature = tl.load(temperature_ptr + row)
    value = tl.where(temperature > 0.0, value / temperature, value) + 0.0
    value = tl.where(value == value, value, float("-inf"))
    tl.store(out_ptr + place, value, mask=inside)


@triton.jit
def ordered_key(value):
    """u32 keys in the order of the f32 values (no NaN, no -0.0)."""
    bits = value.to(tl.int32, bitcast=True)
    flip = (bits >> 31) | -2147483648
    return (bits ^ flip).to(tl.uint32, bitcast=True)


@triton.jit
def passes(key, token, bound_key, bound_token):
    """Whether a token is at or above a bound in the order (key descending, id ascending)."""
    return (key > bound_key) | ((key == bound_key) & (token <= bound_token))


@triton.jit
def weight_above(
    row_ptr, peak, floor_key, floor_token, key0, token0, key1, token1, key2, token2,
    COUNT: tl.constexpr, VOCAB: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Weights of the tokens above the floor and each of three bounds: counts or probabilities."""
    lane = tl.arange(0, BLOCK)
    sum0 = tl.zeros((BLOCK,), dtype=tl.float32)
    sum1 = tl.zeros((BLOCK,), dtype=tl.float32)
    sum2 = tl.zeros((BLOCK,), dtype=tl.float32)
    for base in range(0, VOCAB, BLOCK):
        token = base + lane
        value = tl.load(row_ptr + token, mask=token < VOCAB, other=float("-inf"))
        key = ordered_key(value)
        kept = passes(key, token, floor_key, floor_token) & (token < VOCAB)
        if COUNT:
            weight = tl.where(kept, 1.0, 0.0)
        else:
            weight = tl.where(kept, tl.exp(value - peak), 0.0)
        sum0 += tl.where(passes(key, token, key0, token0), weight, 0.0)
        sum1 += tl.where(passes(key, token, key1, token1), weight, 0.0)
        sum2 += tl.where(passes(key, token, key2, token2), weight, 0.0)
    return tl.sum(sum0, axis=0), tl.sum(sum1, axis=0), tl.sum(sum2, axis=0)


@triton.jit
def bound_reaching(
    row_ptr, peak, floor_key, floor_token, target,
    COUNT: tl.constexpr, VOCAB: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The highest bound (key, id) whose tokens, among those above the floor, weigh >= target."""
    key = (floor_key * 0).to(tl.uint32)
    none = floor_token * 0 - 1
    every = floor_token * 0 + VOCAB
    for step in range(16):
        one = (key * 0 + 1) << (key * 0 + (30 - 2 * step))
        low, middle, high = weight_above(
            row_ptr, peak, floor_key, floor_token, key + one, every, key + 2 * one, every,
            key + 3 * one, every, COUNT, VOCAB, BLOCK,
        )  # fmt: skip
        digit = tl.where(low >= target, 1, 0) + tl.where(middle >= target, 1, 0)
        digit += tl.where(high >= target, 1, 0)
        key += digit.to(tl.uint32) * one
    token = every
    with_ties, above, _ = weight_above(
        row_ptr, peak, floor_key, floor_token, key, every, key, none, key, none,
        True, VOCAB, BLOCK,
    )  # fmt: skip
    if with_ties - above > 1.0:
        token = none
        for step in range(10):
            one = (none * 0 + 1) << (none * 0 + (18 - 2 * step))
            low, middle, high = weight_above(
                row_ptr, peak, floor_key, floor_token, key, token + one, key, token + 2 * one,
                key, token + 3 * one, COUNT, VOCAB, BLOCK,
            )  # fmt: skip
            digit = tl.where(low < target, 1, 0) + tl.where(middle < target, 1, 0)
            digit += tl.where(high < target, 1, 0)
            token += digit * one
        token += 1
    return key, token


@triton.jit
def sample(
    adjusted_ptr,  # f32[N, VOCAB]
    seeds_ptr,  # i64[N]: the bits of the u64 seed
    sample_indices_ptr,  # i32[N]
    positions_ptr,  # i32[N]: output positions
    temperature_ptr,  # f32[N]
    top_k_ptr,  # i32[N], 0: off
    top_p_ptr,  # f32[N], 1: off
    log_min_p_ptr,  # f32[N]: ln(min_p), -inf: off
    seats_ptr,  # i32[N]: the row's seat
    tokens_ptr,  # i32[N]
    last_tokens_ptr,  # i32[seats]
    VOCAB: tl.constexpr,  # at most 2^20
    BLOCK: tl.constexpr,
):
    """Grid (N,)."""
    row = tl.program_id(0)
    row_ptr = adjusted_ptr + row.to(tl.int64) * VOCAB
    lane = tl.arange(0, BLOCK)
    peaks = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for base in range(0, VOCAB, BLOCK):
        token = base + lane
        value = tl.load(row_ptr + token, mask=token < VOCAB, other=float("-inf"))
        peaks = tl.maximum(peaks, value)
    peak = tl.max(peaks, axis=0)

    bound_key = ordered_key(peak) * 0
    bound_token = row * 0 + VOCAB
    top_k = tl.load(top_k_ptr + row)
    if (top_k > 0) & (top_k < VOCAB):
        bound_key, bound_token = bound_reaching(
            row_ptr, peak, bound_key, bound_token, top_k.to(tl.float32), True, VOCAB, BLOCK
        )
    top_p = tl.load(top_p_ptr + row)
    if top_p < 1.0:
        total, _, _ = weight_above(
            row_ptr, peak, bound_key, bound_token, bound_key, bound_token, bound_key,
            bound_token, bound_key, bound_token, False, VOCAB, BLOCK,
        )  # fmt: skip
        bound_key, bound_token = bound_reaching(
            row_ptr, peak, bound_key, bound_token, total * top_p, False, VOCAB, BLOCK
        )
    least = peak + tl.load(log_min_p_ptr + row)

    noisy = tl.load(temperature_ptr + row) > 0.0
    seed = tl.load(seeds_ptr + row)
    sample_index = tl.load(sample_indices_ptr + row)
    position = tl.load(positions_ptr + row)
    best = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    where = lane
    for base in range(0, VOCAB, BLOCK):
        token = base + lane
        value = tl.load(row_ptr + token, mask=token < VOCAB, other=float("-inf"))
        kept = passes(ordered_key(value), token, bound_key, bound_token) & (value >= least)
        score = value + tl.where(noisy, gumbel(seed, sample_index, position, token), 0.0)
        better = kept & (score > best)
        best = tl.where(better, score, best)
        where = tl.where(better, token, where)
    top = tl.max(best, axis=0)
    token = tl.min(tl.where(best == top, where, VOCAB), axis=0)
    tl.store(tokens_ptr + row, token)
    tl.store(last_tokens_ptr + tl.load(seats_ptr + row), token)
