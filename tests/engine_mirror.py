"""A bookkeeper that knows, from outside, what the engine must know.

From the calls, the plans and `stats()` it keeps which sequences wait and run, which blocks each
holds, what is computed, delivered and in flight. Each plan is compared with that, each committed
row with the prompt's solo run.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulated_device import UNKNOWN_TOKEN, Solo

RUNNING, STOP, LENGTH, DROPPED = range(4)


@dataclass(eq=False)
class Sequence:
    """What is known of one sequence; positions and lengths in tokens."""

    id: int
    solo: Solo
    max_len: int
    stop: tuple[int, ...]
    logits_from: int
    salt: int
    parent: int | None
    phase: str = "waiting"  # then running, draining (over, rows in flight), over
    seat: int = -1
    known: int = 0  # tokens committed, the prompt's among them
    pending: int = 0  # sampled tokens in flight
    computed: int = 0
    planned: int = 0
    in_flight: int = 0
    need_from: int = 0  # first position whose logits were not delivered
    delivered: int = 0
    outcome: int = RUNNING

    def live(self) -> bool:
        return self.phase in ("waiting", "running")

    def tokens(self, end: int) -> tuple[int, ...]:
        return tuple(self.solo.token(p) for p in range(end))

    def output(self) -> list[int]:
        return self.solo.tokens[self.solo.prompt_len : self.known]


@dataclass(eq=False)
class Flight:
    """A plan in flight; `result` once the device has run it."""

    plan: Any
    last_token: NDArray[np.uint32] | None = None
    result: tuple[NDArray[np.uint64], NDArray[np.uint32]] | None = None


@dataclass
class Group:
    """Blocks of one layer group: which each seat holds, and what the full ones hold."""

    num_blocks: int
    rows: dict[int, list[int]] = field(default_factory=dict)
    holders: Counter[int] = field(default_factory=Counter)
    sealed: dict[int, tuple[int, int, tuple[int, ...]]] = field(default_factory=dict)

    def hold(self, seat: int, block: int) -> None:
        self.rows.setdefault(seat, []).append(block)
        self.holders[block] += 1

    def release(self, seat: int) -> None:
        for block in self.rows.pop(seat, []):
            self.holders[block] -= 1
            if not self.holders[block]:
                del self.holders[block]


class EngineMirror:
    """The state of an engine, and the checks of what it says."""

    def __init__(
        self,
        engine: Any,
        num_blocks: list[int],
        block_size: int,
        max_seqs: int,
        max_batched_tokens: int,
        max_model_len: int,
        vocab_size: int,
        prefix_cache: bool,
    ) -> None:
        self.engine = engine
        self.groups = [Group(n) for n in num_blocks]
        self.block_size, self.max_seqs, self.budget = block_size, max_seqs, max_batched_tokens
        self.max_model_len, self.vocab_size = max_model_len, vocab_size
        self.prefix_cache = prefix_cache
        self.sequences: dict[int, Sequence] = {}
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.flights: deque[Flight] = deque()
        self.resets = 0
        self.tables_known = True  # nothing changed in the engine's tables that no plan has told
        self.seen: Counter[str] = Counter()

    def unfinished(self) -> list[Sequence]:
        """Oldest first."""
        return [s for s in self.running if s.live()] + list(self.waiting)

    def _enter(self, sequence: Sequence) -> None:
        assert sequence.id not in self.sequences, "an id was given twice"
        sequence.known = sequence.solo.prompt_len
        sequence.need_from = sequence.logits_from
        self.sequences[sequence.id] = sequence
        self.waiting.append(sequence)
        self.audit()

    def _preempted(self, count: int, ids: list[int], new: list[Sequence]) -> None:
        """The `count` youngest running sequences lost their seats."""
        assert count >= 0 and not (count and new), "sequences left or came that should not have"
        for _ in range(count):
            oldest = next(s for s in self.running if s.live())
            sequence = self.running.pop()
            assert sequence.phase == "running" and sequence.in_flight == 0
            assert sequence is not oldest and sequence.id not in ids
            self._leave(sequence)
            sequence.phase, sequence.computed, sequence.planned = "waiting", 0, 0
            self.waiting.appendleft(sequence)
            self.seen["preempted"] += 1
            self.seen["preempted with output"] += sequence.known > sequence.solo.prompt_len

    def _leave(self, sequence: Sequence) -> None:
        for group in self.groups:
            group.release(sequence.seat)

    def _settle(self) -> None:
        for sequence in [s for s in self.running if s.phase == "draining" and not s.in_flight]:
            self._leave(sequence)
            self.running.remove(sequence)
            sequence.phase = "over"

    def check_order(self, plan: Any, new: list[Sequence]) -> None:
        """Who is in the plan, in which seat, and from where on."""
        ids = plan.seq_ids.tolist()
        order = [s.id for s in self.running + new]
        assert ids == [i for i in order if i in set(ids)], "a plan goes from oldest to youngest"
        oldest = next(s for s in self.running + new if s.live())
        assert oldest.in_flight or oldest.id in ids, "the oldest sequence must advance"
        seats = [s.seat for s in self.running]
        for sequence, seat, first in self._seats(plan):
            if sequence not in new:
                continue
            assert seat not in seats and seat < self.max_seqs
            seats.append(seat)
            assert first % self.block_size == 0
            assert first <= min(sequence.need_from, sequence.known - 1), "a hit goes too far"
            assert first == 0 or self.prefix_cache or sequence.parent is not None

    def _seat(self, plan: Any, new: list[Sequence]) -> None:
        """New sequences take their seats, and need not compute what comes before their rows."""
        for sequence, seat, first in self._seats(plan):
            if sequence in new:
                sequence.seat, sequence.computed, sequence.planned = seat, first, first
                sequence.phase = "running"
                resumed = sequence.known > sequence.solo.prompt_len
                self.seen["hits"] += first // self.block_size
                self.seen["resumed with hit"] += first > 0 and resumed
        self.running += new

    def apply_updates(self, plan: Any, new: list[Sequence]) -> None:
        """Growing rows get free blocks; a new sequence's row begins with those it shares."""
        seated = {s.seat: s for s in self.running}
        arrived = {s.seat for s in new}
        for group, update in zip(self.groups, plan.table_updates, strict=True):
            rows: dict[int, list[int]] = {}
            for seat, index, block in zip(*(a.tolist() for a in update), strict=True):
                assert block < group.num_blocks
                if seat in seated and seat not in arrived:
                    row = group.rows.get(seat, [])
                    if index == len(row):
                        self._fresh(group, seat, block)
                    else:  # what a cancelled plan carried goes out again
                        assert self.seen["cancelled"] and row[index:] and row[index] == block
                else:  # updates of a seat that was left again may come before
                    row = rows.setdefault(seat, [])
                    if index == 0:
                        row.clear()
                    if index == len(row):
                        row.append(block)
                    else:
                        assert not row
            for sequence in new:
                for index, block in enumerate(rows.get(sequence.seat, [])):
                    if (index + 1) * self.block_size <= sequence.computed:
                        self._shared(group, sequence, index, block)
                    else:
                        self._fresh(group, sequence.seat, block)
        self.tables_known = True

    def _fresh(self, group: Group, seat: int, block: int) -> None:
        assert not group.holders[block], f"block {block} is held by another sequence"
        group.sealed.pop(block, None)
        group.hold(seat, block)

    def _shared(self, group: Group, sequence: Sequence, index: int, block: int) -> None:
        salt, resets, prefix = group.sealed.get(block, (None, -1, ()))
        assert salt == sequence.salt, f"block {block} is not committed under the same salt"
        assert prefix == sequence.tokens((index + 1) * self.block_size), "another prefix's block"
        parent = self.sequences.get(-1 if sequence.parent is None else sequence.parent)
        if not (parent and parent.phase == "running" and block in group.rows[parent.seat]):
            assert self.prefix_cache and resets == self.resets, "a hit from before a reset"
        self.seen["revived"] += not group.holders[block]
        group.hold(sequence.seat, block)

    def _seats(self, plan: Any) -> list[tuple[Sequence, int, int]]:
        entries = zip(self._entries(plan), plan.seats.tolist(), strict=True)
        return [(sequence, seat, first) for (sequence, first, _), seat in entries]

    def _entries(self, plan: Any) -> list[tuple[Sequence, int, int]]:
        """Each sequence of the plan with the positions `first..end` that it computes."""
        rows = np.diff(plan.query_start.astype(np.int64))
        firsts = (plan.seq_lens - rows).tolist()
        ids, ends = plan.seq_ids.tolist(), plan.seq_lens.tolist()
        return [(self.sequences[i], f, e) for i, f, e in zip(ids, firsts, ends, strict=True)]

    def check_plan(self, plan: Any) -> None:
        """Everything that a plan promises."""
        entries = self._entries(plan)
        starts = plan.query_start.tolist()
        assert starts[0] == 0 and starts[-1] == len(plan.token_ids) == len(plan.positions)
        assert 0 < starts[-1] <= self.budget, "no row, or more than the budget"
        assert plan.seats.tolist() == [s.seat for s, _, _ in entries]
        wanted: list[int] = []
        sampled: list[int] = []
        for k, (sequence, first, end) in enumerate(entries):
            start = starts[k]
            assert sequence.phase == "running" and first == sequence.planned < end
            assert end <= min(sequence.known + sequence.pending, sequence.max_len - 1)
            assert plan.positions[start : starts[k + 1]].tolist() == list(range(first, end))
            tokens = [
                sequence.solo.token(p) if p < sequence.known else UNKNOWN_TOKEN
                for p in range(first, end)
            ]
            assert plan.token_ids[start : starts[k + 1]].tolist() == tokens
            wanted += [start + p - first for p in range(max(first, sequence.need_from), end)]
            if end == sequence.known + sequence.pending:
                sampled.append(k)
        assert plan.logits_rows.tolist() == wanted, "not the rows whose logits are wanted"
        assert plan.sample_seqs.tolist() == sampled
        for group, slots in zip(self.groups, plan.slots, strict=True):
            self._check_slots(group, slots.tolist(), entries)

    def _check_slots(
        self, group: Group, slots: list[int], entries: list[tuple[Sequence, int, int]]
    ) -> None:
        size = self.block_size
        expected = []
        for sequence, first, end in entries:
            row = group.rows.get(sequence.seat, [])
            assert end <= len(row) * size, "the table is too short"
            for block in row[first // size : -(-end // size)]:
                assert group.holders[block] == 1, f"block {block} is shared and written"
            expected += [row[p // size] * size + p % size for p in range(first, end)]
        assert slots == expected, "slots differ from the tables"
        assert len(set(slots)) == len(slots), "a slot is written twice"

    def _take_off(self, plan: Any) -> Flight:
        sampled = set(plan.sample_seqs.tolist())
        for k, (sequence, _, end) in enumerate(self._entries(plan)):
            sequence.planned = end
            sequence.pending += k in sampled
            sequence.in_flight += 1
        flight = Flight(plan)
        self.flights.append(flight)
        self.seen["plans"] += 1
        self.seen["placeholders"] += int((plan.token_ids == UNKNOWN_TOKEN).sum())
        return flight

    def _land(self, plan: Any, logits: NDArray[np.uint64], tokens: NDArray[np.uint32]) -> list[int]:
        """The rows of a plan are computed: compares them with the solo runs."""
        rows = dict(zip(plan.logits_rows.tolist(), logits.tolist(), strict=True))
        drawn = dict(zip(plan.sample_seqs.tolist(), tokens.tolist(), strict=True))
        statuses = []
        for k, (sequence, first, end) in enumerate(self._entries(plan)):
            sequence.in_flight -= 1
            if sequence.phase != "running":
                statuses += [DROPPED] * (k in drawn)
                continue
            for position in range(max(first, sequence.need_from), end):
                row = rows[int(plan.query_start[k]) + position - first]
                assert row == sequence.solo.logits(position), (
                    f"sequence {sequence.id}: logits differ at position {position}"
                )
                sequence.delivered += 1
            self.seal(sequence, end)
            sequence.computed = end
            sequence.need_from = max(sequence.need_from, end)
            if k in drawn:
                sequence.pending -= 1
                statuses.append(self._append(sequence, drawn[k]))
        return statuses

    def _append(self, sequence: Sequence, token: int) -> int:
        assert token == sequence.solo.token(sequence.known), f"sequence {sequence.id}: token"
        sequence.known += 1
        if token in sequence.stop:
            sequence.outcome = STOP
        elif sequence.known == sequence.max_len:
            sequence.outcome = LENGTH
        if sequence.outcome != RUNNING:
            sequence.phase = "draining"
            wanted = sequence.known - 1 - sequence.logits_from
            assert sequence.delivered == wanted, "a row was delivered twice, or never"
            self.seen["finished"] += 1
        return sequence.outcome

    def seal(self, sequence: Sequence, end: int) -> None:
        size = self.block_size
        for group in self.groups:
            row = group.rows[sequence.seat]
            for index in range(sequence.computed // size, end // size):
                prefix = sequence.tokens((index + 1) * size)
                group.sealed[row[index]] = (sequence.salt, self.resets, prefix)

    def audit(self) -> None:
        """The engine's counts are the mirror's."""
        stats = self.engine.stats()
        assert self.engine.plans().tolist() == [f.plan.plan_id for f in self.flights]
        assert stats["plans"] == len(self.flights)
        assert stats["running"] == len(self.running) <= self.max_seqs
        assert stats["waiting"] >= len(self.waiting)
        assert stats["hits"] >= self.seen["hits"]
        assert stats["preemptions"] >= self.seen["preempted"]
        total = sum(group.num_blocks for group in self.groups)
        blocks = (stats["free_blocks"], stats["cached_blocks"], stats["referenced_blocks"])
        assert sum(blocks) == total, f"blocks {blocks} of {total}"
        held = sum(len(group.holders) for group in self.groups)
        assert stats["referenced_blocks"] >= held
        if self.tables_known:
            assert stats["referenced_blocks"] == held, "a block leaked, or was freed too early"
        if not self.prefix_cache:
            assert stats["cached_blocks"] == 0
