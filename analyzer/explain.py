"""The order in which a row's terms are added, in words and as a picture.

Read from a certificate: its constants and what the compiler made of its reductions. Each sum is
a nest of stages, outermost first; `pairwise` halves meet halves, `one after the other` is a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from pyvosti.analyzer.certificate import Certificate

PAIRWISE, CHAIN, UNIT = "pairwise", "one after the other", "inside of one instruction"


@dataclass(frozen=True)
class Stage:
    """`count` parts joined in one way; each part is what the next stage gives."""

    how: str
    count: int | str
    parts: str


@dataclass(frozen=True)
class Sum:
    """One reduction of a row."""

    title: str
    stages: tuple[Stage, ...]


def chain(count: int | str, parts: str) -> Stage:
    """Parts joined in ascending order, from the identity."""
    return Stage(CHAIN, count, parts)


def tree(word: str) -> tuple[Stage, ...]:
    """The stages of a reduction whose layout is this word (see `ttgir`)."""
    counts = [1 << word.count(letter) for letter in "wlr"]
    stages = (
        Stage(PAIRWISE, counts[0], "warps"),
        Stage(PAIRWISE, counts[1], "lanes of a warp"),
        chain(counts[2], "registers of a thread, ascending"),
    )
    return tuple(stage for stage in stages if stage.count != 1)


def products(depth: int) -> tuple[Stage, ...]:
    """A chain of tensor-core steps over `depth` products."""
    steps = chain(depth // 16, "tensor-core steps, ascending")
    return (*(() if depth == 16 else (steps,)), Stage(UNIT, 16, "products"))


def sums_of(certificate: Certificate) -> list[Sum]:
    """All reductions of a certified kernel that round."""
    c, kernel = certificate["constants"], certificate["kernel"]
    trees = {
        (combine.split()[0], extent): tree(word)
        for combine, extent, word in certificate["lowering"]["reduces"]
        if "f32" in combine
    }
    if kernel in ("linear", "gate_up"):
        parts = c.get("SPLITS", 1)
        inner = products(c["K"] // parts)
        outer = chain(parts, "parts of k, added by the kernel that reads them")
        return [Sum(f"product over k = {c['K']}", inner if parts == 1 else (outer, *inner))]
    if kernel.startswith("attention"):
        return _attention(kernel, c, trees)
    passes = {"log_softmax": "VOCAB", "sample": "VOCAB", "argmax": "VOCAB"}.get(kernel)
    found = []
    for (combine, extent), stages in sorted(trees.items()):
        name = {"arith.addf": "sum", "arith.maxnumf": "maximum"}.get(combine, combine)
        title, inner = f"{name} over {extent} lanes", stages
        if passes:
            each = -(-c[passes] // c["BLOCK"])
            title = f"{name} over {c[passes]} columns"
            inner = (*stages, chain(each, f"columns of a lane, {c['BLOCK']} apart"))
        found.append(Sum(title, inner))
    return found


def _attention(kernel: str, c: dict[str, Any], trees: dict[Any, tuple[Stage, ...]]) -> list[Sum]:
    splits = chain("position // " + str(c["SPLIT"]) + " + 1", f"splits of {c['SPLIT']} positions")
    if kernel == "attention_combine":
        return [Sum("state (maximum, sum, product with V) over the splits", (splits,))]
    block = c["BLOCK_N"]
    blocks = chain(c["SPLIT"] // block, f"blocks of {block} keys")
    outer = (splits, blocks) if kernel == "attention_whole" else (blocks,)
    found = [Sum(f"score of one key over head_dim = {c['HEAD_DIM']}", products(c["HEAD_DIM"]))]
    for combine, name in (("arith.maxnumf", "maximum of scores"), ("arith.addf", "sum of weights")):
        if (combine, block) in trees:
            found.append(Sum(f"{name} over keys", (*outer, *trees[combine, block])))
    return [*found, Sum("weighted sum of V over keys", (*outer, *products(block)))]


def words(certificate: Certificate) -> list[str]:
    """A few lines a reduction, indented by stage."""
    lines = [f"{certificate['kernel']} {certificate['name']}"]
    found = sums_of(certificate)
    if not found:
        return [*lines, "  nothing is added: each element is a function of single elements"]
    for one in found:
        lines.append(f"  {one.title}")
        for depth, stage in enumerate(one.stages):
            lines.append(f"  {'   ' * depth}└─ {stage.count} {stage.parts}, {stage.how}")
    return lines


WIDTH, ROW, LEAF = 760, 92, 44


def picture(certificate: Certificate) -> str:
    """The same as SVG: one strip a stage, its first part drawn out below it."""
    body: list[str] = []
    y = 30
    for one in sums_of(certificate):
        body.append(f'<text x="16" y="{y}" class="t">{escape(one.title)}</text>')
        y += 18
        for stage in one.stages:
            body += _strip(stage, y)
            y += ROW
        y += 26
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        f'viewBox="0 0 {WIDTH} {y}"><title>{escape(certificate["kernel"])}</title><style>'
        "text{font:12px sans-serif;fill:#333}.t{font-weight:bold}rect{fill:#eef3fb;stroke:#4a6fa5}"
        "path{stroke:#4a6fa5;fill:none}</style>"
    )
    return head + "".join(body) + "</svg>\n"


def _strip(stage: Stage, y: int) -> list[str]:
    """Up to eight parts in a row, joined above as the stage joins them."""
    exact = isinstance(stage.count, int) and stage.count <= 8
    shown = int(stage.count) if exact else 7
    top, boxes = y + 44, range(shown)
    centres = [30 + LEAF // 2 + n * (LEAF + 14) for n in boxes]
    drawn = [
        f'<rect x="{x - LEAF // 2}" y="{top}" width="{LEAF}" height="22" rx="3"/>'
        f'<text x="{x}" y="{top + 15}" text-anchor="middle">{"…" if last else n}</text>'
        for n, x in enumerate(centres)
        for last in [not exact and n == shown - 1]
    ]
    drawn += _joins(stage.how, centres, top)
    label = f"{stage.count} {stage.parts}, {stage.how}"
    drawn.append(f'<text x="{centres[-1] + 40}" y="{top + 15}">{escape(label)}</text>')
    drawn.append(f'<path d="M{centres[0]} {top + 22} V{y + ROW + 40}" stroke-dasharray="2 3"/>')
    return drawn


def _joins(how: str, centres: Sequence[int], top: int) -> list[str]:
    if how == UNIT:
        return [f'<path d="M{centres[0]} {top} V{top - 8} H{centres[-1]} V{top}"/>']
    if how == CHAIN:
        return [
            f'<path d="M{a} {top - 4 * n} V{top - 4 * n - 4} H{b} V{top}"/>'
            for n, (a, b) in enumerate(pairwise(centres))
        ]
    lines, level, height = [], list(centres), top
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2], strict=False))
        lines += [f'<path d="M{a} {height} V{height - 9} H{b} V{height}"/>' for a, b in pairs]
        level = [(a + b) // 2 for a, b in pairs] + ([level[-1]] if len(level) % 2 else [])
        height -= 9
    return lines
