"""Each Triton kernel under Triton's interpreter against a float64 oracle in numpy.

Collected only by `test_triton_interpreter.py`, in a process with TRITON_INTERPRET=1: one process
cannot both interpret and compile. f32 and f16 only: the interpreter multiplies bf16 bit patterns
as integers in `tl.dot`.
"""

import numpy as np
import pytest
import torch

from pyvosti.triton_kernels.argmax import argmax
from pyvosti.triton_kernels.attention import attention_combine, attention_splits, attention_whole
from pyvosti.triton_kernels.embedding import embedding
from pyvosti.triton_kernels.gate_up import gate_up
from pyvosti.triton_kernels.gather_rows import gather_rows
from pyvosti.triton_kernels.linear import linear
from pyvosti.triton_kernels.log_softmax import log_softmax
from pyvosti.triton_kernels.rms_norm import rms_norm
from pyvosti.triton_kernels.rope_kv_write import rope_kv_write
from pyvosti.triton_kernels.sampler import adjust, sample
from pyvosti.triton_kernels.sandwich_norm import sandwich_norm

NAN = float("nan")


def i32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def f64(tensor: torch.Tensor) -> np.ndarray:
    return tensor.to(torch.float64).numpy()


def bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.contiguous().view(torch.uint8).numpy()


def close(got: torch.Tensor, want: np.ndarray, relative: float) -> None:
    error = np.linalg.norm(f64(got) - want) / np.linalg.norm(want)
    assert error < relative, error


def test_embedding_gathers_and_takes_the_last_token_of_a_seat() -> None:
    table = normal(11, 24, seed=1)
    out = torch.full((4, 24), NAN)
    inputs = (i32(3), i32(7, -1, 0, 0), i32(0, 2, 0, 0), i32(5, 5, 9))
    for scale in (1.0, 3.0):
        embedding[(4,)](*inputs, table, out, 24, 32, scale)
        assert torch.equal(out[:3], table[[7, 9, 0]] * scale)
        assert out[3].isnan().all(), "a padding row stored something"


def test_gather_rows_copies() -> None:
    x = normal(6, 24, seed=1)
    out = torch.full((3, 24), NAN)
    gather_rows[(3,)](i32(2), i32(5, 1, 0), x, out, 24, 32)
    assert torch.equal(out[:2], x[[5, 1]]) and out[2].isnan().all()


@pytest.mark.parametrize("splits", [0, 1, 2, 4])
def test_rms_norm(splits: int) -> None:
    hidden, rows, capacity = 24, 3, 4
    residual, weight = normal(capacity, hidden, seed=2), normal(hidden, seed=3)
    parts = normal(capacity, max(splits, 1), hidden, seed=4)
    residual_out, out = torch.full((2, capacity, hidden), NAN)
    rms_norm[(capacity,)](
        i32(rows), parts, residual, weight, residual_out, out, hidden, 32, splits,
        1e-5,
    )  # fmt: skip
    x = f64(residual)[:rows] + (f64(parts).sum(1)[:rows] if splits else 0)
    want = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * f64(weight)
    close(out[:rows], want, 1e-6)
    if splits:
        close(residual_out[:rows], x, 1e-6)
    assert out[rows:].isnan().all() and residual_out[rows:].isnan().all()


@pytest.mark.parametrize("splits", [1, 3])
def test_sandwich_norm(splits: int) -> None:
    hidden, rows, capacity = 24, 3, 4
    residual, weights = normal(capacity, hidden, seed=2), normal(2, hidden, seed=3)
    parts = normal(capacity, splits, hidden, seed=4)
    residual_out, out = torch.full((2, capacity, hidden), NAN)
    sandwich_norm[(capacity,)](
        i32(rows), parts, weights[0], residual, weights[1], residual_out, out, hidden, 32, splits,
        1e-5,
    )  # fmt: skip

    def norm(x: np.ndarray, weight: torch.Tensor) -> np.ndarray:
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * f64(weight)

    x = f64(residual)[:rows] + norm(f64(parts).sum(1)[:rows], weights[0])
    close(residual_out[:rows], x, 1e-6)
    close(out[:rows], norm(x, weights[1]), 1e-6)
    assert out[rows:].isnan().all() and residual_out[rows:].isnan().all()


