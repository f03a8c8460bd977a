"""Writes verus-proofs/launches.json: the launches that the GPU runner makes of a few models.

    python scripts/write_launches.py

Needs the package `pyvosti` and Triton; what reads the file (launch_list.py) does not.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pyvosti.kernel_plan import plan_as_data  # noqa: E402
from pyvosti.triton_kernels.schedule import Shape, make_schedule  # noqa: E402

PLAIN = Shape(
    layers=3, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256,
    rms_eps=1e-5, qkv_bias=False, qk_norm=False, layer_groups=(0, 0, 0), windows=(0,), page=64,
    max_model_len=8192,
)  # fmt: skip
MODELS = {
    "one chain a sum": (PLAIN, 1),
    "many rows, long prompts": (PLAIN, 4096),
    "split K, biases": (replace(PLAIN, hidden=576, heads=9, kv_heads=3, head_dim=64, ffn=1536,
                                qkv_bias=True), 64),
    "QK norm, windows": (replace(PLAIN, qk_norm=True, layer_groups=(0, 1, 0), windows=(0, 512)), 8),
    "sandwich norms, two rotary tables": (
        replace(PLAIN, qk_norm=True, layer_groups=(1, 0, 1), windows=(0, 512), sandwich_norms=True,
                layer_ropes=(1, 0, 1), gelu=True, embed_scale=64.0), 64
    ),
}  # fmt: skip


def launches() -> list[dict[str, Any]]:
    """One entry for each model: what launch_list.py looks at."""
    entries = []
    for name, (shape, rows) in MODELS.items():
        plan = plan_as_data(make_schedule(shape, 90), rows)
        keep = ("SPLITS", "HAS_BIAS", "QK_NORM")
        listed = [
            {
                "launch": launch["launch"],
                "kernel": launch["kernel"],
                "buffers": list(launch["buffers"]),
                "constants": {k: v for k, v in launch["constants"].items() if k in keep},
            }
            for launch in plan["launches"]
        ]
        entries.append({
            "model": name, "layer_groups": list(shape.layer_groups),
            "layer_ropes": [shape.rope(layer) for layer in range(shape.layers)],
            "qkv_bias": shape.qkv_bias, "qk_norm": shape.qk_norm,
            "sandwich_norms": shape.sandwich_norms, "launches": listed,
        })  # fmt: skip
    return entries


if __name__ == "__main__":
    text = (
        json.dumps(launches()).replace('{"launch"', '\n{"launch"').replace('{"model"', '\n{"model"')
    )
    (ROOT / "verus-proofs" / "launches.json").write_text(text + "\n", encoding="utf-8")
