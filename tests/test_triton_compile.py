"""Every kernel of every launch plan compiles for sm_80, sm_90 and sm_100, without a GPU.

What the compiler made is read too: no contraction, no atomics, the tensor-core instruction that
the schedule counts on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

from pyvosti import triton_kernels
from pyvosti.triton_kernels.compile import Spec, check_pointers, compiled, fingerprint
from pyvosti.triton_kernels.launches import all_specs, body_launches, head_launches
from pyvosti.triton_kernels.schedule import SHARED_MEMORY, Shape, make_schedule

SHAPES = {
    "llama-8b": Shape(
        layers=2, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256,
        rms_eps=1e-5, qkv_bias=False, qk_norm=False, layer_groups=(0, 0), windows=(0,), page=64,
        max_model_len=32768,
    ),
    "wide-heads": Shape(
        layers=1, hidden=2304, heads=28, kv_heads=4, head_dim=256, ffn=9216, vocab=32000,
        rms_eps=1e-6, qkv_bias=False, qk_norm=True, layer_groups=(0,), windows=(4096,), page=128,
        max_model_len=8192,
    ),
    "narrow": Shape(
        layers=2, hidden=576, heads=9, kv_heads=3, head_dim=64, ffn=1536, vocab=49152,
        rms_eps=1e-6, qkv_bias=True, qk_norm=True, layer_groups=(0, 1), windows=(0, 512), page=16,
        max_model_len=2048,
    ),
    "gemma": Shape(
        layers=2, hidden=1152, heads=4, kv_heads=1, head_dim=256, ffn=6912, vocab=262144,
        rms_eps=1e-6, qkv_bias=False, qk_norm=True, layer_groups=(1, 0), windows=(0, 512), page=64,
        max_model_len=8192, layer_ropes=(1, 0), embed_scale=34.0, sandwich_norms=True, gelu=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name,arch", [*((name, 90) for name in SHAPES), ("narrow", 80), ("llama-8b", 100)]
)
def test_every_specialisation_compiles(name: str, arch: int) -> None:
    for spec in all_specs(make_schedule(SHAPES[name], arch)):
        kernel = compiled(spec, arch)
        ptx = kernel.asm["ptx"]
        assert kernel.metadata.shared <= SHARED_MEMORY[arch], spec
        assert f".target sm_{arch}" in ptx
        assert not re.search(r"\b(atom|red)\.", ptx), f"{spec.kernel} has an atomic"
        assert not re.search(r"\bfma\.rn\.f32", ptx), f"{spec.kernel} contracts"
        if spec.kernel in ("linear", "gate_up"):
            wide = dict(spec.constants)["BLOCK_M"] >= 64
            expected = {80: "mma.sync", 90: "wgmma.mma_async" if wide else "mma.sync"}
            assert expected.get(arch, "mma") in ptx


def test_members_of_a_class_share_its_order() -> None:
    schedule = make_schedule(SHAPES["narrow"], 90)
    fixed = {"linear": ("N", "K", "SPLITS", "HAS_BIAS"), "attention_splits": ("SPLIT", "BLOCK_N"),
             "rms_norm": ("HIDDEN", "BLOCK", "SPLITS"), "rope_kv_write": ("SPLITS",),
             "attention_combine": ("SPLIT",), "gate_up": ("N", "K")}  # fmt: skip
    by_rows = [body_launches(schedule, rows, False) for rows in (1, 16, 64, 256)]
    for entries in zip(*by_rows, strict=True):
        kinds = {
            (
                e.name,
                e.buffers,
                tuple(dict(e.spec.constants)[c] for c in fixed.get(e.spec.kernel, ())),
            )
            for e in entries
        }
        assert len(kinds) == 1, kinds
        warps = {e.spec.num_warps for e in entries}
        assert len(warps) == 1 or entries[0].spec.kernel in (
            "linear",
            "gate_up",
            "attention_splits",
        )


def test_no_kernel_reads_what_it_writes() -> None:
    outputs = {"embedding": 1, "rms_norm": 2, "linear": 1, "gate_up": 1, "rope_kv_write": 3,
               "attention_splits": 3, "attention_combine": 1, "attention_whole": 1,
               "gather_rows": 1, "argmax": 2}  # fmt: skip
    schedule = make_schedule(SHAPES["llama-8b"], 90)
    for launch in body_launches(schedule, 1000, True) + head_launches(schedule, 1):
        written = launch.buffers[-outputs[launch.spec.kernel] :]
        read = launch.buffers[: -outputs[launch.spec.kernel]]
        assert not set(read) & set(written), launch.name


def test_strict_kernels_have_one_member() -> None:
    schedule = make_schedule(SHAPES["llama-8b"], 90, strict=True)
    assert all(len(getattr(schedule, c).members) == 1 for c in ("qkv", "o", "gate_up", "down"))
    assert body_launches(schedule, 1, False) == body_launches(schedule, 256, False)


def test_fingerprints_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    spec = next(s for s in all_specs(make_schedule(SHAPES["narrow"], 90)) if s.kernel == "linear")
    here = Path(triton_kernels.__file__).parent
    shutil.copytree(here, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("__pycache__"))
    code = f"from elsewhere.compile import Spec, fingerprint\nprint(fingerprint({spec!r}, 90))\n"
    env = os.environ | {"PYTHONPATH": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == str(fingerprint(spec, 90)), done.stderr
    assert fingerprint(spec, 90) != fingerprint(spec, 80)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="not 16-byte aligned"):
        check_pointers("linear", [0x1000, 0x1008])
    wrong = Spec("embedding", ("i32",) * 4 + ("bf16",) * 2, (("HIDDEN", 64),))
    with pytest.raises(ValueError, match="constants must be"):
        wrong.source()
    with pytest.raises(ValueError, match="head_dim"):
        make_schedule(Shape(**{**SHAPES["narrow"].__dict__, "head_dim": 80}), 90)
