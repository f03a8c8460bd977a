"""How each operation of the closed list is printed, and what its types must be."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyvosti.analyzer import ttir

if TYPE_CHECKING:
    from pyvosti.analyzer.ttir import Op, Reader, Type

I32 = "i32"


def same(reader: Reader, types: list[Type], what: str) -> None:
    """All types must be one."""
    if len(set(types)) != 1:
        raise reader.fail(f"types of {what} differ")


def constant(reader: Reader, op: Op) -> list[Type]:
    """A number, the same in all elements: an int, a bool, or a float's bits."""
    found = reader.match(r"(?:dense<([^<>\[\]]+)>|([^\s:]+))(?: : )?", "one constant")
    literal = found[1] or found[2]
    if literal in ("true", "false"):
        kind = reader.type() if found[1] else ttir.Type((), "i1")
        op.attributes["value"] = literal == "true"
        return [kind]
    kind = reader.type()
    op.attributes["value"] = float_bits(literal, kind) if kind.is_float else int(literal)
    return [kind]


def float_bits(literal: str, kind: Type) -> int:
    """Bits of a printed float: hexadecimal digits are bits, decimals are rounded to the type."""
    if literal.startswith("0x"):
        return int(literal, 16)
    if kind.element == "f64":
        return int.from_bytes(struct.pack(">d", float(literal)), "big")
    bits = int.from_bytes(struct.pack(">f", float(literal)), "big")
    if kind.element == "f32":
        return bits
    if kind.element == "f16":
        return int.from_bytes(struct.pack(">e", float(literal)), "big")
    if bits & 0xFFFF:
        raise ttir.NotAnalysable(f"the bf16 constant {literal} is not printed exactly")
    return bits >> 16


def binary(reader: Reader, op: Op) -> list[Type]:
    op.operands = reader.uses()
    reader.take(":")
    kind = reader.type()
    if len(op.operands) != 2:
        raise reader.fail(f"{op.name} takes two operands")
    same(reader, [kind, *(v.type for v in op.operands)], op.name)
    return [kind]


def unary(reader: Reader, op: Op) -> list[Type]:
    op.operands = [reader.use()]
    reader.take(":")
    reader.check(kind := reader.type(), op.operands[0])
    return [kind]


def compare(reader: Reader, op: Op) -> list[Type]:
    predicate = reader.match(r"(\w+),", "a predicate")[1]
    if predicate not in ttir.PREDICATES[op.name]:
        raise reader.fail(f"unknown predicate {predicate}")
    op.attributes["predicate"] = predicate
    kind = binary(reader, op)[0]
    return [ttir.Type(kind.shape, "i1")]


def select(reader: Reader, op: Op) -> list[Type]:
    op.operands = reader.uses()
    reader.take(":")
    condition, kind = ttir.Type((), "i1"), reader.type()
    if reader.skip(","):
        condition, kind = kind, reader.type()
    for expected, value in zip((condition, kind, kind), op.operands, strict=True):
        reader.check(expected, value)
    if condition.element != "i1" or condition.shape not in ((), kind.shape):
        raise reader.fail("the condition of a select")
    return [kind]


def convert(arrow: str) -> Callable[[Reader, Op], list[Type]]:
    """`%x : T arrow U`, shapes equal."""

    def read(reader: Reader, op: Op) -> list[Type]:
        op.operands = [reader.use()]
        reader.take(":")
        reader.check(kind := reader.type(), op.operands[0])
        reader.take(arrow)
        result = reader.type()
        if result.shape != kind.shape or result.pointer or kind.pointer:
            raise reader.fail(f"{op.name} changes the shape")
        return [result]

    return read


def program(reader: Reader, op: Op) -> list[Type]:
    op.attributes["axis"] = "xyz".index(reader.match("[xyz]", "an axis")[0].strip())
    reader.take(": i32")
    return [ttir.Type((), I32)]


def make_range(reader: Reader, op: Op) -> list[Type]:
    reader.take("{")
    end = reader.integer("end")
    reader.take(",")
    start = reader.integer("start")
    reader.take("} :")
    kind = reader.type()
    if kind != ttir.Type((end - start,), I32):
        raise reader.fail("the type of a range")
    op.attributes["start"] = start
    return [kind]


