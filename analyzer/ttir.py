"""A strict reader of TTIR as Triton prints it: a closed list of operations, every attribute known.

What is not understood is refused (`NotAnalysable`), never skipped. `compiler.cross_check` holds
the result against Triton's own view of the same module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any


class NotAnalysable(Exception):
    """The kernel holds something that the analyzer does not know: one sentence."""


@dataclass(frozen=True)
class Type:
    """A scalar (shape ()) or tensor of numbers, or of pointers to them."""

    shape: tuple[int, ...]
    element: str
    pointer: bool = False

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers."""
        return not self.pointer and not self.element.startswith("i")

    @property
    def bits(self) -> int:
        """Width of an integer element."""
        return int(self.element[1:])

    def __str__(self) -> str:
        kind = f"!tt.ptr<{self.element}>" if self.pointer else self.element
        dims = "".join(f"{extent}x" for extent in self.shape)
        return f"tensor<{dims}{kind}>" if self.shape else kind


@dataclass(eq=False)
class Value:
    """An SSA value: a result of `op`, or an argument of `block` (then `op` is None)."""

    name: str
    type: Type
    block: Block
    op: Op | None = None
    index: int = 0


@dataclass(eq=False)
class Block:
    """The operations of a region. `owner` is None for the function's body."""

    owner: Op | None
    parent: Block | None
    arguments: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


@dataclass(eq=False)
class Op:
    """One operation; `attributes` by name, `regions` of one block each."""

    name: str
    block: Block
    operands: list[Value]
    attributes: dict[str, Any] = field(default_factory=dict)
    results: list[Value] = field(default_factory=list)
    regions: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class Function:
    """A kernel: its name and its body, whose arguments are the kernel's pointers."""

    name: str
    body: Block


