"""Text as tokens come: the same text as at once, whole characters, stop strings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyvosti.detokenizer import Detokenizer
from pyvosti.gguf_file import read_gguf
from pyvosti.models import resolve
from pyvosti.tokenizer import Tokenizer, tokenizer_from_folder, tokenizer_from_gguf


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    path = resolve("smollm2")
    return tokenizer_from_gguf(read_gguf(path).metadata, path)


def stream(tokenizer: Tokenizer, text: str, stop: tuple[str, ...] = ()) -> tuple[list[str], str]:
    """The pieces that a caller sees, and the final text."""
    detokenizer = Detokenizer(tokenizer, stop)
    pieces = []
    for token in tokenizer.encode(text).tolist():
        stopped = detokenizer.push(token)
        pieces.append(detokenizer.take())
        if stopped:
            break
    detokenizer.finish()
    pieces.append(detokenizer.take())
    return pieces, detokenizer.text


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_pieces_join_to_the_text(tokenizer: Tokenizer, text: str) -> None:
    pieces, whole = stream(tokenizer, text)
    expected = tokenizer.decode(tokenizer.encode(text).tolist())
    assert whole == "".join(pieces) == expected


@settings(max_examples=200, deadline=None)
@given(
    text=st.text("ab 🙂é", max_size=30),
    stop=st.lists(st.text("ab 🙂é", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_stop_strings(tokenizer: Tokenizer, text: str, stop: list[str]) -> None:
    pieces, whole = stream(tokenizer, text, tuple(stop))
    assert "".join(pieces) == whole
    assert not any(string in whole for string in stop)
    ends = [text.index(string) + len(string) for string in stop if string in text]
    if ends:  # the text ends where the string that is complete first begins
        end = min(ends)
        first = next(s for s in stop if s in text and text.index(s) + len(s) == end)
        assert whole == text[: end - len(first)]
    else:
        assert whole == text


def test_characters_are_never_split(tokenizer: Tokenizer) -> None:
    text = "🙂 naïve 日本語 \U0001f9d1\u200d\U0001f680"
    assert len(tokenizer.encode(text)) > len(text)  # several tokens a character
    pieces, whole = stream(tokenizer, text)
    assert "".join(pieces) == whole == text
    assert all("\N{REPLACEMENT CHARACTER}" not in piece for piece in pieces)


def test_bytes_that_are_no_character_come_at_the_end(tokenizer: Tokenizer) -> None:
    first_byte = tokenizer.encode("🙂").tolist()[0]
    detokenizer = Detokenizer(tokenizer)
    detokenizer.push(first_byte)
    assert detokenizer.take() == ""
    detokenizer.finish()
    assert detokenizer.take() == "\N{REPLACEMENT CHARACTER}"


@settings(max_examples=300, deadline=None)
@given(data=st.data(), skip=st.booleans())
def test_any_ids_give_the_text_of_all_at_once(
    tokenizer: Tokenizer, data: st.DataObject, skip: bool
) -> None:
    """Also bytes that are no character, control tokens, and ids that are no token."""
    bytes_of = tokenizer.encode("🙂日é\x00\xff").tolist()
    ids = data.draw(
        st.lists(st.sampled_from([*bytes_of, 0, 1, 2, 49_152]) | st.integers(0, 49_151))
    )
    detokenizer = Detokenizer(tokenizer, skip_special_tokens=skip)
    pieces = []
    for token in ids:
        detokenizer.push(token)
        pieces.append(detokenizer.take())
    detokenizer.finish()
    assert "".join([*pieces, detokenizer.take()]) == tokenizer.decode(ids, skip)


@pytest.mark.parametrize("text", ["🙂", "<|im_end|>"])
def test_a_run_without_text_is_not_decoded_over_and_over(
    tokenizer: Tokenizer, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = 0

    def counted(ids: list[int], skip_special_tokens: bool = True) -> str:
        nonlocal decoded
        decoded += len(ids)
        return decode(ids, skip_special_tokens)

    decode = tokenizer.decode
    monkeypatch.setattr(tokenizer, "decode", counted)
    token, *_ = tokenizer.encode(text).tolist()
    detokenizer = Detokenizer(tokenizer)
    for _ in range(1000):
        detokenizer.push(token)
    assert decoded <= 5000


def test_special_tokens(tiny_folder: Path) -> None:
    tokenizer = tokenizer_from_folder(tiny_folder)
    ids = tokenizer.encode("a<eos>b").tolist()
    for skip, expected in ((True, "ab"), (False, "a<eos>b")):
        detokenizer = Detokenizer(tokenizer, skip_special_tokens=skip)
        for token in ids:
            detokenizer.push(token)
        assert detokenizer.text == expected
