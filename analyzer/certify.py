"""Certifies every kernel of a schedule, its families, and that the corpus is rejected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyvosti.analyzer.certificate import (
    Certificate,
    entry_name,
    family_objections,
    read_store,
    unconnected,
    write_store,
)
from pyvosti.analyzer.lowering import family_of
from pyvosti.analyzer.prove import Task, results_of
from pyvosti.analyzer.replay.interpret import Task as Replay
from pyvosti.analyzer.replay.launches import Hint
from pyvosti.analyzer.replay.search import replayed
from pyvosti.triton_kernels.compile import Spec

SLOW = ("attention_whole", "attention_splits", "attention_combine", "sample", "rope_kv_write")
"""Kernels whose proofs take longest, in that order: they are begun first."""
TRIES = 40
"""Pairs of launches that a replay runs before it gives up."""


@dataclass
class Certified:
    """What came of the specialisations: certificates in their order, and what stands against."""

    certificates: dict[Spec, Certificate]
    objections: list[str]

    @property
    def proved(self) -> int:
        """How many are proved."""
        return sum(one["verdict"] == "proved" for one in self.certificates.values())


def certify(specs: Sequence[Spec], arch: int, folder: Path | None) -> Iterator[Certificate]:
    """Certifies each specialisation anew; yields them as they come, slow ones first.

    Every member of a family is then compared with the first; all go into `folder`, if given.
    """
    order = sorted(specs, key=lambda s: SLOW.index(s.kernel) if s.kernel in SLOW else len(SLOW))
    made = {}
    for spec, one in zip(order, results_of([("kernel", (s, arch)) for s in order]), strict=True):
        made[spec] = one
        yield one
    add_pairs({spec: made[spec] for spec in specs}, arch)
    if folder is not None:
        write_store(folder, made.values())


def add_pairs(certificates: dict[Spec, Certificate], arch: int) -> None:
    """Proves members equal that are not tied to the first of their family yet; fills `equal_to`."""
    tasks: list[Task] = []
    members = []
    for specs in families(list(certificates)):
        for spec in unconnected(specs, certificates):
            needed = [spec, specs[0]]
            if spec.kernel != specs[0].kernel:
                needed.append(combine_of(specs[0], list(certificates)))
            if {certificates[s]["verdict"] for s in needed} == {"proved"}:
                kind = "pair" if len(needed) == 2 else "split"
                tasks.append((kind, (*needed, arch)))
                members.append((spec, specs[0]))
    for (spec, first), result in zip(members, results_of(tasks), strict=True):
        certificates[spec]["obligations"].append(
            {"name": "same_family", "detail": result.pop("reason"), **result}
        )
        if result["verdict"] == "proved":
            certificates[spec]["equal_to"][first.key()] = result


def combine_of(splits: Spec, specs: Sequence[Spec]) -> Spec:
    """The `attention_combine` that reads what this `attention_splits` stores."""
    made = dict(splits.constants)
    made["HEADS"] = made["KV_HEADS"] * made["GROUP"]
    names = ("HEADS", "HEAD_DIM", "SPLIT", "MAX_SPLITS", "WINDOW")
    return next(
        spec
        for spec in specs
        if spec.kernel == "attention_combine"
        and all(dict(spec.constants)[name] == made[name] for name in names)
    )


def families(specs: Sequence[Spec]) -> list[list[Spec]]:
    """The specialisations by family."""
    found: dict[str, list[Spec]] = {}
    for spec in specs:
        found.setdefault(family_of(spec), []).append(spec)
    return list(found.values())


def stored(specs: Sequence[Spec], arch: int, folder: Path) -> dict[Spec, Certificate]:
    """The certificates of a store for these specialisations, those that it has."""
    entries = read_store(folder)
    names = {spec: entry_name(spec, arch) for spec in specs}
    return {spec: entries[name] for spec, name in names.items() if name in entries}


def judged(certificates: dict[Spec, Certificate], arch: int) -> Certified:
    """What stands against running these, of each and of their families."""
    against = [
        f"{one['kernel']} {one['name']}: {one['verdict']}: {one['reason']}"
        for one in certificates.values()
        if one["verdict"] != "proved"
    ]
    return Certified(certificates, against + family_objections(certificates, arch))


def reject_corpus() -> Iterator[dict[str, Any]]:
    """For each faulty kernel: verdict, the obligation that failed, and how two launches show it."""
    from pyvosti.analyzer.corpus import FAULTS, SEEDS

    found = list(results_of([("fault", (fault.name,)) for fault in FAULTS]))
    tasks = []
    for fault, result in zip(FAULTS, found, strict=True):
        rows = result["rows"]
        hints = (Hint(*rows[0]), Hint(*rows[1])) if rows and fault.kernel != "sample" else None
        first = SEEDS.get(fault.name, 1)
        tasks.append(Replay(fault.name, fault.spec(), fault.contract_of(), hints, TRIES, first))
    for fault, result, shown in zip(FAULTS, found, replayed(tasks), strict=True):
        yield {
            "name": fault.name,
            "kind": fault.kind,
            "seen": fault.seen,
            **result,
            "replay": shown,
        }
