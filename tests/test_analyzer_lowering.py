"""What is read from TTGIR and PTX: reduction trees, instructions, and what must be refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("triton")

from pyvosti.analyzer.corpus.compiled import COMPILED, Compiled, refusal
from pyvosti.analyzer.lowering import family_faults, family_of, lowering_of
from pyvosti.analyzer.ptx import audit_ptx
from pyvosti.analyzer.shapes import SHAPES
from pyvosti.analyzer.ttgir import LoweringError, describe, tree_of
from pyvosti.triton_kernels.compile import compiled
from pyvosti.triton_kernels.launches import all_specs, norm_launch
from pyvosti.triton_kernels.schedule import make_schedule

BLOCKED = (
    "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [2, 2], "
    "order = [1, 0]}>"
)
MMA = (
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], "
    "instrShape = [16, 8]}>"
)
LINEAR = (
    "#ttg.linear<{register = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], "
    "[4, 0]], warp = [[0, 0], [16, 0]], block = []}>"
)


@pytest.mark.parametrize(
    "layout,axis,shape,word",
    [
        (BLOCKED, 1, [16, 256], "rrllllwr"),
        (BLOCKED, 1, [16, 8], "rrl"),
        (BLOCKED, 0, [16, 256], "lwrr"),
        (f"#ttg.slice<{{dim = 0, parent = {BLOCKED}}}>", 0, [256], "rrllllwr"),
        (MMA, 1, [32, 64], "rllwrr"),
        (MMA.replace("[2, 2]", "[4, 1]"), 1, [64, 64], "rllrrr"),
        (LINEAR, 1, [32, 16], "rllr"),
    ],
)
def test_the_word_of_a_layout(layout: str, axis: int, shape: list[int], word: str) -> None:
    assert tree_of(layout, axis, shape) == word


@pytest.mark.parametrize(
    "layout,axis,shape",
    [
        (MMA, 0, [32, 64]),
        ("#ttg.shared<{}>", 0, [16]),
        (LINEAR.replace("[0, 8]", "[1, 8]"), 1, [32, 16]),
        (LINEAR.replace("[0, 8], ", ""), 1, [32, 16]),
        (LINEAR.replace("[0, 2], [0, 4]", "[0, 4], [0, 2]"), 1, [32, 16]),
    ],
)
def test_unknown_layouts_are_refused(layout: str, axis: int, shape: list[int]) -> None:
    with pytest.raises(LoweringError):
        tree_of(layout, axis, shape)


@pytest.fixture(scope="module")
def norm() -> dict[str, str]:
    """TTGIR and PTX of the norm of Llama-3.1-8B."""
    schedule = make_schedule(SHAPES["llama-3.1-8b"], 90)
    return dict(compiled(norm_launch(schedule, "norm", 1, "down_sums").spec, 90).asm)


def test_a_kernel_as_it_was_compiled(norm: dict[str, str]) -> None:
    (reduce,) = describe(norm["ttgir"]).reduces
    assert (reduce.combine, reduce.extent, reduce.tree) == ("arith.addf f32", 4096, "rrrlllllwwwr")
    audited = audit_ptx(norm["ptx"])
    assert audited.approximations == ("div.full.f32", "rsqrt.approx.ftz.f32")
    assert audited.faults == () and "fused" not in audited.counts


@pytest.mark.parametrize(
    "instruction,fault",
    [
        ("fma.rn.f32 %r1, %r2, %r3, %r4;", "contracts"),
        ("fma.rn.bf16x2 %r1, %r2, %r3, %r4;", "contracts"),
        ("add.f32 %r1, %r2, %r3;", "may still be contracted"),
        ("mul.ftz.f32 %r1, %r2, %r3;", "may still be contracted"),
        ("@%p1 red.global.add.f32 [%rd1], %r1;", "an atomic"),
        ("atom.global.add.f32 %r1, [%rd1], %r2;", "an atomic"),
    ],
)
def test_faults_of_instructions_are_found(
    norm: dict[str, str], instruction: str, fault: str
) -> None:
    (found,) = audit_ptx(norm["ptx"].replace("ret;", f"{instruction}\n\tret;")).faults
    assert fault in found


@pytest.mark.parametrize(
    "instruction",
    [
        "sin.approx.f32 %r1, %r2;",
        "mov.u32 %r1, %smid;",
        "mov.u32 %r1, %nctaid.x;",
        "mov.u64 %rd1, %clock64;",
        "ld.volatile.global.b32 %r1, [%rd1];",
        "ld.const.b32 %r1, [%rd1];",
        "add.rz.f32 %r1, %r2, %r3;",
    ],
)
def test_unknown_instructions_are_refused(norm: dict[str, str], instruction: str) -> None:
    with pytest.raises(LoweringError):
        audit_ptx(norm["ptx"].replace("ret;", f"{instruction}\n\tret;"))


def test_an_addition_of_bf16_on_sm_80_is_a_product_with_one() -> None:
    schedule = make_schedule(SHAPES["smollm2-135m"], 80)
    ptx = compiled(norm_launch(schedule, "norm", 1, "down_sums").spec, 80).asm["ptx"]
    assert audit_ptx(ptx).counts["fused"] > 0 and not audit_ptx(ptx).faults
    assert audit_ptx(ptx.replace("1065369472", "1065369473")).faults


def test_state_outside_of_the_function_is_refused(norm: dict[str, str]) -> None:
    with pytest.raises(LoweringError, match="global variables"):
        audit_ptx(norm["ptx"].replace(".visible .entry", ".global .b32 counter;\n.visible .entry"))


@pytest.mark.parametrize(
    "name,arch", [("llama-3.1-8b", 80), ("smollm2-135m", 90), ("llama-3.1-8b", 100)]
)
def test_families_agree_on_every_architecture(name: str, arch: int) -> None:
    families: dict[str, list[dict]] = {}
    for spec in all_specs(make_schedule(SHAPES[name], arch)):
        one = lowering_of(compiled(spec, arch).asm).describe()
        families.setdefault(family_of(spec), []).append(one)
    assert {key: family_faults(some, arch) for key, some in families.items()} == {
        key: [] for key in families
    }
    assert max(len(some) for some in families.values()) >= 2


def test_members_of_a_family_differ_in_their_tile_only() -> None:
    spec = norm_launch(make_schedule(SHAPES["llama-3.1-8b"], 90), "norm", 1, "down_sums").spec
    assert family_of(spec) != family_of(replace(spec, num_warps=4))


@pytest.mark.parametrize("fault", COMPILED, ids=lambda fault: fault.name)
def test_faults_below_ttir_are_refused(fault: Compiled) -> None:
    assert fault.why in refusal(fault)
    assert not refusal(replace(fault, members=(fault.members[0],) * 2))