def reshape(reader: Reader, op: Op) -> list[Type]:
    """splat, broadcast, expand_dims and trans: elements move, none changes."""
    op.operands = [reader.use()]
    if op.name == "tt.expand_dims":
        reader.take("{")
        op.attributes["axis"] = reader.integer("axis")
        reader.take("}")
    if op.name == "tt.trans":
        order = reader.match(r"\{order = array<i32: ([\d, ]+)>\}", "an order")[1]
        op.attributes["order"] = tuple(int(axis) for axis in order.split(","))
    reader.take(":")
    reader.check(kind := reader.type(), op.operands[0])
    reader.take("->")
    result, shape = reader.type(), kind.shape
    if op.name == "tt.splat":
        fits = not shape
    elif op.name == "tt.broadcast":
        fits = len(shape) == len(result.shape) and all(
            a in (1, b) for a, b in zip(shape, result.shape, strict=True)
        )
    elif op.name == "tt.expand_dims":
        axis = op.attributes["axis"]
        fits = result.shape == (*shape[:axis], 1, *shape[axis:])
    else:
        order = op.attributes["order"]
        fits = sorted(order) == list(range(len(shape)))
        fits = fits and result.shape == tuple(shape[axis] for axis in order)
    if not fits or (result.element, result.pointer) != (kind.element, kind.pointer):
        raise reader.fail(f"the types of {op.name}")
    return [result]


def address(reader: Reader, op: Op) -> list[Type]:
    op.operands = reader.uses()
    reader.take(":")
    for value in op.operands:
        reader.check(reader.type(), value)
        reader.skip(",")
    pointer, offset = (v.type for v in op.operands)
    if not pointer.pointer or offset.pointer or offset.is_float or pointer.shape != offset.shape:
        raise reader.fail("the types of tt.addptr")
    return [pointer]


def memory(reader: Reader, op: Op) -> list[Type]:
    """tt.load pointer[, mask[, other]]; tt.store pointer, value[, mask]. No cache modifiers."""
    op.operands = reader.uses()
    reader.take(":")
    reader.check(pointer := reader.type(), op.operands[0])
    value = ttir.Type(pointer.shape, pointer.element)
    mask = ttir.Type(pointer.shape, "i1")
    expected = [mask, value] if op.name == "tt.load" else [value, mask]
    for kind, operand in zip(expected, op.operands[1:], strict=False):
        reader.check(kind, operand)
    least = 1 if op.name == "tt.load" else 2
    if not pointer.pointer or not least <= len(op.operands) <= 3:
        raise reader.fail(f"the operands of {op.name}")
    return [value] if op.name == "tt.load" else []


def atomic(reader: Reader, op: Op) -> list[Type]:
    op.attributes["kind"] = reader.match(r"(\w+), \w+, \w+,", "an atomic's kind")[1]
    op.operands = reader.uses()
    reader.take(": (")
    for value in op.operands:
        reader.check(reader.type(), value)
        reader.skip(",")
    reader.take(") ->")
    return [reader.type()]


def dot(reader: Reader, op: Op) -> list[Type]:
    op.operands = [reader.use()]
    for _ in range(2):
        reader.take(",")
        op.operands.append(reader.use())
    precision = reader.try_match(r", inputPrecision = (\w+)")
    op.attributes["precision"] = precision[1] if precision else "ieee"
    reader.take(":")
    reader.check(a := reader.type(), op.operands[0])
    reader.take("*")
    reader.check(b := reader.type(), op.operands[1])
    reader.take("->")
    reader.check(c := reader.type(), op.operands[2])
    if len(a.shape) != 2 or (a.shape[0], b.shape[1], a.shape[1]) != (*c.shape, b.shape[0]):
        raise reader.fail("the shapes of tt.dot")
    return [c]


