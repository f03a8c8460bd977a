"""Whole models of random weights on the GPU: logits against transformers, and their bits.

    python benchmarks/device_model.py [parity] [bits] --out model.json

Weights are normal with fan-in scale, made on the device from a seed. Exits 1 when a bit differs
or an error is too large.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import numpy as np
import torch
from device_plans import HandPlan, Pages

from pyvosti import LLM, SamplingParams
from pyvosti.certified import allow_uncertified
from pyvosti.config import Rope
from pyvosti.cuda_pending import Pending
from pyvosti.cuda_runner import CudaRunner
from pyvosti.cuda_weights import fused_weights, rotary_tables
from pyvosti.draw import GREEDY
from pyvosti.triton_kernels.compile_all import compile_all
from pyvosti.triton_kernels.launches import all_specs
from pyvosti.triton_kernels.schedule import Shape, make_schedule
from tiny_models import FAMILIES, save_tiny_model

allow_uncertified("measurements launch kernels of every kind")

LLAMA_8B = Shape(
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256,
    rms_eps=1e-5, qkv_bias=False, qk_norm=False, layer_groups=(0,) * 32, windows=(0,), page=64,
    max_model_len=8192,
)  # fmt: skip


def random_fetch(shape: Shape, seed: int) -> Callable[[str], torch.Tensor]:
    """Random tensors under a model file's names, each a function of the seed and its name."""
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes = {
        "embed": (shape.vocab, shape.hidden), "head": (shape.vocab, shape.hidden),
        "q": (q, shape.hidden), "k": (kv, shape.hidden), "v": (kv, shape.hidden),
        "o": (shape.hidden, q), "gate": (shape.ffn, shape.hidden), "up": (shape.ffn, shape.hidden),
        "down": (shape.hidden, shape.ffn), "q_bias": (q,), "k_bias": (kv,), "v_bias": (kv,),
        "q_norm": (shape.head_dim,), "k_norm": (shape.head_dim,), "norm": (shape.hidden,),
        "attn_norm": (shape.hidden,), "ffn_norm": (shape.hidden,),
    }  # fmt: skip

    def fetch(name: str) -> torch.Tensor:
        kind = name.rsplit(".", 1)[-1]
        size = sizes[kind]
        digest = sum(ord(c) * 31**i for i, c in enumerate(name)) % 2**31
        generator = torch.Generator("cuda").manual_seed(seed * 2**31 + digest)
        values = torch.randn(size, device="cuda", generator=generator, dtype=torch.bfloat16)
        if len(size) == 1:
            return values * 0.1 + (1.0 if kind.endswith("norm") else 0.0)
        return values if kind == "embed" else values * size[1] ** -0.5

    return fetch


def make_runner(
    shape: Shape,
    *,
    rows: int,
    seqs: int,
    blocks: int,
    graphs=True,
    strict=False,
    tied=False,
    weights=None,
) -> CudaRunner:
    schedule = make_schedule(shape, 90, strict)
    compile_all(all_specs(schedule), 90)
    weights = weights or fused_weights(shape, random_fetch(shape, 1), tied)
    return CudaRunner(
        schedule, weights, rotary_tables(shape, [Rope(5e5, None)]),
        num_blocks=[blocks] * len(shape.windows), max_seqs=seqs, max_batched_tokens=rows,
        graphs=graphs,
    )  # fmt: skip


# --- parity -----------------------------------------------------------------------------------

