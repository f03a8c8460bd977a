"""Mutants are made of exec code only, and the listed faults fit the code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from line_count import statement_end  # noqa: E402
from mutation import (  # noqa: E402
    MutationError,
    apply,
    listed_faults,
    mechanical,
)
from proof_hints import hint, innermost  # noqa: E402
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
            self.seen = Ghost(before);
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


HINTS = {
    "proof { assert(a < b); }": "proof { let hint =(a < b); }",
    "assert(a < b);": "let ghost hint =(a < b);",
    "assert(a < b) by { lemma(a); }": ("proof { let hint =(a < b) ; if !hint { lemma(a); } }"),
    "assert(a < b) by (nonlinear_arith)\n requires a < 1, f(b, 2),\n ;": (
        "assert((a < 1) && (f(b, 2)) ==> (a < b)) by (nonlinear_arith);\n\n"
    ),
    "assert(a < b) by (nonlinear_arith);": "",
    "assert forall|x: int| #![trigger f(x)] 0 <= x implies f(x) by { lemma(x); }": (
        "proof { let hint = forall|x: int| #![trigger f(x)] ((0 <= x ) ==> ( f(x) )); if !hint "
        "{ let x = choose|x: int| #![trigger f(x)] (0 <= x) && !(f(x));  lemma(x); } }"
    ),
    "assert forall|x: int, y: u8| #[trigger] f(x) < y by { lemma(x); }": (
        "proof { let hint = forall|x: int, y: u8| (#[trigger] f(x) < y ); if !hint "
        "{ let (x, y) = choose|x: int, y: u8| !(#[trigger] f(x) < y);  lemma(x); } }"
    ),
}


@pytest.mark.parametrize("text", HINTS)
def test_an_assertion_becomes_a_hint(text: str) -> None:
    source = Source(text)
    found = innermost(source, 1, (1, 9))
    assert found is not None
    assert apply(text, hint(source, *found)) == HINTS[text]
    assert innermost(source, 1, (1, 9), {source.tokens[found[0]].at}) is None


def test_the_innermost_assertion_is_found_first() -> None:
    source, function = Source(CODE), (8, 25)
    found = innermost(source, 19, function)
    assert found is not None
    assert source.tokens[found[0]].line == 18
    assert innermost(source, 22, function) is None
    nested = Source("assert(a) by {\n assert(b) by {\n assert(c);\n }\n }")
    places: set[int] = set()
    for line in (3, 2, 1):
        found = innermost(nested, 3, (1, 9), places)
        assert found is not None
        assert nested.tokens[found[0]].line == line
        places.add(nested.tokens[found[0]].at)
    edits = [
        edit
        for at, word in nested.words(0, len(nested.tokens))
        if word == "assert"
        for edit in hint(nested, at, statement_end(nested, at, len(nested.tokens)))
    ]
    text = apply(nested.text, tuple(edits))
    assert "assert" not in text
    assert text.count("\n") == nested.text.count("\n")


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
