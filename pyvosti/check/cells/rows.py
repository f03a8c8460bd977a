"""Cells about how a request's own rows are cut into steps, and by how many threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyvosti.check.requests import Requests
from pyvosti.check.scenario import Arrival, Cell, Job

BUDGET = frozenset({"budget"})


def chunk_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """Prompts cut into chunks of every kind of size."""
    jobs = (requests.long, requests.greedy, requests.rows)
    phase = tuple(Arrival(job, watched=True) for job in jobs)
    for budget in (1, 7, 48, 64, 100, 256, 333, 512, 2048):
        few = _with_outputs(requests.long, 2)
        one = (Arrival(few, watched=True, against=requests.long),)
        yield Cell(
            f"chunks-{budget}", "chunks", f"at most {budget} tokens a step",
            (phase if full and budget > 1 else one,), {"max_batched_tokens": budget},
            needs=BUDGET | ({"batch", "rows"} if full and budget > 1 else frozenset()),
        )  # fmt: skip


def prefill_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """What was decoded one row at a time, computed as prefill: whole, in chunks, row by row."""
    job = requests.job(7, 21)
    forced = requests.outputs - 1
    all_rows = Arrival(
        replace(job, params=replace(job.params, max_tokens=1, prompt_logprobs=0)),
        watched=True, against=job, forced=forced,
    )  # fmt: skip
    rows = frozenset({"rows", "prompt ids"})
    yield Cell(
        "prefill-whole", "prefill and decode", "all outputs as one prefill", ((all_rows,),),
        {"max_batched_tokens": 512}, needs=rows,
    )  # fmt: skip
    for size in range(2, 9):
        yield Cell(
            f"prefill-by-{size}", "prefill and decode", f"all outputs in chunks of {size}",
            ((all_rows,),), {"max_batched_tokens": size}, needs=rows | BUDGET,
        )  # fmt: skip
    last = _with_outputs(job, 1)
    ends = range(1, forced + 1, 17 if full else 4)
    phases = tuple((Arrival(last, watched=True, against=job, forced=end),) for end in ends)
    yield Cell(
        "prefill-each", "prefill and decode", f"each of {len(ends)} outputs as a prompt's last row",
        phases, {"prefix_cache": False}, needs=frozenset({"prompt ids"}),
    )  # fmt: skip


def long_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """Long outputs: short ones miss what needs many steps to show."""
    job = requests.job(5, outputs=requests.long_outputs)
    company = tuple(
        replace(other, after=2 + i * requests.long_outputs // 6)
        for i, other in enumerate(requests.company(6, outputs=requests.long_outputs // 8))
    )
    yield Cell(
        "long-output", "long", f"{requests.long_outputs} outputs beside others",
        ((Arrival(job, watched=True), *company),), needs=frozenset({"batch", "arrivals"}),
    )  # fmt: skip


def repeat_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """The same again."""
    phase = requests.watched
    times = 8 if full else 3
    yield Cell(
        "repeat-batch", "repeat", f"the same batch {times} times", (phase,) * times,
        {"prefix_cache": False}, needs=frozenset({"batch"}),
    )  # fmt: skip
    step = Arrival(_with_outputs(requests.rows, 1), watched=True, against=requests.rows)
    count = 50 if full else 10
    yield Cell(
        "repeat-step", "repeat", f"one step {count} times", ((step,),) * count,
        {"prefix_cache": False},
    )  # fmt: skip


def machine_cells(requests: Requests, full: bool, isas: list[str]) -> Iterator[Cell]:
    """Threads and instruction sets of the CPU backend."""
    phase = requests.watched
    for threads in (1, 2, 3):
        yield Cell(
            f"threads-{threads}", "machine", f"on {threads} threads", (phase,),
            {"threads": threads}, needs=frozenset({"batch", "threads"}),
        )  # fmt: skip
    for isa in isas:
        yield Cell(
            f"isa-{isa}", "machine", f"built for {isa}", (phase,), {"isa": isa},
            needs=frozenset({"batch", "isa"}),
        )  # fmt: skip


def _with_outputs(job: Job, outputs: int) -> Job:
    return replace(job, params=replace(job.params, max_tokens=outputs))
