"""Engines with one mistake in how they keep prefixes, for tests that must notice it.

Built on the engine in plain Python, whose place in a session they take.
"""

from __future__ import annotations

from typing import Any

from pyvosti._core import Engine
from reference_engine import Pool, ReferenceEngine, Sequence


class CollidingPool(Pool):
    """Finds a prefix by its hash, which is a constant for each length, and looks no further."""

    def register(self, block: int, salt: int, prefix: tuple[int, ...]) -> None:
        super().register(block, 0, (len(prefix),))


class HashOnly(ReferenceEngine):
    """A hit is whatever has the same hash."""

    def __init__(self, num_blocks: list[int], *sizes: Any) -> None:
        super().__init__(num_blocks, *sizes)
        self.pools = [CollidingPool(blocks, self.pools[0].prefix_cache) for blocks in num_blocks]

    def _admit(self, sequence: Sequence) -> None:
        self.waiting.remove(sequence)
        self.running.append(sequence)
        sequence.seat = self.free_seats.pop(0)
        sequence.tables = [[] for _ in self.pools]
        reusable = min(len(sequence.tokens) - 1, sequence.delivered) // self.block_size
        for end in range(self.block_size, reusable * self.block_size + 1, self.block_size):
            key = (0, (end,))
            if not all(key in pool.block_of for pool in self.pools):
                break
            sequence.computed = end
            self.counters["hits"] += 1
            for group, pool in enumerate(self.pools):
                pool.hold(pool.block_of[key])
                self._enter(sequence, group, pool.block_of[key])


class RegistersEarly(ReferenceEngine):
    """Offers the pages of a prompt to others before any of them has been computed."""

    def _admit(self, sequence: Sequence) -> None:
        super()._admit(sequence)
        if self._grow(sequence, len(sequence.tokens) - sequence.computed):
            computed, sequence.computed = sequence.computed, len(sequence.tokens)
            self._register(sequence)
            sequence.computed = computed


class DropsHeld(ReferenceEngine):
    """Counts the holders of a shared page one too low."""

    def _admit(self, sequence: Sequence) -> None:
        super()._admit(sequence)
        for pool, table in zip(self.pools, sequence.tables, strict=True):
            for block in table:
                if pool.holders[block] > 1:
                    pool.holders[block] -= 1

    def _release(self, sequence: Sequence) -> None:
        for pool, table in zip(self.pools, sequence.tables, strict=False):
            for block in table:
                pool.holders[block] = max(pool.holders[block], 1)
                if block in pool.unused:
                    pool.unused.remove(block)
        super()._release(sequence)


class RegistersOther:
    """The verified engine, told another token than the one that was drawn."""

    def __init__(self, *sizes: Any) -> None:
        self.engine = Engine(*sizes)
        self.vocab = sizes[5]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def commit(self, plan_id: int, tokens: Any) -> Any:
        return self.engine.commit(plan_id, (tokens + 1) % self.vocab)


class SaltIgnored:
    """The verified engine, told one salt for all."""

    def __init__(self, *sizes: Any) -> None:
        self.engine = Engine(*sizes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def add_request(
        self, prompt: Any, max_tokens: int, stop: Any, logits_from: int, salt: int = 0
    ) -> int:
        return self.engine.add_request(prompt, max_tokens, stop, logits_from)


ENGINES = {
    "hash-only": HashOnly,
    "registers-early": RegistersEarly,
    "drops-held": DropsHeld,
    "registers-other": RegistersOther,
    "salt-ignored": SaltIgnored,
}
