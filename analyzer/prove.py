"""Makes certificates, each task in one of several processes.

A task is a kernel to certify, two members of a family to compare, a faulty kernel of the corpus, or
a mutant of a shipped kernel.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import triton

from pyvosti.analyzer.assumptions import assumptions_of
from pyvosti.analyzer.certificate import Certificate, analyzer_digest, entry_name, sources_of
from pyvosti.analyzer.lowering import family_of, lowering_of
from pyvosti.analyzer.ttgir import LoweringError
from pyvosti.triton_kernels.compile import Spec, compiled, fingerprint

Task = tuple[str, tuple[Any, ...]]
"""A name of `KINDS` and its function's arguments."""


def certify_kernel(spec: Spec, arch: int) -> Certificate:
    """Analyses and lowers one specialisation; never raises for a kernel that is at fault."""
    import z3

    from pyvosti.analyzer.analyse import analyse
    from pyvosti.analyzer.compiler import read_spec
    from pyvosti.analyzer.kernel_contracts import contract_of
    from pyvosti.analyzer.report import Report
    from pyvosti.analyzer.ttir import NotAnalysable

    premises: tuple[str, ...] = ()
    try:
        contract = contract_of(spec)
        premises = contract.premises
        report = analyse(read_spec(spec, arch)[1], contract)
    except NotAnalysable as error:
        report = Report(spec.kernel, "not analysable", (), reason=str(error))
    except KeyError:
        report = Report(spec.kernel, "not analysable", (), reason="it has no contract")
    certificate: Certificate = {
        "name": entry_name(spec, arch),
        "kernel": spec.kernel,
        "arch": arch,
        "pointers": spec.pointers,
        "constants": dict(spec.constants),
        "num_warps": spec.num_warps,
        "num_stages": spec.num_stages,
        "options": dict(spec.options),
        "sources": sources_of(spec),
        "artifacts": fingerprint(spec, arch),
        "versions": {
            "triton": triton.__version__,
            "z3": z3.get_version_string(),
            "analyzer": analyzer_digest(),
        },
        "verdict": report.verdict,
        "reason": report.reason,
        "obligations": [asdict(one) for one in report.obligations],
        "premises": premises,
        "counterexample": report.counterexample and asdict(report.counterexample),
        "family": family_of(spec),
        "equal_to": {},
    }
    return certificate | _lowered(spec, arch, report.verdict)


def _lowered(spec: Spec, arch: int, verdict: str) -> Certificate:
    """What the certificate says below TTIR; the verdict is the worse of the two."""
    try:
        lowering = lowering_of(compiled(spec, arch).asm)
    except LoweringError as error:
        reason = {} if verdict == "unequal" else {"verdict": "not analysable", "reason": str(error)}
        return {"lowering": {"reduces": [], "dots": []}, "assumptions": [], **reason}
    assumed = assumptions_of(spec.kernel, lowering)
    return {"lowering": lowering.describe(), "assumptions": assumed}


def compare(a: Spec, b: Spec, arch: int) -> dict[str, Any]:
    """Whether two members of a family store the same bits for a row."""
    from pyvosti.analyzer.analyse import analyse_pair
    from pyvosti.analyzer.compiler import read_spec
    from pyvosti.analyzer.kernel_contracts import contract_of

    texts = [read_spec(spec, arch)[1] for spec in (a, b)]
    report = analyse_pair(texts[0], contract_of(a), texts[1], contract_of(b))
    queries = sum(one.queries for one in report.obligations)
    return {
        "verdict": report.verdict,
        "reason": report.reason,
        "seconds": report.seconds,
        "queries": queries,
    }


def compare_split(whole: Spec, splits: Spec, combine: Spec, arch: int) -> dict[str, Any]:
    """Whether attention in one kernel and in two store the same bits for a row."""
    from pyvosti.analyzer.analyse import analyse_split
    from pyvosti.analyzer.compiler import read_spec
    from pyvosti.analyzer.kernel_contracts import contract_of

    specs = (whole, splits, combine)
    report = analyse_split(*((read_spec(spec, arch)[1], contract_of(spec)) for spec in specs))
    return {
        "verdict": report.verdict,
        "reason": report.reason,
        "seconds": report.seconds,
        "queries": sum(one.queries for one in report.obligations),
        "combine": combine.key(),
    }


def find_fault(name: str) -> dict[str, Any]:
    """The analyzer's verdict on a kernel of the corpus, and which rows its counterexample names."""
    from pyvosti.analyzer.analyse import analyse
    from pyvosti.analyzer.compiler import read_spec
    from pyvosti.analyzer.corpus import FAULTS
    from pyvosti.analyzer.ttir import NotAnalysable

    fault = next(one for one in FAULTS if one.name == name)
    try:
        report = analyse(read_spec(fault.spec())[1], fault.contract_of())
    except NotAnalysable as error:
        return {"verdict": "not analysable", "reason": str(error), "seconds": 0.0, "rows": None}
    example = report.counterexample
    rows = example and [(launch.row, launch.rows) for launch in (example.a, example.b)]
    detail = {"verdict": report.verdict, "reason": report.reason, "rows": rows}
    return detail | {"seconds": report.seconds, "obligation": example and example.obligation}


def judge_mutant(spec: Spec) -> dict[str, Any]:
    """The verdict on an edited kernel, "invalid" if Triton refuses it, and a digest of its TTIR."""
    from pyvosti.analyzer.analyse import analyse
    from pyvosti.analyzer.compiler import read_spec
    from pyvosti.analyzer.kernel_contracts import contract_of
    from pyvosti.analyzer.ttir import NotAnalysable

    try:
        text, function = read_spec(spec)
    except NotAnalysable as error:
        return {"verdict": "not analysable", "reason": str(error), "ttir": ""}
    except Exception as error:  # whatever a changed program makes the compiler say
        return {"verdict": "invalid", "reason": type(error).__name__, "ttir": ""}
    report = analyse(function, contract_of(spec))
    by = report.counterexample and report.counterexample.obligation
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"verdict": report.verdict, "reason": report.reason, "obligation": by, "ttir": digest}


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "kernel": certify_kernel,
    "pair": compare,
    "split": compare_split,
    "fault": find_fault,
    "mutant": judge_mutant,
}


def results_of(tasks: Sequence[Task], workers: int | None = None) -> Iterator[dict[str, Any]]:
    """The result of each task, in order. Raises RuntimeError when a process ends early."""
    local = threading.local()
    started: list[subprocess.Popen[bytes]] = []

    def run(task: Task) -> dict[str, Any]:
        if not hasattr(local, "process"):
            command = [sys.executable, "-m", "pyvosti.analyzer.prove"]
            pipe = subprocess.PIPE
            local.process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
            started.append(local.process)
        process = local.process
        process.stdin.write(pickle.dumps(task))
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that analysed {task[1][0]} ended")
        result: dict[str, Any] = json.loads(line)
        return result

    try:
        with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
            yield from pool.map(run, tasks)
    finally:
        for process in started:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.wait()
            process.stdout.close()


def main() -> None:
    """Serves tasks from standard input until it ends."""
    out, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    while True:
        try:
            kind, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        out.write(json.dumps(KINDS[kind](*arguments)) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
