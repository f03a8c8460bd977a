"""The Python API on a tiny model: parameters, streams, samples, log-probabilities, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyvosti import LLM, ConfigError, RequestError, SamplingParams, digest
from pyvosti.logprobs import top_k
from reference_engine import ReferenceEngine

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


def test_streams_join_to_outputs(tiny: LLM) -> None:
    prompts = [PROMPT, "Être ou ne pas être", "def step"]
    params = SamplingParams(max_tokens=20, temperature=1.0, seed=3, n=2)
    expected = tiny.generate(prompts, params)
    texts: dict[tuple[int, int], str] = {}
    tokens: dict[tuple[int, int], list[int]] = {}
    finals = {}
    for chunk in tiny.generate_stream(prompts, params):
        key = chunk.request, chunk.index
        texts[key] = texts.get(key, "") + chunk.text
        tokens[key] = tokens.get(key, []) + chunk.token_ids
        assert chunk.request not in finals
        if chunk.output is not None:
            finals[chunk.request] = chunk.output
    for index, result in enumerate(expected):
        for sample in result.outputs:
            assert texts[index, sample.index] == sample.text
            assert tokens[index, sample.index] == sample.token_ids
        assert finals[index].to_dict() == result.to_dict()


def test_streams_interleave(tiny: LLM) -> None:
    expected = [tiny.generate(p, GREEDY)[0].outputs[0].digests for p in (PROMPT, "x", "yz")]
    first, second = tiny.generate_stream(PROMPT, GREEDY), tiny.generate_stream("x", GREEDY)
    outputs = [next(first).output, next(second).output]
    third = tiny.generate("yz", GREEDY)[0]
    outputs += [chunk.output for chunk in first] + [chunk.output for chunk in second]
    done = [output for output in outputs if output is not None]
    digests = [output.outputs[0].digests for output in [*done, third]]
    assert digests == expected


def test_a_closed_stream_leaves_nothing(tiny: LLM) -> None:
    stream = tiny.generate_stream([PROMPT, "x"], SEEDED)
    next(stream)
    stream.close()
    assert is_idle(tiny)


@pytest.mark.parametrize("where", ["execute", "_draw", "_record"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_step_leaves_nothing(
    tiny: LLM, monkeypatch: pytest.MonkeyPatch, where: str, error: type[BaseException]
) -> None:
    expected = tiny.generate(PROMPT, GREEDY)[0].outputs[0].digests
    tiny.reset_prefix_cache()
    target = tiny.session.runner if where == "execute" else tiny.session
    original, calls = getattr(target, where), []

    def fail_third_time(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise error
        return original(*arguments)

    monkeypatch.setattr(target, where, fail_third_time)
    with pytest.raises(error):
        tiny.generate([PROMPT, "x"], GREEDY)
    assert is_idle(tiny)
    assert tiny.generate(PROMPT, GREEDY)[0].outputs[0].digests == expected


def test_another_stream_survives_an_interrupted_step(tiny: LLM) -> None:
    expected = tiny.generate("x", GREEDY)[0].outputs[0].digests
    stream = tiny.generate_stream("x", GREEDY)
    next(stream)
    original = tiny.session.runner.execute
    tiny.session.runner.execute = lambda plan: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        tiny.generate(PROMPT, GREEDY)
    tiny.session.runner.execute = original  # type: ignore[method-assign]
    *_, last = stream
    assert last.output is not None
    assert last.output.outputs[0].digests == expected


def test_a_plan_that_got_lost_is_made_again(tiny: LLM) -> None:
    """Ctrl-C between `schedule()` and its assignment: the plan, with its table updates, is gone."""
    params = SamplingParams(max_tokens=40, temperature=0.0, ignore_eos=True)
    expected = tiny.generate(PROMPT, params)[0].outputs[0].digests
    tiny.reset_prefix_cache()
    stream = tiny.generate_stream(PROMPT, params)
    for _ in range(40):
        chunk = next(stream)
        tiny.session.engine.schedule()
    *_, last = [chunk, *stream]
    assert last.output is not None
    assert last.output.outputs[0].digests == expected


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
