"""The Python API on a tiny model: prompts, lengths, stops, chat, errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyvosti import LLM, ConfigError, ModelError, RequestError, SamplingParams
from pyvosti.limits import make_limits
from reference_engine import ReferenceEngine
from tiny_models import FAMILIES, save_tiny_model

pytestmark = pytest.mark.usefixtures("on_the_cpu")
PROMPT = "The quick brown fox, 123"
GREEDY = SamplingParams(max_tokens=12, temperature=0, ignore_eos=True)
SEEDED = SamplingParams(max_tokens=12, temperature=0.9, top_p=0.95, seed=11, ignore_eos=True)


def is_idle(llm: LLM) -> bool:
    """Whether nothing is left of any request."""
    stats = llm.stats()
    return stats["waiting"] == stats["running"] == stats["referenced_blocks"] == 0


def test_forms_of_prompts(tiny: LLM) -> None:
    ids = tiny.tokenizer.encode(PROMPT)
    expected = tiny.generate(PROMPT, GREEDY)[0]
    assert expected.prompt == PROMPT
    assert expected.prompt_token_ids == ids.tolist()
    for form in (ids, ids.tolist(), [ids.tolist()], ids[np.newaxis]):
        result = tiny.generate(prompt_token_ids=form, sampling_params=GREEDY)[0]
        assert result.outputs[0].digests == expected.outputs[0].digests
    assert len(tiny.generate([PROMPT, "x"], [GREEDY, SEEDED])) == 2
    assert tiny.generate([]) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "either prompts or prompt_token_ids"),
        ({"prompts": "a", "prompt_token_ids": [1]}, "either prompts or prompt_token_ids"),
        ({"prompts": [[1, 2]]}, "token ids go into prompt_token_ids"),
        ({"prompts": 3}, "prompts must be text"),
        ({"prompts": ""}, "empty"),
        ({"prompts": "\ud800"}, "not valid text"),
        ({"prompt_token_ids": [[]]}, "empty"),
        ({"prompt_token_ids": 3}, "list of token ids"),
        ({"prompt_token_ids": "123"}, "list of token ids"),
        ({"prompt_token_ids": {1: 2}}, "list of token ids"),
        ({"prompt_token_ids": {1, 2}}, "list of token ids"),
        ({"prompt_token_ids": np.array(5)}, "list of token ids"),
        ({"prompt_token_ids": [1, 2.5]}, "whole numbers"),
        ({"prompt_token_ids": [[1, "2"]]}, "whole numbers"),
        ({"prompt_token_ids": [-1]}, "outside"),
        ({"prompt_token_ids": [2**40]}, "outside"),
        ({"prompt_token_ids": [400]}, "knows 0 to 399"),
        ({"prompt_token_ids": [1] * 512}, "shorten it or raise max_model_len"),
        ({"prompts": ["a", "b"], "sampling_params": [GREEDY]}, "2 prompts came with 1"),
        ({"prompts": "a", "salt": -1}, "salt"),
        ({"prompts": "a", "salt": 2**64}, "salt"),
        ({"prompts": "a", "sampling_params": [{"n": 2}]}, "must be SamplingParams"),
        ({"prompts": "a", "sampling_params": SamplingParams(stop_token_ids=[400])}, "stop_token"),
        ({"prompts": "a", "sampling_params": SamplingParams(logit_bias={400: 1})}, "logit_bias"),
    ],
)
def test_wrong_requests(tiny: LLM, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        tiny.generate(**arguments)
    assert "\n" not in str(caught.value)
    assert is_idle(tiny)


def test_a_refused_request_does_not_stop_the_others(tiny: LLM) -> None:
    expected = tiny.generate(PROMPT, GREEDY)[0].outputs[0].digests
    results = tiny.generate(["", PROMPT, "x" * 600, PROMPT], GREEDY)
    assert [result.error is None for result in results] == [False, True, False, True]
    assert results[1].outputs[0].digests == results[3].outputs[0].digests == expected
    assert results[0].outputs == []
    assert isinstance(results[2].error, RequestError)
    chunks = list(tiny.generate_stream(["", PROMPT], GREEDY))
    assert chunks[0].output is not None
    assert chunks[0].output.error is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_blocks": 0}, "num_blocks must be at least 1"),
        ({"num_blocks": 4, "kv_cache_tokens": 64}, "not both"),
        ({"num_blocks": 2**30}, "too many"),
        ({"kv_cache_tokens": 7}, "no block"),
        ({"block_size": 0}, "block_size"),
        ({"block_size": 1.5}, "whole number"),
        ({"max_seqs": 0}, "max_seqs"),
        ({"max_batched_tokens": -1}, "max_batched_tokens"),
        ({"max_model_len": 513}, "made for 512"),
        ({"threads": 0}, "threads"),
        ({"threads": 10**6}, "threads"),
        ({"max_seqs": 2**31 - 1}, "max_seqs"),
        ({"isa": "mmx"}, "isa"),
        ({"backend": "tpu"}, "backend"),
    ],
)
def test_wrong_options(tiny_folder: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LLM(tiny_folder, **options)


@pytest.mark.parametrize("limit", ["max", "9223372036854771712", "4000000", ""])
def test_the_default_pool_fits_its_container(
    tiny: LLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    file = tmp_path / "memory.max"
    file.write_text(limit + "\n")
    monkeypatch.setattr("pyvosti.limits._CONTAINER_LIMIT", file)
    limits = make_limits(tiny.config, "cpu")
    tokens = (limits.num_blocks or 0) * limits.block_size
    quarter = 1_000_000 // tiny.config.kv_bytes_per_token()
    assert tokens == (quarter // 16 * 16 if limit == "4000000" else 65_536)


def test_lengths(tiny: LLM) -> None:
    result = tiny.generate(PROMPT, GREEDY)[0].outputs[0]
    assert (len(result.token_ids), result.finish_reason) == (12, "length")
    room = 512 - len(tiny.tokenizer.encode(PROMPT))
    for max_tokens in (None, 10_000):
        params = SamplingParams(max_tokens=max_tokens, temperature=0, ignore_eos=True)
        assert len(tiny.generate(PROMPT, params)[0].outputs[0].token_ids) == room
    longest = tiny.generate(prompt_token_ids=[5] * 511, sampling_params=GREEDY)[0].outputs[0]
    assert (len(longest.token_ids), longest.finish_reason) == (1, "length")


def test_stop_tokens(tiny: LLM) -> None:
    tokens = tiny.generate(PROMPT, GREEDY)[0].outputs[0].token_ids
    stop = tokens[5]
    end = tokens.index(stop) + 1
    params = SamplingParams(max_tokens=12, temperature=0, ignore_eos=True, stop_token_ids=[stop])
    result = tiny.generate(PROMPT, params)[0].outputs[0]
    assert (result.token_ids, result.finish_reason, result.stop_reason) == (
        tokens[:end],
        "stop",
        stop,
    )


def test_end_of_sequence(tiny: LLM) -> None:
    params = SamplingParams(max_tokens=12, temperature=0, logit_bias={0: 1e9})
    result = tiny.generate(PROMPT, params)[0].outputs[0]
    assert (result.token_ids, result.text, result.finish_reason) == ([0], "", "stop")
    assert result.stop_reason is None
    params = SamplingParams(max_tokens=3, temperature=0, logit_bias={0: 1e9}, ignore_eos=True)
    assert tiny.generate(PROMPT, params)[0].outputs[0].token_ids == [0, 0, 0]


def test_stop_strings(tiny: LLM) -> None:
    text = tiny.generate(PROMPT, SEEDED)[0].outputs[0].text
    stop = text[4:7]
    params = SamplingParams(
        max_tokens=12, temperature=0.9, top_p=0.95, seed=11, ignore_eos=True, stop=[stop, "zzz"]
    )
    result = tiny.generate(PROMPT, params)[0].outputs[0]
    assert (result.text, result.finish_reason) == (text[: text.index(stop)], "stop")
    assert result.stop_reason == stop
    assert "".join(chunk.text for chunk in tiny.generate_stream(PROMPT, params)) == result.text
    assert is_idle(tiny)


def test_chat(tiny: LLM) -> None:
    conversation = [{"role": "user", "content": "fox"}]
    text = "<|user|>fox<eos><|assistant|>"
    expected = tiny.generate(text, GREEDY)[0]
    answer = tiny.chat(conversation, GREEDY)[0]
    assert answer.prompt == text
    assert answer.outputs[0].digests == expected.outputs[0].digests
    several = tiny.chat([conversation, [{"role": "user"}]], GREEDY)
    assert several[0].outputs[0].digests == expected.outputs[0].digests
    assert several[1].error is not None
    *_, last = tiny.chat_stream(conversation, GREEDY)
    assert last.output is not None
    assert last.output.outputs[0].digests == expected.outputs[0].digests
    with pytest.raises(RequestError, match="no content"):
        tiny.chat([{"role": "user"}], GREEDY)


def test_other_weights(tiny_folder: Path, tmp_path: Path) -> None:
    for name in ("base", "trained"):
        folder = tmp_path / name
        save_tiny_model(FAMILIES["qwen3"], folder, seed=len(name))
    prompts = [PROMPT * 4, PROMPT]

    def digests(llm: LLM) -> list[Any]:
        return [output.outputs[0].digests for output in llm.generate(prompts, GREEDY)]

    llm = LLM(tmp_path / "base", record_digests=True)
    before = digests(llm)
    assert digests(llm) == before and llm.stats()["hits"] > 0
    stream = llm.generate_stream(prompts, GREEDY)
    next(stream)
    with pytest.raises(RequestError, match="while no sequence is open"):
        llm.load_weights(tmp_path / "trained")
    stream.close()
    assert digests(llm) == before
    hits = llm.stats()["hits"]
    llm.load_weights(tmp_path / "trained")
    after = digests(llm)
    assert llm.stats()["hits"] == hits and llm.name == str(tmp_path / "trained")
    assert after == digests(LLM(tmp_path / "trained", record_digests=True)) != before
    with pytest.raises(ModelError):
        llm.load_weights(tmp_path / "absent")
    save_tiny_model(FAMILIES["llama"], tmp_path / "llama")
    with pytest.raises(ConfigError, match="make a new LLM"):
        llm.load_weights(tmp_path / "llama")
    assert digests(llm) == after


@pytest.mark.parametrize(
    "error", [MemoryError("tensor embed: 9 MiB"), ValueError("embed is (1, 2)")]
)
def test_weights_that_cannot_be_loaded(tiny_folder: Path, error: Exception) -> None:
    llm = LLM(tiny_folder, record_digests=True)
    before = llm.generate(PROMPT, GREEDY)[0].outputs[0].digests
    name, tokenizer, load = llm.name, llm.tokenizer, llm._runner.load_weights

    def fail(tensors: Any) -> None:
        raise error

    llm._runner.load_weights = fail  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match=re.escape(str(error))):
        llm.load_weights(tiny_folder)
    assert (llm.name, llm.tokenizer) == (name, tokenizer)
    assert llm.generate(PROMPT, GREEDY)[0].outputs[0].digests == before
    llm._runner.load_weights = load  # type: ignore[method-assign]
    llm.load_weights(tiny_folder)
    assert llm.generate(PROMPT, GREEDY)[0].outputs[0].digests == before


def test_salts_share_nothing(tiny: LLM) -> None:
    prompt = list(range(10, 90))
    hits = []
    tiny.reset_prefix_cache()
    for salt in (1, 2, 1):
        before = tiny.stats()["hits"]
        tiny.generate(prompt_token_ids=prompt, sampling_params=GREEDY, salt=salt)
        hits.append(tiny.stats()["hits"] - before)
    assert hits[0] == hits[1] == 0
    assert hits[2] > 0


def test_the_reference_engine_gives_the_same(tiny_folder: Path, tiny: LLM) -> None:
    prompts = [PROMPT * count for count in (1, 2, 3, 5)] + ["x", "<eos>", "fox " * 20]
    params = SamplingParams(max_tokens=40, temperature=0.8, seed=5, n=2, prompt_logprobs=0)
    expected = [output.to_dict() for output in tiny.generate(prompts, params)]
    for blocks, tokens in ((10, 5), (14, 64), (200, 512)):
        sized = LLM(tiny_folder, num_blocks=blocks, max_seqs=3, max_model_len=160,
                    max_batched_tokens=tokens, record_digests=True)  # fmt: skip
        sized.session.engine = ReferenceEngine([blocks], 16, 3, tokens, 160, 400)  # type: ignore[assignment]
        assert [output.to_dict() for output in sized.generate(prompts, params)] == expected
