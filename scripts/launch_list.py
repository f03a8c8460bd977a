"""Compares the launch sequence that the GPU runner executes with the one that the proof is about.

`verus-proofs/launches.json` holds what `triton_kernels/launches.py` makes for a few models (a test
keeps it so). Each kernel there stands for one or more launches of `decoder` in proofs/decoder.rs;
the check replays the data buffer by buffer: which buffer of the runner holds which buffer of the
proof, whether every kernel reads what the proof's launch reads, of the right layer and layer
group, and whether the launches in order are those of `decoder`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rust_source import Source

DECODER = Path("verus-proofs") / "src" / "proofs" / "decoder.rs"
LAUNCHES = Path("verus-proofs") / "launches.json"
BUFFER = re.compile(r"Buffer::(\w+)")
BRANCH = re.compile(r"\{((?:[^{}]|\{[^{}]*\})*)\}")
WEIGHTS = ("attn_norm", "qkv", "qkv_bias", "q_norm", "k_norm", "o", "attn_out_norm", "ffn_norm",
           "gate_up", "down", "ffn_out_norm")  # fmt: skip
SANDWICH = (6, 12)
"""The launches of a layer that only models with sandwich norms have (`nth` in decoder.rs)."""


class LaunchError(Exception):
    """A launch that is not the proof's."""


@dataclass(frozen=True)
class Abstract:
    """A launch of the proof: kernel, whether it has a weight, layer number, buffers."""

    kernel: str
    weighted: bool
    layer: int | None
    reads: tuple[str, ...]
    out: str | None


def layer_launches(root: Path) -> list[Abstract]:
    """The launches of layer 0, read from `layer_launch` of decoder.rs."""
    source = Source.read(root / DECODER)
    body = _body(source, "layer_launch")
    shared = tuple(BUFFER.findall(_between(body, "let reads =", ";")))
    branches = BRANCH.findall(body[body.index("if j == 0") :])
    return [_abstract(branch, shared, source) for branch in branches]


def _abstract(branch: str, shared: tuple[str, ...], source: Source) -> Abstract:
    if "add_projected()" in branch:
        branch = _body(source, "add_projected")
    kernel = re.search(r"Kernel::(\w+)", branch)
    if kernel is None:
        raise LaunchError(f"{DECODER}: cannot read this launch: {' '.join(branch.split())}")
    weighted = bool(re.search(r"unary\(\s*Kernel::\w+,\s*weight\b", branch))
    if "unary(" in branch:
        reads, out = BUFFER.findall(branch)
        return Abstract(kernel[1], weighted, 0, (reads,), out)
    out_found = re.search(r"out: Some\(Buffer::(\w+)\)", branch)
    listed = re.search(r"reads: seq!\[(.*?)\]", branch)
    reads_of = tuple(BUFFER.findall(listed[1])) if listed else shared
    return Abstract(kernel[1], weighted, 0, reads_of, out_found[1] if out_found else None)


def _body(source: Source, name: str) -> str:
    item = next((i for i in source.all_items() if i.kind == "fn" and i.name == name), None)
    if item is None or item.body is None:
        raise LaunchError(f"{DECODER} has no function {name}")
    first, last = source.tokens[item.body], source.tokens[item.end - 1]
    return source.text[first.at + 1 : last.at]


def _between(text: str, start: str, end: str) -> str:
    at = text.index(start) + len(start)
    return text[at : text.index(end, at)]


def decoder_launches(root: Path, layers: int, sandwich: bool) -> list[Abstract]:
    """All launches of `decoder` for that many layers."""
    one = [a for j, a in enumerate(layer_launches(root)) if sandwich or j not in SANDWICH]
    body = [
        Abstract(a.kernel, a.weighted, layer, a.reads, a.out)
        for layer in range(layers)
        for a in one
    ]
    first = Abstract("Embed", False, None, (), "Residual")
    norm = Abstract("Norm", True, None, ("Residual",), "Normed")
    return [first, *body, norm, Abstract("Head", True, None, ("Normed",), None)]


