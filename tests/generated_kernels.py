"""Random small Triton kernels over rows, good and bad, and the contract they are held to.

One program handles one row, or a tile of 16. A kernel is a few statements on a vector of one row
(or a tile): loads of the own row, of a neighbour, of weights; masks from columns, lengths, row
counts and grids; reductions along and across rows; dots; loops with bounds of every kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pyvosti.analyzer.contracts import At, Contract, Count, Out, Row, Same
from pyvosti.analyzer.kernel_contracts import dense
from pyvosti.analyzer.patched import imported
from pyvosti.triton_kernels.compile import Spec

WIDTH = 16
HEAD = """\
import triton
import triton.language as tl


@triton.jit
def generated(rows_ptr, x_ptr, y_ptr, lengths_ptr, w_ptr, out_ptr, W: tl.constexpr):
    rows = tl.load(rows_ptr)
    column = tl.arange(0, W)
"""
ROW = """\
    row = tl.program_id(0)
    length = tl.load(lengths_ptr + row)
    place = row * W + column
    mine = row < rows
    inside = column < length
    a = tl.load(x_ptr + place)
    b = tl.load(y_ptr + place)
    c = tl.load(w_ptr + column)
"""
TILE = """\
    row = tl.program_id(0) * 16 + tl.arange(0, 16)
    length = tl.load(lengths_ptr + row, mask=row < rows, other=0)
    place = row[:, None] * W + column[None, :]
    mine = (row < rows)[:, None]
    inside = column[None, :] < length[:, None]
    a = tl.load(x_ptr + place)
    b = tl.load(y_ptr + place)
    c = tl.load(w_ptr + column)[None, :] + tl.zeros((16, W), dtype=tl.float32)
    square = tl.load(w_ptr + tl.arange(0, W)[:, None] * W + column[None, :])
"""


@dataclass(frozen=True)
class GeneratedSpec(Spec):
    """A kernel with its text."""

    text: str = ""

    @property
    def function(self) -> Any:
        """The kernel itself."""
        return imported(self.text, "generated")["generated"]


def contract(tiled: bool) -> Contract:
    """Each row's result is a function of its own x, y and length, and of the weights."""
    return Contract(
        "generated",
        (
            ("rows_ptr", Count()),
            ("x_ptr", Row(dense(WIDTH))),
            ("y_ptr", Row(dense(WIDTH))),
            ("lengths_ptr", Row(At(), 0, 24)),
            ("w_ptr", Same()),
            ("out_ptr", Out(dense(WIDTH))),
        ),
        ("rows/16",) if tiled else ("rows",),
    )


