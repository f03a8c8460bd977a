"""The audit's reading of Rust: what is a token, what is an item, what a line counts as."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from line_count import count_file  # noqa: E402
from rust_source import Source, SourceError, tokenize  # noqa: E402


@pytest.mark.parametrize("text", ['fn f() { "open', "/* open", "fn f() { (] }", 'r#"open"'])
def test_text_that_is_no_rust_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        Source(text)


def test_tokens() -> None:
    text = """let 'a: &'b u8 = b'\\''; r#"assume(" // "#; '"' "\\"" 1..2 0xFFu8 r#type"""
    assert [t.text for t in tokenize(text) if t.kind in ("char", "str", "life")] == [
        *("'a", "'b", "b'\\''", 'r#"assume(" // "#', "'\"'", '"\\""')
    ]


def test_lines_are_counted_by_what_they_are_for() -> None:
    source = Source(
        """verus! {
spec fn a() -> int { 1 }

// a comment
proof fn b() { assert(true); }
fn c(n: u32) -> (r: u32)
    requires n < 9,
    ensures r == n,
{
    let mut i = 0;
    while i < n
        invariant i <= n,
        decreases n - i,
    {
        i = i + 1;
    }
    proof { b(); }
    let ghost g = i;
    i
}
}
#[cfg(test)]
mod tests {
    fn t() {}
}
"""
    )
    assert count_file(source, False) == {"spec": 3, "proof": 5, "exec": 11}
    assert count_file(source, True) == {"trusted": 19}


def test_items_are_found_behind_clauses_with_braces() -> None:
    source = Source(
        """verus! {
impl<T: Into<u32>> Trait<T> for Thing<T> where T: Copy {
    fn a(&self) -> (r: u32)
        requires match self.x { Some(v) => { v > 0 }, None => false }, ({ let y = 1; y > 0 }),
        ensures if r > 0 { true } else { false }, r > 0 ==> { &&& true &&& r < 9 },
    { if true { 1 } else { 2 } }
    open spec fn b(&self) -> bool { true }
}
pub const exec fn c() {}
pub closed spec fn d<'a>(x: &'a u32) -> bool;
const E: u32 = { 3 };
broadcast group f { lemma_a, lemma_b }
}
"""
    )
    paths = [item.path for item in source.all_items() if item.name]
    assert paths == ["Thing", "Thing::a", "Thing::b", "c", "d", "E", "f"]