SIZES = {
    "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 4, "vocab_size": 4099,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
    "max_position_embeddings": 2048,
}  # fmt: skip
SPECIAL = {
    "smollm": {"hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3},
    "mistral-window": {"sliding_window": 128},
    "gemma3": {"sliding_window": 128, "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
               "query_pre_attn_scalar": 48},
}  # fmt: skip


def parity(report: dict) -> bool:
    """Logits of each family beside transformers on the same folder, a part of them by decode."""
    from transformers import AutoModelForCausalLM

    fine = True
    ids = np.random.default_rng(4).integers(4, SIZES["vocab_size"], 700)
    for name in ("llama3-rope", "mistral-window", "qwen2", "qwen3", "smollm", "gemma3"):
        with tempfile.TemporaryDirectory() as where:
            folder = Path(where) / "model"
            family = FAMILIES[name]
            options = family.options | SIZES | SPECIAL.get(name, {})
            save_tiny_model(family._replace(options=options), folder, dtype="bfloat16")
            llm = LLM(folder, backend="cuda", num_blocks=64, record_logits=True)
            params = SamplingParams(max_tokens=100, temperature=0, ignore_eos=True,
                                    prompt_logprobs=0)  # fmt: skip
            output = llm.generate(prompt_token_ids=ids[:600].tolist(), sampling_params=params)[0]
            logits = [output.prompt_logits, output.outputs[0].logits]
            ours = torch.from_numpy(np.concatenate(logits)).double()
            seen = [*ids[:600].tolist(), *output.outputs[0].token_ids[:-1]]
            batch = torch.tensor([seen], device="cuda")

            def theirs(dtype: torch.dtype, folder: Path = folder, batch=batch) -> torch.Tensor:
                model = AutoModelForCausalLM.from_pretrained(
                    folder, dtype=dtype, attn_implementation="eager"
                )
                with torch.no_grad():
                    return model.to("cuda")(batch).logits[0].cpu().double()

            want = theirs(torch.float64)
            error = [float((got - want).norm() / want.norm())
                     for got in (ours, theirs(torch.bfloat16))]  # fmt: skip
        agree = float((ours.argmax(1) == want.argmax(1)).double().mean())
        line = {"ours": error[0], "transformers_bf16": error[1], "argmax_equal": agree}
        report.setdefault("parity", {})[name] = line
        ok = line["ours"] < 1.1 * line["transformers_bf16"]
        fine &= ok
        print(f"parity {name}: error against float64 {line['ours']:.2e}, transformers bf16 "
              f"{line['transformers_bf16']:.2e}, argmax equal {agree:.3f} {'ok' if ok else 'BAD'}",
              flush=True)  # fmt: skip
    return fine


# --- bits -------------------------------------------------------------------------------------


def bits(report: dict) -> bool:
    """Every way to compute the same rows of the 8B shape (4 layers) must give the same bits."""
    shape = Shape(**(LLAMA_8B.__dict__ | dict(layers=4, layer_groups=(0,) * 4, vocab=32000)))
    weights = fused_weights(shape, random_fetch(shape, 1), False)
    rng = np.random.default_rng(6)
    ids = rng.integers(0, shape.vocab, 900)
    others = [rng.integers(0, shape.vocab, 4096) for _ in range(301)]
    runner = make_runner(shape, rows=4096, seqs=301, blocks=4096, weights=weights)
    failures: list[str] = []
    checks = 0

    def compare(what: str, got: np.ndarray, first: int) -> None:
        nonlocal checks
        checks += 1
        same = got.view(np.uint32) == want[first : first + len(got)].view(np.uint32)
        if not same.all():
            row, column = np.argwhere(~same)[0]
            failures.append(
                f"{what}: position {first + row}, logit {column}: "
                f"{got[row, column]!r} {want[first + row, column]!r}"
            )

    want = runner.execute(Pages(4096, 64, 1, 0).plan([(0, 0, ids)], True))

    def chunks(name: str, use: CudaRunner, sizes: list[int], seed: int, poison: bool = False):
        if poison:
            for layer in range(shape.layers):
                use.buffers[f"k_cache.{layer}"].fill_(float("nan"))
                use.buffers[f"v_cache.{layer}"].fill_(float("inf"))
        pages, at = Pages(4096, 64, 1, seed), 0
        while at < len(ids):
            size = sizes[0] if len(sizes) == 1 else sizes.pop(0)
            part = ids[at : at + size]
            compare(name, use.execute(pages.plan([(7, at, part)], True)), at)
            at += len(part)

    for size in (900, 513, 300, 257, 256, 200, 129, 64, 17, 16, 5):
        chunks(f"chunks of {size}", runner, [size], size)
        chunks(f"chunks of {size}, poisoned free pages", runner, [size], size + 1, True)
    chunks("prefill 500, then decode", runner, [500] + [1] * 400, 11)
    chunks("decode from the first token", runner, [1], 12, True)
    plain = make_runner(shape, rows=4096, seqs=301, blocks=4096, weights=weights, graphs=False)
    chunks("without graphs, chunks of 100", plain, [100], 13)
    del plain
    for neighbours in (1, 2, 7, 14, 15, 16, 31, 63, 64, 127, 128, 200, 254, 255, 256, 300):
        pages = Pages(4096, 64, 1, neighbours)
        warm = [(s, 0, others[s][:9]) for s in range(1, neighbours + 1)]
        for k in range(0, len(warm), 200):
            runner.execute(pages.plan(warm[k : k + 200]))
        runner.execute(pages.plan([(0, 0, ids[:700])]))
        for place in sorted({0, neighbours // 2, neighbours}):
            row = [(s, 9, others[s][9:10]) for s in range(1, neighbours + 1)]
            row.insert(place, (0, 700, ids[700:701]))
            plan = pages.plan(row)
            compare(
                f"decode among {neighbours}, place {place}",
                runner.execute(plan)[place : place + 1],
                700,
            )
    for length in (1, 9, 10, 129, 1000, 3000):
        pages = Pages(4096, 64, 1, length)
        runner.execute(pages.plan([(0, 0, ids[:800])]))
        plan = pages.plan([(1, 0, others[1][:length]), (0, 800, ids[800:801])])
        compare(f"decode beside a prefill of {length}", runner.execute(plan)[1:], 800)
        plan = pages.plan([(2, 0, others[2][:length]), (0, 801, ids[801:840])])
        compare(f"chunk of 39 beside a prefill of {length}", runner.execute(plan)[1:], 839)
    strict = make_runner(shape, rows=4096, seqs=301, blocks=4096, weights=weights, strict=True)
    chunks("strict kernels, chunks of 300", strict, [300], 14)
    report["bits"] = {"comparisons": checks, "failures": failures}
    print(f"bits: {checks} comparisons of full-vocabulary rows, {len(failures)} differ")
    print("\n".join(failures[:20]), flush=True)
    return not failures


def greedy_step(runner: CudaRunner, plan: HandPlan) -> Pending:
    """Starts a plan whose sampled rows are drawn greedily and whose logits stay on the GPU."""
    return runner.start(
        plan, [GREEDY] * len(plan.sample_seqs), np.zeros(len(plan.logits_rows), bool)
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["parity", "bits"])
    parser.add_argument("--out", type=Path, default=Path("model.json"))
    arguments = parser.parse_args()
    report: dict = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    fine = True
    for what in arguments.what:
        fine &= {"parity": parity, "bits": bits}[what](report)
        torch.cuda.empty_cache()
        arguments.out.write_text(json.dumps(report, indent=1))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
