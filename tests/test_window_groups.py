"""Layers with a window give back the blocks that no later row sees, and no bit knows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyvosti import LLM, SamplingParams
from pyvosti._core import Engine
from tiny_models import FAMILIES, save_tiny_model

pytestmark = pytest.mark.usefixtures("on_the_cpu")
BLOCK = 16
PROMPTS = [list(range(3, 3 + n)) for n in (150, 40, 7, 41, 90)]
GREEDY = SamplingParams(max_tokens=200, temperature=0, ignore_eos=True)
SEEDED = SamplingParams(max_tokens=90, temperature=0.8, seed=5, n=2, ignore_eos=True)
WINDOWS = {"qwen2-windows": 40, "gemma3": 24, "mistral-window": 33}


@pytest.fixture(scope="module", params=WINDOWS)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(family: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / family
    tiny = FAMILIES[family]
    save_tiny_model(tiny._replace(options=tiny.options | {"sliding_window": WINDOWS[family]}), path)
    return path


def make_llm(
    folder: Path, narrower: int | None = 0, blocks: int = 30, tokens: int = 64, cache: bool = True
) -> LLM:
    """An engine whose windows are this much narrower than the model's; None: it knows of none."""
    llm = LLM(folder, num_blocks=blocks, max_seqs=4, max_model_len=400, block_size=BLOCK,
              max_batched_tokens=tokens, record_digests=True)  # fmt: skip
    windows = llm.config.layer_groups()[1]
    told = [window - narrower if window and narrower is not None else 0 for window in windows]
    groups = [blocks] * len(windows)
    llm.session.engine = Engine(groups, BLOCK, 4, tokens, 400, llm.config.vocab, cache, told)
    return llm


def outputs(llm: LLM, params: SamplingParams) -> list[list[Any]]:
    """Tokens and digests of the logits of every sample of each prompt."""
    results = llm.generate(prompt_token_ids=PROMPTS, sampling_params=params)
    return [[(o.token_ids, o.digests) for o in result.outputs] for result in results]


def test_an_engine_is_told_the_windows(folder: Path, family: str) -> None:
    assert [w for w in LLM(folder).config.layer_groups()[1] if w] == [WINDOWS[family]]


@pytest.mark.parametrize(("blocks", "tokens"), [(30, 64), (26, 9)])
def test_giving_back_changes_no_bit(folder: Path, blocks: int, tokens: int) -> None:
    """Few enough blocks that what is given back is soon another sequence's."""
    for params in (GREEDY, SEEDED):
        expected = outputs(make_llm(folder, None, blocks=400), params)
        for cache in (True, False):
            assert outputs(make_llm(folder, 0, blocks, tokens, cache), params) == expected


def test_a_block_given_back_too_early_changes_bits(folder: Path) -> None:
    expected = outputs(make_llm(folder, None, blocks=400), GREEDY)
    early = make_llm(folder, BLOCK, blocks=26, tokens=9, cache=False)
    assert outputs(early, GREEDY) != expected


def test_a_long_output_holds_few_blocks(folder: Path, family: str) -> None:
    """Of layers with a window: what the next rows see, one block before, those being written."""
    llm = LLM(folder, num_blocks=25, max_seqs=4, max_model_len=400, block_size=BLOCK)
    groups = llm.config.layer_groups()[1]
    held = []
    for _ in llm.generate_stream(prompt_token_ids=[PROMPTS[0]], sampling_params=GREEDY):
        held.append(llm.stats()["referenced_blocks"])
    whole = -(-(len(PROMPTS[0]) + 199) // BLOCK)
    seen = -(-(WINDOWS[family] - 1) // BLOCK)
    full = sum(window is None for window in groups)
    assert max(held[20:]) <= full * whole + (len(groups) - full) * (seen + 2)
    assert max(held[20:]) >= full * whole + (len(groups) - full) * seen
