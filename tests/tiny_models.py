"""Random models of each family, small enough to load in a moment, saved by transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, 123 times a day.",
    "Être ou ne pas être: c'est là la question. 🙂🙂 日本語のテキスト",
    "def step(self):\n    plan = self.engine.schedule()\n    return plan\n",
]
VOCAB = 400
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<eos>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class Family(NamedTuple):
    """Names of transformers' configuration and model classes, and what differs from the rest."""

    config: str
    model: str
    options: dict[str, Any]


_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}

_GEMMA3 = {
    "head_dim": 32,
    "query_pre_attn_scalar": 48,
    "sliding_window": 24,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "linear", "rope_theta": 50000.0, "factor": 4.0},
    },
    "tie_word_embeddings": True,
}

FAMILIES = {
    "llama": Family("LlamaConfig", "LlamaForCausalLM", {}),
    "llama3-rope": Family("LlamaConfig", "LlamaForCausalLM", {"rope_parameters": _LLAMA3}),
    "linear-rope": Family("LlamaConfig", "LlamaForCausalLM", {"rope_parameters": _LINEAR}),
    "smollm": Family("LlamaConfig", "LlamaForCausalLM", {"tie_word_embeddings": True}),
    "mistral": Family("MistralConfig", "MistralForCausalLM", {"sliding_window": None}),
    "mistral-window": Family("MistralConfig", "MistralForCausalLM", {"sliding_window": 24}),
    "qwen2": Family("Qwen2Config", "Qwen2ForCausalLM", {}),
    "qwen2-windows": Family(
        "Qwen2Config",
        "Qwen2ForCausalLM",
        {"use_sliding_window": True, "sliding_window": 17, "max_window_layers": 1},
    ),
    "qwen3": Family("Qwen3Config", "Qwen3ForCausalLM", {"head_dim": 32}),
    "gemma3": Family("Gemma3TextConfig", "Gemma3ForCausalLM", _GEMMA3),
}


def save_tiny_model(
    family: Family,
    folder: Path,
    dtype: str = "float32",
    max_shard_size: str = "5GB",
    seed: int = 7,
) -> None:
    """Writes a folder with configuration, random weights and a tokenizer."""
    import torch
    import transformers

    folder.mkdir(parents=True)
    save_tokenizer(folder)
    config = getattr(transformers, family.config)(
        **{
            "vocab_size": VOCAB,
            "hidden_size": 64,
            "intermediate_size": 160,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5,
            "bos_token_id": None,
            "eos_token_id": 0,
            "tie_word_embeddings": False,
        }
        | family.options
    )
    torch.manual_seed(seed)
    model = getattr(transformers, family.model)(config)
    with torch.no_grad():  # the library's own start leaves norms at 1 and biases at 0
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0.0, 0.15)
    model.to(getattr(torch, dtype)).save_pretrained(folder, max_shard_size=max_shard_size)


def save_tokenizer(folder: Path) -> None:
    """Writes a byte-level BPE tokenizer of a few tokens less than the model has, as is usual."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=["<eos>", "<|user|>", "<|assistant|>", "<|system|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<eos>",
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
