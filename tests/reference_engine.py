"""An engine in plain Python with the interface of `pyvosti._core.Engine`.

The simplest thing that batches continuously, prefills in chunks, reuses prefixes, preempts and
forks. Its schedules are its own; what requests get out of it is what they must get out of the
real one, which is how tests use it. One plan at a time; every list is searched from the front.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

RUNNING, STOPPED, LENGTH, DROPPED = 0, 1, 2, 3


@dataclass
class Sequence:
    """A request of the engine; `tokens` holds the prompt and the output so far."""

    id: int
    tokens: list[int]
    prompt_len: int
    max_tokens: int
    stop_token_ids: set[int]
    logits_from: int
    salt: int
    seat: int = -1
    computed: int = 0
    delivered: int = 0
    tables: list[list[int]] = field(default_factory=list)


@dataclass
class Plan:
    """See `pyvosti/_core.pyi`."""

    plan_id: int
    token_ids: np.ndarray
    positions: np.ndarray
    slots: list[np.ndarray]
    query_start: np.ndarray
    seq_lens: np.ndarray
    seats: np.ndarray
    seq_ids: np.ndarray
    logits_rows: np.ndarray
    sample_seqs: np.ndarray
    table_updates: list[tuple[np.ndarray, np.ndarray, np.ndarray]]


class Pool:
    """The blocks of one layer group: holders per block, and which prefix a cached one holds."""

    def __init__(self, num_blocks: int, prefix_cache: bool) -> None:
        self.holders = [0] * num_blocks
        self.unused = list(range(num_blocks))  # no holder; oldest first, so that reuse is LRU
        self.prefix_cache = prefix_cache
        self.block_of: dict[tuple[int, tuple[int, ...]], int] = {}
        self.prefix_of: dict[int, tuple[int, tuple[int, ...]]] = {}

    def take(self) -> int:
        block = self.unused.pop(0)
        self.forget(block)
        self.holders[block] = 1
        return block

    def hold(self, block: int) -> None:
        if self.holders[block] == 0:
            self.unused.remove(block)
        self.holders[block] += 1

    def drop(self, block: int) -> None:
        self.holders[block] -= 1
        if self.holders[block] == 0:
            self.unused.append(block)

    def register(self, block: int, salt: int, prefix: tuple[int, ...]) -> None:
        if self.prefix_cache and block not in self.prefix_of:
            if (salt, prefix) not in self.block_of:
                self.block_of[salt, prefix] = block
                self.prefix_of[block] = (salt, prefix)

    def forget(self, block: int) -> None:
        prefix = self.prefix_of.pop(block, None)
        if prefix is not None:
            del self.block_of[prefix]


class ReferenceEngine:
    """First come, first served; the youngest running sequence is preempted."""

    def __init__(
        self, num_blocks, block_size, max_seqs, max_batched_tokens, max_model_len, vocab_size,
        prefix_cache=True, windows=None,
    ) -> None:  # fmt: skip
        """Whatever the `windows`, a sequence keeps its blocks."""
        self.pools = [Pool(n, prefix_cache) for n in num_blocks]
        self.block_size = block_size
        self.max_batched_tokens = max_batched_tokens
        self.max_model_len = max_model_len
        self.vocab_size = vocab_size
        self.free_seats = list(range(max_seqs))
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.in_flight: Plan | None = None
        self.counters = {"plans": 0, "hits": 0, "preemptions": 0}
        self.next_id = 0

    def add_request(self, prompt, max_tokens, stop_token_ids, logits_from, salt=0) -> int:
        needed = -(-(len(prompt) + max_tokens) // self.block_size)
        if len(prompt) == 0 or max_tokens < 1 or len(prompt) + max_tokens > self.max_model_len:
            raise ValueError("the request has no room")
        if needed > min(len(pool.holders) for pool in self.pools):
            raise ValueError(f"the request needs {needed} blocks and the pool is smaller")
        self.next_id += 1
        sequence = Sequence(
            self.next_id, [int(t) for t in prompt], len(prompt), max_tokens,
            {int(t) for t in stop_token_ids}, logits_from, salt, delivered=logits_from,
        )  # fmt: skip
        self.waiting.append(sequence)
        return sequence.id

    def fork(self, parent_id: int) -> int:
        parent = next(s for s in self.waiting + self.running if s.id == parent_id)
        prompt = parent.tokens[: parent.prompt_len]
        return self.add_request(
            prompt, parent.max_tokens, sorted(parent.stop_token_ids), len(prompt) - 1, parent.salt
        )

    def schedule(self) -> Plan | None:
        if self.in_flight is not None or not (self.waiting or self.running):
            return None
        budget, chosen = self.max_batched_tokens, []
        self.updates = [([], [], []) for _ in self.pools]
        for sequence in list(self.running):
            rows = min(len(sequence.tokens) - sequence.computed, budget)
            while sequence in self.running and rows and not self._grow(sequence, rows):
                self._preempt(self.running[-1])
                chosen = [(s, n) for s, n in chosen if s in self.running]
            if rows and sequence in self.running:
                chosen.append((sequence, rows))
                budget -= rows
        while self.waiting and self.free_seats and budget:
            sequence = self.waiting[0]
            self._admit(sequence)
            rows = min(len(sequence.tokens) - sequence.computed, budget)
            if not self._grow(sequence, rows):
                self._preempt(sequence)
                break
            chosen.append((sequence, rows))
            budget -= rows
        self.in_flight = self._plan(chosen)
        return self.in_flight

    def commit(self, plan_id, tokens):
        plan, self.in_flight = self._flying(plan_id), None
        drawn = dict(zip(plan.sample_seqs.tolist(), tokens.tolist(), strict=True))
        statuses = []
        for index, sequence_id in enumerate(plan.seq_ids):
            sequence = next((s for s in self.running if s.id == sequence_id), None)
            if sequence is None:
                statuses += [DROPPED] if index in drawn else []
                continue
            sequence.computed = int(plan.seq_lens[index])
            sequence.delivered = max(sequence.delivered, sequence.computed)
            self._register(sequence)
            if index in drawn:
                statuses.append(self._append(sequence, drawn[index]))
        return np.array(statuses, np.uint8)

    def cancel(self, plan_id) -> None:
        self._flying(plan_id)
        self.in_flight = None

    def abort(self, sequence_id) -> bool:
        for sequence in self.waiting + self.running:
            if sequence.id == sequence_id:
                self._remove(sequence)
                return True
        return False

    def plans(self) -> np.ndarray:
        flying = [] if self.in_flight is None else [self.in_flight.plan_id]
        return np.array(flying, np.uint64)

    def reset_cache(self) -> None:
        for pool in self.pools:
            for block in list(pool.prefix_of):
                pool.forget(block)

    def stats(self) -> dict[str, int]:
        unused = sum(len(pool.unused) for pool in self.pools)
        cached = sum(b in pool.prefix_of for pool in self.pools for b in pool.unused)
        total = sum(len(pool.holders) for pool in self.pools)
        return {
            "waiting": len(self.waiting),
            "running": len(self.running),
            "free_blocks": unused - cached,
            "cached_blocks": cached,
            "referenced_blocks": total - unused,
            **self.counters,
        }

    def _flying(self, plan_id) -> Plan:
        if self.in_flight is None or self.in_flight.plan_id != plan_id:
            raise RuntimeError(f"plan {plan_id} is not in flight")
        return self.in_flight

    def _admit(self, sequence: Sequence) -> None:
        self.waiting.remove(sequence)
        self.running.append(sequence)
        sequence.seat = self.free_seats.pop(0)
        sequence.tables = [[] for _ in self.pools]
        # The last token, and rows whose logits are still wanted, are always computed.
        reusable = min(len(sequence.tokens) - 1, sequence.delivered) // self.block_size
        hit = 0
        for end in range(self.block_size, reusable * self.block_size + 1, self.block_size):
            key = (sequence.salt, tuple(sequence.tokens[:end]))
            if not all(key in pool.block_of for pool in self.pools):
                break
            hit = end
            for group, pool in enumerate(self.pools):
                pool.hold(pool.block_of[key])
                self._enter(sequence, group, pool.block_of[key])
        sequence.computed = hit
        self.counters["hits"] += hit // self.block_size

    def _enter(self, sequence: Sequence, group: int, block: int) -> None:
        seats, indices, blocks = self.updates[group]
        seats.append(sequence.seat)
        indices.append(len(sequence.tables[group]))
        blocks.append(block)
        sequence.tables[group].append(block)

    def _grow(self, sequence: Sequence, rows: int) -> bool:
        missing = -(-(sequence.computed + rows) // self.block_size) - len(sequence.tables[0])
        if any(len(pool.unused) < missing for pool in self.pools):
            return False
        for _ in range(missing):
            for group, pool in enumerate(self.pools):
                self._enter(sequence, group, pool.take())
        return True

    def _release(self, sequence: Sequence) -> None:
        for pool, table in zip(self.pools, sequence.tables, strict=False):
            for block in reversed(table):
                pool.drop(block)
        if sequence.seat >= 0:
            self.free_seats.append(sequence.seat)
        sequence.tables, sequence.seat, sequence.computed = [], -1, 0

    def _preempt(self, sequence: Sequence) -> None:
        self._release(sequence)
        self.running.remove(sequence)
        self.waiting.insert(0, sequence)
        self.counters["preemptions"] += 1

    def _remove(self, sequence: Sequence) -> None:
        self._release(sequence)
        (self.running if sequence in self.running else self.waiting).remove(sequence)

    def _register(self, sequence: Sequence) -> None:
        for pool, table in zip(self.pools, sequence.tables, strict=True):
            for i in range(sequence.computed // self.block_size):
                prefix = tuple(sequence.tokens[: (i + 1) * self.block_size])
                pool.register(table[i], sequence.salt, prefix)

    def _append(self, sequence: Sequence, token: int) -> int:
        sequence.tokens.append(token)
        status = RUNNING
        if token in sequence.stop_token_ids:
            status = STOPPED
        elif len(sequence.tokens) - sequence.prompt_len == sequence.max_tokens:
            status = LENGTH
        if status != RUNNING:
            self._remove(sequence)
        return status

    def _plan(self, chosen: list[tuple[Sequence, int]]) -> Plan:
        token_ids, positions, query_start, logits_rows, sample_seqs = [], [], [0], [], []
        slots = [[] for _ in self.pools]
        for index, (sequence, rows) in enumerate(chosen):
            for position in range(sequence.computed, sequence.computed + rows):
                if position >= sequence.delivered:
                    logits_rows.append(len(token_ids))
                token_ids.append(sequence.tokens[position])
                positions.append(position)
                for group, table in enumerate(sequence.tables):
                    block = table[position // self.block_size]
                    slots[group].append(block * self.block_size + position % self.block_size)
            query_start.append(len(token_ids))
            if sequence.computed + rows == len(sequence.tokens):
                sample_seqs.append(index)
        self.counters["plans"] += 1
        return Plan(
            plan_id=self.counters["plans"],
            token_ids=np.array(token_ids, np.uint32),
            positions=np.array(positions, np.uint32),
            slots=[np.array(group, np.uint32) for group in slots],
            query_start=np.array(query_start, np.uint32),
            seq_lens=np.array([s.computed + rows for s, rows in chosen], np.uint32),
            seats=np.array([s.seat for s, _ in chosen], np.uint32),
            seq_ids=np.array([s.id for s, _ in chosen], np.uint64),
            logits_rows=np.array(logits_rows, np.uint32),
            sample_seqs=np.array(sample_seqs, np.uint32),
            table_updates=[
                tuple(np.array(column, np.uint32) for column in columns) for columns in self.updates
            ],
        )
