"""`just verify`: everything that is proved, verified anew, and what it rests on.

Checks the pinned versions; verifies vstd and the workspace's verified crates in an empty target
folder, where each must print one `verification results` line with 0 errors; verifies again with the
probes (`ensures false` from every trusted item), each of which must fail; runs the audit; compares
row functions with certificates, their premises with what is proved of plans, and the GPU runner's
launches with the proof's; prints the theorems with the assumptions they rest on, and a table by
crate. The last line is JSON; its `verified` counts the project's crates, vstd's own functions stand
under `crates`.

    verify.py [--record] [--seeds 1,2,3] [Verus arguments that verify no less]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import audit
from audit_scan import crates
from certificates import certificates, check_certificates, row_functions
from launch_list import check_launches
from line_count import count
from premises import check_premises
from rust_source import SourceError
from theorems import find_theorems, probes
from verified_sources import RECORD, hashes, pins
from verus_tool import Verus, VerusError, find_verus

# What a Verus argument may begin with: options that make it verify no less than without them.
HARMLESS = ("--smt-option", "--rlimit", "--time", "--num-threads", "--expand-errors", "--multiple")
Table = list[tuple[str, int, float]]


def verify_all(verus: Verus, root: Path, target: Path, arguments: list[str]) -> Table:
    """`(crate, functions verified, seconds)`; vstd's include building what it depends on.

    Raises VerusError unless every crate printed exactly one summary line.
    """
    shutil.rmtree(target, ignore_errors=True)
    table: Table = []
    for crate in [c.name for c in crates(root) if c.verified]:
        expected = [crate] if table else ["vstd", crate]
        results = verus.verify(root, crate, target, arguments)
        if len(results) != len(expected):
            raise VerusError(
                f"{len(results)} results where {' and '.join(expected)} should give one each: "
                "Cargo did not run Verus on a crate that it took as up to date"
            )
        if empty := [name for name, (n, _) in zip(expected, results, strict=True) if n == 0]:
            raise VerusError(f"{' and '.join(empty)}: nothing in it was verified")
        table += [(name, *result) for name, result in zip(expected, results, strict=True)]
    return table


def verify_again(verus: Verus, root: Path, target: Path, arguments: list[str]) -> None:
    """The project's crates once more with other arguments, over the vstd already verified."""
    for crate in [c.name for c in crates(root) if c.verified]:
        for marks in target.glob(f"**/.fingerprint/{crate}-*"):
            shutil.rmtree(marks)
    for crate in [c.name for c in crates(root) if c.verified]:
        results = verus.verify(root, crate, target, arguments)
        if len(results) != 1:
            raise VerusError(f"{crate}: {len(results)} results, not one")


def check_probes(verus: Verus, root: Path, target: Path, table: Table) -> int:
    """Number of probes. Raises VerusError unless each of them fails and all else verifies."""
    total = 0
    for crate in crates(root):
        names = probes(crate.folder) if crate.verified else []
        if names:
            print(f"{crate.name} with {len(names)} probes, each of which has to fail")
            expected = next(n for name, n, _ in table if name == crate.name), len(names)
            found = verus.probe(root, crate.name, target)
            if found != expected:
                raise VerusError(
                    f"{crate.name} with probes: {found[0]} verified and {found[1]} errors, not "
                    f"{expected[0]} and {expected[1]}: what it assumes may be contradictory"
                )
            total += len(names)
    return total


def print_theorems(root: Path) -> list[dict[str, str]]:
    """Prints each theorem and the assumptions it rests on; returns them for the JSON line."""
    rows = audit.read_table(root / "verus-proofs" / "TRUSTED.md")
    assumed = {row.name for row in rows if row.kind in audit.FREE and row.file != "-"}
    listed = []
    print(f"\n{'theorem':<34} {'file':<52} rests on")
    for found in find_theorems(root):
        rests_on = ", ".join(sorted(found.names & assumed)) or "-"
        print(f"{found.name:<34} {f'{found.file}:{found.line}':<52} {rests_on}")
        listed.append({"theorem": found.name, "file": found.file})
    return listed


