"""Hugging Face folders as GGUF files: what llama.cpp's converter does, for tiny models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}

_GEMMA3_NAMES = _NAMES | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def write_gguf(folder: Path, path: Path, quantisation: str = "F32", **metadata: Any) -> None:
    """Writes the folder's model; `metadata` replaces or adds tokenizer entries."""
    from gguf import GGMLQuantizationType, GGUFWriter, RopeScalingType, quantize
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    kind_of = config["model_type"]
    gemma = kind_of == "gemma3_text"
    architecture = "gemma3" if gemma else kind_of if "qwen" in kind_of else "llama"
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    rope = config["rope_parameters"]
    if gemma:
        rope = rope["full_attention"]
        writer.add_sliding_window(config["sliding_window"])
        writer.add_rope_scaling_type(RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_context_length(config["max_position_embeddings"])
    _add_tokenizer(writer, folder, metadata)
    kind = GGMLQuantizationType[quantisation]
    for name, value in load_file(folder / "model.safetensors").items():
        array = value + 1 if gemma and name.endswith("norm.weight") else value
        if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
            heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
            halves = array.reshape(heads, 2, array.shape[0] // heads // 2, array.shape[1])
            array = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)
        raw = kind if array.ndim == 2 and array.shape[1] % 32 == 0 else GGMLQuantizationType.F32
        writer.add_tensor(_gguf_name(name, gemma), quantize(array, raw), raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(name: str, gemma: bool) -> str:
    names = _GEMMA3_NAMES if gemma else _NAMES
    if name in names:
        return names[name]
    _, _, layer, rest = name.split(".", 3)
    module, _, kind = rest.rpartition(".")
    return f"blk.{layer}.{names[module]}.{kind}"


def _add_tokenizer(writer: Any, folder: Path, metadata: dict[str, Any]) -> None:
    model = json.loads((folder / "tokenizer.json").read_text())
    ids = model["model"]["vocab"]
    special = {entry["content"] for entry in model["added_tokens"] if entry["special"]}
    tokens = sorted(ids, key=ids.__getitem__)
    entries = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": tokens,
        "token_type": [3 if token in special else 1 for token in tokens],
        "merges": [" ".join(merge) for merge in model["model"]["merges"]],
        "eos_token_id": 0,
    } | metadata
    writer.add_tokenizer_model(entries["model"])
    writer.add_tokenizer_pre(entries["pre"])
    writer.add_token_list(entries["tokens"])
    writer.add_token_types(entries["token_type"])
    if "scores" in entries:
        writer.add_token_scores(entries["scores"])
    else:
        writer.add_token_merges(entries["merges"])
    if entries["eos_token_id"] is not None:
        writer.add_eos_token_id(entries["eos_token_id"])
    if "bos_token_id" in entries:
        writer.add_bos_token_id(entries["bos_token_id"])
