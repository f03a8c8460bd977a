"""The launches that the GPU runner executes are those that the proof is about."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from launch_list import LAUNCHES, LaunchError, check_launches, check_list  # noqa: E402

MODELS: list[dict[str, Any]] = json.loads((ROOT / LAUNCHES).read_text(encoding="utf-8"))


def test_the_recorded_launches_are_those_that_the_runner_makes() -> None:
    pytest.importorskip("triton")
    from write_launches import launches

    assert launches() == MODELS, "run: python scripts/write_launches.py"


def test_they_are_the_launches_of_the_proof() -> None:
    assert check_launches(ROOT) == (len(MODELS), [])


def find(model: dict[str, Any], name: str) -> dict[str, Any]:
    return next(launch for launch in model["launches"] if launch["launch"] == name)


def renamed(name: str, old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def edit(model: dict[str, Any]) -> None:
        launch = find(model, name)
        assert old in launch["buffers"]
        launch["buffers"] = [new if b == old else b for b in launch["buffers"]]

    return edit


def dropped(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda model: model["launches"].remove(find(model, name))


def exchanged(first: str, second: str) -> Callable[[dict[str, Any]], None]:
    def edit(model: dict[str, Any]) -> None:
        launches = model["launches"]
        i, j = launches.index(find(model, first)), launches.index(find(model, second))
        launches[i], launches[j] = launches[j], launches[i]

    return edit


SANDWICH_FAULTS = {
    "another kind of rotary tables": renamed("layers.1.rope_kv_write", "cos.0", "cos.1"),
    "the norm of another addend": renamed(
        "layers.1.ffn_norm", "layers.1.attn_out_norm", "layers.1.ffn_out_norm"
    ),
    "the norm of the last layer's addend": renamed(
        "layers.1.attn_norm", "layers.0.ffn_out_norm", "layers.1.ffn_out_norm"
    ),
}
FAULTS = {
    "another layer's keys": renamed("layers.1.attention_splits", "k_cache.1", "k_cache.0"),
    "another layer's values": renamed("layers.2.rope_kv_write", "v_cache.2", "v_cache.1"),
    "another group's slots": renamed("layers.1.rope_kv_write", "slots.1", "slots.0"),
    "another group's table": renamed("layers.1.attention_splits", "tables.1", "tables.0"),
    "another layer's weight": renamed("layers.1.o", "layers.1.o", "layers.0.o"),
    "another weight of the layer": renamed("layers.1.o", "layers.1.o", "layers.1.down"),
    "queries without rotation": renamed("layers.0.attention_splits", "q", "qkv"),
    "the residual of the step before": renamed("layers.1.attn_norm", "residual_0", "residual_1"),
    "a buffer overwritten before it is read": renamed("layers.0.qkv", "qkv", "normed"),
    "logits of rows that were not gathered": renamed("head", "head_in", "normed"),
    "a dropped norm": dropped("layers.1.ffn_norm"),
    "a dropped projection": dropped("layers.2.down"),
    "a dropped combine": dropped("layers.0.attention_combine"),
    "a dropped final norm": dropped("norm"),
    "attention before the store": exchanged("layers.0.rope_kv_write", "layers.0.attention_splits"),
    "layers in another order": exchanged("layers.0.gate_up", "layers.1.gate_up"),
}


@pytest.mark.parametrize("fault", [*FAULTS, *SANDWICH_FAULTS])
def test_a_planted_fault_is_found(fault: str) -> None:
    sandwich = fault in SANDWICH_FAULTS
    found = (m for m in MODELS if m["layer_groups"].count(1) and m["sandwich_norms"] == sandwich)
    model = copy.deepcopy(next(found))
    (FAULTS | SANDWICH_FAULTS)[fault](model)
    with pytest.raises(LaunchError):
        check_list(ROOT, model)
