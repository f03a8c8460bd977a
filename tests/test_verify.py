"""`just verify` believes nothing that Verus did not say: tried with a Verus that only pretends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import verify  # noqa: E402
from verified_sources import VERUS, pins  # noqa: E402
from verus_tool import Verus, VerusError, find_verus  # noqa: E402

GOOD = {
    "vosti-spec": ["1972 verified, 0 errors", "30 verified, 0 errors"],
    "vosti-engine": ["40 verified, 0 errors"],
}
CARGO_VERUS = f"""\
#!{sys.executable}
import json, os, sys
assert os.path.isdir("verus-proofs"), "not run in the workspace"
crate = sys.argv[sys.argv.index("-p") + 1]
crate += " probes" * ("probes" in sys.argv)
for line in json.loads(os.environ["PRETEND"])[crate]:
    print("verification results:: " + line)
sys.exit(int(os.environ.get("PRETEND_EXIT", "0")))
"""


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `verus` of the pinned version and a `cargo-verus` that prints $PRETEND."""
    folder = tmp_path / "verus"
    folder.mkdir()
    for name, text in {
        "verus": f"#!/bin/sh\necho Verus\necho '  Version: {VERUS}'\n",
        "cargo-verus": CARGO_VERUS,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("VERUS", str(folder))
    return folder


def results(monkeypatch: pytest.MonkeyPatch, said: dict[str, list[str]]) -> verify.Table:
    monkeypatch.setenv("PRETEND", json.dumps(said))
    monkeypatch.chdir("/")
    return verify.verify_all(find_verus(), ROOT, ROOT / "target" / "pretend", [])


def test_the_counts_go_to_their_crates(pretend: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = results(monkeypatch, GOOD)
    assert [(name, verified) for name, verified, _ in table] == [
        ("vstd", 1972),
        ("vosti-spec", 30),
        ("vosti-engine", 40),
    ]


@pytest.mark.parametrize(
    "said",
    [
        {"vosti-engine": []},
        {"vosti-engine": ["0 verified, 0 errors"]},
        {"vosti-spec": ["30 verified, 0 errors"]},
        {"vosti-engine": ["40 verified, 0 errors", "40 verified, 0 errors"]},
        {"vosti-engine": ["39 verified, 1 errors"]},
        {"vosti-engine": ["40 verified, 0 errors (partial verification with `--verify-*`)"]},
    ],
)
def test_anything_but_one_full_result_a_crate_fails(
    pretend: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, list[str]]
) -> None:
    with pytest.raises(VerusError):
        results(monkeypatch, GOOD | said)


@pytest.mark.parametrize(
    ("said", "sound"),
    [
        (["30 verified, 15 errors"], True),
        (["31 verified, 14 errors"], False),
        (["29 verified, 15 errors"], False),
        (["30 verified, 0 errors"], False),
        ([], False),
    ],
)
def test_every_probe_has_to_fail(
    pretend: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], sound: bool
) -> None:
    monkeypatch.setenv("PRETEND", json.dumps({"vosti-spec probes": said}))
    monkeypatch.setattr(verify, "probes", lambda folder: ["probe"] * 15 * ("proofs" in folder.name))

    def check() -> int:
        return verify.check_probes(find_verus(), ROOT, Path("target"), [("vosti-spec", 30, 0.0)])

    if sound:
        assert check() == 15
    else:
        with pytest.raises(VerusError):
            check()


def test_a_failing_verus_fails(pretend: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRETEND_EXIT", "101")
    with pytest.raises(VerusError, match="101"):
        results(monkeypatch, GOOD)


def test_another_version_is_refused(pretend: Path) -> None:
    (pretend / "verus").write_text("#!/bin/sh\necho Version: 0.2026.01.01\n", encoding="utf-8")
    with pytest.raises(VerusError, match=r"0\.2026\.01\.01"):
        find_verus()


def test_env_sh_is_applied_and_compiler_flags_are_not(
    pretend: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUSTFLAGS", "--cfg surprise")
    (pretend / "env.sh").write_text("export FROM_ENV_SH='a=b c'\n", encoding="utf-8")
    found: Verus = find_verus()
    assert found.environment["FROM_ENV_SH"] == "a=b c"
    assert "RUSTFLAGS" not in found.environment
    assert found.environment["PATH"].startswith(str(pretend))


def test_without_verus_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VERUS", "HOME", "PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(VerusError, match="releases of the GitHub project"):
        find_verus()


@pytest.mark.parametrize("argument", ["--no-verify", "--verify-root", "-V", "--no-lifetime"])
def test_arguments_that_verify_less_are_refused(
    argument: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify.py", argument])
    with pytest.raises(SystemExit):
        verify.main()


def test_the_pins_are_of_one_day() -> None:
    assert pins(ROOT)["verus"] == VERUS
