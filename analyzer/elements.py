"""Elements of a kernel's values as terms, built lazily: a tensor is a function of its index.

A `Frame` is one execution of a block (the body, one iteration of a loop, a branch); values
defined outside are looked up in the frames around it. Reductions, dots and loop results become
holes. Every element of a value of type i1 is a z3 Bool, of other integers a z3 Int, of floats a
term of the sort F, of pointers a pair (argument, offset in elements).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import z3

from pyvosti.analyzer.floats import ZERO_CARRIERS
from pyvosti.analyzer.integers import type_range
from pyvosti.analyzer.terms import subterms
from pyvosti.analyzer.ttir import BINARY, UNARY, Block, NotAnalysable, Op, Type, Value

if TYPE_CHECKING:
    from pyvosti.analyzer.launch import Launch

Index = tuple[Any, ...]


class Frame:
    """One execution of `block` in a launch. `hypotheses` hold in it, those of its parents too.

    `variables` gives the loop variable; `carried` makes an element of an iteration argument.
    """

    def __init__(
        self,
        launch: Launch,
        block: Block,
        parent: Frame | None = None,
        hypotheses: tuple[Any, ...] = (),
        variables: dict[Value, Any] | None = None,
        carried: Callable[[Value, Index, bool], Any] | None = None,
    ) -> None:
        self.launch, self.block, self.parent = launch, block, parent
        self.hypotheses: tuple[Any, ...] = (*(parent.hypotheses if parent else ()), *hypotheses)
        self.variables, self.carried = variables or {}, carried
        self._elements: dict[Any, Any] = {}
        self._branches: dict[Block, Frame] = {}

    def branch(self, block: Block) -> Frame:
        """The frame of a branch of an `scf.if` in this frame."""
        if block not in self._branches:
            self._branches[block] = Frame(self.launch, block, self)
        return self._branches[block]

    def home(self, value: Value) -> Frame:
        """The frame in which a value is defined."""
        frame: Frame | None = self
        while frame is not None and frame.block is not value.block:
            frame = frame.parent
        if frame is None:
            raise NotAnalysable(f"{value.name} is used outside its block")
        return frame

    def element(self, value: Value, index: Index = (), modulo_zero: bool = False) -> Any:
        """One element of a value; floats exactly, or modulo the sign of zero."""
        frame = self.home(value)
        modulo_zero = modulo_zero and value.type.is_float
        key = (value, tuple(i.get_id() for i in index), modulo_zero)
        if key not in frame._elements:
            for part in index:
                self.launch.terms.keep(part)
            frame._elements[key] = frame._make(value, index, modulo_zero)
        return frame._elements[key]

    def _make(self, value: Value, index: Index, modulo_zero: bool) -> Any:
        op = value.op
        if op is None:
            if value in self.variables:
                return self.variables[value]
            if self.carried is not None:
                return self.carried(value, index, modulo_zero)
            return (value, z3.IntVal(0))
        maker = MAKERS.get(op.name)
        if maker is None:
            raise NotAnalysable(f"{op.name} in a value")
        return maker(self, op, value, index, modulo_zero)

    def choose(self, condition: Any, yes: Any, no: Any, kind: Type) -> Any:
        """`If`, with known conditions decided and intervals joined."""
        if z3.is_true(condition):
            return yes
        if z3.is_false(condition):
            return no
        if isinstance(yes, tuple):
            raise NotAnalysable("a pointer is selected")
        if yes.eq(no):
            return yes
        term = z3.If(condition, yes, no)
        if not kind.is_float and kind.element != "i1":
            ints = self.launch.integers
            (a, b), (c, d) = ints.bounds(yes, kind.bits), ints.bounds(no, kind.bits)
            self.launch.terms.interval(term, min(a, c), max(b, d))
        return term


def sort_of(kind: Type) -> str:
    """The sort of a type's elements."""
    if kind.pointer:
        raise NotAnalysable("a pointer is carried by a loop or reduced")
    return "float" if kind.is_float else "bool" if kind.element == "i1" else "int"


