"""What is done to a runner's memory behind the engine's back, and must not change a bit.

Pages that hold nothing are poisoned: the whole pool before a cell, and each page at the moment
when a sequence gets it to write to. Table entries past a sequence's last page point at pages that
others use. A kernel that reads either shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyvosti.check.scenario import Disturbance
from pyvosti.draw import Draw
from pyvosti.limits import Limits
from pyvosti.runner import BlockTables, Computing, CpuRunner, Runner

if TYPE_CHECKING:
    from pyvosti._core import Plan


def disturb(runner: Runner, limits: Limits, disturbance: Disturbance) -> Runner:
    """The runner, disturbed; itself where nothing is asked for."""
    if disturbance == Disturbance(graphs=disturbance.graphs):
        return runner
    return DisturbedRunner(runner, limits, disturbance)


class DisturbedRunner:
    """A runner whose memory is disturbed before each plan."""

    def __init__(self, runner: Runner, limits: Limits, disturbance: Disturbance) -> None:
        self.runner, self.limits, self.disturbance = runner, limits, disturbance
        self.num_blocks = runner.num_blocks
        self.max_in_flight = disturbance.in_flight or runner.max_in_flight
        self.tables = BlockTables(len(runner.num_blocks), limits)
        if disturbance.poison is not None:
            for group, blocks in enumerate(runner.num_blocks):
                self.fill(group, np.arange(blocks))

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Computing:
        """Disturbs, then starts the plan."""
        self.prepare(plan)
        if not self.disturbance.tails:
            return self.runner.start(plan, draws, kept)
        with_tails = [self.pointing(plan, group) for group in range(len(self.num_blocks))]
        return start_with_tables(self.runner, with_tails, plan, draws, kept)

    def prepare(self, plan: Plan) -> None:
        """Disturbs the pages that the plan is the first to write."""
        self.tables.apply(plan)
        if self.disturbance.poison is not None:
            for group in range(len(self.num_blocks)):
                self.fill(group, self.new_blocks(plan, group))

    def new_blocks(self, plan: Plan, group: int) -> NDArray[np.int64]:
        """Blocks whose first slot the plan's rows write, or whose rows before are not live."""
        size = self.limits.block_size
        blocks = []
        for k, seat in enumerate(plan.seats.tolist()):
            first = -(-int(plan.positions[plan.query_start[k]]) // size)
            end = -(-int(plan.seq_lens[k]) // size)
            blocks += self.tables.arrays[group][seat, first:end].tolist()
        return np.array(blocks, np.int64)

    def pointing(self, plan: Plan, group: int) -> NDArray[np.uint32]:
        """u32[max_seqs, max_blocks]: the tables, with live blocks of others in their tails."""
        size = self.limits.block_size
        true = self.tables.arrays[group]
        used = {
            seat: true[seat, : -(-length // size)]
            for seat, length in zip(plan.seats.tolist(), plan.seq_lens.tolist(), strict=True)
        }
        changed: NDArray[np.uint32] = true.copy()
        for seat, own in used.items():
            others = [blocks for other, blocks in used.items() if other != seat] or [own]
            tail = changed[seat, len(own) :]
            tail[:] = np.resize(np.concatenate(others), len(tail))
        return changed

    def fill(self, group: int, blocks: NDArray[np.int64]) -> None:
        """Overwrites keys and values of whole blocks."""
        value, runner = self.disturbance.poison, self.runner
        assert value is not None
        if isinstance(runner, CpuRunner):
            size = self.limits.block_size
            for block in blocks.tolist():
                for slot in range(block * size, (block + 1) * size):
                    runner.model.fill_slot(group, slot, value)
        else:
            _fill_on_cuda(runner, group, blocks, value)


def start_with_tables(
    runner: Any,
    tables: list[NDArray[np.uint32]],
    plan: Plan,
    draws: Sequence[Draw],
    kept: NDArray[np.bool_],
) -> Computing:
    """Starts a plan on a runner whose block tables are these, whatever the plan updates."""
    if isinstance(runner, CpuRunner):
        own, runner.tables = runner.tables, _FixedTables(tables)
        try:
            return runner.start(plan, draws, kept)
        finally:
            runner.tables = own
    import torch

    def update(plan: Plan) -> None:
        for group, table in enumerate(tables):
            device = runner.buffers[f"tables.{group}"]
            unused = device.shape[1] - table.shape[1]  # columns for longer sequences than here
            wide = np.pad(table, ((0, 0), (0, unused)), mode="wrap").astype(np.int32)
            device.copy_(torch.from_numpy(wide).pin_memory(), non_blocking=True)

    runner._update_tables = update
    try:
        computing: Computing = runner.start(plan, draws, kept)
        return computing
    finally:
        del runner._update_tables


class _FixedTables(BlockTables):
    """Tables that a plan does not change."""

    def __init__(self, arrays: list[NDArray[np.uint32]]) -> None:
        self.arrays = arrays

    def apply(self, plan: Plan) -> None:
        """The caller has applied it."""


def _fill_on_cuda(runner: Any, group: int, blocks: NDArray[np.int64], value: float) -> None:
    import torch

    if len(blocks) == 0:
        return
    place = torch.from_numpy(blocks).cuda()
    for layer, own in enumerate(runner.schedule.shape.layer_groups):
        if own == group:
            for name in ("k_cache", "v_cache"):
                runner.buffers[f"{name}.{layer}"][place] = value
