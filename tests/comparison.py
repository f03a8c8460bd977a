"""Runs the same requests in different ways and compares every row of logits, bit for bit.

Rows are compared through the digest chain (`pyvosti.digest`): 40 requests of 64 outputs are half
a gigabyte of logits, but 40 lists of hashes, and the first pair of links that differs names the
first row that differs. Only then is the pair of runs repeated with the logits kept, to show bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyvosti import LLM, CompletionOutput, RequestOutput, SamplingParams
from pyvosti.runner import Runner

Wrapper = Callable[[Runner], Runner]


class Job(NamedTuple):
    """One request: prompt token ids and parameters."""

    prompt: list[int]
    params: SamplingParams


class Variation(NamedTuple):
    """A way to run jobs that must not change a bit."""

    name: str
    options: dict[str, Any]
    """Arguments of `LLM`."""
    alone: bool = False
    """One request after the other instead of all together."""
    runs: int = 1
    """How often, in one engine; the last run counts."""
    must_happen: str | None = None
    """The engine's counter that shows that the run was what it claims to be."""


class Difference(NamedTuple):
    """The first row of a job that two runs do not agree on; `row` counts its rows."""

    job: int
    row: int


def run(
    model: str,
    jobs: Sequence[Job],
    variation: Variation,
    wrapper: Wrapper | None = None,
    **recording: bool,
) -> list[RequestOutput]:
    """The jobs' results under a variation."""
    llm = LLM(model, **variation.options, **(recording or {"record_digests": True}))
    if wrapper is not None:
        llm.session.runner = wrapper(llm.session.runner)
    groups = [[job] for job in jobs] if variation.alone else [list(jobs)]
    results: list[RequestOutput] = []
    for _ in range(variation.runs):
        results = []
        for group in groups:
            results += llm.generate(
                prompt_token_ids=[job.prompt for job in group],
                sampling_params=[job.params for job in group],
            )
    stats = llm.stats()
    assert variation.must_happen is None or stats[variation.must_happen] > 0, stats
    assert stats["referenced_blocks"] == 0, stats
    return results


def digests(results: Sequence[RequestOutput]) -> list[list[list[str]]]:
    """Per job and sample: the digest chain."""
    return [[sample.digests or [] for sample in result.outputs] for result in results]


def first_difference(
    one: Sequence[Sequence[Sequence[str]]], other: Sequence[Sequence[Sequence[str]]]
) -> Difference | None:
    """The first job and row in which two runs differ; None when all bits are equal."""
    assert len(one) == len(other)
    for job, (samples, other_samples) in enumerate(zip(one, other, strict=True)):
        for chain, other_chain in zip(samples, other_samples, strict=True):
            for row in range(max(len(chain), len(other_chain))):
                if chain[row : row + 1] != other_chain[row : row + 1]:
                    return Difference(job, row)
    return None


def explain(
    model: str,
    jobs: Sequence[Job],
    variations: tuple[Variation, Variation],
    difference: Difference,
    wrapper: Wrapper | None = None,
) -> str:
    """Repeats two runs with their logits and shows the first element that differs."""
    names = f"{variations[0].name} and {variations[1].name}"
    rows, tokens = [], []
    for variation in variations:
        result = run(model, jobs, variation, wrapper, record_logits=True)[difference.job]
        rows.append(_rows(result, result.outputs[0]))
        tokens.append(result.prompt_token_ids + result.outputs[0].token_ids)
    one, other = (row[difference.row].view(np.uint32) for row in rows)
    unequal = np.flatnonzero(one != other)
    where = f"{names} differ in job {difference.job}, row {difference.row}"
    if len(unequal) == 0:
        return f"{where}: the logits were equal when repeated, so the tokens or the runs differ"
    i = int(unequal[0])
    return (
        f"{where}: {len(unequal)} of {len(one)} logits, first at token id {i}: "
        f"bits {one[i]:08x} ({one.view(np.float32)[i]!r}) and "
        f"{other[i]:08x} ({other.view(np.float32)[i]!r})"
    )


def _rows(result: RequestOutput, sample: CompletionOutput) -> np.ndarray:
    parts = [part for part in (result.prompt_logits, sample.logits) if part is not None]
    return np.vstack(parts)
