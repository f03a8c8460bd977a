"""The prover: shipped kernels at a small size, families, contradictions, and its arithmetic.

Faulty kernels are `test_analyzer_certify.py`'s, random ones `test_analyzer_soundness.py`'s.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")
z3 = pytest.importorskip("z3")

from pyvosti.analyzer import analyse as a  # noqa: E402
from pyvosti.analyzer.compiler import read_spec  # noqa: E402
from pyvosti.analyzer.contracts import Contract, Row, Same  # noqa: E402
from pyvosti.analyzer.corpus.bases import small_spec  # noqa: E402
from pyvosti.analyzer.coverage import Digits, schedule_coverage  # noqa: E402
from pyvosti.analyzer.integers import Integers  # noqa: E402
from pyvosti.analyzer.kernel_contracts import contract_of  # noqa: E402
from pyvosti.analyzer.launch import Launch  # noqa: E402
from pyvosti.analyzer.radix import equations, quotient, remainder  # noqa: E402
from pyvosti.analyzer.stores import execute, sites  # noqa: E402
from pyvosti.analyzer.terms import Terms  # noqa: E402
from pyvosti.triton_kernels.compile import Spec  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from analyzer_lines import AUDIT, HARMLESS, LIMIT, PROVER, WIDTH, code_lines, faults  # noqa: E402


def kernel(name: str, edits: Any = (), **changed: Any) -> tuple[Any, Contract]:
    """A small specialisation's function and contract."""
    spec: Spec = small_spec(name, edits, **changed)
    return read_spec(spec)[1], contract_of(spec)


def with_role(contract: Contract, name: str, role: Any) -> Contract:
    """The contract with another role for one argument."""
    pairs = ((n, role if n == name else old) for n, old in contract.arguments)
    return replace(contract, arguments=tuple(pairs))


@pytest.mark.parametrize(
    "name", ["adjust", "argmax", "embedding", "gather_rows", "linear", "log_softmax", "rms_norm"]
)
def test_small_kernels_are_proved(name: str) -> None:
    report = a.analyse(*kernel(name))
    assert report.verdict == "proved", report
    names = [one.name for one in report.obligations]
    assert names[-2:] == ["row_locality", "schedule_coverage"] and "stores_disjoint" in names
    assert all(one.queries for one in report.obligations if one.name.startswith("s"))


def test_a_weaker_premise_is_not_enough() -> None:
    function, contract = kernel("rms_norm")
    other = Row(replace(dict(contract.arguments)["residual_ptr"].at, dims=((12, 1),)))
    report = a.analyse(function, with_role(contract, "residual_ptr", other))
    assert report.verdict == "unequal" and report.counterexample is not None
    found = report.counterexample
    assert found.obligation == "row_locality" and found.output in ("out_ptr", "residual_out_ptr")
    assert 0 <= found.a.row < found.a.rows and found.a.program[0] < found.a.grid[0]


def test_kv_that_the_window_hides_does_not_matter() -> None:
    function, contract = kernel("attention_whole", WINDOW=20)
    assert a.analyse(function, contract).verdict == "proved"
    for name in ("k_ptr", "v_ptr"):
        narrower = replace(dict(contract.arguments)[name], window=19)
        report = a.analyse(function, with_role(contract, name, narrower))
        assert report.verdict == "unequal" and report.obligations[-1].name == "row_locality"


def test_weights_that_the_launches_do_not_share() -> None:
    function, contract = kernel("linear")
    assert isinstance(dict(contract.arguments)["w_ptr"], Same)
    report = a.analyse(function, with_role(contract, "w_ptr", dict(contract.arguments)["out_ptr"]))
    assert report.verdict == "unequal" and report.obligations[-1].name == "no_alias"


def test_contradictory_premises_prove_nothing() -> None:
    function, contract = kernel("rope_kv_write")
    report = a.analyse(function, with_role(contract, "positions_ptr", Row(low=7, high=7)))
    assert report.verdict == "not analysable", report


def test_members_of_a_matmul_family() -> None:
    first = kernel("linear")
    for changed in ({"BLOCK_K": 32}, {"BLOCK_K": 64}, {"BLOCK_M": 32, "BLOCK_N": 32, "N": 16}):
        report = a.analyse_pair(*first, *kernel("linear", **changed))
        assert report.verdict == "proved", (changed, report)
    for changed in ({"PRECISION": "tf32"}, {"K": 32}):
        assert a.analyse_pair(*first, *kernel("linear", **changed)).verdict == "unequal"
    backwards = (("tl.load(x_tile + k)", "tl.load(x_tile + (K - BLOCK_K - k))"),
                 ("tl.load(w_tile + k", "tl.load(w_tile + (K - BLOCK_K - k)"))  # fmt: skip
    assert a.analyse_pair(*first, *kernel("linear", backwards)).verdict == "unequal"


ATTENTION = ("attention_whole", "attention_splits", "attention_combine")


def test_attention_in_one_kernel_and_in_two() -> None:
    report = a.analyse_split(*(kernel(name) for name in ATTENTION))
    assert report.verdict == "proved", report
    assert [o.name for o in report.obligations] == ["stored_states", "folded_states"]


NEGATIVE_ZEROS = (
    "acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)",
    "acc = tl.full((BLOCK_M, HEAD_DIM), -0.0, dtype=tl.float32)",
)
LINE = "    m_next = tl.maximum(m, m_split)\n"
SWAP = "    m, l, acc, m_split, l_split, acc_split = m_split, l_split, acc_split, m, l, acc\n"