def reduce(reader: Reader, op: Op) -> list[Type]:
    reader.take("(")
    op.operands = reader.uses()
    reader.take(") <{")
    op.attributes["axis"] = reader.integer("axis")
    reader.take("}> ({")
    reader.take("^bb0(")
    arguments = []
    while not reader.skip(")"):
        name = reader.match(r"%\w+", "a block argument")[0].strip()
        reader.take(":")
        arguments.append((name, reader.type()))
        reader.skip(",")
    reader.take(":")
    reader.nested(op, "tt.reduce.return", arguments)
    reader.take(") : (")
    for value in op.operands:
        reader.check(reader.type(), value)
        reader.skip(",")
    reader.take(") ->")
    grouped = reader.skip("(")
    types = [reader.type()]
    while grouped and reader.skip(","):
        types.append(reader.type())
    if grouped:
        reader.take(")")
    axis = op.attributes["axis"]
    elements = [v.type.element for v in op.operands]
    inner = [ttir.Type((), element) for element in [*elements, *elements]]
    for value, kind in zip(op.operands, types, strict=True):
        shape = value.type.shape
        if shape != op.operands[0].type.shape or axis >= len(shape):
            raise reader.fail("the shapes of tt.reduce")
        if kind != ttir.Type((*shape[:axis], *shape[axis + 1 :]), value.type.element):
            raise reader.fail("the types of tt.reduce")
    if [kind for _, kind in arguments] != inner:
        raise reader.fail("the region of tt.reduce")
    return types


def loop(reader: Reader, op: Op) -> list[Type]:
    names = [reader.match(r"%\w+", "a loop variable")[0].strip()]
    for word in ("=", "to", "step"):
        reader.take(word)
        op.operands.append(reader.use())
    types: list[Type] = []
    if reader.skip("iter_args("):
        while not reader.skip(")"):
            names.append(reader.match(r"%\w+", "an iteration argument")[0].strip())
            reader.take("=")
            op.operands.append(reader.use())
            reader.skip(",")
        reader.take("-> (")
        while not reader.skip(")"):
            types.append(reader.type())
            reader.skip(",")
    reader.take(":")
    kind = reader.type()
    reader.take("{")
    for value in op.operands[:3]:
        reader.check(kind, value)
    for expected, value in zip(types, op.operands[3:], strict=True):
        reader.check(expected, value)
    block = reader.nested(op, "scf.yield", list(zip(names, [kind, *types], strict=True)))
    yields(reader, block, types)
    return types


def branch(reader: Reader, op: Op) -> list[Type]:
    op.operands = [reader.use()]
    types: list[Type] = []
    if reader.skip("-> ("):
        while not reader.skip(")"):
            types.append(reader.type())
            reader.skip(",")
    reader.take("{")
    reader.check(ttir.Type((), "i1"), op.operands[0])
    yields(reader, reader.nested(op, "scf.yield", []), types)
    if reader.skip("else {"):
        yields(reader, reader.nested(op, "scf.yield", []), types)
    elif types:
        raise reader.fail("a value of scf.if without else")
    return types


def yields(reader: Reader, block: ttir.Block, types: list[Type]) -> None:
    """What a region yields must have the types of the operation's results."""
    if [v.type for v in block.ops[-1].operands] != types:
        raise reader.fail("the types of scf.yield")


def terminator(reader: Reader, op: Op) -> list[Type]:
    if op.name == "tt.return":
        return []
    op.operands = reader.uses()
    reader.take(":")
    for value in op.operands:
        reader.check(reader.type(), value)
        reader.skip(",")
    return []


OPERATIONS: dict[str, Callable[[Reader, Op], list[Type]]] = {
    **dict.fromkeys(ttir.BINARY, binary),
    **dict.fromkeys(ttir.UNARY, unary),
    **dict.fromkeys(ttir.CASTS, convert("to")),
    **dict.fromkeys(ttir.PREDICATES, compare),
    **dict.fromkeys(("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans"), reshape),
    **dict.fromkeys(("tt.load", "tt.store"), memory),
    **dict.fromkeys(("tt.get_program_id", "tt.get_num_programs"), program),
    **dict.fromkeys(("scf.yield", "tt.reduce.return", "tt.return"), terminator),
    "arith.constant": constant,
    "arith.select": select,
    "scf.for": loop,
    "scf.if": branch,
    "tt.addptr": address,
    "tt.atomic_rmw": atomic,
    "tt.bitcast": convert("->"),
    "tt.dot": dot,
    "tt.make_range": make_range,
    "tt.reduce": reduce,
}