@dataclass
class Replay:
    """The proof's launches that a list of the runner's launches amounts to."""

    groups: Sequence[int]
    ropes: Sequence[int]
    holds: dict[str, str] = field(default_factory=dict)
    """The runner's buffer that holds each of the proof's; `Wanted`: the normed rows to score."""
    made: list[Abstract] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    stored: set[int] = field(default_factory=set)
    attending: int | None = None

    def run(self, launches: Sequence[dict[str, Any]]) -> list[Abstract]:
        """Replays all. LaunchError names the first launch that does not fit."""
        for launch in launches:
            try:
                layer = self._layer(launch["launch"])
                getattr(self, "_" + launch["kernel"])(layer, launch)
            except (LaunchError, AttributeError, ValueError) as error:
                raise LaunchError(f"{launch['launch']}: {error}") from None
        return self.made

    @staticmethod
    def _layer(name: str) -> int | None:
        match = re.match(r"layers\.(\d+)\.", name)
        return int(match[1]) if match else None

    def _read(self, buffer: str, wanted: str) -> None:
        if self.holds.get(wanted) != buffer:
            raise LaunchError(f"reads {buffer}, but {wanted} is in {self.holds.get(wanted)}")

    def _write(self, buffer: str, now: str) -> None:
        self.holds = {b: place for b, place in self.holds.items() if place != buffer}
        self.holds[now] = buffer

    def _weight(self, layer: int | None, name: str) -> None:
        if self._layer(name) != layer:
            raise LaunchError(f"takes the weight {name}")
        self.weights.append(name)

    def _make(
        self, kernel: str, weighted: bool, layer: int | None, reads: Sequence[str], out: str | None
    ) -> None:
        self.made.append(Abstract(kernel, weighted, layer, tuple(reads), out))

    def _expect(self, found: Sequence[str], *wanted: str) -> None:
        if tuple(found) != wanted:
            raise LaunchError(f"has {', '.join(found)}, not {', '.join(wanted)}")

    def _embedding(self, layer: int | None, launch: dict[str, Any]) -> None:
        *inputs, out = launch["buffers"]
        self._expect(inputs, "row_count", "tokens", "row_seats", "last_tokens", "embed")
        self._make("Embed", False, layer, (), "Residual")
        self._write(out, "Residual")

    def _rms_norm(self, layer: int | None, launch: dict[str, Any]) -> None:
        count, delta, residual, weight, residual_out, out = launch["buffers"]
        self._expect([count], "row_count")
        self._read(residual, "Residual")
        if launch["constants"]["SPLITS"]:
            self._read(delta, "Projected")
            if residual_out == residual:
                raise LaunchError(f"writes {residual}, which it reads")
            # The addition belongs to the layer whose projection it takes in.
            owner = self.made[-1].layer
            self._make("Add", False, owner, ("Residual", "Projected"), "Residual")
            self._write(residual_out, "Residual")
        self._weight(layer, weight)
        self._make("Norm", True, layer, ("Residual",), "Normed")
        self._write(out, "Normed")

    def _sandwich_norm(self, layer: int | None, launch: dict[str, Any]) -> None:
        count, delta, delta_weight, *rest = launch["buffers"]
        self._read(delta, "Projected")
        owner = self.made[-1].layer
        self._weight(owner, delta_weight)
        self._make("Norm", True, owner, ("Projected",), "Projected")
        self._rms_norm(layer, launch | {"buffers": [count, delta, *rest]})

    def _linear(self, layer: int | None, launch: dict[str, Any]) -> None:
        count, x, weight, bias, out = launch["buffers"]
        self._weight(layer, weight)
        if launch["constants"]["HAS_BIAS"]:
            self._weight(layer, bias)
        if out == "logits":
            self._expect([count], "logits_count")
            self._read(x, "Wanted")
            self._make("Head", True, layer, ("Normed",), None)
            return
        self._expect([count], "row_count")
        reads = next((b for b, place in self.holds.items() if place == x), None)
        if reads is None:
            raise LaunchError(f"reads {x}, which holds nothing")
        now = "Qkv" if reads == "Normed" else "Projected"
        self._make("Linear", True, layer, (reads,), now)
        self._write(out, now)

    def _rope_kv_write(self, layer: int | None, launch: dict[str, Any]) -> None:
        count, qkv, cos, sin, positions, slots, q_norm, k_norm, q, *caches = launch["buffers"]
        assert layer is not None
        rope = self.ropes[layer]
        self._expect([count, cos, sin], "row_count", f"cos.{rope}", f"sin.{rope}")
        self._expect([positions, slots], "positions", f"slots.{self.groups[layer]}")
        self._expect(caches, f"k_cache.{layer}", f"v_cache.{layer}")
        if launch["constants"]["QK_NORM"]:
            self._weight(layer, q_norm)
            self._weight(layer, k_norm)
        self._read(qkv, "Qkv")
        if layer in self.stored:
            raise LaunchError("stores the layer's KV again")
        self.stored.add(layer)
        self._make("Rope", True, layer, ("Qkv",), "Qkv")
        self._make("Store", False, layer, ("Qkv",), None)
        self._write(q, "Qkv")

    def _attend(self, layer: int | None, buffers: Sequence[str]) -> None:
        assert layer is not None
        q, *rest = buffers
        self._read(q, "Qkv")
        table = f"tables.{self.groups[layer]}"
        self._expect(rest, f"k_cache.{layer}", f"v_cache.{layer}", table, "positions")
        if layer not in self.stored:
            raise LaunchError("reads KV that is not stored yet")

    def _attention_splits(self, layer: int | None, launch: dict[str, Any]) -> None:
        self._attend(layer, launch["buffers"][:5])
        inputs = ("tile_rows", "tile_counts", "tile_seats", "states")
        self._expect(launch["buffers"][5:], *inputs, "split_m", "split_l", "split_acc")
        self.attending = layer

    def _attention_combine(self, layer: int | None, launch: dict[str, Any]) -> None:
        *inputs, out = launch["buffers"]
        self._expect(inputs, "row_count", "positions", "states", "split_m", "split_l", "split_acc")
        if self.attending != layer:
            raise LaunchError("joins splits of another layer")
        self._make("Attention", False, layer, ("Qkv",), "Attended")
        self._write(out, "Attended")

    def _attention_whole(self, layer: int | None, launch: dict[str, Any]) -> None:
        *inputs, out = launch["buffers"]
        self._attend(layer, inputs[:5])
        self._expect(inputs[5:], "whole_tile_rows", "whole_tile_counts", "whole_tile_seats")
        self._read(out, "Attended")  # the rows that the splits left out
        if self.attending != layer:
            raise LaunchError("comes after another layer's splits")

    def _gate_up(self, layer: int | None, launch: dict[str, Any]) -> None:
        count, x, weight, out = launch["buffers"]
        self._expect([count], "row_count")
        self._read(x, "Normed")
        self._weight(layer, weight)
        self._make("Linear", True, layer, ("Normed",), "GateUp")
        self._make("Gate", False, layer, ("GateUp",), "Gated")
        self._write(out, "Gated")

    def _gather_rows(self, layer: int | None, launch: dict[str, Any]) -> None:
        count, rows, x, out = launch["buffers"]
        self._expect([count, rows], "logits_count", "logits_rows")
        self._read(x, "Normed")
        self._write(out, "Wanted")

    def _argmax(self, layer: int | None, launch: dict[str, Any]) -> None:
        self._expect(launch["buffers"][:2], "logits_count", "logits")