def constant(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    kind, number = value.type, op.attributes["value"]
    if kind.is_float:
        return frame.launch.floats.constant(number, kind.element, modulo_zero)
    return z3.BoolVal(bool(number)) if kind.element == "i1" else z3.IntVal(number)


def is_plus_zero(value: Value) -> bool:
    """Whether a value is the constant +0.0."""
    return (
        value.op is not None
        and value.op.name == "arith.constant"
        and value.op.attributes["value"] == 0
    )


def arithmetic(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    kind, name = op.operands[0].type, op.name
    floats, ints = frame.launch.floats, frame.launch.integers
    if not kind.is_float:
        x, y = (frame.element(v, index) for v in op.operands)
        short = name.split(".")[1]
        if kind.element == "i1":
            return ints.boolean(short, x, y)
        return ints.binary(short, x, y, kind.bits)
    if name == "arith.addf" and not modulo_zero:
        for x, zero in (op.operands, op.operands[::-1]):
            if is_plus_zero(zero):
                return floats.plus_zero(kind.element, frame.element(x, index, True))
    if modulo_zero and name == "arith.divf":
        x, y = frame.element(op.operands[0], index, True), frame.element(op.operands[1], index)
        return floats.apply(name, kind.element, [x, y], True)
    if modulo_zero and name not in ZERO_CARRIERS:
        return floats.erased(frame.element(value, index))
    operands = [frame.element(v, index, modulo_zero) for v in op.operands]
    return floats.apply(name, kind.element, operands, modulo_zero)


def compare(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    kind, predicate = op.operands[0].type, op.attributes["predicate"]
    x, y = (frame.element(v, index) for v in op.operands)
    if kind.is_float:
        return frame.launch.floats.compare(predicate, kind.element, x, y)
    if kind.element == "i1":
        if predicate not in ("eq", "ne"):
            raise NotAnalysable("an ordering of booleans")
        return x == y if predicate == "eq" else z3.Xor(x, y)
    return frame.launch.integers.compare(predicate, x, y, kind.bits)


def select(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    condition, yes, no = op.operands
    where = frame.element(condition, index if condition.type.shape else ())
    if z3.is_true(where):
        return frame.element(yes, index, modulo_zero)
    if z3.is_false(where):
        return frame.element(no, index, modulo_zero)
    a, b = (frame.element(v, index, modulo_zero) for v in (yes, no))
    return frame.choose(where, a, b, value.type)


def cast(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    (operand,) = op.operands
    before, after, launch = operand.type, value.type, frame.launch
    if op.name in ("arith.truncf", "arith.extf"):
        x = frame.element(operand, index, modulo_zero)
        return launch.floats.cast(op.name, before.element, after.element, x, modulo_zero)
    if modulo_zero:
        return launch.floats.erased(frame.element(value, index))
    x = frame.element(operand, index)
    if op.name in ("arith.extsi", "arith.extui", "arith.trunci"):
        return launch.integers.cast(op.name, x, before.bits, after.bits)
    if op.name == "tt.bitcast" and before == after:
        return x
    sorts = (sort_of(before), sort_of(after))
    term = launch.terms.function(f"{op.name}:{before.element}:{after.element}", *sorts)(x)
    if sorts[1] == "int":
        launch.terms.bounded(term, *type_range(after.bits))
    return term


def program(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    ids = frame.launch.grid if op.name == "tt.get_num_programs" else frame.launch.program
    return ids[op.attributes["axis"]]


def make_range(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    start = op.attributes["start"]
    return frame.launch.integers.binary("addi", index[0], z3.IntVal(start), 32)


def moved(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    """splat, broadcast, expand_dims, trans."""
    (operand,) = op.operands
    if op.name == "tt.splat":
        index = ()
    elif op.name == "tt.broadcast":
        zero = z3.IntVal(0)
        shape = operand.type.shape
        index = tuple(zero if n == 1 else i for n, i in zip(shape, index, strict=True))
    elif op.name == "tt.expand_dims":
        axis = op.attributes["axis"]
        index = index[:axis] + index[axis + 1 :]
    else:
        order = op.attributes["order"]
        index = tuple(index[order.index(axis)] for axis in range(len(order)))
    return frame.element(operand, index, modulo_zero)


def address(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    pointer, offset = op.operands
    argument, start = frame.element(pointer, index)
    step = frame.element(offset, index)
    total = frame.launch.integers.binary("addi", start, step, 62)
    return argument, total


def load(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    argument, offset = frame.element(op.operands[0], index)
    mask, other = z3.BoolVal(True), None
    if len(op.operands) > 1:
        mask = frame.element(op.operands[1], index)
    if len(op.operands) > 2:
        other = frame.element(op.operands[2], index, modulo_zero)
    memory = frame.launch.memory
    if z3.is_false(mask) and other is not None:
        return other
    loaded = memory.load(frame, argument, offset, mask, modulo_zero)
    if other is None:
        other = frame.launch.terms.fresh("undefined", z3.simplify(loaded).sort())
    return frame.choose(mask, loaded, other, value.type)


def reduction(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    if modulo_zero:
        return frame.launch.floats.erased(frame.element(value, index))
    if len(op.operands) == 1 and sort_of(value.type) == "int":
        picked = one_hot(frame, op, index)
        if picked is not None:
            return picked
    return hole(frame, op, value, index, False, "reduce")


def hole(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool, kind: str) -> Any:
    """A hole for one element of a result."""
    terms = frame.launch.terms
    term = terms.hole(
        sort_of(value.type), kind=kind, frame=frame, op=op, result=value.index, index=index,
        modulo_zero=modulo_zero,
    )  # fmt: skip
    if sort_of(value.type) == "int":
        terms.bounded(term, *type_range(value.type.bits))
    if frame.launch.on_hole is not None:
        frame.launch.on_hole(terms.holes[term.get_id()])
    return term


def one_hot(frame: Frame, op: Op, index: Index) -> Any | None:
    """An integer sum of which only the lane `e` may differ from 0 is that lane (0 if none is)."""
    (operand,), axis = op.operands, op.attributes["axis"]
    region = op.regions[0]
    if [o.name for o in region.ops] != ["arith.addi", "tt.reduce.return"]:
        return None
    if region.ops[0].operands != region.arguments:
        return None
    terms, extent = frame.launch.terms, operand.type.shape[axis]
    lane = terms.integer("lane", 0, extent - 1)
    body = frame.element(operand, (*index[:axis], lane, *index[axis:]))
    for place in equalities(body, lane, terms):
        if terms.proves([*frame.hypotheses, lane != place], body == 0):
            at = frame.element(operand, (*index[:axis], place, *index[axis:]))
            inside = z3.And(place >= 0, place < extent)
            return frame.choose(inside, at, z3.IntVal(0), operand.type)
    return None


def equalities(term: Any, lane: Any, terms: Any) -> list[Any]:
    """What `lane` is compared with for equality in a term."""
    found = []
    for part in subterms(term):
        if z3.is_eq(part):
            for x, y in (part.children(), part.children()[::-1]):
                if x.eq(lane) and lane.get_id() not in terms.opaque_parts(y):
                    found.append(y)
    return found


def dot(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    return hole(frame, op, value, index, modulo_zero, "dot")


def loop(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    return hole(frame, op, value, index, modulo_zero, "loop")


def branches(frame: Frame, op: Op, value: Value, index: Index, modulo_zero: bool) -> Any:
    condition = frame.element(op.operands[0])
    yes, no = (
        frame.branch(block).element(block.ops[-1].operands[value.index], index, modulo_zero)
        for block in op.regions
    )
    return frame.choose(condition, yes, no, value.type)


MAKERS: dict[str, Callable[[Frame, Op, Value, Index, bool], Any]] = {
    "arith.constant": constant,
    "arith.cmpi": compare,
    "arith.cmpf": compare,
    "arith.select": select,
    "tt.get_program_id": program,
    "tt.get_num_programs": program,
    "tt.make_range": make_range,
    "tt.addptr": address,
    "tt.load": load,
    "tt.reduce": reduction,
    "tt.dot": dot,
    "tt.bitcast": cast,
    "scf.for": loop,
    "scf.if": branches,
    **dict.fromkeys(("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans"), moved),
    **dict.fromkeys(
        ("arith.extsi", "arith.extui", "arith.trunci", "arith.truncf", "arith.extf"), cast
    ),
    **dict.fromkeys(("arith.sitofp", "arith.uitofp", "arith.fptosi"), cast),
    **dict.fromkeys((*BINARY, *UNARY), arithmetic),
}
