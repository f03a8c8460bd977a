"""Speed of the CPU backend on SmolLM2-135M beside HF transformers (fp32) and llama.cpp.

All run with the same number of threads, llama.cpp on the same files: the Q4_1 GGUF and a bf16 one
made from it. What the machine can do (multiplications each followed by an addition; bytes read)
is measured in the same run. Systems take turns, and the best round of each counts, so that other
work on the machine disturbs all alike. A peer that is not installed is left out (null).

The last line is JSON. A share is of the measured peak: weights read by decode in bf16 against the
read bandwidth; multiply-adds of a step of 16 sequences and of a prefill against the arithmetic.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyvosti import _core
from pyvosti.loader import LoadedModel, load_model
from pyvosti.runner import core_config

BLOCK = 16
CONTEXT = 64  # tokens before the decoded ones
TOKENS = 32  # decoded in a round
PREFILL = 512
SEATS = 16

Decoder = Callable[[], float]
"""Decodes TOKENS tokens after CONTEXT others and returns the seconds taken by one."""


class Vosti:
    """The CPU backend with 16 sequences in the pages that their seats have."""

    def __init__(self, model: LoadedModel, threads: int) -> None:
        config, slots = model.config, SEATS * 1024
        self.core = _core.CpuModel(
            core_config(config, [0] * config.n_layers, [None]),
            dict(model.tensors),
            [slots],
            BLOCK,
            threads,
        )
        self.table = np.arange(slots // BLOCK, dtype=np.uint32).reshape(SEATS, -1)

    def step(self, seats: int, start: int, count: int) -> float:
        """Runs `count` rows of each of the first `seats` sequences; seconds."""
        positions = np.tile(np.arange(start, start + count, dtype=np.uint32), seats)
        rows = np.repeat(np.arange(seats, dtype=np.uint32), count)
        slots = self.table[rows, positions // BLOCK] * BLOCK + positions % BLOCK
        starts = np.arange(seats + 1, dtype=np.uint32) * count
        tokens = (positions * 131 + rows * 7 + 1000) % 40_000
        begin = time.perf_counter()
        self.core.forward(
            tokens.astype(np.uint32),
            positions,
            [slots.astype(np.uint32)],
            starts.astype(np.uint32),
            np.full(seats, start + count, np.uint32),
            np.arange(seats, dtype=np.uint32),
            [self.table],
            (starts[1:] - 1).astype(np.uint32),
        )
        return time.perf_counter() - begin

    def decode(self, seats: int = 1) -> float:
        self.step(seats, 0, CONTEXT)
        return sum(self.step(seats, CONTEXT + i, 1) for i in range(TOKENS)) / TOKENS

    def prefill(self) -> float:
        return self.step(1, 0, PREFILL)


def llama_cpp(path: Path, threads: int) -> Decoder | None:
    if find_spec("llama_cpp") is None:
        return None
    from llama_cpp import Llama

    llama = Llama(str(path), n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False)

    def decode() -> float:
        llama.reset()
        llama.eval([1000 + 131 * i for i in range(CONTEXT)])
        begin = time.perf_counter()
        for i in range(TOKENS):
            llama.eval([1000 + i])
        return (time.perf_counter() - begin) / TOKENS

    return decode


def transformers(path: Path, threads: int) -> Decoder | None:
    if find_spec("transformers") is None or find_spec("torch") is None:
        return None
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache

    torch.set_num_threads(threads)
    model: Any = AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    )
    model.eval()

    def decode() -> float:
        with torch.inference_mode():
            cache = DynamicCache()
            model(torch.arange(1000, 1000 + CONTEXT)[None], past_key_values=cache)
            begin = time.perf_counter()
            for i in range(TOKENS):
                model(torch.tensor([[1000 + i]]), past_key_values=cache)
            return (time.perf_counter() - begin) / TOKENS

    return decode


def write_bf16(source: Path, target: Path) -> None:
    """The same model with its matrices in bf16 (rounded to nearest even)."""
    import gguf

    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if field.name == "general.architecture" or field.name.startswith("GGUF."):
            continue
        kind = field.types[0]
        item = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, item)
    for tensor in reader.tensors:
        values: NDArray[Any] = gguf.dequantize(tensor.data, tensor.tensor_type)
        values = values.reshape(tensor.shape[::-1]).astype(np.float32)
        if values.ndim == 1:
            writer.add_tensor(tensor.name, values)
        else:
            bits = gguf.quantize(values, gguf.GGMLQuantizationType.BF16)
            writer.add_tensor(tensor.name, bits, raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def multiply_adds(model: LoadedModel, rows: int, head_rows: int, context_sum: int) -> int:
    """Of a step: `rows` through the layers, `head_rows` through the head; `context_sum`: keys that
    all rows see."""
    c = model.config
    shapes = {name: t.shape for name, t in model.tensors.items() if len(t.shape) == 2}
    head = c.vocab * c.hidden
    layers = sum(r * k for name, (r, k) in shapes.items() if name.startswith("layers."))
    attention = 2 * c.n_layers * c.n_heads * c.head_dim * context_sum
    return rows * layers + head_rows * head + attention


def weight_bytes(model: LoadedModel) -> int:
    return sum(t.data.nbytes for t in model.tensors.values())


def ratio(ours: float, peer: float | None) -> float | None:
    return None if peer is None else round(peer / ours, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--model", default="smollm2", help="a Llama GGUF in Q4_1")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        q4 = load_model(args.model)
        path = Path(folder) / "bf16.gguf"
        write_bf16(q4.path, path)
        bf16 = load_model(path)
        report(run(q4, bf16, args.threads, args.rounds), q4, bf16)


def run(q4: LoadedModel, bf16: LoadedModel, threads: int, rounds: int) -> dict[str, float | None]:
    """Best seconds by name, and the machine's peaks."""
    ours = {"q4_1": Vosti(q4, threads), "bf16": Vosti(bf16, threads)}
    turns: dict[str, Callable[[], float] | None] = {}
    for name, vosti in ours.items():
        turns[f"pyvosti {name} decode"] = vosti.decode
        turns[f"pyvosti {name} batch 16"] = lambda vosti=vosti: vosti.decode(SEATS)
        turns[f"pyvosti {name} prefill"] = vosti.prefill
    turns["llama.cpp q4_1 decode"] = llama_cpp(q4.path, threads)
    turns["llama.cpp bf16 decode"] = llama_cpp(bf16.path, threads)
    turns["transformers fp32 decode"] = transformers(q4.path, threads)
    best: dict[str, float | None] = dict.fromkeys(turns)
    macs = bandwidth = 0.0
    for _ in range(rounds):
        found = _core.measure_cpu(threads, 2)
        macs, bandwidth = max(macs, found[0]), max(bandwidth, found[1])
        for name, turn in turns.items():
            if turn is not None:
                time.sleep(0.25)  # lets the last system's threads fall asleep
                seconds, former = turn(), best[name]
                best[name] = seconds if former is None else min(former, seconds)
    return best | {"macs": macs, "bandwidth": bandwidth}


