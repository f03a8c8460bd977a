"""What the compiler decided below TTIR: the layout of each reduction, the instruction of each dot.

A reduction over an axis of 2^n elements is a tree that the layout fixes: Triton first folds what a
thread holds (ascending registers), then lanes (butterfly), then warps. Bit b of an element's
position along the axis belongs to exactly one of the three, so the word over `r`, `l`, `w` (bit 0
first, e.g. `rllrrr` for 64 columns of an mma layout) names the tree, whatever the other axis does.
Lanes and warps that hold copies do not show in it. Anything else in the text is refused, never
guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


class LoweringError(Exception):
    """The compiler's output holds something that this audit does not know: one sentence."""


@dataclass(frozen=True, order=True)
class Reduce:
    """One kind of reduction: how lanes combine, over how many elements, in which tree."""

    combine: str
    """Operations of its region with their types, e.g. `arith.addf f32`."""
    extent: int
    tree: str
    """Owner of each bit of the position along the axis: `r` register, `l` lane, `w` warp."""

    @property
    def rounds(self) -> bool:
        """Whether the order of its terms can show: false for integers."""
        return re.search(r"\b(f16|bf16|f32|f64)\b", self.combine) is not None


@dataclass(frozen=True, order=True)
class Dot:
    """One kind of dot: `mma.sync`, `wgmma`, `tcgen05` or `fma`, and the types that it multiplies.

    `depth` is how many columns one operation takes; the instruction adds them in its own chunks.
    """

    unit: str
    operands: str
    accumulator: str
    depth: int


@dataclass(frozen=True)
class Descriptor:
    """All reductions and dots of one kernel, each kind once, sorted."""

    reduces: tuple[Reduce, ...]
    dots: tuple[Dot, ...]


_ALIAS = re.compile(r"^#(\w+) = (#\S.*)$", re.M)
_REDUCE = re.compile(r'"tt\.reduce"\([^)]*\) <\{axis = (\d) : i32\}> \(\{(.*?)\}\) : \((.*)\) -> ')
_DOT = re.compile(r"(?:= |^\s*)(tt\.dot|ttng\.warp_group_dot|ttng\.tc_gen5_mma) (.*)$", re.M)
_TENSOR = re.compile(r"(?:tensor|!ttg\.memdesc)<([\dx]+)x(bf16|f16|f32|f64|tf32|i\d+)(?:, (.*?))?>")
_ANY_DOT = re.compile(r"\b(tt\.dot\w*|ttng\.\w*(?:dot|mma)\w*)\b")
KNOWN_DOTS = {
    "tt.dot", "ttng.warp_group_dot", "ttng.warp_group_dot_wait", "ttng.tc_gen5_mma",
}  # fmt: skip


def describe(ttgir: str) -> Descriptor:
    """The descriptor of a TTGIR module's text. Raises LoweringError."""
    text = re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", ttgir)
    aliases = {name: body.strip() for name, body in _ALIAS.findall(text)}
    flat = text.replace("\n", " ")
    found = _REDUCE.findall(_one_line_reduces(text))
    if len(found) != flat.count('"tt.reduce"('):
        raise LoweringError("a tt.reduce is written in a form that is not known")
    if unknown := set(_ANY_DOT.findall(flat)) - KNOWN_DOTS:
        raise LoweringError(f"unknown tensor-core operation {', '.join(sorted(unknown))}")
    if "tt.scan" in flat:
        raise LoweringError("a tt.scan: its order is not described")
    reduces = {_reduce(int(axis), body, types, aliases) for axis, body, types in found}
    dots = {_dot(operation, rest, aliases) for operation, rest in _DOT.findall(text)}
    return Descriptor(tuple(sorted(reduces)), tuple(sorted(dots)))


def _one_line_reduces(text: str) -> str:
    """The text with the region of each tt.reduce on one line."""
    return re.sub(
        r'"tt\.reduce".*?\}\) : .*?$', lambda m: m[0].replace("\n", " "), text, flags=re.M | re.S
    )


def _reduce(axis: int, body: str, types: str, aliases: dict[str, str]) -> Reduce:
    steps = re.findall(r"= (\w+\.\w+) [^:]*: (\w+)(?: -> \w+)?", body)
    if len(steps) != len(re.findall(r" = ", body)):
        raise LoweringError(f"the region of a tt.reduce is not known: {body.strip()[:100]}")
    combine = " ".join(f"{name} {kind}" for name, kind in steps)
    trees = set()
    for dims, _, layout in _TENSOR.findall(types + ">"):
        shape = [int(d) for d in dims.split("x")]
        trees.add((shape[axis], tree_of(resolve(layout, aliases), axis, shape)))
    if len(trees) != 1:
        raise LoweringError(f"the operands of a tt.reduce have {len(trees)} layouts")
    ((extent, tree),) = trees
    return Reduce(combine, extent, tree)


