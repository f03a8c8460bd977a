"""The audit finds every planted escape hatch, and every row of TRUSTED.md that lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import audit  # noqa: E402
from audit_scan import Finding, scan  # noqa: E402
from check_verified import changes, readme_faults  # noqa: E402
from rust_source import SourceError  # noqa: E402
from verified_sources import hashes  # noqa: E402

ENGINE = "engine-rs/src/lib.rs"
TRUSTED = "verus-proofs/src/trusted/mod.rs"
CLEAN = """\
//! assume(false), admit() and #[verifier::external_body] are only words in a comment.
#[cfg(verus_only)]
use vstd::seq::*;
use vstd::prelude::*;
use crate::admit::*;
mod pool;
#[cfg(test)]
mod tests { fn unchecked() { unreachable!() } }
verus! {
global size_of usize == 8;
pub struct Engine { blocks: Vec<u32> }
impl Engine {
    #[verifier::type_invariant]
    pub closed spec fn inv(self) -> bool { self.blocks@.len() < 10 }
    /* nested /* assume(false) */ still a comment */
    pub fn push(self, c: char) -> (r: Self)
        ensures match c { 'a' => r == self, '"' => true, _ => true },
    { let text = "assume(false) // \\" admit()"; self.admit(text) }
    fn admit(self, text: &str) -> Self { self }
}
}
"""
POOL = """\
verus! {
pub struct Pool { n: u32 }
impl Pool { pub fn take(&mut self) requires old(self).n > 0 { self.n = self.n - 1; } }
}
"""
SPEC = """\
verus! {
#[verifier::external_body]
pub struct Logits { x: u8 }
pub uninterp spec fn sample(l: Logits) -> int;
pub axiom fn sample_is_total(l: Logits) ensures sample(l) >= 0;
pub open spec fn runner_faithful(n: int) -> bool { n > 0 }
}
"""
ROWS = [
    f"| `Logits` | external_body | {TRUSTED} | a value | `{ENGINE}::Engine` |",
    f"| `sample` | uninterp | {TRUSTED} | a function | none: any function will do |",
    f"| `sample_is_total` | axiom | {TRUSTED} | a law | just audit, `{ENGINE}::inv` |",
    f"| `runner_faithful` | hypothesis | {TRUSTED} | the runner | `just audit` |",
    "| `unsafe × 2` | unsafe | `engine-rs/cpu/src/lib.rs` | lanes | none: no test yet |",
]


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def table(rows: list[str]) -> str:
    head = "# Trusted\n\n| item | kind | file | reason | attack |\n|---|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small workspace of the real one's shape whose audit passes."""
    members = ["verus-proofs", "engine-rs", "engine-rs/cpu"]
    write(tmp_path, "Cargo.toml", f"[workspace]\nmembers = {members}\n")
    for member in members:
        verus = "" if member.endswith("cpu") else "[package.metadata.verus]\nverify = true\n"
        name = member.replace("/", "-")
        write(tmp_path, f"{member}/Cargo.toml", f'[package]\nname = "{name}"\n{verus}')
    write(tmp_path, "verus-proofs/src/lib.rs", "pub mod trusted;\n")
    write(tmp_path, TRUSTED, SPEC)
    write(tmp_path, ENGINE, CLEAN)
    write(tmp_path, "engine-rs/src/pool.rs", POOL)
    write(tmp_path, "engine-rs/cpu/src/lib.rs", "unsafe fn f() {}\nfn g() { unsafe { f() } }\n")
    write(tmp_path, "justfile", "audit:\n    true\n")
    write(tmp_path, "verus-proofs/TRUSTED.md", table(ROWS))
    return tmp_path


def faults(root: Path) -> list[str]:
    return audit.audit(root)[2]


def test_a_clean_tree_passes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert faults(root) == []
    assert audit.main(root) == 0
    assert "agree" in capsys.readouterr().out


INSIDE = {
    "assume": "proof fn f() { assume(false); }",
    "admit": "proof fn f() { admit(); }",
    "assume_new": "fn f() { let t: Tracked<u8> = Tracked::assume_new(); }",
    "external_body": "#[verifier::external_body] fn f() {}",
    "external": "#[verifier(external)] fn f() {}",
    "external_type_specification": "#[verifier::external_type_specification] struct F(u8);",
    "exec_allows_no_decreases_clause": "#[verifier::exec_allows_no_decreases_clause] fn f() {}",
    "assume_termination": "#[verifier::assume_termination] fn f() {}",
    "an_attribute_of_tomorrow": "#[verifier::an_attribute_of_tomorrow] fn f() {}",
    "assume_specification": "pub assume_specification[ u32::max ](a: u32, b: u32) -> u32;",
    "axiom": "axiom fn f() ensures false;",
    "broadcast_axiom": "pub broadcast axiom fn f() ensures false;",
    "uninterp": "uninterp spec fn f() -> int;",
    "unsafe": "fn f() { unsafe { g() } }",
    "ghost_cfg": "#[cfg(verus_only)] fn f() {}",
    "internal": "#[verus::internal(external_body)] fn f() {}",
    "macro": "macro_rules! f { () => {} }",
    "requires": "impl Engine { pub fn f(self, n: u32) -> Self requires n > 0 { self } }",
}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_hatch_in_verified_code_is_found(root: Path, kind: str) -> None:
    write(root, ENGINE, CLEAN.rstrip("}\n") + "}\n}\n" + INSIDE[kind] + "\n}\n")
    found = [f for f in scan(root) if f.file == ENGINE]
    assert [f.kind for f in found] == [kind]
    assert any(kind in fault and ENGINE in fault for fault in faults(root))


@pytest.mark.parametrize("kind", INSIDE)
def test_a_hatch_outside_the_trusted_folder_may_not_be_listed_either(root: Path, kind: str) -> None:
    write(root, ENGINE, CLEAN.rstrip("}\n") + "}\n}\n" + INSIDE[kind] + "\n}\n")
    found = next(f for f in scan(root) if f.file == ENGINE)
    row = f"| `{found.item}` | {kind} | {ENGINE} | because | none: because |"
    write(root, "verus-proofs/TRUSTED.md", table([*ROWS, row]))
    assert [fault for fault in faults(root) if "there must be none" in fault]


OUTSIDE = {
    "a function": ("fn f() {}", "outside"),
    "an impl": ("impl Default for Engine { fn default() -> Self { todo!() } }", "outside"),
    "a module's function": ("mod m { pub fn f() {} }", "outside"),
    "a macro": ("macro_rules! f { () => {} }", "macro"),
    "an included file": ('include!("hidden.rs");', "macro"),
    "a path": ('#[path = "hidden.rs"] mod m;', "path"),
    "a feature": ('#[cfg(feature = "fast")] mod m;', "ghost_cfg"),
    "a ghost module": ("#[cfg(verus_only)] mod m;", "ghost_cfg"),
    "a conditional attribute": ("#![cfg_attr(verus_only, allow(dead_code))]", "ghost_cfg"),
    "a renamed admit": ("use vstd::pervasive::admit as ok;", "admit"),
    "a foreign block": ('verus! { extern "C" { fn f(); } }', "outside"),
    "a foreign crate": ("extern crate other;", "outside"),
    "an attribute that opts out": (
        "verus! { #[verus_verify(external)] fn f() {} }",
        "verus_verify",
    ),
    "a group of axioms": ("verus! { broadcast group g { vstd::axiom_f, } }", "broadcast_axiom"),
    "an axiom group": (
        "verus! { broadcast use vstd::hash::group_hash_axioms; }",
        "broadcast_axiom",
    ),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_code_that_verus_does_not_see_is_found(root: Path, what: str) -> None:
    code, kind = OUTSIDE[what]
    write(root, ENGINE, CLEAN + code + "\n")
    assert kind in {f.kind for f in scan(root) if f.file == ENGINE}
    assert faults(root)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("engine-rs/Cargo.toml", '[dependencies]\nserde = "1"\n'),
        ("engine-rs/Cargo.toml", "[features]\nfast = []\n"),
        ("engine-rs/Cargo.toml", '[lib]\npath = "src/other.rs"\n'),
        ("Cargo.toml", '[patch.crates-io]\nvstd = { path = "mine" }\n'),
        (".cargo/config.toml", '[build]\nrustflags = ["--cfg", "fast"]\n'),
        ("engine-rs/build.rs", "fn main() {}\n"),
    ],
)
def test_a_manifest_that_changes_what_verus_sees_is_refused(
    root: Path, file: str, text: str
) -> None:
    before = (root / file).read_text(encoding="utf-8") if (root / file).exists() else ""
    write(root, file, before + text)
    with pytest.raises(SourceError):
        scan(root)


