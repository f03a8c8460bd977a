"""Plants mechanical faults in the GPU kernels and reports the analyzer's verdict on each.

    python benchmarks/kernel_mutants.py [KERNEL ...] [--share N] --out mutants.json

Every mutant that stays `proved` is run under Triton's interpreter: two launches must still agree on
the row (else the analyzer is unsound, and this exits 1), and its rows are compared with the shipped
kernel's: usually it is another function of the row alone, which is what was proved. `--share 5`
takes each fifth mutant.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyvosti.analyzer.corpus.bases import BASES
from pyvosti.analyzer.kernel_contracts import contract_of
from pyvosti.analyzer.mutation import Mutant, mutants_of, original
from pyvosti.analyzer.prove import results_of
from pyvosti.analyzer.replay.interpret import Task
from pyvosti.analyzer.replay.search import replayed

TRIES = 12


def survivors(kernel: str, proved: Sequence[tuple[Mutant, dict[str, Any]]]) -> None:
    """Adds to each proved mutant's result how its rows compare; `same_ttir`: nothing changed."""
    shipped = next(results_of([("mutant", (original(kernel),))]))["ttir"]
    running = []
    for mutant, result in proved:
        result["same_ttir"] = result["ttir"] == shipped
        if not result["same_ttir"]:
            running.append((mutant, result))
    tries = 3 if kernel == "sample" else TRIES
    tasks = [
        Task("mutant", m.spec, contract_of(m.spec), None, tries, original=original(kernel))
        for m, _ in running
    ]
    for (_, result), shown in zip(running, replayed(tasks), strict=True):
        result["replay"] = shown


def judged(kernel: str, share: int) -> list[dict[str, Any]]:
    """All mutants of a kernel (each `share`-th) with their verdicts."""
    mutants = list(mutants_of(kernel))[::share]
    results = list(results_of([("mutant", (mutant.spec,)) for mutant in mutants]))
    pairs = list(zip(mutants, results, strict=True))
    survivors(kernel, [(m, r) for m, r in pairs if r["verdict"] == "proved"])
    keys = ("kernel", "kind", "line", "before", "after")
    return [{key: getattr(m, key) for key in keys} | r | {"class": kind(r)} for m, r in pairs]


def kind(result: dict[str, Any]) -> str:
    """The verdict, and for a mutant that is proved what became of the row."""
    if result["verdict"] != "proved":
        return str(result["verdict"])
    if result["same_ttir"]:
        return "no change"
    if result["replay"]["replayed"]:
        return "UNSOUND"
    if "error" in result["replay"]:
        return "proved, not run"
    return "another row function" if result["replay"]["changed"] else "the same rows"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", nargs="*", default=list(BASES))
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for kernel in arguments.kernels:
        mine = judged(kernel, arguments.share)
        found += mine
        print(kernel, len(mine), dict(Counter(one["class"] for one in mine)), flush=True)
        arguments.out.write_text(json.dumps(found, indent=1))
    print(json.dumps(Counter(one["class"] for one in found)))
    return 1 if any(one["class"] == "UNSOUND" for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