def run_linear(x, w, bias, rows, splits, tile, dtype=torch.float32):
    """[R, N] for one part, f32[R, SPLITS, N] for more."""
    capacity, n, k = x.shape[0], w.shape[0], w.shape[1]
    block_m, block_n, block_k, group_n = tile
    groups = -(-n // (block_n * group_n))
    out = torch.full((capacity, n), NAN, dtype=dtype)
    if splits > 1:
        out = torch.full((capacity, splits, n), NAN)
    linear[(group_n, -(-capacity // block_m), groups * splits)](
        i32(rows), x, w, x if bias is None else bias, out, n, k, splits, bias is not None, group_n,
        block_m, block_n, block_k, "ieee",
    )  # fmt: skip
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("splits", [1, 2, 4])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear(dtype: torch.dtype, splits: int, with_bias: bool) -> None:
    rows, n, k = 17, 40, 128
    x, w = normal(32, k, seed=5, dtype=dtype), normal(n, k, seed=6, dtype=dtype)
    bias = normal(n, seed=7, dtype=dtype) if with_bias else None
    out = run_linear(x, w, bias, rows, splits, (16, 16, 32, 3), dtype)
    want = f64(x)[:rows] @ f64(w).T + (f64(bias) if with_bias else 0)
    total = f64(out[:rows]).sum(1) if splits > 1 else f64(out[:rows])
    rounded = splits == 1 and dtype == torch.float16
    assert np.linalg.norm(total - want) < (1e-3 if rounded else 1e-6) * np.linalg.norm(want)
    assert out[rows:].isnan().all()


def test_linear_row_alone_and_among_others() -> None:
    x, w = normal(32, 64, seed=8), normal(16, 64, seed=9)
    batch = run_linear(x, w, None, 32, 2, (16, 16, 32, 1))
    for row in (0, 5, 15, 16, 31):
        alone = torch.full((16, 64), NAN)
        alone[3] = x[row]
        out = run_linear(alone, w, None, 4, 2, (16, 16, 32, 1))
        assert np.array_equal(bits(out[3]), bits(batch[row]))


@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_gate_up(dtype: torch.dtype, gelu: bool) -> None:
    rows, n, k = 9, 24, 64
    x, w = normal(16, k, seed=10, dtype=dtype), normal(2 * n, k, seed=11, dtype=dtype)
    out = torch.full((16, n), NAN, dtype=dtype)
    gate_up[(1, 1, 2)](i32(rows), x, w, out, n, k, 1, 16, 16, 32, "ieee", gelu)
    gate, up = np.split(f64(x)[:rows] @ f64(w).T, 2, axis=1)
    inner = np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)
    active = 0.5 * gate * (1 + np.tanh(inner)) if gelu else gate / (1 + np.exp(-gate))
    close(out[:rows], active * up, 1e-6 if dtype == torch.float32 else 1e-3)
    assert out[rows:].isnan().all()


class Heads:
    """A small attention shape with its cache, tables and rotary tables."""

    def __init__(self, heads: int, kv_heads: int, half: int, page: int, pages: int, seed: int):
        self.heads, self.kv_heads, self.half, self.page = heads, kv_heads, half, page
        self.dims = 2 * half
        self.k = torch.full((pages, kv_heads, page, self.dims), NAN)
        self.v = torch.full((pages, kv_heads, page, self.dims), NAN)
        angle = torch.arange(256)[:, None] / 100.0 ** (torch.arange(half) / half)[None, :]
        self.cos, self.sin = angle.cos().contiguous(), angle.sin().contiguous()
        self.q_norm, self.k_norm = normal(2, self.dims, seed=seed)

    def write(self, qkv, positions, slots, rows, splits=1, qk_norm=False) -> torch.Tensor:
        capacity = len(slots)
        group = self.heads // self.kv_heads
        q_out = torch.full((capacity, self.heads, self.dims), NAN)
        rope_kv_write[(capacity, self.kv_heads)](
            i32(rows), qkv, self.cos, self.sin, i32(*positions), i32(*slots), self.q_norm,
            self.k_norm, q_out, self.k, self.v, self.heads, self.kv_heads, self.half, group,
            1 << (group - 1).bit_length(), self.page, splits, qk_norm, 1e-6,
        )  # fmt: skip
        return q_out


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.parametrize("qk_norm", [False, True])
def test_rope_kv_write(splits: int, qk_norm: bool) -> None:
    it = Heads(6, 2, 8, 4, 5, seed=12)
    qkv = normal(4, splits, 10, 16, seed=13)
    positions, slots, rows = [3, 100, 7, 9], [2, 9, -1, 17], 3
    q_out = it.write(qkv, positions, slots, rows, splits, qk_norm)
    full = f64(qkv).sum(1)
    for row in range(2):
        x = full[row]
        q, k, v = x[:6], x[6:8], x[8:]
        if qk_norm:
            q = q / np.sqrt((q * q).mean(1, keepdims=True) + 1e-6) * f64(it.q_norm)
            k = k / np.sqrt((k * k).mean(1, keepdims=True) + 1e-6) * f64(it.k_norm)
        cos, sin = f64(it.cos)[positions[row]], f64(it.sin)[positions[row]]

        def turned(y, cos=cos, sin=sin):
            low, high = y[:, :8], y[:, 8:]
            return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=1)

        page, offset = divmod(slots[row], 4)
        close(q_out[row], turned(q), 1e-6)
        close(it.k[page, :, offset], turned(k), 1e-6)
        close(it.v[page, :, offset], v, 1e-6)
    written = ~it.k.isnan().all(-1)
    assert written.sum() == 2 * 2, "slot -1 or a padding row was written"
    assert q_out[3].isnan().all()


def test_a_value_that_is_not_finite_is_kept_out_of_v_and_flagged_in_its_key() -> None:
    it = Heads(2, 1, 8, 4, 2, seed=14)
    qkv = normal(2, 1, 4, 16, seed=15)
    qkv[0, 0, 3, 5] = float("inf")
    qkv[1, 0, 3, 12] = NAN
    it.write(qkv, [0, 1], [0, 1], 2)
    assert it.v[0, 0, :2].isfinite().all()
    assert it.k[0, 0, :2, 0].isnan().all() and it.k[0, 0, :2, 1:].isfinite().all()


def attend(it: Heads, q, positions, seat, tables, split, window, whole, block_m):
    """One sequence's rows through either member; rows tiled as the launch plan does."""
    rows, group = len(positions), it.heads // it.kv_heads
    step = block_m // group
    starts = list(range(0, rows, step))
    counts = [min(step, rows - s) for s in starts]
    tiles = (i32(*starts, 0), i32(*counts, 0), i32(*[seat] * len(starts), 0))
    out = torch.full((rows, it.heads, it.dims), NAN)
    scale = 1.4426950408889634 / it.dims**0.5
    shape = (scale, it.kv_heads, group, it.dims, it.page, tables.shape[1], split)
    if whole:
        attention_whole[(len(starts) + 1, it.kv_heads)](
            q, it.k, it.v, tables, i32(*positions), *tiles, out, *shape, window, block_m, 8, "ieee"
        )
        return out
    splits = 256 // split
    m, l = torch.full((2, rows, it.heads, splits), NAN)
    acc = torch.full((rows, it.heads, splits, it.dims), NAN)
    attention_splits[(len(starts) + 1, it.kv_heads, 2)](
        q, it.k, it.v, tables, i32(*positions), *tiles, i32(*reversed(range(rows))), m, l,
        acc, *shape, splits, 2, window,
        block_m, 8, "ieee",
    )  # fmt: skip
    attention_combine[(rows, 2)](
        i32(rows), i32(*positions), i32(*reversed(range(rows))), m, l, acc, out, it.heads,
        it.dims, split, splits, window, 4, 2,
    )  # fmt: skip
    return out


def attention_oracle(it: Heads, q, positions, keys, values, window) -> np.ndarray:
    group = it.heads // it.kv_heads
    out = np.zeros(q.shape)
    for row, position in enumerate(positions):
        first = max(0, position - window + 1) if window else 0
        for head in range(it.heads):
            k = f64(keys)[first : position + 1, head // group]
            v = f64(values)[first : position + 1, head // group]
            s = k @ f64(q)[row, head] / it.dims**0.5
            p = np.exp(s - s.max())
            out[row, head] = (p / p.sum()) @ v
    return out


def fill(it: Heads, table: list[int], keys, values) -> None:
    for position in range(len(keys)):
        page, offset = table[position // it.page], position % it.page
        it.k[page, :, offset], it.v[page, :, offset] = keys[position], values[position]


@pytest.mark.parametrize("window", [0, 20])
@pytest.mark.parametrize("group", [1, 3])
def test_attention_members_chunks_and_pages(window: int, group: int) -> None:
    context, split = 70, 32
    keys, values = normal(2, context, 2, 16, seed=16)
    q = normal(context, 2 * group, 16, seed=17)
    want = None
    for seat, table in ((0, [3, 1, 8, 0, 6]), (1, [9, 7, 2, 5, 4])):
        it = Heads(2 * group, 2, 8, 16, 10, seed=18)
        fill(it, table, keys, values)
        tables = torch.full((2, 16), 9, dtype=torch.int32)
        tables[seat, :5] = torch.tensor(table)
        args = (seat, tables, split, window)
        whole = attend(it, q, range(context), *args, True, 16)
        split_up = attend(it, q, range(context), *args, False, 16)
        oracle = attention_oracle(it, q, range(context), keys, values, window)
        close(whole, oracle, 1e-6)
        assert np.array_equal(bits(whole), bits(split_up)), "two members differ"
        for first in (31, 64, 69):
            chunk = attend(it, q[first:].contiguous(), range(first, context), *args, True, 16)
            assert np.array_equal(bits(chunk), bits(whole[first:])), f"chunk from {first}"
        assert want is None or np.array_equal(bits(want), bits(whole)), "pages showed"
        want = whole


def test_a_flagged_key_makes_nan_only_where_it_is_live() -> None:
    keys, values = normal(2, 20, 1, 16, seed=19)
    keys[10, 0, 0] = NAN
    it = Heads(2, 1, 8, 16, 4, seed=20)
    fill(it, [2, 0], keys, values)
    tables = i32(2, 0).reshape(1, 2)
    out = attend(it, normal(20, 2, 16, seed=21), range(20), 0, tables, 32, 0, True, 16)
    assert out[:10].isfinite().all() and out[10:].isnan().all()


def test_argmax_ties_and_nan() -> None:
    logits = normal(4, 100, seed=22)
    logits[0, [90, 17, 40]] = 9.0
    logits[1, 3] = NAN
    logits[2] = float("-inf")
    out, last = i32(-7, -7, -7, -7), i32(-7, -7, -7, -7)
    argmax[(4,)](i32(3), logits, i32(2, -1, 0, 1), out, last, 100, 32)
    assert last.tolist() == [0, -7, 17, -7]
    assert out.tolist() == [17, int(np.nanargmax(f64(logits[1]))), 0, -7]


def test_log_softmax() -> None:
    logits = 5 * normal(3, 100, seed=23)
    out = torch.full((3, 100), NAN)
    log_softmax[(3,)](logits, out, 100, 32)
    x = f64(logits)
    peak = x.max(1, keepdims=True)
    close(out, x - peak - np.log(np.exp(x - peak).sum(1, keepdims=True)), 1e-6)


def philox(seed: int, counter: list[int]) -> int:
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (b >> 32) ^ counter[1] ^ key[0], b & 0xFFFFFFFF,
            (a >> 32) ^ counter[3] ^ key[1], a & 0xFFFFFFFF,
        ]  # fmt: skip
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter[0]


def sample_oracle(x, *, seed, index, position, temperature, top_k, top_p, min_p) -> int:
    """The sampler of the specification on adjusted logits, sorted and cumulated in float64."""
    order = sorted(range(len(x)), key=lambda i: (-x[i], i))
    if top_k:
        order = order[:top_k]
    p = np.exp(x[order] - x.max())
    if top_p < 1:
        order = order[: int(np.searchsorted(np.cumsum(p), top_p * p.sum())) + 1]
    order = [i for i in order if np.exp(x[i] - x.max()) >= min_p]
    noise = {}
    for i in order:
        u = ((philox(seed, [i, position, index, 0]) >> 9) + 0.5) * 2.0**-23
        noise[i] = -np.log(-np.log(u)) if temperature else 0.0
    return max(order, key=lambda i: (x[i] + noise[i], -i))


CASES = [
    dict(temperature=0.0, top_k=0, top_p=1.0, min_p=0.0),
    dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0),
    dict(temperature=0.7, top_k=5, top_p=1.0, min_p=0.0),
    dict(temperature=1.3, top_k=0, top_p=0.6, min_p=0.0),
    dict(temperature=1.0, top_k=20, top_p=0.5, min_p=0.0),
    dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.3),
    dict(temperature=1.0, top_k=1, top_p=1.0, min_p=0.0),
]


@pytest.mark.parametrize("ties", [False, True])
def test_sample_against_the_sorted_oracle(ties: bool) -> None:
    n, vocab = len(CASES), 70
    logits = normal(n, vocab, seed=24)
    if ties:
        logits = (logits * 2).round() / 2
    f32 = {key: torch.tensor([c[key] for c in CASES]) for key in ("temperature", "top_p")}
    log_min_p = torch.tensor([c["min_p"] for c in CASES]).log()
    ones, zeros = torch.ones(n), torch.zeros(n)
    adjusted = torch.empty(n, vocab)
    adjust[(n, 3)](
        logits, torch.arange(n, dtype=torch.int32), zeros, zeros, zeros, f32["temperature"], ones,
        zeros, zeros, adjusted, vocab, 32, False, False,
    )  # fmt: skip
    for trial in range(2):
        seeds = [(trial << 40) + 77 * row + (1 << 63) for row in range(n)]
        out, last = torch.full((2, n), -1, dtype=torch.int32)
        sample[(n,)](
            adjusted, torch.tensor(seeds, dtype=torch.uint64).view(torch.int64),
            torch.full((n,), trial, dtype=torch.int32), torch.arange(n, dtype=torch.int32),
            f32["temperature"], i32(*[c["top_k"] for c in CASES]), f32["top_p"], log_min_p,
            torch.arange(n, dtype=torch.int32), out, last, vocab, 32,
        )  # fmt: skip
        for row, case in enumerate(CASES):
            want = sample_oracle(
                f64(adjusted[row]), seed=seeds[row], index=trial, position=row, **case
            )
            assert out[row] == last[row] == want, (trial, row)


def test_adjust_applies_bias_and_penalties_in_order() -> None:
    logits, bias = normal(2, 40, seed=25), normal(2, 40, seed=26)
    prompt, output = torch.randint(0, 3, (2, 2, 40), dtype=torch.int32)
    rows = torch.tensor([1, 0], dtype=torch.int32)
    params = dict(t=[0.0, 0.5], rep=[1.3, 2.0], pres=[0.1, 0.4], freq=[0.2, 0.0])
    t, rep, pres, freq = (torch.tensor(params[k]) for k in ("t", "rep", "pres", "freq"))
    out = torch.full((2, 40), NAN)
    adjust[(2, 2)](logits, rows, bias, prompt, output, t, rep, pres, freq, out, 40, 32, True, True)
    x = f64(logits)[[1, 0]] + f64(bias)
    seen, count = f64(prompt + output) > 0, f64(output)
    column = {k: np.array(v)[:, None] for k, v in params.items()}
    x = np.where(seen, np.where(x > 0, x / column["rep"], x * column["rep"]), x)
    x = x - column["freq"] * count - column["pres"] * (count > 0)
    close(out, np.where(column["t"] > 0, x / np.maximum(column["t"], 1e-9), x), 1e-6)