@pytest.mark.parametrize(
    "name,edits,changed",
    [
        ("attention_combine", ((LINE, SWAP + LINE),), {}),
        ("attention_combine", (("last_split + 1, UNROLL", "last_split, UNROLL"),), {}),
        ("attention_splits", (NEGATIVE_ZEROS,), {}),
        ("attention_whole", (), {"SPLIT": 64}),
    ],
)
def test_attention_whose_halves_do_not_fit(name: str, edits: Any, changed: Any) -> None:
    three = [kernel(n, edits, **changed) if n == name else kernel(n) for n in ATTENTION]
    proved = a.analyse_split(*three).verdict == "proved"
    # A start at -0.0 is the one difference here that the last addition of +0.0 takes away.
    assert proved == (name == "attention_splits")


def test_a_state_that_is_looked_up_by_half_a_coordinate() -> None:
    """With one KV head, index // GROUP says which state is read, and index % GROUP is stored to."""
    function, contract = kernel("attention_splits", KV_HEADS=1)
    assert schedule_coverage(Launch("A", Terms(), function, contract)) is None


def test_witnesses_do_not_rest_on_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch("A", Terms(), *kernel("linear"))
    digits = Digits(execute(sites(launch.function)[0], launch))
    x, y = digits.symbols[:2]
    entry = launch.terms.integer("entry", 0, 7)
    launch.terms.fact(entry, entry == launch.terms.function("f", "int", "int")(y / 4))
    for values, expected in (
        ([(x, y + 1), (y, z3.IntVal(3))], [y, x]),
        ([(x, x % 7)], []),
        ([(x, y), (y, x)], []),
        ([(x, entry), (y, x)], []),
        ([(x, launch.terms.fresh("undefined"))], []),
        (
            [
                (
                    x,
                    launch.terms.hole(
                        "int",
                        kind="loop",
                        frame=None,
                        op=None,
                        result=0,
                        index=(),
                        modulo_zero=False,
                    ),
                )
            ],
            [],
        ),
    ):
        monkeypatch.setattr(digits, "values", lambda values=values: values)
        assert [str(symbol) for symbol, _ in digits.in_order()] == [str(e) for e in expected]
    digits.parts[y.get_id(), "div", 4] = z3.IntVal(1)
    monkeypatch.setattr(digits, "values", lambda: [(y, 4 + entry % 4)])
    assert len(digits.in_order()) == 1
    digits.counts[y.get_id()] = (y, y, y, 1)
    assert not digits.in_order()
    del digits.counts[y.get_id()]
    digits.parts[y.get_id(), "mod", 8] = z3.IntVal(0)
    assert not digits.in_order()


# Arithmetic ---------------------------------------------------------------------------------

BINARY = ["addi", "subi", "muli", "divsi", "remsi", "maxsi", "minsi", "shli"]


def exact(name: str, x: int, y: int) -> int:
    """What the hardware computes in 32 bits."""
    quotient_ = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0
    value = {
        "addi": x + y, "subi": x - y, "muli": x * y, "divsi": quotient_,
        "remsi": x - quotient_ * y, "maxsi": max(x, y), "minsi": min(x, y), "shli": x << (y % 32),
    }[name]  # fmt: skip
    return (value + 2**31) % 2**32 - 2**31


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(BINARY), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**20), st.booleans(),
)  # fmt: skip
def test_integer_operations_are_exact_or_say_so(
    name: str, x: int, y: int, slack: int, fixed: bool
) -> None:
    y = y % 37 if name in ("divsi", "remsi", "shli", "muli") else y
    terms = Terms()
    left = terms.integer("x", max(x - slack, -(2**31)), min(x + slack, 2**31 - 1))
    right = z3.IntVal(y) if fixed else terms.integer("y", y, y)
    term = Integers(terms).binary(name, left, right, 32)
    model = [left == x, right == y]
    bounds = terms.bounds(term)
    if name in ("divsi", "remsi") and y == 0:
        return
    # The exact value is always possible, and inside the interval that is claimed.
    assert terms.refute([*model, term == exact(name, x, y)]) is not None
    assert bounds is None or bounds[0] <= exact(name, x, y) <= bounds[1]
    # Where nothing is left open, no other value is.
    if "32" not in str(term):
        assert terms.refute([*model, term != exact(name, x, y)]) is None


FORMS = st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 4)), min_size=1, max_size=3)


@settings(max_examples=200, deadline=None)
@given(FORMS, st.integers(-40, 40), st.integers(1, 24))
def test_radix_steps_change_nothing(
    form: list[tuple[int, int]], constant: int, divisor: int
) -> None:
    terms = Terms()
    atoms = [terms.integer("a", 0, extent) for _, extent in form]
    term = z3.Sum([a_ * k for a_, (k, _) in zip(atoms, form, strict=True)]) + constant
    split = z3.And(*equations(terms, term, z3.IntVal(0)))
    assert terms.proves([], split == (term == 0))
    assert terms.proves([], quotient(terms, term, divisor) == term / divisor)
    assert terms.proves([], remainder(terms, term, divisor) == term % divisor)


def test_the_trusted_prover_has_at_most_3000_lines_of_code() -> None:
    assert LIMIT == 3000 and WIDTH == 100
    assert faults(ROOT) == []
    assert code_lines('"""Doc."""\n\n# why\nx = """a\nb"""  # c\n\ndef f():\n    "doc"\n') == 3


def test_what_the_prover_uses_is_counted() -> None:
    folder = Path(a.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} >= {*PROVER, *AUDIT, *HARMLESS}
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"terms", "witness"} <= set(loaded) <= {*PROVER, *HARMLESS}


LOADED = """
import sys
import pyvosti.analyzer.analyse, pyvosti.analyzer.compiler, pyvosti.analyzer.kernel_contracts
print(*(n.split(".")[2] for n in sys.modules if n.startswith("pyvosti.analyzer.")))
"""
