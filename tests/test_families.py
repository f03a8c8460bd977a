"""Logits beside transformers on the same weights, for each family.

Both compute in float32 and add in different orders. Stated bound: the largest absolute
difference is below 2e-4 at every position, where logits are of the order of 10.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pyvosti import LLM, SamplingParams
from tiny_models import FAMILIES, save_tiny_model

pytestmark = pytest.mark.usefixtures("on_the_cpu")
BOUND = 2e-4
PROMPT = [int(token) for token in np.random.default_rng(5).integers(4, 260, 90)]


def our_logits(llm: LLM, prompt: list[int], max_tokens: int) -> tuple[list[int], np.ndarray]:
    """Greedy tokens after the prompt; logits [len(prompt) + max_tokens - 1, vocab]."""
    params = SamplingParams(
        max_tokens=max_tokens, temperature=0, ignore_eos=True, prompt_logprobs=0
    )
    result = llm.generate(prompt_token_ids=prompt, sampling_params=params)[0]
    assert result.prompt_logits is not None
    assert result.outputs[0].logits is not None
    rows = np.vstack([result.prompt_logits, result.outputs[0].logits])
    return result.outputs[0].token_ids, rows


def their_logits(model: object, tokens: list[int]) -> np.ndarray:
    """Logits [len(tokens), vocab] of transformers' model in one pass."""
    import torch

    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].numpy()  # type: ignore[operator]


def compare(llm: LLM, model: object, prompt: list[int], max_tokens: int) -> float:
    """The largest absolute difference over the prompt and the greedy continuation."""
    tokens, ours = our_logits(llm, prompt, max_tokens)
    theirs = their_logits(model, prompt + tokens[:-1])
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max())


@pytest.mark.parametrize("name", FAMILIES)
def test_tiny_model(name: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    folder = tmp_path / name
    save_tiny_model(FAMILIES[name], folder)
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    llm = LLM(folder, max_batched_tokens=33, record_logits=True)
    assert compare(llm, model, PROMPT, 40) < BOUND


def test_bfloat16_in_shards(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    folder = tmp_path / "shards"
    save_tiny_model(FAMILIES["qwen2"], folder, dtype="bfloat16", max_shard_size="100KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert compare(LLM(folder, record_logits=True), model, PROMPT, 8) < BOUND


def test_smollm2(smollm2_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        smollm2_path.parent, gguf_file=smollm2_path.name, dtype=torch.float32
    )
    llm = LLM("smollm2", kv_cache_tokens=512, record_logits=True)
    prompt = llm.tokenizer.encode("The capital of France is Paris. The capital of").tolist()
    assert compare(llm, model, prompt, 24) < BOUND
