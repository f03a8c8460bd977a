"""Has Verus judge mutants, many in one run.

Contracts are modular: a function's proof never looks into another's body. So one run of Verus
judges a mutant in each of many functions at once. A mutant is *rejected* when a clause of a
contract fails: a postcondition, an invariant, a precondition of what it calls, termination, or
arithmetic that may overflow. When only assertions of the function's own proof fail, they are taken
away and it is judged again; if the contract then fails for the mutant, and not for the true
function without them, it is rejected as well.
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

from mutation import Edit, Mutant, apply, assertion_at
from rust_source import Source
from verus_tool import Verus, VerusError

CONTRACT = re.compile(
    r"(postcondition|precondition|invariant|decreases) not satisfied|possible arithmetic"
    r"|possible (division|bit shift)|constructed value may fail|type invariant"
    r"|could not prove termination|unable to prove"
)
ASSERTION = re.compile(
    r"assertion (failed|not satisfied)|requires not satisfied|precondition.*assert"
)
LIMIT = re.compile(r"rlimit|[Rr]esource limit|timed out")
ROUNDS = 12


@dataclass
class Job:
    """A mutant on trial, or with `true` the function as it is; `stripped`: assertions gone."""

    mutant: Mutant
    true: bool = False
    stripped: list[Edit] = field(default_factory=list)
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
        compiled, errors = self._run(batch)
        by_job: dict[int, list[dict[str, Any]]] = {}
        for error in errors:
            if (index := self._culprit(batch, error)) is not None:
                by_job.setdefault(index, []).append(error)
            elif compiled:
                raise VerusError(f"an error outside the mutants: {error['rendered']}")
        if not compiled:
            if not by_job:
                raise VerusError(f"cannot tell which mutant does not compile: {errors}")
            for index in by_job:
                batch[index].verdict = "not compiled"
            return [job for job in batch if not job.verdict]
        again = []
        for index, job in enumerate(batch):
            self._settle(job, by_job.get(index, []))
            if not job.verdict:
                again.append(job)
        return again

    def _settle(self, job: Job, errors: list[dict[str, Any]]) -> None:
        """Gives a verdict, or takes the failed assertions away for another round."""
        texts = [error["message"] for error in errors]
        job.messages += texts
        if job.true:
            job.verdict = "rejected" if errors else "survived"
        elif not errors:
            job.verdict = "survived"
        elif any(CONTRACT.search(text) for text in texts):
            job.verdict = self._without_assertions(job) if job.stripped else "rejected"
        elif any(LIMIT.search(text) for text in texts):
            job.verdict = "timed out"
        elif not all(ASSERTION.search(text) for text in texts):
            raise VerusError(f"Verus said something unknown of a mutant: {texts}")
        else:
            self._strip(job, errors)

    def _without_assertions(self, job: Job) -> str:
        """Whether the contract fails because of the mutation, not for want of the assertions."""
        true = Job(job.mutant, True, job.stripped)
        compiled, errors = self._run([true])
        mine = [e for e in errors if self._culprit([true], e) is not None]
        return "rejected" if compiled and not mine else "by assertion"

    def _strip(self, job: Job, errors: list[dict[str, Any]]) -> None:
        source = Source(self._changed(job.mutant.file, [job]))
        original = self._text(job.mutant.file)
        for error in errors:
            line = _primary(error)["line_start"]
            edit = assertion_at(source, line, job.mutant.lines)
            if edit is None or len(job.stripped) >= ROUNDS:
                job.verdict = "by assertion"
                return
            # Found in the changed text; the same lines of the original hold the same statement.
            found = assertion_at(Source(original), line, job.mutant.lines)
            if found is None:
                job.verdict = "by assertion"
                return
            inside = [e for e in job.stripped if found.start <= e.start and e.end <= found.end]
            job.stripped = [e for e in job.stripped if e not in inside]
            if not any(e.start <= found.start < e.end for e in job.stripped):
                job.stripped.append(found)

    def _text(self, file: str) -> str:
        if file not in self.texts:
            self.texts[file] = (self.root / file).read_text(encoding="utf-8")
        return self.texts[file]

    def _changed(self, file: str, batch: list[Job]) -> str:
        edits: list[Edit] = []
        for job in batch:
            if job.mutant.file == file:
                edits += [*job.stripped, *(() if job.true else job.mutant.edits)]
        return apply(self._text(file), tuple(edits))

    def _run(self, batch: list[Job]) -> tuple[bool, list[dict[str, Any]]]:
        """Verifies with the batch's changes: whether it came to a result, and the errors."""
        files = {job.mutant.file for job in batch}
        for file in files:
            (self.root / file).write_text(self._changed(file, batch), encoding="utf-8")
        (self.root / "engine-rs/src/lib.rs").touch()
        command = ["cargo", "verus", "focus", "-p", self.crate, "--locked", "--target-dir",
                   str(self.target), "--message-format=json", "--", "--no-report-long-running",
                   "--multiple-errors", "5"]  # fmt: skip
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


def _primary(error: dict[str, Any]) -> dict[str, Any]:
    return next(span for span in error["spans"] if span["is_primary"])