def report(best: dict[str, float | None], q4: LoadedModel, bf16: LoadedModel) -> None:
    macs, bandwidth = best["macs"] or 0.0, best["bandwidth"] or 0.0
    print(f"measured peak: {macs / 1e9:.1f} GMAC/s, {bandwidth / 1e9:.1f} GB/s")
    for name, seconds in best.items():
        if name in ("macs", "bandwidth"):
            continue
        print(f"{name:26}", "not installed" if seconds is None else f"{seconds * 1e3:8.2f} ms")
    decode_context = TOKENS * CONTEXT + TOKENS * (TOKENS + 1) // 2
    batch = multiply_adds(bf16, SEATS, SEATS, SEATS * decode_context // TOKENS)
    prefill = multiply_adds(bf16, PREFILL, 1, PREFILL * (PREFILL + 1) // 2)
    shares = {}
    for name, model in (("q4_1", q4), ("bf16", bf16)):
        decode, many, long = (
            best[f"pyvosti {name} {what}"] or 0.0 for what in ("decode", "batch 16", "prefill")
        )
        shares[name] = [
            round(weight_bytes(model) / decode / bandwidth, 2),
            round(batch / many / macs, 2),
            round(prefill / long / macs, 2),
        ]
        print(f"{name}: of the bandwidth {shares[name][0]}, of the arithmetic {shares[name][1:]}")
    result = {
        "decode_vs_hf": ratio(best["pyvosti q4_1 decode"] or 0.0, best["transformers fp32 decode"]),
        "decode_vs_llamacpp": {
            name: ratio(best[f"pyvosti {name} decode"] or 0.0, best[f"llama.cpp {name} decode"])
            for name in ("bf16", "q4_1")
        },
        "decode_bandwidth_share": shares["bf16"][0],
        "batch16_peak_share": shares["bf16"][1],
        "prefill_peak_share": shares["bf16"][2],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
