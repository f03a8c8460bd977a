"""What `just verify` reports: theorems with their assumptions, and certificates."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from certificates import CERTIFICATES, ROW_FUNCTIONS, check_certificates  # noqa: E402
from theorems import find_theorems  # noqa: E402


def test_a_theorem_rests_on_what_its_statement_leads_to(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["spec"]\n',
        "spec/Cargo.toml": '[package]\nname = "spec"\n[package.metadata.verus]\nverify = true\n',
        "spec/src/lib.rs": "pub mod trusted;\nverus! { spec fn theorem_of() -> bool { true } }\n",
        "spec/src/trusted/mod.rs": """
verus! {
pub open spec fn recorded(x: int) -> bool { runner_faithful(x) }
pub open spec fn runner_faithful(x: int) -> bool { x > 0 }
pub open spec fn unrelated(x: int) -> bool { x > 1 }
pub proof fn theorem_one(x: int) requires recorded(x), ensures x > 0 { assert(unrelated(2)); }
// proof fn theorem_in_a_comment() {}
}
""",
        "spec/src/lost.rs": "verus! { proof fn theorem_lost() {} }\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (theorem,) = find_theorems(tmp_path)
    assert (theorem.name, theorem.file, theorem.line) == (
        "theorem_one",
        "spec/src/trusted/mod.rs",
        6,
    )
    assert {"recorded", "runner_faithful"} <= theorem.names
    assert "unrelated" not in theorem.names


def test_certificates_and_row_functions_go_together(tmp_path: Path) -> None:
    (tmp_path / ROW_FUNCTIONS).parent.mkdir(parents=True)
    (tmp_path / CERTIFICATES).mkdir(parents=True)
    (tmp_path / ROW_FUNCTIONS).write_text(
        "spec fn norm(x: Row) -> Row; // cert: norm\nspec fn add(x: Row) -> Row; // cert: add\n",
        encoding="utf-8",
    )
    assert check_certificates(tmp_path) == (["add", "norm"], [])
    kernels = 'KERNELS = {\n    "argmax": argmax.argmax,\n    "rms_norm": rms_norm.rms_norm,\n}\n'
    (tmp_path / "triton_kernels" / "compile.py").write_text(kernels, encoding="utf-8")
    (tmp_path / "triton_kernels" / "rms_norm.py").write_text("x = 1\n", encoding="utf-8")
    digest = hashlib.sha256(b"x = 1\n").hexdigest()
    entry = {"name": "k-sm90", "verdict": "proved", "sources": {"rms_norm.py": digest}}

    def faults(row_functions: list[str], **changed: object) -> list[str]:
        file = {"row_functions": row_functions, "certificates": {"k-sm90": entry | changed}}
        path = tmp_path / CERTIFICATES / "rms_norm.json"
        path.write_text(json.dumps(file), encoding="utf-8")
        return check_certificates(tmp_path)[1]

    assert faults(["norm", "add"]) == ["argmax has no certificate"]
    (tmp_path / CERTIFICATES / "argmax.json").write_text(
        json.dumps({"row_functions": [], "certificates": {}}), encoding="utf-8"
    )
    assert faults(["norm", "add"]) == ["argmax computes no row function"]
    (tmp_path / CERTIFICATES / "argmax.json").write_text(
        json.dumps({"row_functions": ["norm"], "certificates": {}}), encoding="utf-8"
    )
    assert check_certificates(tmp_path) == ([], [])
    assert faults(["norm"]) == ["row function add has no certificate"]
    assert faults(["norm", "add", "rope"]) == ["rms_norm computes rope, which is no row function"]
    assert faults(["norm", "add"], verdict="unequal") == ["rms_norm k-sm90 is unequal"]
    stale = faults(["norm", "add"], sources={"rms_norm.py": "0"})
    assert stale == ["rms_norm was certified with another rms_norm.py: run `just certify`"]
