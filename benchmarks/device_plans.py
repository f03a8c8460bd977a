"""Plans without an engine, for kernels' tests and timings: sequences on permuted pages."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

UNKNOWN = 0xFFFFFFFF


@dataclass
class HandPlan:
    """What `pyvosti._core.Plan` offers, filled by hand."""

    token_ids: np.ndarray
    positions: np.ndarray
    slots: list[np.ndarray]
    query_start: np.ndarray
    seats: np.ndarray
    logits_rows: np.ndarray
    sample_seqs: np.ndarray
    table_updates: list[tuple[np.ndarray, np.ndarray, np.ndarray]]


@dataclass
class Pages:
    """Block tables of a pool: one order of pages for all groups, drawn from a seed."""

    blocks: int
    page: int
    groups: int = 1
    seed: int = 0
    tables: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = list(np.random.default_rng(self.seed).permutation(self.blocks))

    def extend(self, seat: int, length: int) -> list[tuple[int, int]]:
        """Gives a seat pages for `length` positions; returns the new (index, block)."""
        table = self.tables.setdefault(seat, [])
        new = []
        while len(table) * self.page < length:
            table.append(int(self.free.pop()))
            new.append((len(table) - 1, table[-1]))
        return new

    def release(self, seat: int) -> None:
        """Returns a seat's pages to the pool."""
        self.free += self.tables.pop(seat, [])

    def plan(self, work: list[tuple[int, int, np.ndarray]], all_rows: bool = False) -> HandPlan:
        """`work`: (seat, first position, token ids) of each sequence, in order."""
        updates: list[tuple[int, int, int]] = []
        tokens, positions, slots, starts = [], [], [], [0]
        for seat, first, ids in work:
            where = np.arange(first, first + len(ids))
            updates += [(seat, i, b) for i, b in self.extend(seat, first + len(ids))]
            table = np.array(self.tables[seat])
            tokens.append(np.asarray(ids))
            positions.append(where)
            slots.append(table[where // self.page] * self.page + where % self.page)
            starts.append(starts[-1] + len(ids))
        query_start = np.array(starts, np.uint32)
        columns = np.array(updates, np.uint32).reshape(-1, 3).T
        update = (columns[0], columns[1], columns[2])
        slot = np.concatenate(slots).astype(np.uint32)
        return HandPlan(
            token_ids=np.concatenate(tokens).astype(np.uint32),
            positions=np.concatenate(positions).astype(np.uint32),
            slots=[slot] * self.groups,
            query_start=query_start,
            seats=np.array([seat for seat, _, _ in work], np.uint32),
            logits_rows=np.arange(starts[-1], dtype=np.uint32) if all_rows else query_start[1:] - 1,
            sample_seqs=np.arange(len(work), dtype=np.uint32),
            table_updates=[update] * self.groups,
        )
