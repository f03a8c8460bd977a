"""The premises of the kernels' certificates are what Verus proves of every plan."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from premise_clauses import CONTRACT, DEPLOYMENT, PLAN  # noqa: E402
from premises import CONTRACTS, check_premises, normal  # noqa: E402

FILES = (PLAN, CONTRACT, "verus-proofs/src/trusted/deployment.rs", str(CONTRACTS))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that are compared, to be edited."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_premises_are_clauses_of_the_proof() -> None:
    assert check_premises(ROOT) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "path", "premise"),
    [
        (PLAN, "&&& self.writes_ok(p)\n", "\n", "Scheduler::plan_wf", "slots_distinct"),
        (PLAN, "== rows[r].pos\n", "== rows[r].pos + 1\n", "Scheduler::arrays_ok", "contiguous"),
        (PLAN, "p.seats@[j] != p.seats@[k]", "j != k", "Scheduler::sequences_ok", "seats_distinct"),
        (CONTRACT, "&& (c, p) != (d, q)", "&& c != d", "plan_wf", "past_equal"),
        (DEPLOYMENT, "p - window + 1", "p - window", "first_seen", "past_equal"),
        (CONTRACT, "&&& shape.block_size > 0", "&&& true", "plan_wf", "tables_cover"),
        (CONTRACT, "plan_wf(shape: Shape", "plan_ok(shape: Shape", "plan_wf", ""),
    ],
)
def test_a_changed_definition_is_a_fault(
    copy: Path, file: str, old: str, new: str, path: str, premise: str
) -> None:
    edit(copy / file, old, new)
    faults = check_premises(copy)
    assert faults and all(path in fault and premise in fault for fault in faults)


def test_an_added_clause_is_a_fault(copy: Path) -> None:
    edit(
        copy / CONTRACT,
        "&&& shape.block_size > 0",
        "&&& shape.block_size > 0\n    &&& padded(plan)",
    )
    (fault,) = check_premises(copy)
    assert "plan_wf has a new clause `padded ( plan )`" in fault


def test_layout_and_triggers_do_not_matter(copy: Path) -> None:
    edit(copy / PLAN, "#![trigger p.seats@[j], p.seats@[k]]", "#![trigger p.seats@[j]]\n\n")
    assert check_premises(copy) == []
    assert normal("f(#[trigger] a[i],\n  b,)") == "f ( a [ i ] , b )"


def test_a_premise_that_names_other_definitions_is_a_fault(copy: Path) -> None:
    edit(copy / CONTRACTS, '("plan_wf", "Shape::covers")', '("plan_wf",)')
    (fault,) = check_premises(copy)
    assert fault.startswith("tables_cover rests on ['plan_wf']")
