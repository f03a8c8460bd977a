"""Samples, seeds, penalties, log-probabilities and digests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyvosti import LLM, SamplingParams, digest
from pyvosti.logprobs import top_k

pytestmark = pytest.mark.usefixtures("on_the_cpu")
PROMPT = "The quick brown fox, 123"
GREEDY = SamplingParams(max_tokens=12, temperature=0, ignore_eos=True)
SEEDED = SamplingParams(max_tokens=12, temperature=0.9, top_p=0.95, seed=11, ignore_eos=True)


def test_samples(tiny: LLM) -> None:
    one = tiny.generate(PROMPT, SEEDED)[0]
    params = SamplingParams(
        max_tokens=12, temperature=0.9, top_p=0.95, seed=11, ignore_eos=True, n=5
    )
    five = tiny.generate([PROMPT, "x"], params)[0]
    assert five.outputs[0].digests == one.outputs[0].digests
    assert [sample.index for sample in five.outputs] == [0, 1, 2, 3, 4]
    assert len({tuple(sample.token_ids) for sample in five.outputs}) > 1
    first_rows = [sample.logits[0] for sample in five.outputs if sample.logits is not None]
    assert len(first_rows) == 5
    assert all(np.array_equal(row, first_rows[0]) for row in first_rows)


def test_seeds(tiny: LLM) -> None:
    params = SamplingParams(max_tokens=12, temperature=1.5, ignore_eos=True)
    drawn = tiny.generate([PROMPT] * 3, params)
    seeds = [result.seed for result in drawn]
    assert len(set(seeds)) == 3
    again = SamplingParams(max_tokens=12, temperature=1.5, ignore_eos=True, seed=seeds[1])
    repeated = tiny.generate(PROMPT, again)[0]
    assert repeated.outputs[0].token_ids == drawn[1].outputs[0].token_ids
    assert repeated.seed == seeds[1]
    assert len({tuple(result.outputs[0].token_ids) for result in drawn}) > 1


def test_penalties_and_bias(tiny: LLM) -> None:
    plain = tiny.generate(PROMPT, GREEDY)[0].outputs[0].token_ids
    banned = SamplingParams(
        max_tokens=12, temperature=0, ignore_eos=True, logit_bias={plain[0]: -1e9}
    )
    assert plain[0] not in tiny.generate(PROMPT, banned)[0].outputs[0].token_ids
    for penalty in ("presence_penalty", "frequency_penalty"):
        params = SamplingParams(max_tokens=200, temperature=0, ignore_eos=True, **{penalty: 2.0})
        long = SamplingParams(max_tokens=200, temperature=0, ignore_eos=True)
        penalised = tiny.generate(PROMPT, params)[0].outputs[0].token_ids
        assert len(set(penalised)) > len(set(tiny.generate(PROMPT, long)[0].outputs[0].token_ids))


@pytest.mark.parametrize(
    "extreme",
    [
        {"temperature": 1e-300},
        {"temperature": 1e-38},
        {"temperature": 1e38},
        {"top_k": 10**30},
        {"top_p": 1e-45},
        {"min_p": 1.0},
        {"repetition_penalty": 1e38},
        {"repetition_penalty": 1e-38},
        {"logit_bias": dict.fromkeys(range(400), -1e30)},
        {"logit_bias": {3: 1e30, 4: 1e30}},
        {"max_tokens": 10**30},
        {"logprobs": 10**30},
        {"stop_token_ids": list(range(400)) * 3},
    ],
)
def test_extreme_parameters(tiny: LLM, extreme: dict[str, Any]) -> None:
    params = SamplingParams(**({"max_tokens": 3, "seed": 1, "ignore_eos": True} | extreme))
    result = tiny.generate(PROMPT, params)[0].outputs[0]
    assert result.finish_reason in ("length", "stop")
    assert all(0 <= token < 400 for token in result.token_ids)


def test_logprobs(tiny: LLM) -> None:
    params = SamplingParams(
        max_tokens=6, temperature=0.7, seed=1, logprobs=3, prompt_logprobs=2, ignore_eos=True
    )
    result = tiny.generate(PROMPT, params)[0]
    sample = result.outputs[0]
    assert sample.logits is not None
    assert sample.logprobs is not None
    assert result.prompt_logits is not None
    assert result.prompt_logprobs is not None
    assert sample.logits.shape == (6, 400)
    assert result.prompt_logits.shape == (len(result.prompt_token_ids) - 1, 400)
    assert result.prompt_logprobs[0] is None
    rows = np.vstack([result.prompt_logits, sample.logits]).astype(np.float64)
    tokens = result.prompt_token_ids[1:] + sample.token_ids
    entries = [*result.prompt_logprobs[1:], *sample.logprobs]
    counts = [2] * len(result.prompt_logits) + [3] * 6
    for row, token, entry, count in zip(rows, tokens, entries, counts, strict=True):
        assert entry is not None
        expected = row - row.max() - np.log(np.exp(row - row.max()).sum())
        best = np.argsort(-row, kind="stable")[:count]
        assert list(entry)[:count] == best.tolist()
        assert set(entry) == {*best.tolist(), token}
        for token_id, value in entry.items():
            assert value.logprob == pytest.approx(expected[token_id], abs=1e-5)
            assert value.rank == (row > row[token_id]).sum() + 1
    # Asking changes nothing, and neither do the sampling parameters change what is reported.
    plain = SamplingParams(max_tokens=6, temperature=0.7, seed=1, ignore_eos=True)
    unasked = tiny.generate(PROMPT, plain)[0].outputs[0]
    assert unasked.logits is not None
    assert unasked.logits.tobytes() == sample.logits.tobytes()
    assert (unasked.logprobs, unasked.token_ids) == (None, sample.token_ids)


def test_prompt_logprobs_survive_a_warm_cache(tiny: LLM) -> None:
    params = SamplingParams(max_tokens=2, temperature=0, prompt_logprobs=1, ignore_eos=True)
    prompt = [int(token) for token in np.random.default_rng(2).integers(4, 250, 80)]
    tiny.reset_prefix_cache()
    cold = tiny.generate(prompt_token_ids=prompt, sampling_params=params)[0]
    warm = tiny.generate(prompt_token_ids=prompt, sampling_params=params)[0]
    assert cold.prompt_logits is not None
    assert warm.prompt_logits is not None
    assert cold.prompt_logits.tobytes() == warm.prompt_logits.tobytes()
    assert cold.prompt_logprobs == warm.prompt_logprobs


def test_top_k_breaks_ties_by_id() -> None:
    values = np.array([1, 3, 2, 3, 2, 3, -np.inf], np.float32)
    assert top_k(values, 4) == [1, 3, 5, 2]
    assert top_k(values, 0) == []
    assert top_k(values, 99) == [1, 3, 5, 2, 4, 0, 6]


def test_digests(tiny: LLM) -> None:
    result = tiny.generate(PROMPT, GREEDY)[0]
    sample = result.outputs[0]
    assert sample.logits is not None
    link = digest.start(np.array(result.prompt_token_ids, np.uint32))
    position = len(result.prompt_token_ids) - 1
    for row, token in zip(sample.logits, sample.token_ids, strict=True):
        link = digest.extend(link, position, row, token)
        position += 1
    assert sample.digest == link.hex()
    changed = sample.logits[0].copy()
    changed[7] = np.nextafter(changed[7], np.float32(np.inf))
    assert digest.extend(link, 3, changed) != digest.extend(link, 3, sample.logits[0])
    zero, minus_zero = np.zeros(1, np.float32), -np.zeros(1, np.float32)
    assert digest.extend(link, 0, zero) != digest.extend(link, 0, minus_zero)