NAMES = st.sampled_from("abc")
OWN = ["inside", "column < 9", "{x} > {y}", "{x} < 0.5", "({x} == {x}) & inside"]
FOREIGN = ["rows > 4", "tl.num_programs(0) > 2", "tl.program_id(0) % 2 == 0", "row % 2 == 0"]
SHARED = [
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "tl.maximum({x}, {y})", "{x} + 0.0", "{x} * 0.0",
    "tl.exp2(tl.minimum({x}, 3.0))", "{x} / (1.0 + tl.abs({y}))", "tl.where({own}, {x}, {y})",
    "tl.where({own}, {x}, float('-inf'))", "tl.where({own}, {x}, 0.0)", "tl.rsqrt(1.0 + {x} * {x})",
    "tl.where({own}, {x}, -0.0)", "tl.where({foreign}, {x}, {y})", "{x} - {x}",
    "tl.where({foreign}, {x} + {y}, {y} + {x})", "tl.where({foreign}, {x} + 0.0, {x})",
    "tl.load(y_ptr + place, mask=inside, other=0.0)", "tl.load(x_ptr + place + W)",
    "tl.load(x_ptr + place + 1, mask=mine & {last}, other=0.0)",
    "tl.load(x_ptr + place + 1, mask=mine, other=0.0)", "tl.where({foreign}, {x}, {x})",
]  # fmt: skip
ROW_ONLY = [
    "{x} - tl.max({y}, axis=0)", "{x} / tl.sum(tl.exp2(tl.minimum({y}, 3.0)), axis=0)",
    "{x} + tl.sum(tl.where(inside, {y}, 0.0), axis=0)", "{x} * tl.load(x_ptr + row * W + 3)",
    "{x} * tl.load(w_ptr + length)", "{x} * tl.load(w_ptr + row)",
    "{x} * tl.load(x_ptr + row * W + length % W)", "{x} + length.to(tl.float32)",
    "{x} * tl.sum(tl.where(column == length % W, column, 0), axis=0).to(tl.float32)",
]  # fmt: skip
TILE_ONLY = [
    "{x} - tl.max({y}, axis=1)[:, None]", "{x} - tl.max({y}, axis=0)[None, :]",
    "{x} + tl.sum(tl.where(inside, {y}, 0.0), axis=1)[:, None]",
    "tl.dot({x}, square, {y}, input_precision='ieee')",
    "tl.dot(tl.where({own}, {x}, 0.0), square, {y}, input_precision='ieee') + 0.0",
    "tl.dot({x}, tl.trans({y}), input_precision='ieee')",
    "tl.dot(square, {x}, input_precision='ieee')", "tl.trans({x})",
    "{x} + length.to(tl.float32)[:, None]",
]  # fmt: skip
BOUNDS = ["4", "length", "rows", "tl.num_programs(0)", "length + 2", "row % 3"]
STEPS = [
    "acc * 0.5 + {x}", "tl.where(t < length, acc + {x}, acc)", "tl.maximum(acc, {x} * t)",
    "tl.where(t < rows, acc + {x}, acc)", "acc + tl.load(x_ptr + row * W + t % W)",
    "tl.where(t < length, acc * {x} + tl.sum(acc, axis=0), acc)", "acc + 0.0", "{x}",
    "tl.where(t < length, acc + tl.load(w_ptr + t + column), acc)",
]  # fmt: skip


@st.composite
def expressions(draw: Any, tiled: bool) -> str:
    """The right side of a statement."""
    template = draw(st.sampled_from(SHARED + (TILE_ONLY if tiled else ROW_ONLY)))
    x, y = draw(NAMES), draw(NAMES)
    own = draw(st.sampled_from(OWN)).format(x=x, y=y)
    foreign = draw(st.sampled_from(FOREIGN if not tiled else FOREIGN[:3]))
    last = "(column < W - 1)" + ("[None, :]" if tiled else "")
    if tiled:
        own = own.replace("column < 9", "column[None, :] < 9")
    return str(template.format(x=x, y=y, own=own, foreign=foreign, last=last))


@st.composite
def loops(draw: Any) -> list[str]:
    """A loop over a carried vector; its bounds are the row's own, the batch's, or fixed."""
    start = draw(st.sampled_from(["0", "0", "1", "row % 2", "rows % 2"]))
    end, step = draw(st.sampled_from(BOUNDS)), draw(st.sampled_from(["1", "1", "2"]))
    body = draw(st.sampled_from(STEPS)).format(x=draw(NAMES))
    return [
        f"acc = {draw(NAMES)}",
        f"for t in range({start}, {end}, {step}):",
        f"    acc = {body}",
        f"{draw(NAMES)} = acc",
    ]


@st.composite
def kernels(draw: Any) -> tuple[GeneratedSpec, Contract]:
    """A kernel, and its contract."""
    tiled = draw(st.booleans())
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        if not tiled and draw(st.integers(0, 2)) == 0:
            lines += draw(loops())
        else:
            lines.append(f"{draw(NAMES)} = {draw(expressions(tiled))}")
    mask = draw(st.sampled_from(["mine"] * 5 + ["mine & inside", "mine & (rows < 5)", "row < 9"]))
    if tiled and mask == "row < 9":
        mask = "mine"
    full = "mask={} & (column >= 0)" + ("[None, :]" if tiled else "")
    lines.append(f"tl.store(out_ptr + place, {draw(NAMES)}, {full.format(f'({mask})')})")
    body = "".join(f"    {line}\n" for line in lines)
    text = HEAD + (TILE if tiled else ROW) + body
    pointers = ("i32", "fp32", "fp32", "i32", "fp32", "fp32")
    spec = GeneratedSpec("generated", pointers, (("W", WIDTH),), 1, text=text)
    return spec, contract(tiled)
