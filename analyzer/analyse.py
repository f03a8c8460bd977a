"""The verdict on a kernel: every obligation, in order, and the first counterexample."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pyvosti.analyzer import obligations as o
from pyvosti.analyzer.contracts import Contract, Out
from pyvosti.analyzer.coverage import schedule_coverage
from pyvosti.analyzer.launch import Launch
from pyvosti.analyzer.report import NOT_ANALYSABLE, PROVED, UNEQUAL, Obligation, Report
from pyvosti.analyzer.split_states import folded_states, stored_states
from pyvosti.analyzer.terms import Inconclusive, Terms
from pyvosti.analyzer.ttir import Function, NotAnalysable, parse
from pyvosti.analyzer.witness import counterexample


def analyse(source: str | Function, contract: Contract) -> Report:
    """Proves that a kernel (text after make_ttir, or read already) keeps its contract."""

    def start() -> tuple[Launch, Launch]:
        function = parse(source) if isinstance(source, str) else source
        terms = Terms()
        return Launch("A", terms, function, contract), Launch("B", terms, function, contract)

    checks: list[tuple[str, Callable[..., o.Outcome]]] = [
        ("no_forbidden_operations", lambda a, b: o.no_forbidden_operations(a.function)),
        ("no_alias", lambda a, b: o.no_alias(a)),
        ("places_distinct", lambda a, b: o.places_distinct(a)),
        ("stores_in_range", lambda a, b: o.stores_in_range(a)),
        ("stores_disjoint", lambda a, b: o.stores_disjoint(a)),
        ("row_locality", o.row_locality),
        ("schedule_coverage", lambda a, b: schedule_coverage(a)),
    ]
    if any(isinstance(role, Out) and role.finite for _, role in contract.arguments):
        checks.append(("finite_values", lambda a, b: o.finite_values(a)))
    return run(contract.kernel, start, checks)


def analyse_pair(
    source_a: str | Function, a: Contract, source_b: str | Function, b: Contract
) -> Report:
    """Proves that two members of a family store the same bits for a row."""

    def start() -> tuple[Launch, Launch]:
        terms = Terms()
        functions = [parse(s) if isinstance(s, str) else s for s in (source_a, source_b)]
        return Launch("A", terms, functions[0], a), Launch("B", terms, functions[1], b)

    return run(f"{a.kernel}/{b.kernel}", start, [("same_family", o.row_locality)])


def analyse_split(
    whole: tuple[Function, Contract], splits: tuple[Function, Contract],
    combine: tuple[Function, Contract],
) -> Report:  # fmt: skip
    """Proves that attention in one kernel and in two stores the same bits for a row."""

    def start(
        a: tuple[Function, Contract], b: tuple[Function, Contract]
    ) -> Callable[[], tuple[Launch, Launch]]:
        terms = Terms()
        return lambda: (Launch("A", terms, *a), Launch("B", terms, *b))

    name = f"{whole[1].kernel}/{splits[1].kernel}+{combine[1].kernel}"
    first = run(name, start(splits, whole), [("stored_states", stored_states)])
    if first.verdict != PROVED:
        return first
    last = run(name, start(whole, combine), [("folded_states", folded_states)])
    return replace(last, obligations=first.obligations + last.obligations)


def run(
    name: str,
    start: Callable[[], tuple[Launch, Launch]],
    checks: list[tuple[str, Callable[..., o.Outcome]]],
) -> Report:
    """Runs the checks; stops at the first that fails."""
    done: list[Obligation] = []
    for check, prove in checks:
        began = time.perf_counter()
        queries, broken, reason = 0, None, ""
        try:
            a, b = start()
            broken = prove(a, b)
            queries = a.terms.queries
        except (NotAnalysable, Inconclusive) as error:
            reason = str(error)
        seconds = time.perf_counter() - began
        verdict = NOT_ANALYSABLE if reason else UNEQUAL if broken else PROVED
        detail = broken.detail if broken else reason
        done.append(Obligation(check, verdict, seconds, queries, detail))
        if verdict != PROVED:
            example = counterexample(check, a, b, broken) if broken else None
            return Report(name, verdict, tuple(done), example, detail)
    return Report(name, PROVED, tuple(done))
