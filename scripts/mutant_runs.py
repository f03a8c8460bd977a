"""Has Verus judge mutants, many in one run.

Contracts are modular: a function's proof never looks into another's body. So one run of Verus
judges a mutant in each of many functions at once. A mutant is *rejected* when a clause of a
contract fails: a postcondition, an invariant, a precondition of what it calls, termination, or
arithmetic that may overflow. When only assertions of the function's own proof fail, they are made
hints (`proof_hints`), which hold nothing up, and it is judged again; if the contract then fails for
the mutant, and not for the true function with the same hints, it is rejected as well.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutation import Edit, Mutant, apply
from proof_hints import hint, innermost
from rust_source import Source
from verus_tool import Verus, VerusError, every_core

CONTRACT = re.compile(
    r"(postcondition|precondition|invariant|decreases) not satisfied|possible arithmetic"
    r"|possible (division|bit shift)|constructed value may fail|type invariant"
    r"|could not prove termination|unable to prove"
)
ASSERTION = re.compile(
    r"assertion (failed|not satisfied)|requires not satisfied|precondition.*assert"
)
LIMIT = re.compile(r"rlimit|[Rr]esource limit|timed out")
HINTS = 12
SEEDS = (0, 1, 2)


@dataclass
class Job:
    """A mutant on trial, or with `true_of` the function as it is, with the hints of that mutant.

    `hints`: assertions made hints, by their place in the text: the edits that do it.
    """

    mutant: Mutant
    true_of: Job | None = None
    hints: dict[int, tuple[Edit, ...]] = field(default_factory=dict)
    verdict: str = ""
    """rejected, by assertion, survived, not compiled or timed out."""
    messages: list[str] = field(default_factory=list)


class Court:
    """A copy of the workspace in which crate `crate` is changed and verified."""

    def __init__(self, verus: Verus, root: Path, crate: str, folder: Path) -> None:
        self.verus, self.crate, self.target = verus, crate, folder / "target"
        self.root = folder / "workspace"
        shutil.rmtree(self.root, ignore_errors=True)
        ignored = shutil.ignore_patterns("target", ".git", ".venv", ".*cache", "*.so", "dist")
        shutil.copytree(root, self.root, symlinks=True, ignore=ignored)
        self.texts: dict[str, str] = {}

    def judge(self, mutants: Iterable[Mutant]) -> list[Job]:
        """All verdicts. Raises VerusError when the unchanged crate does not verify."""
        if errors := self._run([])[1]:
            raise VerusError(f"the code itself is not verified: {errors[0]['message']}")
        jobs = [Job(mutant) for mutant in mutants]
        waiting = list(jobs)
        while waiting:
            batch, rest = self._batch(waiting)
            print(f"judging {len(batch)} mutants, {len(rest)} waiting", flush=True)
            waiting = rest + self._judge(batch)
        return jobs

    def _batch(self, waiting: list[Job]) -> tuple[list[Job], list[Job]]:
        """One job for each function, and those that have to wait."""
        batch: list[Job] = []
        rest: list[Job] = []
        taken = set()
        for job in waiting:
            place = job.mutant.file, job.mutant.lines
            (rest if place in taken else batch).append(job)
            taken.add(place)
        return batch, rest

    def _judge(self, batch: list[Job]) -> list[Job]:
        """Settles jobs; returns those to be judged again."""
        compiled, by_job, errors = self._errors(batch)
        if not compiled:
            if not by_job:
                raise VerusError(f"cannot tell which mutant does not compile: {errors}")
            for index in by_job:
                self._not_compiled(batch[index])
            return [job for job in batch if not job.verdict]
        again = []
        for index, job in enumerate(batch):
            self._settle(job, by_job.get(index, []))
            if not job.verdict:
                again.append(job)
            elif job.verdict == "rejected" and job.hints:
                again.append(Job(job.mutant, job, job.hints))
        return again

    def _errors(
        self, batch: list[Job]
    ) -> tuple[bool, dict[int, list[dict[str, Any]]], list[dict[str, Any]]]:
        """Whether a batch compiles, the errors of each job by its index, and all errors.

        What the solver finds in one function also depends on what it was asked before: an error
        that no mutant can have made is its whim, and the batch is verified with another seed.
        """
        for seed in SEEDS:
            compiled, errors = self._run(batch, seed)
            by_job: dict[int, list[dict[str, Any]]] = {}
            outside = []
            for error in errors:
                if (index := self._culprit(batch, error)) is not None:
                    by_job.setdefault(index, []).append(error)
                else:
                    outside.append(error)
            if not (compiled and outside):
                return compiled, by_job, errors
            print(f"with seed {seed}, outside the mutants: {outside[0]['rendered']}", flush=True)
        raise VerusError(f"an error outside the mutants: {outside[0]['rendered']}")

    @staticmethod
    def _not_compiled(job: Job) -> None:
        job.verdict = "by assertion" if job.hints else "not compiled"
        if job.true_of:
            job.true_of.verdict = "by assertion"

    def _settle(self, job: Job, errors: list[dict[str, Any]]) -> None:
        """Gives a verdict, or makes hints of the failed assertions for another round."""
        texts = [error["message"] for error in errors]
        job.messages += texts
        if job.true_of:  # does the true function need more than hints?
            job.verdict = "by assertion" if errors else "verified"
            job.true_of.verdict = "by assertion" if errors else "rejected"
        elif not errors:
            job.verdict = "survived"
        elif any(CONTRACT.search(text) for text in texts):
            job.verdict = "rejected"
        elif any(LIMIT.search(text) for text in texts):
            job.verdict = "timed out"
        elif not all(ASSERTION.search(text) for text in texts):
            raise VerusError(f"Verus said something unknown of a mutant: {texts}")
        else:
            self._soften(job, errors)

    def _soften(self, job: Job, errors: list[dict[str, Any]]) -> None:
        source = Source(self._text(job.mutant.file))
        before = set(job.hints)
        for error in errors:
            found = innermost(source, _primary(error)["line_start"], job.mutant.lines, before)
            if found is None or len(job.hints) >= HINTS:
                job.verdict = "by assertion"
                return
            job.hints[source.tokens[found[0]].at] = hint(source, *found)

    def _text(self, file: str) -> str:
        if file not in self.texts:
            self.texts[file] = (self.root / file).read_text(encoding="utf-8")
        return self.texts[file]

    def _changed(self, file: str, batch: list[Job]) -> str:
        edits: list[Edit] = []
        for job in batch:
            if job.mutant.file == file:
                edits += [] if job.true_of else job.mutant.edits
                edits += [edit for edits_of_one in job.hints.values() for edit in edits_of_one]
        return apply(self._text(file), tuple(edits))

    def _run(self, batch: list[Job], seed: int = 0) -> tuple[bool, list[dict[str, Any]]]:
        """Verifies with the batch's changes: whether it came to a result, and the errors."""
        files = {job.mutant.file for job in batch}
        for file in files:
            (self.root / file).write_text(self._changed(file, batch), encoding="utf-8")
        (self.root / "engine-rs/src/lib.rs").touch()
        command = ["cargo", "verus", "focus", "-p", self.crate, "--locked", "--target-dir",
                   str(self.target), "--message-format=json", "--", "--no-report-long-running",
                   "--multiple-errors", "5", f"--smt-option=smt.random_seed={seed}",
                   *every_core(), *_only(files)]  # fmt: skip
        done = subprocess.run(
            command, cwd=self.root, env=self.verus.environment, capture_output=True, text=True
        )
        for file in files:
            (self.root / file).write_text(self._text(file), encoding="utf-8")
        errors = []
        for line in done.stdout.splitlines():
            if line.startswith("{") and (entry := json.loads(line))["reason"] == "compiler-message":
                message = entry["message"]
                if message["level"] == "error" and message["spans"]:
                    errors.append(message)
        compiled = "verification results::" in done.stdout
        if not compiled and not errors:
            raise VerusError(f"cargo verus gave no result:\n{done.stderr[-2000:]}")
        return compiled, errors

    @staticmethod
    def _culprit(batch: list[Job], error: dict[str, Any]) -> int | None:
        """The job in whose function the error stands."""
        for span in sorted(error["spans"], key=lambda s: not s["is_primary"]):
            for index, job in enumerate(batch):
                first, last = job.mutant.lines
                if span["file_name"] == job.mutant.file and first <= span["line_start"] <= last:
                    return index
        return None


def _only(files: Iterable[str]) -> list[str]:
    """Options that verify the modules of these files alone; all of the crate for no file."""
    options = []
    for file in sorted(files):
        path = file.split("/src/", 1)[1].removesuffix(".rs").removesuffix("/mod")
        options += ["--verify-only-module", path.replace("/", "::")]
    return options


def _primary(error: dict[str, Any]) -> dict[str, Any]:
    return next(span for span in error["spans"] if span["is_primary"])
