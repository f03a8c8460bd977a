"""Microseconds of one engine step, schedule and commit, through the Python bindings, on one core.

A steady state: every sequence runs; 1 in 16 fills a block in a step; 1 in 100 finishes and is
replaced by a request that hits the prefix cache in its first three blocks. Timed are `schedule()`,
reading each array of the plan, and `commit()`; adding requests is timed apart. The last line is
JSON: `{"step_us_1024": …, "bytes_per_block": …, "step_us_by_blocks": {blocks: …}, …}`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import dataclass

import numpy as np

from pyvosti._core import Engine, Plan

BLOCK = 16
PREFIX = 3 * BLOCK
LIFE = 100
VOCAB = 32_000
ARRAYS = ("token_ids", "positions", "slots", "query_start", "seq_lens", "seats", "seq_ids")
ARRAYS += ("logits_rows", "sample_seqs", "table_updates")


@dataclass
class Times:
    """Medians in microseconds; `rows` and `finished` are means per step."""

    step: float
    slowest: float
    add: float
    rows: float
    finished: float


class Load:
    """A steady load of `seqs` running sequences and `waiting` more in the queue, always."""

    def __init__(self, seqs: int, blocks: int, waiting: int) -> None:
        self.random = np.random.default_rng(7)
        self.prefix = self.random.integers(0, VOCAB, PREFIX, dtype=np.uint32)
        self.no_stop = np.empty(0, np.uint32)
        budget = seqs + BLOCK * (seqs // LIFE + 2)
        self.engine = Engine([blocks], BLOCK, seqs, budget, 4 * LIFE, VOCAB, True)
        self.added: list[float] = []
        for number in range(seqs):
            self.add(number, 1 + number % LIFE)
        self.until_all_run(seqs)
        for number in range(waiting):
            self.add(number, LIFE)

    def add(self, number: int, max_tokens: int) -> None:
        """A request of the shared prefix and 1 to 16 tokens of its own."""
        own = self.random.integers(0, VOCAB, 1 + number % BLOCK, dtype=np.uint32)
        prompt = np.concatenate([self.prefix, own])
        start = time.perf_counter_ns()
        self.engine.add_request(prompt, max_tokens, self.no_stop, len(prompt) - 1)
        self.added.append((time.perf_counter_ns() - start) / 1e3)

    def step(self) -> tuple[float, int, int]:
        """Microseconds, rows, sequences that finished (each replaced, in the same number)."""
        plan_tokens = self.random.integers(0, VOCAB, 4096, dtype=np.uint32)
        start = time.perf_counter_ns()
        plan = self.engine.schedule()
        scheduled = time.perf_counter_ns()
        assert plan is not None
        rows, tokens = len(plan.token_ids), plan_tokens[: len(plan.sample_seqs)]
        ready = time.perf_counter_ns()
        read_all(plan)
        statuses = self.engine.commit(plan.plan_id, tokens)
        end = time.perf_counter_ns()
        finished = int(np.count_nonzero(statuses))
        for _ in range(finished):
            self.add(int(self.random.integers(0, BLOCK)), LIFE)
        return (scheduled - start + end - ready) / 1e3, rows, finished

    def until_all_run(self, seqs: int) -> None:
        """Steps until every seat has a sequence, but for those that finished just now."""
        for _ in range(10 * LIFE):
            _, _, finished = self.step()
            if self.engine.stats()["running"] + finished >= seqs:
                return
        raise RuntimeError(f"{seqs} sequences never ran together: too few blocks?")


def read_all(plan: Plan) -> None:
    """Every array of the plan, as a runner reads it."""
    for name in ARRAYS:
        getattr(plan, name)


def measure(seqs: int, blocks: int, waiting: int, steps: int) -> Times:
    """Medians over `steps` steps, after as many again to warm up."""
    load = Load(seqs, blocks, waiting)
    for _ in range(steps):
        load.step()
    load.added.clear()
    times, rows, finished = zip(*(load.step() for _ in range(steps)), strict=True)
    return Times(
        statistics.median(times),
        max(times),
        statistics.median(load.added or [0.0]),
        statistics.mean(rows),
        statistics.mean(finished),
    )


def bytes_per_block(few: int = 100_000, many: int = 1_000_000) -> float:
    """Address space that a block takes besides its own tokens (4 bytes each)."""

    def size(blocks: int) -> int:
        before = _data_bytes()
        engine = Engine([blocks], BLOCK, 16, 64, 1024, VOCAB, True)
        taken = _data_bytes() - before
        del engine
        return taken

    return (size(many) - size(few)) / (many - few) - 4 * BLOCK


def _data_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmData"))
    return int(line.split()[1]) * 1024


def show(what: str, times: Times) -> float:
    """One line of the table; returns the step's microseconds, rounded."""
    print(
        f"{what:<42} {times.step:>9.1f} {times.slowest:>9.1f} {times.add:>8.1f} "
        f"{times.rows:>8.1f} {times.finished:>8.1f}",
        flush=True,
    )
    return round(times.step, 1)


def main() -> None:
    """Prints the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=300, help="steps measured in each line")
    steps = parser.parse_args().steps
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{'':<42} {'step us':>9} {'max us':>9} {'add us':>8} {'rows':>8} {'finished':>8}")
    by_rows = {
        seqs: show(f"{seqs} sequences, 100,000 blocks", measure(seqs, 100_000, 0, steps))
        for seqs in (64, 256, 1024)
    }
    by_blocks = {
        blocks: show(f"64 sequences, {blocks:,} blocks", measure(64, blocks, 0, steps))
        for blocks in (1_000, 10_000, 100_000, 1_000_000)
    }
    by_waiting = {
        waiting: show(f"64 sequences, {waiting:,} waiting", measure(64, 10_000, waiting, steps))
        for waiting in (0, 1_000, 10_000)
    }
    per_block = bytes_per_block()
    print(f"{per_block:.1f} bytes a block besides its tokens")
    result = {"step_us_1024": by_rows[1024], "bytes_per_block": round(per_block, 1)}
    result |= {"step_us_by_blocks": by_blocks, "step_us_by_rows": by_rows}
    print(json.dumps(result | {"step_us_by_waiting": by_waiting}))


if __name__ == "__main__":
    main()
