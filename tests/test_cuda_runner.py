"""The GPU runner on small random models: the same rows in other batches have the same bits.

Skipped without a GPU. `benchmarks/device_*.py` hold the full matrix.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

from device_model import greedy_step, random_fetch  # noqa: E402
from device_plans import Pages  # noqa: E402

from pyvosti.config import Rope  # noqa: E402
from pyvosti.cuda_launch import device_arch  # noqa: E402
from pyvosti.cuda_runner import CudaRunner  # noqa: E402
from pyvosti.cuda_weights import fused_weights, rotary_tables  # noqa: E402
from pyvosti.triton_kernels.schedule import Shape, make_schedule  # noqa: E402

PLAIN = Shape(
    layers=2, hidden=512, heads=8, kv_heads=2, head_dim=64, ffn=1024, vocab=3001, rms_eps=1e-5,
    qkv_bias=False, qk_norm=False, layer_groups=(0, 0), windows=(0,), page=16, max_model_len=1024,
)  # fmt: skip
SHAPES = {
    "plain": PLAIN,
    "seven heads a group, biases": replace(PLAIN, heads=14, qkv_bias=True, page=64),
    "QK norm, window and full layers": replace(
        PLAIN, qk_norm=True, layer_groups=(0, 1), windows=(0, 100), page=32
    ),
    "heads of 256": replace(PLAIN, heads=4, head_dim=256, page=128),
    "narrow": replace(PLAIN, hidden=576, heads=9, kv_heads=3, ffn=1536),
}


def runner(shape: Shape, **options: bool) -> CudaRunner:
    schedule = make_schedule(shape, device_arch(), options.pop("strict", False))
    return CudaRunner(
        schedule, fused_weights(shape, random_fetch(shape, 1), False),
        rotary_tables(shape, [Rope(1e4, None)]), num_blocks=[128] * len(shape.windows), max_seqs=40,
        max_batched_tokens=700, **options,
    )  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_chunks_decode_and_neighbours_give_the_bits_of_one_prefill(name: str) -> None:
    shape = SHAPES[name]
    ids, other = np.random.default_rng(2).integers(0, shape.vocab, (2, 420))
    it = runner(shape)
    groups = len(shape.windows)

    def pages(seed: int) -> Pages:
        return Pages(128, shape.page, groups, seed)

    want = it.execute(pages(0).plan([(3, 0, ids)], True)).view(np.uint32)
    assert np.isfinite(want.view(np.float32)).all()
    for use, sizes in ((it, [400] + [1] * 20), (it, [37] * 12), (it, [300, 120]),
                       (runner(shape, graphs=False), [90] * 5),
                       (runner(shape, strict=True), [200, 220])):  # fmt: skip
        for layer in range(shape.layers):
            use.buffers[f"k_cache.{layer}"].fill_(float("nan"))
            use.buffers[f"v_cache.{layer}"].fill_(float("inf"))
        table, at = pages(len(sizes)), 0
        for size in sizes:
            part = ids[at : at + size]
            if len(part):
                got = use.execute(table.plan([(1, 0, other[:5]), (7, at, part)][at > 0 :], True))
                got = got[5:] if at == 0 else got
                assert np.array_equal(got.view(np.uint32), want[at : at + len(part)]), (size, at)
            at += len(part)


def test_unknown_tokens_are_the_seats_last_tokens() -> None:
    it, table = runner(PLAIN), Pages(128, 16, 1, 4)
    prompt = np.arange(50)
    tokens = [greedy_step(it, table.plan([(5, 0, prompt)])).wait().tokens[0]]
    for i in range(3):
        plan = table.plan([(5, 50 + i, np.array([0xFFFFFFFF]))])
        tokens.append(greedy_step(it, plan).wait().tokens[0])
    whole = np.concatenate([prompt, tokens[:-1]])
    logits = it.execute(Pages(128, 16, 1, 5).plan([(0, 0, whole)], True))
    assert logits[49:].argmax(1).tolist() == [int(t) for t in tokens]


@pytest.mark.parametrize("tied", [False, True])
def test_other_weights_give_the_bits_of_a_runner_made_with_them(tied: bool) -> None:
    ids = np.random.default_rng(4).integers(0, PLAIN.vocab, 90)

    def make(seed: int) -> CudaRunner:
        return CudaRunner(
            make_schedule(PLAIN, device_arch()),
            fused_weights(PLAIN, random_fetch(PLAIN, seed), tied),
            rotary_tables(PLAIN, [Rope(1e4, None)]), num_blocks=[128], max_seqs=8,
            max_batched_tokens=128,
        )  # fmt: skip

    def logits(it: CudaRunner) -> np.ndarray:
        return it.execute(Pages(128, 16, 1, 8).plan([(0, 0, ids)], True))

    it = make(1)
    before = logits(it)
    it.copy_weights(random_fetch(PLAIN, 2))
    after = logits(it)
    assert np.array_equal(after, logits(make(2))) and not np.array_equal(after, before)

    def wrong(name: str) -> torch.Tensor:
        weight = random_fetch(PLAIN, 1)(name)
        return weight[1:] if name == first_wrong else weight

    first_wrong = "embed"
    with pytest.raises(ValueError, match="embed is"):
        it.copy_weights(wrong)
    assert np.array_equal(logits(it), after)
    first_wrong = "layers.1.down"
    with pytest.raises(ValueError, match=r"layers\.1\.down is"):
        it.copy_weights(wrong)
    with pytest.raises(RuntimeError, match="load weights again"):
        logits(it)
    it.copy_weights(random_fetch(PLAIN, 1))
    assert np.array_equal(logits(it), before)


def test_memory_that_cannot_fit_is_refused_before_serving() -> None:
    schedule = make_schedule(PLAIN, device_arch())
    weights = fused_weights(PLAIN, random_fetch(PLAIN, 1), False)
    with pytest.raises(MemoryError, match="lower max_batched_tokens"):
        CudaRunner(
            schedule, weights, rotary_tables(PLAIN, [Rope(1e4, None)]), num_blocks=[2**27],
            max_seqs=4, max_batched_tokens=64,
        )  # fmt: skip
