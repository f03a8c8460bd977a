"""GGUF: the same weights as a Hugging Face folder give the same bits; the container itself."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from gguf_writer import write_gguf
from pyvosti import LLM, ModelError, SamplingParams
from pyvosti.gguf_file import read_gguf
from pyvosti.gguf_model import read_gguf_model, rotate_half_order
from pyvosti.weights import Tensor
from tiny_models import FAMILIES, save_tiny_model

pytestmark = pytest.mark.usefixtures("on_the_cpu")
GREEDY = SamplingParams(max_tokens=24, temperature=0, ignore_eos=True, prompt_logprobs=0)


@pytest.mark.parametrize("name", ["llama", "smollm", "mistral", "qwen2", "qwen3", "gemma3"])
def test_same_bits_as_the_folder(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    if name == "gemma3":  # GGUF takes for granted that every sixth layer sees everything
        kinds = ["sliding_attention"] * 5 + ["full_attention"]
        own = {"num_hidden_layers": 6, "layer_types": kinds, "query_pre_attn_scalar": 32}
        family = family._replace(options=family.options | own)
    save_tiny_model(family, tmp_path / "folder")
    write_gguf(tmp_path / "folder", tmp_path / "model.gguf")
    digests = []
    for source in (tmp_path / "folder", tmp_path / "model.gguf"):
        llm = LLM(source, record_digests=True)
        result = llm.generate("The quick brown fox, 123", GREEDY)[0]
        digests.append((result.prompt_token_ids, result.outputs[0].digests))
    assert digests[0] == digests[1]


def test_llama3_scaling_is_recovered_from_divisors(tmp_path: Path) -> None:
    from gguf import GGUFWriter

    path = tmp_path / "rope.gguf"
    divisors = llama3_divisors(base=500000.0, head_dim=128, factor=32.0)
    for wrong in (0.0, 0.1):
        writer = GGUFWriter(path, "llama")
        for name, value in (("block_count", 1), ("embedding_length", 128), ("head_count", 1)):
            key = "attention.head_count" if name == "head_count" else name
            writer.add_uint32(f"llama.{key}", value)
        writer.add_uint32("llama.feed_forward_length", 32)
        writer.add_uint32("llama.context_length", 131072)
        writer.add_float32("llama.rope.freq_base", 500000.0)
        writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        writer.add_tensor("token_embd.weight", np.zeros((8, 128), np.float32))
        writer.add_tensor("rope_freqs.weight", (divisors * (1 + wrong)).astype(np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        # The tensors of the layer are missing, which is found out after the configuration.
        expected = "no tensor layers.0" if wrong == 0 else "RoPE divisors of an unknown kind"
        with pytest.raises(ModelError, match=expected):
            read_gguf_model(path)


def llama3_divisors(base: float, head_dim: int, factor: float) -> np.ndarray:
    """What Hugging Face's `_compute_llama3_parameters` divides each frequency by."""
    import torch
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaling = {
        "rope_type": "llama3",
        "rope_theta": base,
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    config = LlamaConfig(
        hidden_size=head_dim,
        num_attention_heads=1,
        max_position_embeddings=131072,
        rope_parameters=scaling,
    )
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = base ** -(np.arange(0, head_dim, 2) / head_dim)
    return plain / scaled.numpy()


def test_quantised_rows_move_whole() -> None:
    heads, head_dim, size = 3, 8, 34
    rows = np.random.default_rng(1).integers(0, 256, (heads * head_dim, size)).astype(np.uint8)
    interleaved = rows.reshape(heads, 2, head_dim // 2, size).swapaxes(1, 2).reshape(-1)
    tensor = Tensor("Q8_0", (heads * head_dim, 32), np.ascontiguousarray(interleaved))
    assert rotate_half_order(tensor, heads).data.tobytes() == rows.tobytes()


def test_reads_what_the_gguf_package_reads(smollm2_path: Path) -> None:
    from gguf import GGUFReader

    start = time.process_time()
    ours = read_gguf(smollm2_path)
    seconds = time.process_time() - start
    theirs = GGUFReader(smollm2_path)
    fields = {k: v for k, v in theirs.fields.items() if not k.startswith("GGUF.")}
    assert ours.metadata == {key: field.contents() for key, field in fields.items()}
    assert ours.tensors.keys() == {tensor.name for tensor in theirs.tensors}
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert mine.dtype == tensor.tensor_type.name
        assert mine.shape == tuple(int(size) for size in reversed(tensor.shape))
        assert np.array_equal(mine.data, tensor.data.reshape(-1).view(np.uint8))
    assert seconds < 2