def print_certificates(root: Path) -> tuple[list[str], bool]:
    """Prints how row functions and certificates match: those pending, and whether all do."""
    pending, faults = check_certificates(root)
    if pending:
        print(
            f"\ncertificates: PENDING for all {len(pending)} row functions: {', '.join(pending)};"
        )
        print("what a kernel does to a row is trusted, on a CPU as Rust, on a GPU as Triton")
    for fault in faults:
        print(f"certificates: {fault}")
    if not pending and not faults:
        files = certificates(root)
        artifacts = sum(len(file["certificates"]) for file in files.values())
        print(f"\ncertificates: {len(row_functions(root))} row functions, {len(files)} kernels, ")
        print(f"{artifacts} artifacts; made by `just certify`, which proves them again")
    return pending, not faults


def print_premises(root: Path) -> bool:
    """Prints whether the certificates' premises are what plans are proved to be; returns it."""
    faults = check_premises(root)
    for fault in faults:
        print(f"premises: {fault}")
    if not faults:
        print("premises: those of the certificates are clauses of plan_wf, word for word")
    return not faults


def print_launches(root: Path) -> bool:
    """Prints whether the GPU runner's launch lists are the proof's; returns it."""
    good, faults = check_launches(root)
    print(f"\nlaunch lists: {good} are the launches of decoder.rs, buffer by buffer")
    for fault in faults:
        print(f"launch lists: {fault}")
    return not faults


def run(root: Path, options: argparse.Namespace, arguments: list[str]) -> int:
    """All of it; returns the exit code. Raises VerusError, OSError, ValueError, SourceError."""
    start = time.monotonic()
    versions, before = pins(root), hashes(root)
    verus = find_verus()
    audited = audit.main(root) == 0
    print(f"Verus {versions['verus']} in {verus.folder}; vstd {versions['vstd'].split()[0]}")
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "verus"
    table = verify_all(verus, root, target, arguments)
    failed_probes = check_probes(verus, root, target, table)
    for seed in options.seeds:
        print(f"once more with random seed {seed}")
        verify_again(verus, root, target, [*arguments, f"--smt-option=smt.random_seed={seed}"])
    if hashes(root) != before:
        raise VerusError("a source changed while it was being verified: run `just verify` again")
    pending, certified = print_certificates(root)
    assumed = print_premises(root)
    launched = print_launches(root)
    listed = print_theorems(root)
    print(f"\n{'crate':<34} {'verified':>8} {'errors':>7} {'seconds':>8}")
    for name, verified, seconds in table:
        print(f"{name:<34} {verified:>8} {0:>7} {seconds:8.1f}")
    counts = {name: verified for name, verified, _ in table}
    result: dict[str, Any] = {"verified": sum(counts.values()) - counts["vstd"], "errors": 0}
    result |= {"theorems": listed, "lines": count(root), "crates": counts}
    result |= {"probes": failed_probes, "certificates_pending": pending}
    passed = audited and certified and assumed and launched
    if passed and options.record:
        record = result | {"pins": versions, "tools": verus.versions(), "sources": before}
        (root / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"recorded in {RECORD}")
    print(json.dumps(result | {"seconds": round(time.monotonic() - start, 1)}))
    return 0 if passed else 1


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> int:
    """Parses the command line; errors are one sentence and exit code 1."""
    parser = argparse.ArgumentParser(description="verify every proof with the pinned Verus")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD}")
    parser.add_argument("--seeds", type=_numbers, default=[], help="verify again with each seed")
    options, arguments = parser.parse_known_args()
    weaker = [a for a in arguments if a.startswith("-") and not a.startswith(HARMLESS)]
    if weaker or (options.record and arguments):
        parser.error(f"not in a full verification: {' '.join(weaker or arguments)}")
    try:
        return run(Path(__file__).resolve().parent.parent, options, arguments)
    except (VerusError, SourceError, OSError, ValueError) as error:
        print(f"verify: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
