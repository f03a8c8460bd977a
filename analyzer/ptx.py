"""Reads PTX against a closed list: what an instruction may do to a float, and nothing unknown.

What is looked for: contraction (a fused multiply-add that the kernel did not write, which makes the
two sides of a butterfly differ), atomics, arithmetic without a rounding modifier (`ptxas` may
contract that one later), approximations (recorded: pure functions of their operands on one device,
not IEEE), registers that tell where or when a program runs. An opcode outside the list is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from pyvosti.analyzer.ttgir import LoweringError

_INT = r"(?:[usb](?:16|32|64))"
_COMPARE = r"(?:eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan)"
_LANES = r"(?:\.v[24])?\.b(?:8|16|32|64|128)"
CLASSES: dict[str, tuple[str, ...]] = {
    "integer": (
        rf"(?:add|sub|min|max|neg|abs|div|rem|shl|shr|bfe|bfi|popc|clz|brev)\.{_INT}",
        rf"(?:mul|mad)\.(?:lo|hi|wide)\.{_INT}",
        r"(?:and|or|xor|not)\.(?:b16|b32|b64|pred)", r"lop3\.b32", r"prmt\.b32",
        r"shf\.[lr]\.(?:wrap|clamp)\.b32",
        rf"setp\.{_COMPARE}\.{_INT}", rf"cvt\.{_INT}\.{_INT}",
        rf"(?:mov|selp)\.(?:pred|f32|{_INT})",
    ),
    "exact": (  # one rounding or none, as IEEE 754 says
        r"(?:add|sub|mul)\.rn\.(?:f32|f32x2|f16|f16x2|bf16|bf16x2)", r"(?:min|max|neg|abs)\.f32",
        rf"setp\.{_COMPARE}\.f32", r"cvt\.f32\.(?:f16|bf16)",
        r"cvt\.rn\.(?:f16|bf16|f16x2|bf16x2)\.f32", r"cvt\.rn\.f32\.[us]32",
    ),
    "approximate": (
        r"ex2\.approx(?:\.ftz)?\.f32", r"rsqrt\.approx(?:\.ftz)?\.f32", r"div\.full\.f32",
    ),
    "fused": (r"fma\.rn\.bf16x2",),  # on sm_80 an addition of bf16 is a product with 1.0, see below
    "tensor core": (
        r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.(?:bf16\.bf16|f16\.f16)\.f32",
        r"wgmma\.mma_async\.sync\.aligned\.m64n\d+k16\.f32\.(?:bf16\.bf16|f16\.f16)",
        r"tcgen05\.mma\.cta_group::1\.kind::f16",
    ),
    "tensor core support": (
        r"wgmma\.(?:fence|commit_group|wait_group)\.sync\.aligned", r"elect\.sync",
        r"tcgen05\.(?:alloc|dealloc)\.cta_group::1\.sync\.aligned(?:\.shared::cta)?\.b32",
        r"tcgen05\.relinquish_alloc_permit\.cta_group::1\.sync\.aligned",
        r"tcgen05\.commit\.cta_group::1\.mbarrier::arrive::one\.b64",
        r"tcgen05\.(?:ld|st)\.sync\.aligned\.\d+x\d+b(?:x2)?\.x\d+\.b32",
        r"tcgen05\.wait::(?:ld|st)\.sync\.aligned",
    ),
    "memory": (
        rf"(?:ld|st)\.(?:global|shared){_LANES}", r"ld\.param\.b64",
        r"(?:ld|st)matrix\.sync\.aligned\.m8n8\.x[124](?:\.trans)?\.shared\.b16",
        r"cp\.async\.c[ag]\.shared\.global", r"cp\.async\.(?:commit_group|wait_group|wait_all)",
    ),
    "barrier": (
        r"bar\.sync", r"bar\.warp\.sync", r"fence\.proxy\.async\.shared::cta",
        r"mbarrier\.(?:init|inval)\.shared::cta\.b64", r"mbarrier\.try_wait\.parity\.shared\.b64",
    ),
    "exchange": (
        r"shfl\.sync\.(?:bfly|idx)\.b32", r"redux\.sync\.(?:add|min|max|and|or|xor)\.[usb]32",
        r"redux\.sync\.(?:min|max)\.f32",
    ),
    "control": (r"bra(?:\.uni)?", r"ret"),
}  # fmt: skip
"""Opcodes by class: what Triton 3.6.0 emits for these kernels, and their nearest relatives."""

_KNOWN = [(name, re.compile("|".join(patterns))) for name, patterns in CLASSES.items()]
_REGISTERS = re.compile(r"%(?:p|r|rs|rd|f|fd|rl|h|hh|b)\d+\b|%(?:tid|ctaid)\.[xyz]\b")
# The string is libdevice's and unused: a body that names it is refused.
_HEADER = re.compile(
    r"\.(?:version|target|address_size) \S+|\.extern \.shared \.align 16 \.b8 global_smem\[\];"
    r"|\.global \.align 1 \.b8 _\$_str(?:_\$_\d+)?\[\d+\](?: = \{[\d, ]*\})?;"
)
_ONE_BF16X2 = 0x3F803F80
FAULTS = (
    (re.compile(r"(?:atom|red)\b.*"), "an atomic"),
    (re.compile(r"(?:fma|mad)\b.*(?:f16|bf16|f32|f64).*"), "contracts a product and a sum"),
    (re.compile(r"(?:add|sub|mul)(?:\.ftz)?\.(?:f16|bf16|f32|f64).*"), "may still be contracted"),
    (re.compile(r"(?:call|vote|activemask|nanosleep)\b.*"), "not a function of the row"),
)
"""Opcodes that break row locality or the order of addition, and why; looked for first."""


@dataclass(frozen=True)
class Instructions:
    """What a kernel's PTX consists of."""

    counts: dict[str, int]
    """Instructions by class of `CLASSES`."""
    approximations: tuple[str, ...]
    tensor_core: tuple[str, ...]
    faults: tuple[str, ...]
    """Sentences, empty for a kernel that may run."""