def test_probes_may_be_a_feature(root: Path) -> None:
    manifest = (root / "verus-proofs/Cargo.toml").read_text(encoding="utf-8")
    write(root, "verus-proofs/Cargo.toml", manifest + "[features]\nprobes = []\n")
    module = '#[cfg(feature = "probes")]\npub mod probes;\npub mod trusted;\n'
    write(root, "verus-proofs/src/lib.rs", module)
    write(root, "verus-proofs/src/probes.rs", "verus! { proof fn probe() ensures false {} }\n")
    assert faults(root) == []
    write(root, "verus-proofs/src/lib.rs", module.replace("mod probes", "mod probing"))
    assert faults(root)


def test_a_file_in_no_module_is_found(root: Path) -> None:
    write(root, "engine-rs/src/lost.rs", "verus! { proof fn theorem_of_nothing() {} }\n")
    assert Finding("engine-rs/src/lost.rs", 1, "orphan", "(file)") in scan(root)


def test_requires_is_found_where_a_value_leads_to_it(root: Path) -> None:
    assert not [f for f in scan(root) if f.kind == "requires"]
    leads = "impl Engine { pub fn pool(&self) -> Option<pool::Pool> { None } }"
    write(root, ENGINE, CLEAN.rstrip("}\n") + "}\n}\n" + leads + "\n}\n")
    assert [f.item for f in scan(root) if f.kind == "requires"] == ["Pool::take"]


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_a_row_left_out_is_noticed(root: Path, row: int) -> None:
    write(root, "verus-proofs/TRUSTED.md", table(ROWS[:row] + ROWS[row + 1 :]))
    scanned = "hypothesis" not in ROWS[row]
    assert bool(faults(root)) == scanned


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_a_row_for_nothing_is_noticed(root: Path, row: int) -> None:
    name = ROWS[row].split("`")[1]
    write(root, "verus-proofs/TRUSTED.md", table([*ROWS, ROWS[row].replace(name, "gone", 1)]))
    assert faults(root)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a value", ""),
        ("none: any function will do", ""),
        ("none: any function will do", "somebody looks at it"),
        (f"`{ENGINE}::Engine`", f"`{ENGINE}::Motor`"),
        (f"`{ENGINE}::Engine`", "`tests/test_nothing.py::test_it`"),
        ("`just audit`", "`just nothing`"),
        ("unsafe × 2", "unsafe × 1"),
        (TRUSTED, "verus-proofs/src/trusted/other.rs"),
    ],
)
def test_a_row_that_lies_is_noticed(root: Path, old: str, new: str) -> None:
    text = table(ROWS).replace(old, new, 1)
    write(root, "verus-proofs/TRUSTED.md", text)
    assert faults(root)