def check_launches(root: Path) -> tuple[int, list[str]]:
    """How many lists of launches.json are the proof's, and what is wrong with the others."""
    models = json.loads((root / LAUNCHES).read_text(encoding="utf-8"))
    good, faults = 0, []
    for model in models:
        try:
            check_list(root, model)
            good += 1
        except LaunchError as error:
            faults.append(f"{LAUNCHES}, {model['model']}: {error}")
    return good, faults


def check_list(root: Path, model: dict[str, Any]) -> None:
    """Compares one model's launches with the proof's. Raises LaunchError."""
    groups = model["layer_groups"]
    replay = Replay(groups, model["layer_ropes"])
    made = replay.run(model["launches"])
    wanted = decoder_launches(root, len(groups), model["sandwich_norms"])
    for place, (mine, theirs) in enumerate(zip(made, wanted, strict=False)):
        if mine != theirs:
            raise LaunchError(f"launch {place} is {mine}, but in the proof it is {theirs}")
    if len(made) != len(wanted):
        raise LaunchError(f"{len(made)} launches, but the proof has {len(wanted)}")
    names = [f"layers.{i}.{name}" for i in range(len(groups)) for name in WEIGHTS]
    absent = [] if model["qkv_bias"] else ["qkv_bias"]
    absent += [] if model["qk_norm"] else ["q_norm", "k_norm"]
    absent += [] if model["sandwich_norms"] else ["attn_out_norm", "ffn_out_norm"]
    names = [name for name in names if name.rsplit(".", 1)[1] not in absent]
    if replay.weights != [*names, "norm", "head"]:
        raise LaunchError(f"the weights are {replay.weights}")
