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
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from pyvosti import LLM, SamplingParams
from pyvosti.analyzer.shapes import PUBLISHED
from pyvosti.triton_kernels.schedule import Shape
from tiny_models import Family, save_tiny_model


def sizes(shape: Shape, layers: int) -> dict[str, Any]:
    """The shape as transformers' configurations spell it, but for the number of layers."""
    return {
        "hidden_size": shape.hidden, "intermediate_size": shape.ffn, "num_hidden_layers": layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim, "vocab_size": shape.vocab,
        "max_position_embeddings": shape.max_model_len, "rms_norm_eps": shape.rms_eps,
    }  # fmt: skip


LLAMA_ROPE = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
LLAMA, QWEN, GEMMA = (PUBLISHED[name] for name in ("llama-3.1-8b", "qwen3-8b", "gemma-3-1b"))
LAYER_TYPES = ("full_attention", "sliding_attention")
MODELS = {
    "Llama 3.1 8B": Family("LlamaConfig", "LlamaForCausalLM", sizes(LLAMA, 2) | {
        "rope_parameters": LLAMA_ROPE,
    }),
    "Qwen3 8B": Family("Qwen3Config", "Qwen3ForCausalLM", sizes(QWEN, 2) | {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
    }),
    "Gemma 3 1B": Family("Gemma3TextConfig", "Gemma3ForCausalLM", sizes(GEMMA, 6) | {
        "query_pre_attn_scalar": GEMMA.head_dim, "sliding_window": GEMMA.windows[1],
        "layer_types": [LAYER_TYPES[group] for group in GEMMA.layer_groups[:6]],
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
