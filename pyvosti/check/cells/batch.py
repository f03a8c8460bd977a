"""Cells about company: who else is in the batch, where, since when, and how they draw."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyvosti.check.requests import SAMPLERS, Requests
from pyvosti.check.scenario import Arrival, Cell, Disturbance, Job, Phase

BATCH = frozenset({"batch"})
JOINING = BATCH | {"arrivals"}


def neighbour_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """A request among n others that decode beside it."""
    lone = (Arrival(requests.seeded, watched=True),)
    yield Cell("alone-again", "neighbours", "alone, once more", (lone,))
    for count in (1, 7, 63, 255, 256, 299) if full else (1, 7, 63, 299):
        crowd = count > 200
        company = requests.company(
            count,
            length=3 if crowd else None,
            outputs=None if count < 10 else 12 if full else 3 if crowd else 6,
        )
        options = {"num_blocks": 2 * count + 96, "max_seqs": 320, "max_batched_tokens": 1024}
        yield Cell(
            f"neighbours-{count}", "neighbours", f"among {count} others", (lone + company,),
            options if crowd else {"max_seqs": 80, "max_batched_tokens": 320}, needs=BATCH,
        )  # fmt: skip


def crowd_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """Many requests at once, all of them watched."""
    count, outputs = (50, 32) if full else (24, 4)
    lengths = (1, 2, requests.page - 1, 3, requests.page + 1, 33, 5, 9)
    ragged = tuple(
        Arrival(requests.job(lengths[i % 8], 29 + 7 * i, outputs=outputs, seed=i), watched=True)
        for i in range(count)
    )
    yield Cell("crowd", "neighbours", f"{count} of all lengths at once", (ragged,), needs=BATCH)
    rows = Arrival(requests.rows, watched=True)
    for others in (1, 7, 31):
        company = requests.company(others, outputs=8)
        yield Cell(
            f"rows-beside-{others}", "neighbours", f"rows of a prompt beside {others} others",
            ((*company, rows),), needs=BATCH | {"rows"},
        )  # fmt: skip
    yield Cell(
        "rows-copies", "neighbours", "rows of four equal prompts at once", ((rows,) * 4,),
        needs=BATCH | {"rows"},
    )  # fmt: skip


def place_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """A request at each place of a batch of eight."""
    company = requests.company(7, outputs=requests.outputs // 2)
    lone = (Arrival(requests.greedy, watched=True),)
    for place in range(8) if full else (0, 3, 7):
        phase = company[:place] + lone + company[place:]
        yield Cell(f"place-{place}", "place", f"at place {place} of 8", (phase,), needs=BATCH)


def joining_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """Prompts that are prefilled while a request decodes at a long context."""
    lone = (Arrival(requests.long, watched=True),)
    for tokens in (1, 9, 10, 129):
        joining = (Arrival(requests.job(tokens, 40, outputs=2), after=3),)
        yield Cell(
            f"prefill-beside-{tokens}", "prefill beside decode",
            f"{tokens} tokens are prefilled beside its decode", (lone + joining,), needs=JOINING,
        )  # fmt: skip


def arrival_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """The same requests in other orders, at other times, among others that are given up."""
    watched, company = requests.watched, requests.company(6)
    spread = tuple(replace(a, after=1 + 2 * i) for i, a in enumerate(watched[1:]))
    late = tuple(replace(a, after=1 + i) for i, a in enumerate(company))
    quitting = tuple(
        replace(a, after=i, abort_after=1 + 2 * i) for i, a in enumerate(requests.company(6))
    )
    orders: list[tuple[str, str, Phase, frozenset[str]]] = [
        ("together", "all at once", watched, BATCH),
        ("reversed", "in the reverse order", watched[::-1], BATCH),
        ("staggered", "one after the other joins", watched[:1] + spread, JOINING),
        ("last", "behind others that run already", company[:3] + watched, BATCH),
        ("others-join", "others join one by one", watched + late, JOINING),
        ("others-quit", "others join and are aborted", watched + quitting, JOINING | {"abort"}),
    ]
    for name, says, phase, needs in orders:
        yield Cell(f"order-{name}", "arrivals", says, (phase,), needs=needs)
    yield _poisson_cell(requests, 40 if full else 12)
    yield Cell(
        "seats-3", "arrivals", "three sequences a step, the others wait", (watched + company,),
        {"max_seqs": 3}, needs=BATCH | {"pool"},
    )  # fmt: skip


def _poisson_cell(requests: Requests, times: int) -> Cell:
    """One request again and again, at random times among random others."""
    rng = random.Random(1234)
    leader = Arrival(requests.job(6, 50, outputs=2 * times))
    job = requests.job(requests.page + 3, 44, outputs=6, temperature=0.8)
    arrivals, when = [], 0.0
    for i, other in enumerate(requests.company(times, outputs=5)):
        when += rng.expovariate(0.5)
        arrivals.append(Arrival(job, watched=True, after=int(when)))
        arrivals.append(replace(other, after=int(when + rng.random() * (i % 3))))
    return Cell(
        "poisson", "arrivals", f"one request {times} times at random moments among others",
        ((leader, *arrivals),), needs=JOINING,
    )  # fmt: skip


def sampler_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """How neighbours draw, seeds, penalties, logprobs, several samples."""
    drawing = BATCH | {"drawing"}
    mixed = tuple(
        Arrival(requests.job(9, i, seed=i, **params), watched=True)
        for i, params in enumerate(SAMPLERS)
    )
    for turn in range(len(mixed)) if full else (0, 3):
        yield Cell(
            f"samplers-{turn}", "sampler", f"all samplers at once, turned by {turn}",
            (mixed[turn:] + mixed[:turn],), needs=drawing,
        )  # fmt: skip
    same = (Arrival(requests.seeded, watched=True),) * (16 if full else 6)
    yield Cell("same-seed", "sampler", "equal seeded requests at once", (same,), needs=BATCH)
    for name, seed in (("0", 0), ("2-32-1", 2**32 - 1), ("2-64-1", 2**64 - 1)):
        job = requests.job(6, temperature=1.0, seed=seed, outputs=requests.outputs // 2)
        phase = (Arrival(job, watched=True), *requests.company(2))
        yield Cell(f"seed-{name}", "sampler", f"seed {seed} beside others", (phase,), needs=drawing)
    yield from _logprobs_cells(requests)
    yield from _samples_cells(requests)


def _logprobs_cells(requests: Requests) -> Iterator[Cell]:
    needs = BATCH | {"logprobs"}
    listed = tuple(
        Arrival(replace(a.job, params=replace(a.job.params, logprobs=i, prompt_logprobs=1)))
        for i, a in enumerate(requests.company(4, outputs=requests.outputs // 2))
    )
    yield Cell(
        "logprobs-beside", "sampler", "beside others that list logprobs",
        (listed + requests.watched,), needs=needs,
    )  # fmt: skip
    asking = tuple(
        Arrival(_asking(a.job, 10), watched=True, against=a.job) for a in requests.watched
    )
    yield Cell(
        "logprobs-asked", "sampler", "with 10 logprobs a position", (asking,),
        needs=needs,
    )  # fmt: skip
    others: tuple[dict[str, Any], ...] = ({"temperature": 0.7}, {"temperature": 1.0, "top_p": 0.5})
    drawn = tuple(
        Arrival(
            requests.job(5, outputs=1, **params),
            watched=True, against=requests.greedy, rows_only=True,
        )
        for params in others
    )  # fmt: skip
    yield Cell(
        "raw-logits", "sampler", "logits before the sampler, at other temperatures",
        tuple((arrival,) for arrival in drawn), needs=frozenset({"raw logits"}),
    )  # fmt: skip


def _samples_cells(requests: Requests) -> Iterator[Cell]:
    several = requests.job(2 * requests.page + 1, 3, temperature=0.9, top_p=0.95, n=3)
    needs = frozenset({"samples", "drawing"})
    yield Cell(
        "samples-3", "sampler", "three samples of one prompt beside others",
        ((Arrival(several, watched=True), *requests.company(5)),), needs=needs | BATCH,
    )  # fmt: skip
    first = Arrival(several, watched=True, against=requests.seeded)
    yield Cell(
        "sample-0", "sampler", "sample 0 of three is the one of n = 1", ((first,),), needs=needs
    )


def _asking(job: Job, count: int) -> Job:
    return replace(job, params=replace(job.params, logprobs=count))


def flight_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """What a GPU does and a CPU does not: graphs, padding, tiles by rows, plans in flight."""
    watched, company = requests.watched, requests.company(4)
    yield Cell(
        "graphs-off", "graphs", "launch by launch", (watched + company,),
        disturbance=Disturbance(graphs=False), needs=BATCH | {"graphs"},
    )  # fmt: skip
    for count in (1, 2, 4, 8, 16, 31, 32, 33, 64, 128) if full else (2, 8, 33):
        others = requests.company(count - 1, length=3, outputs=requests.outputs)
        lone = (Arrival(requests.greedy, watched=True),)
        yield Cell(
            f"padding-{count}", "graphs", f"steps of {count} rows, padded to a graph's",
            (others + lone,), {"max_seqs": 256, "num_blocks": 1024},
            Disturbance(poison=float("nan")), needs=BATCH | {"graphs", "pages"},
        )  # fmt: skip
    yield Cell(
        "strict-kernels", "graphs", "one kernel an operation", (watched + company,),
        {"strict_kernels": True}, needs=BATCH | {"tiles"},
    )  # fmt: skip
    yield Cell(
        "one-in-flight", "graphs", "each plan waits for the one before", (watched + company,),
        disturbance=Disturbance(in_flight=1), needs=BATCH | {"in flight"},
    )  # fmt: skip
