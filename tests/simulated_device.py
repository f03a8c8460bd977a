"""A device without a model, and what it must give for each prompt.

KV is a 64-bit hash of the logical prefix, made from what the row *gathers* through the block
tables; a row's logits are one hash too, and the sampled token is a function of it. A wrong table
entry, slot, position or token therefore changes every later output of the sequence, and `Solo`,
which knows no tables, says what the outputs had to be. One layer per group, as a decoder has them:

    x = hash(token, position)
    for each group:  kv = hash(x, past);  past += hash(kv, position);  x = hash(x, past)
    logits = x;  token = hash(x, sample key) % vocab_size
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNKNOWN_TOKEN = 0xFFFFFFFF
"""In a plan: the token that was last sampled at the row's seat."""

POISON = 0xDEADDEADDEADDEAD
"""KV of a slot that was never written, or whose block was given away."""

MASK = (1 << 64) - 1
STRIDE = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    """A bijection of 64-bit integers whose bits look random (splitmix64's finaliser)."""
    x &= MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def mix_array(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix` of each element."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def at(position: int) -> int:
    """What a position contributes to a hash."""
    return (position + 1) * STRIDE & MASK


def embed(token: int, position: int, weights: int) -> int:
    """The row before the first layer; `weights`: how often others have been loaded."""
    return mix(mix(token ^ weights << 32) ^ at(position))


def sample(logits: int, key: int, vocab_size: int) -> int:
    """The token that the sample with this key draws from a row of logits."""
    return mix(logits ^ at(key)) % vocab_size


class Solo:
    """What a prompt gives on its own: tokens and logits, position by position, as far as asked."""

    def __init__(
        self, prompt: tuple[int, ...], key: int, groups: int, vocab_size: int, weights: int = 0
    ) -> None:
        self.tokens = list(prompt)
        self.prompt_len = len(prompt)
        self.key = key
        self.weights = weights
        self.vocab_size = vocab_size
        self.rows: list[int] = []
        self.past = [0] * groups

    def logits(self, position: int) -> int:
        """Logits of the row at this position."""
        while len(self.rows) <= position:
            self._step()
        return self.rows[position]

    def token(self, position: int) -> int:
        """The prompt's token at this position, or the one sampled for it."""
        if position >= len(self.tokens):
            self.logits(position - 1)
        return self.tokens[position]

    def _step(self) -> None:
        position = len(self.rows)
        x = embed(self.tokens[position], position, self.weights)
        for group, past in enumerate(self.past):
            kv = mix(x ^ past)
            self.past[group] = (past + mix(kv ^ at(position))) & MASK
            x = mix(x ^ self.past[group])
        self.rows.append(x)
        if position + 1 == len(self.tokens):
            self.tokens.append(sample(x, self.key, self.vocab_size))


class SimulatedDevice:
    """KV pools and block tables of each layer group; executes plans, one at a time, in order."""

    def __init__(
        self,
        num_blocks: list[int],
        block_size: int,
        max_seqs: int,
        max_model_len: int,
        vocab_size: int,
    ) -> None:
        self.block_size = block_size
        self.max_seqs = max_seqs
        self.vocab_size = vocab_size
        width = -(-max_model_len // block_size)
        self.kv = [np.full(n * block_size, POISON, np.uint64) for n in num_blocks]
        self.tables = [np.zeros((max_seqs, width), np.uint32) for _ in num_blocks]
        self.last_token = np.zeros(max_seqs, np.uint32)
        self.weights = 0
        self.offsets = np.arange(block_size, dtype=np.int64)
        self.places = np.array([at(p) for p in range(max_model_len)], np.uint64)

    def update_tables(self, plan: Any) -> None:
        """Applies the plan's updates; blocks that its rows are the first to write are poisoned."""
        first = np.full(self.max_seqs, np.iinfo(np.int64).max)
        end = np.zeros(self.max_seqs, np.int64)
        size = self.block_size
        first[plan.seats] = -(-plan.positions[plan.query_start[:-1]].astype(np.int64) // size)
        end[plan.seats] = -(-plan.seq_lens.astype(np.int64) // size)
        for kv, table, update in zip(self.kv, self.tables, plan.table_updates, strict=True):
            seats, indices, blocks = update
            table[seats, indices] = blocks
            fresh = (indices >= first[seats]) & (indices < end[seats])
            kv.reshape(-1, size)[table[seats[fresh], indices[fresh]]] = POISON

    def execute(self, plan: Any, keys: list[int]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Runs the plan, whose sequences sample with `keys`: logits u64[L], tokens u32[N]."""
        self.update_tables(plan)
        starts = plan.query_start.tolist()
        rows: list[int] = []
        for k, seat in enumerate(plan.seats.tolist()):
            rows += self._forward(plan, seat, starts[k], starts[k + 1])
        drawn = []
        for k in plan.sample_seqs.tolist():
            drawn.append(sample(rows[starts[k + 1] - 1], keys[k], self.vocab_size))
        self.last_token[plan.seats[plan.sample_seqs]] = drawn
        logits = np.array([rows[r] for r in plan.logits_rows.tolist()], np.uint64)
        return logits, np.array(drawn, np.uint32)

    def spoil(self, plan: Any) -> None:
        """The plan broke off half-way: what it wrote is anything, and it counts for nothing."""
        for kv, slots in zip(self.kv, plan.slots, strict=True):
            kv[slots] = POISON

    def _forward(self, plan: Any, seat: int, start: int, end: int) -> list[int]:
        """Rows `start..end` of the plan, all of the sequence at `seat`."""
        first = int(plan.positions[start])
        groups = range(len(self.kv))
        slots = [self._slots(g, seat, first + end - start) for g in groups]
        past = []
        for g in groups:
            seen = self.kv[g][slots[g][:first]] ^ self.places[:first]
            past.append(int(mix_array(seen).sum()) if first else 0)
        rows = []
        for r in range(start, end):
            position = int(plan.positions[r])
            token = int(plan.token_ids[r])
            if token == UNKNOWN_TOKEN:
                token = int(self.last_token[seat])
            x = embed(token, position, self.weights)
            for g in groups:
                self.kv[g][plan.slots[g][r]] = mix(x ^ past[g])
                own = int(self.kv[g][slots[g][first + r - start]])
                past[g] = (past[g] + mix(own ^ at(position))) & MASK
                x = mix(x ^ past[g])
            rows.append(x)
        return rows

    def _slots(self, group: int, seat: int, length: int) -> NDArray[np.int64]:
        """Where the tables say that the seat's first `length` positions are."""
        size = self.block_size
        blocks = self.tables[group][seat, : -(-length // size)].astype(np.int64)
        return (blocks[:, None] * size + self.offsets).ravel()[:length]
