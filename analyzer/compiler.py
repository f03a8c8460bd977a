"""What Triton makes of a specialisation, up to TTIR, and its own view of the same module."""

from __future__ import annotations

from typing import Any

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

from pyvosti.analyzer.ttir import Block, Function, NotAnalysable, Value, parse
from pyvosti.triton_kernels.compile import Spec


def read(source: Any, arch: int, options: dict[str, Any]) -> tuple[str, Function]:
    """The text after `make_ttir` of an ASTSource, and what our reader made of it, cross-checked.

    `arch`: 80, 90 or 100. Needs no GPU. Raises NotAnalysable.
    """
    target = GPUTarget("cuda", arch, 32)
    backend = make_backend(target)
    parsed = backend.parse_options(options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.disable_line_info = True
        codegen = backend.get_codegen_implementation(parsed)
        module = source.make_ir(target, parsed, codegen, backend.get_module_map(), context)
        backend.make_ttir(module, {}, parsed, arch)
        text = module.str_nodebug()
        function = parse(text)
        cross_check(module, function)
    return text, function


def read_spec(spec: Spec, arch: int = 90) -> tuple[str, Function]:
    """`read` for a specialisation of a shipped kernel."""
    options = {"num_warps": spec.num_warps, "num_stages": spec.num_stages, **dict(spec.options)}
    return read(spec.source(), arch, options)


def post_order(block: Block) -> list[Any]:
    """All operations, those of regions before their owner."""
    found = []
    for op in block.ops:
        for region in op.regions:
            found += post_order(region)
        found.append(op)
    return found


def cross_check(module: Any, function: Function) -> None:
    """Operations, operands and types must be those that Triton's walk reports.

    Raises NotAnalysable at the first difference.
    """
    theirs: list[Any] = []
    module.walk(lambda op: theirs.append(op))
    theirs = [op for op in theirs if op.get_name() not in ("builtin.module", "tt.func")]
    ours = post_order(function.body)
    if [op.name for op in ours] != [op.get_name() for op in theirs]:
        raise NotAnalysable("the reader and Triton disagree about the operations")
    known: dict[int, Value] = {}
    seen: dict[Value, int] = {}
    for mine, other in zip(ours, theirs, strict=True):
        pairs = [(v, other.get_operand(i)) for i, v in enumerate(mine.operands)]
        if len(pairs) != other.get_num_operands() or len(mine.results) != other.get_num_results():
            raise NotAnalysable(f"the reader and Triton disagree about {mine.name}")
        pairs += [(v, other.get_result(i)) for i, v in enumerate(mine.results)]
        for value, their in pairs:
            same = known.setdefault(their.id(), value) is value
            same = same and seen.setdefault(value, their.id()) == their.id()
            if not same or str(their.get_type()) != str(value.type):
                raise NotAnalysable(f"the reader and Triton disagree about {value.name}")