def _dot(operation: str, rest: str, aliases: dict[str, str]) -> Dot:
    head, _, types = rest.partition(" : ")
    if (imprecise := re.search(r"maxNumImpreciseAcc = (\d+)", head)) and int(imprecise[1]):
        raise LoweringError(f"a dot adds up to {imprecise[1]} terms with reduced precision")
    found = [(d, kind, layout) for d, kind, layout in _TENSOR.findall(types + ">")]
    if len(found) < 3 or found[0][1] != found[1][1]:
        raise LoweringError(f"the types of a dot are not known: {types[:100]}")
    depth = int(found[0][0].split("x")[-1])
    unit = {"ttng.warp_group_dot": "wgmma", "ttng.tc_gen5_mma": "tcgen05"}.get(operation)
    if unit is None:
        layout = resolve(found[2][2], aliases)
        mma = layout.startswith("#ttg.nvidia_mma<")
        if mma and not re.search(r"versionMajor = 2, versionMinor = 0,", layout):
            raise LoweringError(f"a tt.dot in the layout {layout[:80]}")
        unit = "mma.sync" if mma else "fma"
    operands = found[0][1]
    if operands == "f32" and unit != "fma":
        operands = "tf32"
    return Dot(unit, operands, found[2][1], depth)


def resolve(layout: str, aliases: dict[str, str]) -> str:
    """A layout with the names of other layouts in it replaced by what they stand for."""
    for _ in range(8):
        expanded = re.sub(r"#(\w+)(?![\w.])", lambda m: aliases.get(m[1], m[0]), layout)
        if expanded == layout:
            return layout
        layout = expanded
    raise LoweringError(f"the layout {layout[:80]} refers to itself")


def _numbers(layout: str, name: str) -> list[int]:
    match = re.search(rf"\b{name} = \[([\d, ]*)\]", layout)
    if match is None:
        raise LoweringError(f"a layout without {name}: {layout[:100]}")
    return [int(n) for n in match[1].split(",")]


def tree_of(layout: str, axis: int, shape: list[int]) -> str:
    """The word over r, l, w of the axis of a tensor with this layout; see the module's text."""
    if layout.startswith("#ttg.slice<{dim = "):
        inner = re.fullmatch(r"#ttg\.slice<\{dim = (\d), parent = (.*)\}>", layout)
        if inner is None:
            raise LoweringError(f"a slice layout of an unknown form: {layout[:100]}")
        dim = int(inner[1])
        parent_shape = [*shape[:dim], 1, *shape[dim:]]
        return tree_of(inner[2], axis + (axis >= dim), parent_shape)
    extent = shape[axis]
    if layout.startswith("#ttg.blocked<"):
        sizes = [
            _numbers(layout, n)[axis] for n in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
        ]
        return _word(_spans("rlw", sizes), extent)
    if layout.startswith("#ttg.nvidia_mma<"):
        warps, instruction = _numbers(layout, "warpsPerCTA")[axis], _numbers(layout, "instrShape")
        if axis != len(shape) - 1:
            raise LoweringError("a reduction over the rows of an mma layout")
        columns = instruction[1]
        return _word(_spans("rlrw", [2, 4, columns // 8, warps]), extent)
    if layout.startswith("#ttg.linear<"):
        return _linear(layout, axis, extent)
    raise LoweringError(f"a reduction in the layout {layout[:100]}")


def _spans(owners: str, sizes: list[int]) -> str:
    """Owners of the bits, lowest first, when each owner takes `size` consecutive places."""
    if any(size & (size - 1) for size in sizes):
        raise LoweringError(f"a layout whose sizes are no powers of two: {sizes}")
    return "".join(o * (size.bit_length() - 1) for o, size in zip(owners, sizes, strict=True))


def _word(word: str, extent: int) -> str:
    """Cut to the axis; what a whole layout does not cover is repeated in registers."""
    bits = extent.bit_length() - 1
    return word[:bits].ljust(bits, "r")


def _linear(layout: str, axis: int, extent: int) -> str:
    owner: dict[int, str] = {}
    for name, letter in (("register", "r"), ("lane", "l"), ("warp", "w"), ("block", "b")):
        match = re.search(rf"\b{name} = \[(.*?)\](?:, (?:lane|warp|block)|\}})", layout)
        if match is None:
            raise LoweringError(f"a linear layout of an unknown form: {layout[:100]}")
        bases = [[int(n) for n in b.split(",")] for b in re.findall(r"\[([\d, ]+)\]", match[1])]
        places = [basis[axis] for basis in bases if basis[axis]]
        if any(sum(1 for n in basis if n) > 1 for basis in bases) or places != sorted(places):
            raise LoweringError(f"a linear layout that mixes or turns its axes: {layout[:100]}")
        for place in places:
            if owner.setdefault(place, letter) != letter or letter == "b":
                raise LoweringError(f"two owners of one place: {layout[:100]}")
    word = "".join(owner.get(1 << bit, "?") for bit in range(extent.bit_length() - 1))
    if "?" in word:
        raise LoweringError(f"a place without owner: {layout[:100]}")
    return word