def test_without_a_table_the_audit_fails(root: Path) -> None:
    write(root, "verus-proofs/TRUSTED.md", "# Trusted\n\nEverything is fine.\n")
    assert audit.main(root) == 1


def test_the_record_notices_every_change(root: Path) -> None:
    before = hashes(root)
    write(root, ENGINE, CLEAN.replace("< 10", "< 11"))
    write(root, "engine-rs/src/more.rs", "")
    (root / "engine-rs/src/pool.rs").unlink()
    assert changes(before, hashes(root), "file") == [
        f"file changed: {ENGINE}",
        "file added: engine-rs/src/more.rs",
        "file removed: engine-rs/src/pool.rs",
    ]


def test_the_readme_says_what_was_recorded() -> None:
    lines = {"trusted": 1, "spec": 2000, "proof": 3, "exec": 4}
    record = {"lines": lines, "theorems": [{"theorem": "theorem_a"}, {"theorem": "theorem_b"}]}
    assert readme_faults("`theorem_a`, `theorem_b` | 1 | 2,000 | 3 | 4 |", record) == []
    assert readme_faults("`theorem_a`, `theorem_c` | 1 | 2,001 | 3 | 4 |", record) == [
        "README.md does not have the line counts | 1 | 2,000 | 3 | 4 |",
        "README.md names theorem_c, which is not proved",
        "README.md leaves out theorem_b",
    ]
