"""Tokenizers from GGUF metadata: byte-level BPE and SentencePiece BPE.

GGUF names the way text is split before BPE (`tokenizer.ggml.pre`) instead of describing it.
The splits below are those of the models' own tokenizer.json files; a name that is not among
them is refused, since a wrong split gives plausible but wrong ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    normalizers,
    pre_tokenizers,
)
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing

from pyvosti.errors import ModelError

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6


def build_from_gguf(metadata: dict[str, Any], source: Path) -> Tokenizer:
    """The tokenizer that the metadata describes; ModelError when it is not one of ours."""
    kind = metadata.get("tokenizer.ggml.model")
    tokens = _strings(metadata, "tokens", source)
    types = metadata.get("tokenizer.ggml.token_type", [_NORMAL] * len(tokens))
    if len(types) != len(tokens):
        raise ModelError(f"{source} is damaged: {len(types)} token types, {len(tokens)} tokens")
    if kind == "gpt2":
        tokenizer, add_bos = _byte_level(metadata, tokens, source)
    elif kind == "llama":
        tokenizer, add_bos = _sentencepiece(metadata, tokens, types, source)
    else:
        raise ModelError(f"{source} has a tokenizer of the kind {kind!r}: not supported")
    added = [
        AddedToken(token, special=type_ != _USER_DEFINED, normalized=False)
        for token, type_ in zip(tokens, types, strict=True)
        if type_ in (_CONTROL, _USER_DEFINED) or (type_ == _UNKNOWN and kind == "llama")
    ]
    tokenizer.add_tokens(added)
    if metadata.get("tokenizer.ggml.add_bos_token", add_bos):
        _add_bos(tokenizer, metadata, tokens, source)
    return tokenizer


def _byte_level(
    metadata: dict[str, Any], tokens: list[str], source: Path
) -> tuple[Tokenizer, bool]:
    pre = metadata.get("tokenizer.ggml.pre")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    splits: dict[Any, list[Any]] = {
        "smollm": [pre_tokenizers.Digits(individual_digits=True), gpt2],
        "gpt-2": [gpt2],
        "llama-bpe": [pre_tokenizers.Split(Regex(_LLAMA3), "isolated"), byte_level],
        "qwen2": [pre_tokenizers.Split(Regex(_QWEN2), "isolated"), byte_level],
    }
    if pre not in splits:
        raise ModelError(
            f"{source} splits text by the rule {pre!r}, which is not known here "
            f"(known: {', '.join(splits)}); use the model's Hugging Face folder"
        )
    pairs = [tuple(merge.split(" ", 1)) for merge in _strings(metadata, "merges", source)]
    # Llama 3 takes a word that is a token as it is, without merging.
    tokenizer = _bpe(tokens, pairs, source, ignore_merges=pre == "llama-bpe")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits[pre])
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    return tokenizer, pre == "llama-bpe"


def _sentencepiece(
    metadata: dict[str, Any], tokens: list[str], types: list[int], source: Path
) -> tuple[Tokenizer, bool]:
    """BPE with byte fallback, its merges recovered from the scores: a token's score says when
    SentencePiece merges two pieces into it (as transformers' SentencePieceExtractor does)."""
    scores = metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise ModelError(f"{source} is damaged: its tokenizer has no score for each token")
    ids = {token: i for i, token in enumerate(tokens)}
    merges: list[tuple[float, int, int, tuple[str, str]]] = []
    for token, type_, score in zip(tokens, types, scores, strict=True):
        if type_ in (_NORMAL, _UNUSED):
            for cut in range(1, len(token)):
                left, right = token[:cut], token[cut:]
                if left in ids and right in ids:
                    merges.append((-score, ids[left], ids[right], (left, right)))
    unknown = next((t for t, type_ in zip(tokens, types, strict=True) if type_ == _UNKNOWN), None)
    pairs = [pair for _, _, _, pair in sorted(merges)]
    tokenizer = _bpe(tokens, pairs, source, byte_fallback=True, fuse_unk=True, unk_token=unknown)
    space = metadata.get("tokenizer.ggml.add_space_prefix", True)
    steps: list[Any] = [normalizers.Prepend("▁")] if space else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    strip: list[Any] = [decoders.Strip(" ", 1, 0)] if space else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    return tokenizer, True


def _bpe(tokens: list[str], pairs: list[Any], source: Path, **options: Any) -> Tokenizer:
    vocab = {token: i for i, token in enumerate(tokens)}
    if len(vocab) != len(tokens):
        raise ModelError(f"{source} is damaged: a token occurs twice in its tokenizer")
    try:
        return Tokenizer(BPE(vocab, pairs, **options))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"{source} has a damaged tokenizer: {error}") from None


def _add_bos(
    tokenizer: Tokenizer, metadata: dict[str, Any], tokens: list[str], source: Path
) -> None:
    bos = metadata.get("tokenizer.ggml.bos_token_id")
    if not isinstance(bos, int) or not 0 <= bos < len(tokens):
        raise ModelError(f"{source} begins prompts with a token {bos!r} that does not exist")
    text = tokens[bos]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{text}:0 $A:0",
        pair=f"{text}:0 $A:0 {text}:1 $B:1",
        special_tokens=[(text, bos)],
    )


def _strings(metadata: dict[str, Any], name: str, source: Path) -> list[str]:
    value = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise ModelError(f"{source} has no tokenizer: the list tokenizer.ggml.{name} is missing")
    return value
