"""Streams: text as it comes, several at once, and what an interruption leaves."""

from __future__ import annotations

from typing import Any

import pytest

from pyvosti import LLM, SamplingParams

pytestmark = pytest.mark.usefixtures("on_the_cpu")
PROMPT = "The quick brown fox, 123"
GREEDY = SamplingParams(max_tokens=12, temperature=0, ignore_eos=True)
SEEDED = SamplingParams(max_tokens=12, temperature=0.9, top_p=0.95, seed=11, ignore_eos=True)


def is_idle(llm: LLM) -> bool:
    """Whether nothing is left of any request."""
    stats = llm.stats()
    return stats["waiting"] == stats["running"] == stats["referenced_blocks"] == 0


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


@pytest.mark.parametrize("where", ["execute", "_draws", "_record"])
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
