"""The shapes that certificates ship for, on the GPU, with certificates required.

    python benchmarks/device_certified.py

Random weights and few layers (their number makes no kernel). What the device's compiler makes must
match the certificates, and each prompt's logits must be the same bits alone and among the others.
Exits 1 when something differs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from pyvosti import LLM, SamplingParams
from tiny_models import Family, save_tiny_model

EIGHT_B = {
    "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32,
    "num_key_value_heads": 8,
}  # fmt: skip
LLAMA_ROPE = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
MODELS = {
    "Llama 3.1 8B": Family("LlamaConfig", "LlamaForCausalLM", EIGHT_B | {
        "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
        "rope_parameters": LLAMA_ROPE,
    }),
    "Qwen3 8B": Family("Qwen3Config", "Qwen3ForCausalLM", EIGHT_B | {
        "intermediate_size": 12288, "head_dim": 128, "vocab_size": 151936,
        "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
    }),
    "Gemma 3 1B": Family("Gemma3TextConfig", "Gemma3ForCausalLM", {
        "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 6,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 256,
        "sliding_window": 512, "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
        },
        "tie_word_embeddings": True,
    }),
}  # fmt: skip
PROMPTS = [[1, 5, 9] * 300, [2, 7] * 100, [3] * 17]
GREEDY = SamplingParams(temperature=0.0, max_tokens=256, ignore_eos=True)


def differing(folder: Path) -> int:
    """Prompts whose digests of logits are others alone than together."""
    llm = LLM(folder, backend="cuda", record_digests=True, max_model_len=4096, num_blocks=512)
    together = llm.generate(prompt_token_ids=PROMPTS, sampling_params=GREEDY)
    alone = [llm.generate(prompt_token_ids=[p], sampling_params=GREEDY)[0] for p in PROMPTS]
    pairs = zip(together, alone, strict=True)
    return sum(a.outputs[0].digests != b.outputs[0].digests for a, b in pairs)


def main() -> int:
    found = {}
    for name, family in MODELS.items():
        with tempfile.TemporaryDirectory() as where:
            folder = Path(where) / "model"
            save_tiny_model(family, folder, "bfloat16")
            found[name] = differing(folder)
        print(f"certified: {name}: {found[name]} of {len(PROMPTS)} prompts differ", flush=True)
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
