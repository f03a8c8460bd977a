"""The CPU backend on a real model: SmolLM2-135M-Instruct in Q4_1."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pyvosti import _core
from pyvosti.errors import ModelError
from pyvosti.loader import LoadedModel, load_model
from pyvosti.runner import core_config

BLOCK = 16
SEATS = 70


@pytest.fixture(scope="module")
def smollm2() -> LoadedModel:
    try:
        return load_model("smollm2")
    except ModelError as error:
        pytest.skip(str(error))


class Sequences:
    """A model and the pages of its sequences: seat s has every 70th page, from page s on."""

    def __init__(self, model: LoadedModel, threads: int = 2, isa: str | None = None) -> None:
        config = model.config
        self.core = _core.CpuModel(
            core_config(config, [0] * config.n_layers, [None]),
            dict(model.tensors),
            [SEATS * 32 * BLOCK],
            BLOCK,
            threads,
            isa,
        )
        self.table = np.arange(SEATS * 32, dtype=np.uint32).reshape(32, SEATS).T.copy()

    def step(self, parts: list[tuple[int, int, list[int]]]) -> list[NDArray[np.float32]]:
        """Logits of every row of (seat, first position, tokens)."""
        seats = np.array([seat for seat, _, _ in parts], np.uint32)
        counts = [len(tokens) for _, _, tokens in parts]
        starts = np.cumsum([0, *counts]).astype(np.uint32)
        positions = np.concatenate([np.arange(p, p + len(t), dtype=np.uint32) for _, p, t in parts])
        pages = self.table[np.repeat(seats, counts), positions // BLOCK]
        logits = self.core.forward(
            np.concatenate([np.array(tokens, np.uint32) for _, _, tokens in parts]),
            positions,
            [pages * BLOCK + positions % BLOCK],
            starts,
            np.array([p + len(t) for _, p, t in parts], np.uint32),
            seats,
            [self.table],
            np.arange(starts[-1], dtype=np.uint32),
        )
        return np.split(logits, starts[1:-1])


def same_bits(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    return bool((a.view(np.uint32) == b.view(np.uint32)).all())


def test_logits_agree_with_transformers(smollm2: LoadedModel) -> None:
    """Greedy text, and a largest absolute difference below 1e-3 (measured: 5.8e-5)."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    sequences = Sequences(smollm2)
    tokens = [int(i) for i in smollm2.tokenizer.encode("The capital of France is")]
    for _ in range(24):
        token = _core.argmax(sequences.step([(0, 0, tokens)])[0][-1:])[0]
        tokens.append(int(token))
    assert "Paris" in smollm2.tokenizer.decode(tokens)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(smollm2.path.parent), gguf_file=smollm2.path.name, dtype=torch.float32
    )
    with torch.inference_mode():
        want = model(torch.tensor([tokens])).logits[0].numpy()
    got = sequences.step([(1, 0, tokens)])[0]
    assert (got.argmax(-1) == want.argmax(-1)).all()
    assert np.abs(got - want).max() < 1e-3


def test_bits_do_not_depend_on_how_rows_are_computed(smollm2: LoadedModel) -> None:
    tokens = np.random.default_rng(0).integers(0, 49_000, 290).tolist()
    want = Sequences(smollm2, threads=1).step([(0, 0, tokens)])[0]
    for threads, isa in [(2, None), (3, None), (2, "baseline")]:
        sequences = Sequences(smollm2, threads, isa)
        got = [
            sequences.step([(0, 0, tokens[:200])])[0],
            sequences.step([(0, 200, tokens[200:281])])[0],
        ]
        # The rest one by one, first alone and then among more and more others.
        for i, neighbours in enumerate([0, 1, 2, 6, 15, 32, 69, 3, 0]):
            others = [(seat, 0, [seat]) for seat in range(1, neighbours + 1)]
            parts = [*others[: i % 3], (0, 281 + i, [tokens[281 + i]]), *others[i % 3 :]]
            at = min(i % 3, neighbours)
            got.append(sequences.step(parts)[at])
        assert same_bits(np.concatenate(got), want), (threads, isa)


def test_a_planted_difference_is_noticed(smollm2: LoadedModel) -> None:
    """A key and value of the past that are not what they were are found by comparing bits."""
    sequences = Sequences(smollm2)
    tokens = list(range(100, 120))
    want = sequences.step([(0, 0, tokens)])[0]
    sequences.core.fill_slot(0, int(sequences.table[0, 0]) * BLOCK + 3, 0.0)
    got = sequences.step([(0, 19, tokens[19:])])[0]
    assert not same_bits(got, want[19:])
