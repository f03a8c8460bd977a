"""The TTIR reader is strict: what it does not know it refuses, and Triton's own walk checks it."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")
pytest.importorskip("z3")

from pyvosti.analyzer import compiler
from pyvosti.analyzer.corpus.bases import small_spec
from pyvosti.analyzer.ttir import Function, NotAnalysable, parse

HEAD = "module {\n  tt.func public @k(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32})"
TEXT = (
    HEAD
    + """ attributes {noinline = false} {
    %cst = arith.constant dense<0x7FC00000> : tensor<16xf32>
    %c2_i32 = arith.constant 2 : i32
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c2_i32 : i32
    %2 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %3 = tt.splat %1 : i32 -> tensor<16xi32>
    %4 = arith.addi %3, %2 : tensor<16xi32>
    %5 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %6 = tt.addptr %5, %4 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %7 = tt.load %6 : tensor<16x!tt.ptr<f32>>
    %8 = arith.addf %7, %cst : tensor<16xf32>
    %9 = "tt.reduce"(%8) <{axis = 0 : i32}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      %10 = arith.addf %arg1, %arg2 : f32
      tt.reduce.return %10 : f32
    }) : (tensor<16xf32>) -> f32
    tt.store %6, %8 : tensor<16x!tt.ptr<f32>>
    tt.return
  }
}
"""
)


def test_reads_operations_types_and_attributes() -> None:
    function = parse(TEXT)
    assert function.name == "k" and [v.name for v in function.body.arguments] == ["%arg0"]
    ops = {op.results[0].name: op for op in function.body.ops if op.results}
    assert ops["%cst"].attributes["value"] == 0x7FC00000
    assert ops["%2"].attributes["start"] == 0 and str(ops["%6"].results[0].type) == (
        "tensor<16x!tt.ptr<f32>>"
    )
    assert ops["%9"].attributes["axis"] == 0 and len(ops["%9"].regions[0].ops) == 2


@pytest.mark.parametrize(
    "old,new",
    [
        ("arith.addf %7, %cst :", "arith.addf %7, %cst fastmath<fast> :"),
        ("arith.muli %0, %c2_i32 :", "arith.muli %0, %c2_i32 overflow<nsw> :"),
        ("arith.muli %0, %c2_i32", "arith.floordivsi %0, %c2_i32"),
        ("tt.load %6 :", "tt.load %6 cacheModifier = ca :"),
        ("tt.load %6 :", "tt.load %6 {isVolatile = true} :"),
        ("tt.load %6 :", "tt.load %60 :"),
        ("%8 = arith", "%7 = arith"),
        ("{axis = 0 : i32}", "{axis = 1 : i32}"),
        ("{axis = 0 : i32}", "{axis = 0 : i32, reduction_ordering = 1 : i32}"),
        ("end = 16 : i32", "end = 32 : i32"),
        ("tensor<16xf32>) -> f32", "tensor<16xf32>) -> f64"),
        ("dense<0x7FC00000>", "dense<[1.0, 2.0]>"),
        ("tensor<16xf32>\n    %c2", "tensor<16xf32, #blocked>\n    %c2"),
        ("tt.splat %1 : i32", "tt.splat %1 : i64"),
        ("-> tensor<16xi32>\n    %4", "-> tensor<16xi16>\n    %4"),
        ("%arg0: !tt.ptr<f32>", "%arg0: i32"),
        ("tt.divisibility = 16", "tt.divisibility = 8"),
        ("noinline = false", "noinline = true"),
        ("@k(", "@k(%n: i32, "),
        ("    tt.return\n", ""),
        ("tt.return\n", "tt.return\n    tt.return\n"),
        ("tt.reduce.return %10 : f32\n", ""),
        ("}\n}\n", "}\n  tt.func public @other() attributes {noinline = false} {\n  }\n}\n"),
        ("x : i32", "w : i32"),
    ],
)
def test_refuses_what_it_does_not_know(old: str, new: str) -> None:
    assert old in TEXT
    with pytest.raises(NotAnalysable):
        parse(TEXT.replace(old, new, 1))


@pytest.mark.parametrize("kernel", ["linear", "argmax", "rms_norm"])
def test_a_line_left_out_is_noticed(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = compiler.read_spec(small_spec(kernel, ()))
    lines = text.splitlines(keepends=True)
    for left_out in range(2, len(lines) - 2):
        cut = "".join(line for i, line in enumerate(lines) if i != left_out)

        def parse_cut(_: str, cut: str = cut) -> Function:
            return parse(cut)

        monkeypatch.setattr(compiler, "parse", parse_cut)
        with pytest.raises(NotAnalysable):
            compiler.read_spec(small_spec(kernel, ()))


@pytest.mark.parametrize(
    "old,new",
    [("arith.addi", "arith.subi"), ("%arg1", "%arg2"), ("arith.mulf", "arith.addf")],
)
def test_the_walk_checks_names_and_operands(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = small_spec("rms_norm", ())
    text, _ = compiler.read_spec(spec)
    at = text.index(old, text.index("tt.get_program_id"))
    changed = text[:at] + new + text[at + len(old) :]
    monkeypatch.setattr(compiler, "parse", lambda _: parse(changed))
    with pytest.raises(NotAnalysable, match=r"disagree|has type"):
        compiler.read_spec(spec)
