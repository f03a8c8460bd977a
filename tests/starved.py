"""Runs in a process of its own: what pyvosti does when the system gives it no more memory.

    python starved.py FOLDER

The limit on the address space is real (RLIMIT_AS): an allocation of 64 KiB and more is a system
call, and the kernel refuses it. The last line is JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyvosti import LLM, SamplingParams
from pyvosti.errors import ConfigError

MIB = 1 << 20
PROMPTS = [[(7 * i + 3 * k) % 300 + 5 for k in range(480)] for i in range(16)]
"""One step of 7,680 rows, which needs some 40 MiB of activations."""
PARAMS = SamplingParams(max_tokens=3, temperature=0.8, seed=3, ignore_eos=True)


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Within, the process may map `size` bytes more than it has mapped."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def load(folder: str, num_blocks: int = 640) -> LLM:
    return LLM(
        folder, backend="cpu", threads=1, num_blocks=num_blocks, max_batched_tokens=8192,
        record_digests=True,
    )  # fmt: skip


def answers(llm: LLM) -> list[Any]:
    outputs = llm.generate(None, PARAMS, prompt_token_ids=PROMPTS)
    return [(sample.token_ids, sample.digests) for one in outputs for sample in one.outputs]


def is_idle(llm: LLM) -> bool:
    stats = llm.stats()
    return not any(stats[n] for n in ("referenced_blocks", "plans", "running", "waiting"))


def refused(call: Any) -> str:
    """The error of a call, as `Type: message`; "" when there is none."""
    try:
        call()
    except (MemoryError, ConfigError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def stepping_on(llm: LLM) -> tuple[list[Any], list[str]]:
    """The answers when each failed step is made again with 3 MiB more; the failures."""
    failures: list[str] = []
    step = llm.session.step

    def starved() -> None:
        with room_for(2 * MIB + 3 * MIB * len(failures)):
            failed = refused(step)
        failures.extend([failed] if failed else [])

    llm.session.step = starved  # type: ignore[method-assign]
    try:
        return answers(llm), failures
    finally:
        del llm.session.step  # type: ignore[method-assign]


def main(folder: str) -> None:
    want = answers(load(folder))
    llm = load(folder)
    llm.generate(None, PARAMS, prompt_token_ids=[5, 6, 7])
    with room_for(512 * MIB):  # enough for the weights; the pool asks for gigabytes
        pool = refused(lambda: load(folder, num_blocks=1_000_000))
    with room_for(2 * MIB):
        request = refused(lambda: answers(llm))
    idle = is_idle(llm)
    llm.reset_prefix_cache()
    again, failures = stepping_on(llm)
    report = {
        "pool": pool, "request": request, "idle": idle and is_idle(llm), "equal": again == want,
        "failures": failures, "equal_after": answers(llm) == want,
    }  # fmt: skip
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