TYPE = re.compile(r"tensor<((?:\d+x)+)(?:!tt\.ptr<(\w+)>|(\w+))>|!tt\.ptr<(\w+)>|(\w+)")
ELEMENTS = {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"}
INTEGER_BINARY = (
    *("addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "andi", "ori", "xori"),
    *("shli", "shrsi", "shrui", "maxsi", "minsi", "maxui", "minui"),
)
FLOAT_BINARY = (
    *("addf", "subf", "mulf", "divf", "remf", "maxnumf", "minnumf", "maximumf", "minimumf"),
)
BINARY: set[str] = {f"arith.{name}" for name in (*INTEGER_BINARY, *FLOAT_BINARY)} | {"tt.mulhiui"}
UNARY: set[str] = {
    f"math.{name}"
    for name in ("absf", "ceil", "cos", "erf", "exp", "exp2", "floor", "log", "log2", "rsqrt")
} | {"arith.negf", "math.sin", "math.sqrt"}
CASTS: set[str] = {
    f"arith.{name}"
    for name in ("extsi", "extui", "trunci", "truncf", "extf", "sitofp", "uitofp", "fptosi")
}
PREDICATES: dict[str, set[str]] = {
    "arith.cmpi": {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"},
    "arith.cmpf": {
        *("oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
        *("ueq", "ugt", "uge", "ult", "ule", "une", "uno"),
    },
}


class Reader:
    """Recursive descent over the text of one module."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.scopes: list[dict[str, Value]] = [{}]

    def fail(self, what: str) -> NotAnalysable:
        """An error at the current place, which quotes the line."""
        line = self.text[: self.at].count("\n")
        quoted = self.text.splitlines()[line].strip() if self.text else ""
        return NotAnalysable(f"TTIR line {line + 1}: {what}: {quoted[:100]}")

    def try_match(self, pattern: str) -> re.Match[str] | None:
        """Skips spaces, then takes the pattern if it is next."""
        found = re.compile(r"[ \n]*(?:" + pattern + ")").match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def match(self, pattern: str, what: str) -> re.Match[str]:
        """Takes the pattern, or raises."""
        found = self.try_match(pattern)
        if not found:
            raise self.fail(f"expected {what}")
        return found

    def take(self, literal: str) -> None:
        """Takes these characters, or raises."""
        self.match(re.escape(literal), f"`{literal}`")

    def skip(self, literal: str) -> bool:
        """Takes these characters if they are next."""
        return self.try_match(re.escape(literal)) is not None

    def type(self) -> Type:
        """A type; layouts and unknown elements are refused."""
        found = self.match(TYPE.pattern, "a type")
        dims, tensor_pointer, tensor_element, pointer, element = found.groups()
        shape = tuple(int(d) for d in dims[:-1].split("x")) if dims else ()
        kind = tensor_pointer or tensor_element or pointer or element
        if kind not in ELEMENTS:
            raise self.fail(f"unknown type `{kind}`")
        return Type(shape, kind, bool(tensor_pointer or pointer))

    def use(self) -> Value:
        """An operand: a value in scope."""
        name = self.match(r"%[\w-]+(?:#\d+)?", "a value")[0].strip()
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise self.fail(f"{name} is not defined")

    def uses(self) -> list[Value]:
        """Operands separated by commas."""
        values = [self.use()]
        while self.skip(","):
            values.append(self.use())
        return values

    def define(self, value: Value) -> Value:
        """Brings a value into scope; a name is defined once."""
        if any(value.name in scope for scope in self.scopes):
            raise self.fail(f"{value.name} is defined twice")
        self.scopes[-1][value.name] = value
        return value

    def check(self, expected: Type, value: Value) -> None:
        """The type printed for an operand must be the one it was defined with."""
        if value.type != expected:
            raise self.fail(f"{value.name} has type {value.type}, printed as {expected}")

    def integer(self, name: str) -> int:
        """`name = N : i32`."""
        return int(self.match(rf"{name} = (-?\d+) : i32", f"`{name} = N : i32`")[1])

    def module(self) -> Function:
        """`module { tt.func public @name(arguments) { body } }` and nothing else."""
        self.take("module {")
        name = self.match(r"tt\.func public @(\w+)\(", "one public function")[1]
        body = Block(None, None)
        while not self.skip(")"):
            argument = self.match(r"%\w+", "an argument")[0].strip()
            self.take(":")
            body.arguments.append(self.define(Value(argument, self.type(), body)))
            self.try_match(r"\{tt\.divisibility = 16 : i32\}")
            self.skip(",")
        self.take("attributes {noinline = false} {")
        self.block(body, "tt.return")
        self.take("}")
        self.take("}")
        self.match(r"\s*$", "the end")
        if not all(v.type.pointer and not v.type.shape for v in body.arguments):
            raise NotAnalysable("an argument is not a pointer: specialise it as a constant")
        return Function(name, body)

    def block(self, block: Block, terminator: str) -> None:
        """Operations up to the terminator (which `scf.for` and `scf.if` may leave out)."""
        while not re.compile(r"[ \n]*\}").match(self.text, self.at):
            if block.ops and block.ops[-1].name == terminator:
                raise self.fail(f"an operation after {terminator}")
            block.ops.append(self.operation(block))
        if not block.ops or block.ops[-1].name != terminator:
            if terminator != "scf.yield":
                raise self.fail(f"no {terminator}")
            block.ops.append(Op(terminator, block, []))

    def operation(self, block: Block) -> Op:
        """One operation with its results."""
        names = self.try_match(r"(%[\w-]+)(?::(\d+))? =")
        name = self.match(r'"?([a-z]+\.[a-z_0-9.]+)"?', "an operation")[1]
        op = Op(name, block, [])
        types = OPERATIONS.get(name, Reader.unknown)(self, op)
        count = int(names[2] or 1) if names else 0
        if count != len(types):
            raise self.fail(f"{name} has {len(types)} results")
        for index, kind in enumerate(types):
            label = f"{names[1]}#{index}" if names and names[2] else names[1] if names else ""
            op.results.append(self.define(Value(label, kind, block, op, index)))
        return op

    def unknown(self, op: Op) -> list[Type]:
        raise self.fail(f"unknown operation {op.name}")

    def nested(self, op: Op, terminator: str, arguments: list[tuple[str, Type]]) -> Block:
        """A region up to its closing brace; the opening one is taken."""
        block = Block(op, op.block)
        self.scopes.append({})
        block.arguments = [self.define(Value(n, t, block)) for n, t in arguments]
        self.block(block, terminator)
        self.scopes.pop()
        self.take("}")
        op.regions.append(block)
        return block


def parse(text: str) -> Function:
    """Reads the module that `str_nodebug()` printed. Raises NotAnalysable."""
    return Reader(text).module()


from pyvosti.analyzer.ttir_operations import OPERATIONS  # noqa: E402
