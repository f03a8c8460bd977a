"""`just mutants`: shows that the proofs bite. Verus has to reject faults planted in the engine.

Mechanical mutants of the exec code (a sample, or all of them) and the listed semantic faults; each
must break a contract. A survivor is a hole in a contract, or equivalent to the code: then
verus-proofs/mutants.toml says why. The last line is JSON.

    mutants.py [--sample N] [--all] [--seed S] [--only TEXT]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tomllib
from collections import Counter
from pathlib import Path

from mutant_runs import Court, Job
from mutation import Mutant, MutationError, listed_faults, mechanical
from rust_source import SourceError
from verus_tool import VerusError, find_verus

LISTING = "verus-proofs/mutants.toml"
CRATE = "vosti-engine"


def choose(root: Path, options: argparse.Namespace) -> tuple[list[Mutant], list[Mutant]]:
    """The semantic faults, and the mechanical mutants that are to be judged."""
    faults = listed_faults(root, root / LISTING)
    found = mechanical(root, root / "engine-rs")
    if options.only:
        wanted = [m for m in faults + found if options.only in m.key]
        return [m for m in faults if m in wanted], [m for m in found if m in wanted]
    if not options.all:
        chosen = set(random.Random(options.seed).sample(range(len(found)), options.sample))
        found = [mutant for index, mutant in enumerate(found) if index in chosen]
    return faults, found


def report(jobs: list[Job], faults: int, equivalent: dict[str, str]) -> int:
    """Prints what was not rejected, then the counts; returns the exit code."""
    counts: Counter[str] = Counter()
    bad = []
    for index, job in enumerate(jobs):
        key, verdict = job.mutant.key, job.verdict
        if verdict in ("survived", "by assertion") and key in equivalent:
            verdict = "equivalent"
        elif verdict == "rejected" and key in equivalent:
            bad.append(f"listed as equivalent, but rejected: {key}")
        elif verdict != "rejected" and index < faults:
            bad.append(f"listed fault, {verdict}: {key}")
        elif verdict in ("survived", "by assertion"):
            bad.append(f"{verdict}: {key} ({job.mutant.file})")
        counts[verdict] += 1
    for line in bad:
        print(line)
    judged = sum(counts[v] for v in ("rejected", "equivalent", "survived", "by assertion"))
    print(json.dumps({
        "mutants": judged, "rejected": counts["rejected"], "equivalent": counts["equivalent"],
        "survived": counts["survived"], "by_assertion": counts["by assertion"],
        "not_compiled": counts["not compiled"], "timed_out": counts["timed out"],
        "semantic": faults,
    }))  # fmt: skip
    return 1 if bad else 0


def main() -> int:
    """Parses the command line; errors are one sentence and exit code 1."""
    parser = argparse.ArgumentParser(description="plant faults that the proofs have to reject")
    parser.add_argument("--sample", type=int, default=60, help="how many mechanical mutants")
    parser.add_argument("--all", action="store_true", help="all mechanical mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", default="", help="those whose name holds this text")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "mutants"
    try:
        faults, found = choose(root, options)
        entries = tomllib.loads((root / LISTING).read_text(encoding="utf-8"))["equivalent"]
        court = Court(find_verus(), root, CRATE, target)
        print(f"{len(faults)} semantic faults and {len(found)} mechanical mutants")
        jobs = court.judge([*faults, *found])
        return report(jobs, len(faults), {e["mutant"]: e["reason"] for e in entries})
    except (VerusError, SourceError, MutationError, OSError, ValueError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