def audit_ptx(ptx: str) -> Instructions:
    """Classifies each instruction of one PTX module. Raises LoweringError for what is unknown."""
    counts: Counter[str] = Counter()
    named: dict[str, set[str]] = {"approximate": set(), "tensor core": set()}
    faults: Counter[str] = Counter()
    statements = _statements(ptx)
    ones = _registers_of_ones(statements)
    for opcode, operands in statements:
        if opcode == "fma.rn.bf16x2" and operands.split(",")[2].strip() in ones:
            counts["fused"] += 1
            continue
        if fault := next((why for pattern, why in FAULTS if pattern.fullmatch(opcode)), None):
            faults[f"{opcode}: {fault}"] += 1
            continue
        kind = next((name for name, pattern in _KNOWN if pattern.fullmatch(opcode)), None)
        if kind is None:
            raise LoweringError(f"the PTX instruction {opcode} is not in the closed list")
        counts[kind] += 1
        if kind in named:
            named[kind].add(opcode)
        if special := re.sub(_REGISTERS, "", operands).count("%"):
            raise LoweringError(f"{special} unknown registers in: {opcode} {operands}")
    sentences = tuple(f"{text} ({n} times)" for text, n in sorted(faults.items()))
    approximate, tensor = (tuple(sorted(named[k])) for k in ("approximate", "tensor core"))
    return Instructions(dict(sorted(counts.items())), approximate, tensor, sentences)


def _statements(ptx: str) -> list[tuple[str, str]]:
    """(opcode, operands) of each instruction of the module's only function."""
    text = re.sub(r"//[^\n]*", "", ptx)
    head, _, rest = text.partition(".visible .entry ")
    _, _, body = rest.partition("{\n")
    declared = [line.strip() for line in head.splitlines() if line.strip()]
    unknown = [line for line in declared if not _HEADER.fullmatch(line)]
    if unknown or not body or ".entry" in body or ".func" in body or "_$_" in body:
        raise LoweringError("the PTX is not one entry function without global variables")
    found = []
    for statement in body.replace("\n{\n", "\n").replace("\n}\n", "\n").split(";"):
        statement = re.sub(r"\s+", " ", statement).strip(" ")
        while match := re.match(r"(?:[\w$]+: ?)|(?:\{ (?=\.))", statement):
            statement = statement[match.end() :]
        statement = re.sub(r"^@!?[%\w]+ ", "", statement)
        if statement in ("", "}") or statement.startswith((".reg ", '.pragma "nounroll"')):
            continue
        opcode, _, operands = statement.partition(" ")
        found.append((opcode, operands))
    return found


def _registers_of_ones(statements: list[tuple[str, str]]) -> set[str]:
    """Registers whose only definition is the pair (1.0, 1.0) in bf16."""
    definitions: dict[str, list[str]] = {}
    for opcode, operands in statements:
        target, _, rest = operands.partition(",")
        definitions.setdefault(target.strip(), []).append(f"{opcode} {rest.strip()}")
    one = [f"mov.{kind} {_ONE_BF16X2}" for kind in ("b32", "u32")]
    return {name for name, made in definitions.items() if len(made) == 1 and made[0] in one}
