"""Mutants are made of exec code only, and the listed faults fit the code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from mutation import (  # noqa: E402
    MutationError,
    apply,
    assertion_at,
    listed_faults,
    mechanical,
)
from rust_source import Source  # noqa: E402

CODE = """\
verus! {

spec fn less(a: int, b: int) -> bool { a < b + 1 }

proof fn lemma(a: int) ensures a < a + 1 { assert(a < a + 1); }

impl Counter {
    pub fn count(&mut self, list: &Vec<u32>, x: u32) -> (n: usize)
        requires x < 7,
        ensures n <= list.len(),
    {
        let ghost before = x + 1;
        let mut n: usize = 0;
        while n < list.len() && !self.done
            invariant n <= list.len(),
        {
            proof { assert(n < list.len()); }
            assert(before == x + 1) by {
                lemma(1);
            }
            self.log.push(Entry { at: n, value: if n == 0 { x } else { 0 } });
            n += 1;
        }
        n - 1
    }
}

} // verus!
"""


@pytest.fixture
def crate(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lib.rs").write_text(CODE)
    return tmp_path


def test_each_operator_and_statement_of_exec_code_is_mutated_once(crate: Path) -> None:
    mutants = mechanical(crate, crate)
    assert {mutant.function for mutant in mutants} == {"Counter::count"}
    changed = {}
    for mutant in mutants:
        text = apply(CODE, mutant.edits)
        assert text.count("\n") == CODE.count("\n")
        lines = [
            (a, b) for a, b in zip(CODE.splitlines(), text.splitlines(), strict=True) if a != b
        ]
        assert len(lines) == 1, mutant
        changed[mutant.what] = lines[0][1].strip()
    assert sorted(changed.values()) == sorted([
        "while n <= list.len() && !self.done", "while n < list.len() || !self.done",
        "while n < list.len() && self.done", "",
        "self.log.push(Entry { at: n, value: if n != 0 { x } else { 0 } });",
        "n += 2;", "", "n",
    ])  # fmt: skip


def test_an_assertion_is_taken_away_whole() -> None:
    source = Source(CODE)
    function = (8, 25)
    for line, gone in ((17, "assert(n < list.len());"), (18, "assert(before"), (19, "lemma(1);")):
        edit = assertion_at(source, line, function)
        assert edit is not None
        text = apply(CODE, (edit,))
        assert gone not in text.replace("assert(a", "")
        assert text.count("\n") == CODE.count("\n")
    assert assertion_at(source, 22, function) is None


def test_the_listed_faults_fit_the_code() -> None:
    faults = listed_faults(ROOT, ROOT / "verus-proofs" / "mutants.toml")
    assert len(faults) >= 30
    assert len({fault.key for fault in faults}) == len(faults)
    for fault in faults:
        text = (ROOT / fault.file).read_text()
        assert apply(text, fault.edits) != text


def test_a_listed_fault_that_fits_nowhere_is_an_error(crate: Path) -> None:
    listing = crate / "mutants.toml"
    listing.write_text(
        '[[fault]]\nwhat = "x"\nfile = "src/lib.rs"\nfunction = "Counter::count"\n'
        'edits = [["n += 3;", ""]]\n'
    )
    with pytest.raises(MutationError, match="does not hold this text once"):
        listed_faults(crate, listing)
