"""Cells about the KV cache: hits, donors, page boundaries, preemption, pages and their contents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyvosti.check.requests import SAMPLERS, Requests
from pyvosti.check.scenario import Arrival, Cell, Disturbance, Job, Phase

CACHE = frozenset({"cache"})
BATCH = frozenset({"batch"})
POOL = BATCH | {"pool"}
NAN = float("nan")


def length_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """Prompts that end just before, at and just after a page's end; cold, then after a donor."""
    page = requests.page
    outputs = requests.outputs if full else requests.outputs // 2
    for name, length in (
        ("page-1", page - 1), ("page", page), ("page+1", page + 1), ("2-pages", 2 * page),
        ("4-pages", 4 * page), ("4-pages+1", 4 * page + 1),
    ):  # fmt: skip
        victim = (Arrival(requests.job(length, 2, outputs=outputs), watched=True),)
        donor = (Arrival(requests.job(length, 2, outputs=1)),)
        yield Cell(
            f"length-{name}", "lengths", f"a prompt of {length} tokens, whose pages are cached",
            (donor, victim), counters={"hits": 1} if length > page else {}, needs=CACHE,
        )  # fmt: skip


def hit_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """Cold, warm, partial hits, donors in every state."""
    watched = requests.watched
    hit = {"hits": 1}
    yield Cell("cold", "cache", "with an empty cache", (watched,), needs=BATCH | CACHE)
    yield Cell("warm", "cache", "once more", (watched, watched), counters=hit, needs=BATCH | CACHE)
    if full:
        yield Cell(
            "warm-alone", "cache", "the second and third time, one by one",
            tuple((arrival,) for arrival in watched * 3), counters=hit, needs=CACHE,
        )  # fmt: skip
    page = requests.page
    victim = requests.job(4 * page + page // 2, 9)
    for name, shared in (
        ("1", page), ("half", 2 * page), ("all-but-one", 3 * page), ("all", 4 * page),
        ("unaligned", 2 * page + 3),
    ):  # fmt: skip
        other = requests.prompt(2 * page, 31)
        donor = replace(requests.job(1, outputs=1), prompt=victim.prompt[:shared] + other)
        yield Cell(
            f"hit-{name}", "cache", f"after a donor with {shared} equal tokens and another suffix",
            ((Arrival(donor),), (Arrival(victim, watched=True),)), counters=hit, needs=CACHE,
        )  # fmt: skip
    crowd = tuple(
        Arrival(replace(victim, prompt=victim.prompt + requests.prompt(3, i)), watched=True)
        for i in range(12 if full else 8)
    )
    yield Cell(
        "shared-prefix", "cache", f"{len(crowd)} prompts that begin alike, at once", (crowd,),
        needs=BATCH,
    )  # fmt: skip
    yield Cell(
        "hit-crowd", "cache", "the same after a donor, free pages hold NaN",
        ((Arrival(victim),), crowd), {"num_blocks": 320}, Disturbance(poison=NAN), hit,
        needs=BATCH | CACHE | {"pages"},
    )  # fmt: skip
    yield from _donor_cells(requests, victim)
    yield from _turn_cells(requests)


def _donor_cells(requests: Requests, victim: Job) -> Iterator[Cell]:
    page = requests.page
    one = Arrival(victim, watched=True)
    half = Arrival(replace(victim, prompt=victim.prompt + requests.prompt(2 * page, 3)))
    chunks = {"max_batched_tokens": page}
    yield Cell(
        "twins", "cache", "two equal prompts in one step", ((one, one),),
        disturbance=Disturbance(poison=NAN), needs=BATCH | {"pages"},
    )  # fmt: skip
    yield Cell("twins-plain", "cache", "equal requests at once", ((one,) * 4,), needs=BATCH)
    yield Cell(
        "donor-running", "cache", "while the donor still prefills, a page at a time",
        ((half, one),), chunks, needs=BATCH | {"budget"},
    )  # fmt: skip
    yield Cell(
        "donor-half-done", "cache", "with a donor whose prefill is half done",
        ((Arrival(requests.job(3)), half, replace(one, after=2)),), chunks,
        needs=BATCH | {"budget", "arrivals"},
    )  # fmt: skip
    for name, steps in (("1-step", 1), ("3-steps", 3)):
        quitting = Arrival(half.job, abort_after=steps)
        yield Cell(
            f"donor-aborted-{name}", "cache", f"after a donor that was aborted after {name}",
            ((quitting,), (one,)), chunks, Disturbance(poison=NAN),
            needs=frozenset({"abort", "budget", "pages"}),
        )  # fmt: skip
    salted = Arrival(victim, salt=1)
    yield Cell(
        "donor-salted", "cache", "after a donor with another salt, whose pages are not for it",
        ((salted,), (one,)), still=frozenset({"hits"}), needs=CACHE | {"salt"},
    )  # fmt: skip
    asking = replace(victim, params=replace(victim.params, prompt_logprobs=0, max_tokens=2))
    yield Cell(
        "prompt-rows-warm", "cache", "rows of the prompt, which a hit must not skip",
        ((one,), (Arrival(asking, watched=True),)), needs=CACHE | {"rows"},
    )  # fmt: skip


def _turn_cells(requests: Requests) -> Iterator[Cell]:
    """The cache holds generated tokens too: the next turn of a dialogue hits them."""
    first = requests.job(requests.page + 3, 13)
    follow = Arrival(
        requests.job(1, outputs=4), watched=True, against=first, forced=requests.outputs - 2
    )
    yield Cell(
        "next-turn", "cache", "prompt and answer come back as a prompt",
        ((Arrival(first),), (follow,)), counters={"hits": 1}, needs=CACHE | {"prompt ids"},
    )  # fmt: skip


def preemption_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """Pools so small that sequences lose their pages and are computed again."""
    page = requests.page
    for at in (1, 8, 31) if full else (1, 8):
        yield preempted_at(requests, at)
    # Six sequences that start in a page each and grow into their third; the pool has eight.
    many = tuple(
        Arrival(
            requests.job(page - 2 * i, 4 + 11 * i, outputs=page + 8, **{"seed": i} | sampler),
            watched=i < 4,
        )
        for i, sampler in enumerate(SAMPLERS[:6])
    )
    pages = 8
    yield Cell(
        "preempted-often", "preemption", f"six requests in {pages} pages", (many,),
        {"num_blocks": pages}, counters={"preemptions": 3}, needs=POOL,
    )  # fmt: skip
    yield Cell(
        "preempted-poisoned", "preemption", "the same, given pages hold NaN", (many,),
        {"num_blocks": pages}, Disturbance(poison=NAN), {"preemptions": 3},
        needs=POOL | {"pages"},
    )  # fmt: skip
    yield Cell(
        "preempted-uncached", "preemption", "the same without a prefix cache", (many,),
        {"num_blocks": pages, "prefix_cache": False}, counters={"preemptions": 3}, needs=POOL,
    )  # fmt: skip


def preempted_at(requests: Requests, at: int) -> Cell:
    """The younger of two requests is preempted when it has given `at` outputs.

    Both compute one row a step. The older one's row of output `at` + 1 begins a page at the
    moment when the two hold all pages of the pool.
    """
    page, half = requests.page, requests.page // 2
    length = page + (1 - at) % page
    older = requests.job(length, 37, outputs=at + half)
    younger = requests.job(half, 19, outputs=at + page, temperature=0.8, repetition_penalty=1.2)
    pages = (length + at - 1) // page + -(-(half + at - 1) // page)
    return Cell(
        f"preempted-at-{at}", "preemption", f"preempted after {at} outputs",
        ((Arrival(older), Arrival(younger, watched=True)),), {"num_blocks": pages},
        counters={"preemptions": 1}, preempted_at=at, needs=POOL,
    )  # fmt: skip


def page_cells(requests: Requests, full: bool) -> Iterator[Cell]:
    """Which pages are used, and what unused ones hold."""
    phase: Phase = requests.watched + requests.company(3)
    churn = tuple(
        replace(arrival, after=i // 3, abort_after=2 + 7 * i % 11)
        for i, arrival in enumerate(requests.company(12, outputs=14))
    )
    needs = BATCH | {"pages"}
    yield Cell(
        "pages-permuted", "pages", "in a pool that others have churned", (churn, phase),
        {"prefix_cache": False, "num_blocks": 192}, needs=needs,
    )  # fmt: skip
    flood = tuple(
        Arrival(requests.job(2 * requests.page, 60 + 9 * i, outputs=3), after=i // 2)
        for i in range(48)
    )
    held = Arrival(requests.job(2 * requests.page + 2, 9, outputs=16), watched=True)
    again = tuple(replace(held, after=when) for when in (4, 9))
    yield Cell(
        "flood", "pages", "its prefix is shared and held while a flood evicts all else",
        ((held, *again, *flood),), {"num_blocks": 24}, Disturbance(poison=NAN),
        needs=needs | {"arrivals"},
    )  # fmt: skip
    for name, value in (("nan", NAN), ("1e30", 1e30), ("inf", float("inf"))):
        yield Cell(
            f"poison-{name}", "pages", f"free and fresh pages hold {value:g}", (churn, phase),
            {"num_blocks": 96}, Disturbance(poison=value), needs=needs,
        )  # fmt: skip
    yield Cell(
        "tails-live", "pages", "unused table entries point at live pages", (phase,),
        disturbance=Disturbance(tails=True), needs=needs,
    )  # fmt: skip
    yield Cell(
        "tails-live-poison", "pages", "the same, and free pages hold NaN", (churn, phase),
        {"num_blocks": 96}, Disturbance(tails=True, poison=NAN), needs=needs,
    )  # fmt: skip
