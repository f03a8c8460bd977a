"""Token ids beside transformers; tokenizers built from GGUF metadata; chat templates."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gguf_writer import write_gguf
from pyvosti import RequestError
from pyvosti.chat import render_chat
from pyvosti.gguf_file import read_gguf
from pyvosti.gguf_tokenizer import build_from_gguf
from pyvosti.tokenizer import Tokenizer, tokenizer_from_folder, tokenizer_from_gguf

TEXTS = [
    "",
    "Hello, world!",
    "  spaces   in    runs  \t\ttabs\n\n\nlines \r\n",
    "1234567890 3.14159 0x1F 12,345",
    "I'll, you've; he'd WE'RE it's",
    "naïve café Ångström ﬁ Å e\u0301",
    "日本語のテキスト 한국어 العربية עברית ไทย",
    "🙂 \U0001f9d1\u200d\U0001f680 \u200b \ufeff \x00 \x7f",
    "def f(x):\n    return x**2  # done\n",
    "<|im_start|>user\nHi<|im_end|>\n",
    "a" * 300 + "!" * 40,
]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 2 + 2?"},
    {"role": "assistant", "content": "4"},
    {"role": "user", "content": "And 3 + 3?"},
]


@pytest.fixture(scope="module")
def ours(smollm2_path: Path) -> Tokenizer:
    return tokenizer_from_gguf(read_gguf(smollm2_path).metadata, smollm2_path)


@pytest.fixture(scope="module")
def theirs(smollm2_path: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smollm2_path.parent, gguf_file=smollm2_path.name)


def test_smollm2_ids(ours: Tokenizer, theirs: Any) -> None:
    for text in TEXTS:
        ids = ours.encode(text).tolist()
        assert ids == theirs.encode(text), text
        assert ours.decode(ids, skip_special_tokens=False) == text
    assert ours.eos_token_ids == (theirs.eos_token_id,)


def test_smollm2_chat(ours: Tokenizer, theirs: Any) -> None:
    for messages in (MESSAGES, MESSAGES[1:2]):
        expected = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert render_chat(ours, messages) == expected


def test_folder(tiny_folder: Path) -> None:
    from transformers import AutoTokenizer

    ours, theirs = tokenizer_from_folder(tiny_folder), AutoTokenizer.from_pretrained(tiny_folder)
    for text in [*TEXTS, "<|user|>Hi<eos>"]:
        assert ours.encode(text).tolist() == theirs.encode(text), text
    expected = theirs.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    assert render_chat(ours, MESSAGES) == expected
    assert ours.eos_token_ids == (0,)


def test_end_of_sequence_ids_come_from_the_generation_config(tiny_folder: Path) -> None:
    path = tiny_folder / "generation_config.json"
    before = path.read_text() if path.exists() else None
    path.write_text(json.dumps({"eos_token_id": [7, 5, 7]}))
    try:
        assert tokenizer_from_folder(tiny_folder).eos_token_ids == (5, 7)
    finally:
        path.unlink() if before is None else path.write_text(before)


@pytest.mark.parametrize(
    ("pre", "pattern"),
    [
        ("llama-bpe", {"ab1234": ["ab", "123", "4"], "a 12": ["a", "Ġ", "12"]}),
        ("qwen2", {"ab1234": ["ab", "1", "2", "3", "4"], "a b": ["a", "Ġb"]}),
        ("smollm", {"ab1234": ["ab", "1", "2", "3", "4"], "it's x": ["it", "'s", "Ġx"]}),
        ("gpt-2", {"ab1234": ["ab", "1234"], "x  y": ["x", "Ġ", "Ġy"]}),
    ],
)
def test_splits(tiny_folder: Path, tmp_path: Path, pre: str, pattern: dict[str, list[str]]) -> None:
    write_gguf(tiny_folder, tmp_path / "model.gguf", pre=pre, bos_token_id=1)
    metadata = read_gguf(tmp_path / "model.gguf").metadata
    tokenizer = build_from_gguf(metadata, tmp_path)
    splitter = tokenizer.pre_tokenizer
    assert splitter is not None
    for text, pieces in pattern.items():
        assert [piece for piece, _ in splitter.pre_tokenize_str(text)] == pieces
    begins = tokenizer.encode("fox").ids[0] == 1
    assert begins == (pre == "llama-bpe")  # only Llama 3 begins prompts with its own token
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        normal = text if pre != "qwen2" else tokenizer.normalizer.normalize_str(text)
        assert tokenizer.decode(ids, skip_special_tokens=False) == normal


WORDS = ["▁", "t", "h", "e", "a", "n", "d", "▁t", "he", "▁the", "an", "and", "▁and", "th", "en"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def sentencepiece_by_hand(text: str, scores: dict[str, float]) -> list[str]:
    """SentencePiece's BPE: join the neighbours that make the best piece, the leftmost of equals;
    characters that are no piece become bytes."""
    pieces = list("▁" + text.replace(" ", "▁")) if text else []
    while True:
        joined = [left + right for left, right in itertools.pairwise(pieces)]
        known = [(-scores[piece], i) for i, piece in enumerate(joined) if piece in scores]
        if not known:
            break
        _, i = min(known)
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return [
        token
        for piece in pieces
        for token in ([piece] if piece in scores else [BYTES[byte] for byte in piece.encode()])
    ]


@settings(max_examples=200, deadline=None)
@given(
    order=st.permutations(WORDS[7:]),
    texts=st.lists(st.text("thean d é🙂", max_size=24), max_size=4),
)
def test_sentencepiece(order: list[str], texts: list[str]) -> None:
    tokens = ["<unk>", "<s>", "</s>", *BYTES, *WORDS[:7], *order]
    scores = dict.fromkeys(WORDS[:7], -1e9) | {word: -float(i) for i, word in enumerate(order)}
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * len(WORDS),
        "tokenizer.ggml.scores": [0.0] * 259 + [scores[token] for token in tokens[259:]],
        "tokenizer.ggml.bos_token_id": 1,
    }
    tokenizer = build_from_gguf(metadata, Path("model.gguf"))
    for text in ["the and", "then the hand", *texts]:
        encoded = tokenizer.encode(text)
        assert encoded.tokens == ["<s>", *sentencepiece_by_hand(text, scores)]
        assert tokenizer.decode(encoded.ids) == text


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "must be a list"),
        ("hello", "must be a list"),
        ([{"content": "x"}], "no role"),
        ([{"role": "user"}], "no content"),
        ([{"role": "user", "content": 3}], "no content"),
        (["x"], "no role"),
    ],
)
def test_wrong_messages(ours: Tokenizer, messages: Any, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        render_chat(ours, messages)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{% for %}", "refuses"),
        ("{{ messages[7].content }}", "refuses"),
        ("{{ 1 / 0 }}", "fails"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_templates_that_refuse(ours: Tokenizer, template: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        render_chat(ours, MESSAGES, chat_template=template)


def test_template_functions(ours: Tokenizer) -> None:
    template = (
        "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}"
        "{{ m | tojson }}{% endfor %} {{ date }} {{ strftime_now('%Y') | length }} {{ eos_token }}"
    )
    text = render_chat(ours, MESSAGES, chat_template=template, template_kwargs={"date": "today"})
    assert text == '{"role": "system", "content": "Be brief."} today 4 <|im_end|>'
