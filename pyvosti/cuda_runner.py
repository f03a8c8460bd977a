"""Executes plans on one NVIDIA GPU with the Triton kernels.

A step is: block table updates, one copy of the plan's arrays, the body's launches, the head's
launches. The sequence of launches is `triton_kernels.launches`, bound to static buffers and run
as it is: as a CUDA graph when the plan has at most 256 rows (padded to the next row count that
was captured), launch by launch when it has more. Everything is enqueued on one stream; nothing
waits for the GPU until results are asked for, so the next plan may be prepared meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyvosti.cuda_buffers import LOGITS_ROWS, allocate
from pyvosti.cuda_launch import BoundKernel
from pyvosti.cuda_pending import Pending
from pyvosti.cuda_sampler import draw_tokens
from pyvosti.cuda_step import DeviceArrays, Step, row_arrays
from pyvosti.cuda_weights import Fetch, each_weight, file_fetch
from pyvosti.draw import GREEDY, Draw
from pyvosti.triton_kernels.launches import ROW_COUNTS, Launch, body_launches, head_launches
from pyvosti.triton_kernels.schedule import Schedule

if TYPE_CHECKING:
    from pyvosti._core import Plan
    from pyvosti.weights import Tensor


class BoundLaunches:
    """A list of launches bound to buffers, run one by one or as a captured graph."""

    def __init__(self, launches: list[Launch], buffers: Mapping[str, torch.Tensor]) -> None:
        self._bound = [
            (launch, BoundKernel(launch.spec, (1,), [buffers[name] for name in launch.buffers]))
            for launch in launches
        ]
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self, sizes: Mapping[str, int]) -> None:
        """Enqueues every launch whose grid is not empty, or replays the graph."""
        if self._graph is not None:
            self._graph.replay()
            return
        stream = torch.cuda.current_stream().cuda_stream
        for launch, kernel in self._bound:
            grid = tuple(extent(entry, sizes) for entry in launch.grid)
            if all(grid):
                kernel(stream, grid)

    def capture(self, sizes: Mapping[str, int]) -> None:
        """Records the launches with these sizes; later runs replay them."""
        self.run(sizes)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.run(sizes)
        self._graph = graph


def extent(entry: int | str, sizes: Mapping[str, int]) -> int:
    """A grid entry's value: a number, a size by name, or `name/n`: that size over n, up."""
    if isinstance(entry, int):
        return entry
    name, _, divisor = entry.partition("/")
    return -(-sizes[name] // int(divisor)) if divisor else sizes[name]


class CudaRunner:
    """Holds weights, KV pools and block tables on the current CUDA device."""

    max_in_flight = 2
    uncertified: tuple[str, ...] = ()
    """What stands against its kernels' certificates, where that was allowed."""

    def __init__(
        self,
        schedule: Schedule,
        weights: Mapping[str, torch.Tensor],
        rotary: Mapping[str, torch.Tensor],
        *,
        num_blocks: list[int] | None,
        max_seqs: int,
        max_batched_tokens: int,
        memory_share: float = 0.9,
        graphs: bool = True,
    ) -> None:
        """`weights` as `fused_weights` makes them, `rotary` as `rotary_tables` does.

        `num_blocks` None: as many KV blocks as `memory_share` of the free memory holds; read them
        back from `self.num_blocks`. Raises MemoryError when it does not fit.
        """
        self.schedule, self.graphs = schedule, graphs
        self.max_rows = max_batched_tokens
        self._mixed_weights = False
        memory, self.num_blocks = allocate(
            schedule, max_batched_tokens, max_seqs, num_blocks, memory_share
        )
        self.buffers = {**weights, **rotary, **memory}
        self._bodies: dict[int, tuple[DeviceArrays, BoundLaunches]] = {}
        self._heads: dict[int, tuple[DeviceArrays, BoundLaunches]] = {}
        self._row_counts = (*(n for n in ROW_COUNTS if n < self.max_rows), self.max_rows)

    def start(self, plan: Plan, draws: Sequence[Draw], kept: NDArray[np.bool_]) -> Pending:
        """Enqueues the plan and the copy of its results; waits for nothing.

        Each token also becomes its seat's last token on the device, which a later plan's
        unknown tokens (0xFFFFFFFF) take.
        """
        if self._mixed_weights:
            raise RuntimeError("loading other weights failed midway: load weights again")
        self.run_body(plan)
        wanted = plan.logits_rows
        sampled = np.searchsorted(wanted, plan.query_start[plan.sample_seqs + 1] - 1)
        seats = np.full(len(wanted), -1)
        seats[sampled] = plan.seats[plan.sample_seqs]
        pending = Pending(len(draws), self.schedule.shape.vocab)
        for first in range(0, len(wanted), LOGITS_ROWS):
            chunk = slice(first, first + LOGITS_ROWS)
            self.run_head(wanted[chunk], seats[chunk])
            begin, end = np.searchsorted(sampled, [first, first + LOGITS_ROWS])
            mine = np.arange(begin, end)
            if len(mine):
                self._draw(pending, mine, sampled[mine] - first, seats[sampled[mine]], draws)
            pending.keep(self.buffers["logits"], np.flatnonzero(kept[chunk]))
        pending.close()
        return pending

    def load_weights(self, tensors: Mapping[str, Tensor]) -> None:
        """Computes with these from the next plan on; called while no plan is in flight.

        They go where the old ones are, since the graphs read them there. When that fails midway no
        plan is run until a later call succeeds. Raises ValueError for a tensor of another shape,
        MemoryError when there is no room for a tensor on its way.
        """
        try:
            self.copy_weights(file_fetch(tensors))
        except torch.cuda.OutOfMemoryError:
            raise MemoryError(
                "a weight on its way needs room beside the KV pool; lower gpu_memory_utilization "
                "or num_blocks"
            ) from None

    def copy_weights(self, fetch: Fetch) -> None:
        """`load_weights` of the tensors that `fetch` gives by name."""
        tied = self.buffers["head"] is self.buffers["embed"]
        for name, weight in each_weight(self.schedule.shape, fetch, tied):
            if weight.shape != self.buffers[name].shape:
                raise ValueError(
                    f"{name} is {tuple(weight.shape)}, not {tuple(self.buffers[name].shape)}"
                )
            self._mixed_weights = True
            self.buffers[name].copy_(weight)
        torch.cuda.synchronize()
        self._mixed_weights = False

    def execute(self, plan: Plan) -> NDArray[np.float32]:
        """f32[L, vocab]: the logits of the plan's L rows that are wanted."""
        draws = [GREEDY] * len(plan.sample_seqs)
        return self.start(plan, draws, np.ones(len(plan.logits_rows), bool)).wait().logits

    def run_body(self, plan: Plan) -> None:
        """Enqueues the forward pass of a plan's rows, up to the final norm."""
        self._update_tables(plan)
        count = int(plan.query_start[-1])
        if count > self.max_rows:
            raise ValueError(f"a plan has {count} rows; this runner was sized for {self.max_rows}")
        padded = next(n for n in self._row_counts if count <= n)
        if padded not in self._bodies:
            self._bodies[padded] = self._make_body(padded)
        arrays, sequence = self._bodies[padded]
        step = Step(plan, *self._tile_rows(padded), padded > ROW_COUNTS[-1])
        arrays.begin()
        step.put(arrays, plan)
        arrays.send()
        tiles, whole_tiles = len(step.tiles[0]), len(step.whole_tiles[0])
        sequence.run({
            "rows": count, "tiles": tiles, "whole_tiles": whole_tiles,
            "split_rows": count if tiles else 0,
        })  # fmt: skip

    def run_head(self, rows: NDArray[Any], seats: NDArray[Any]) -> None:
        """Enqueues logits and most likely tokens of up to 256 rows of the last body.

        `seats`: where each row's token becomes the last token, -1: nowhere.
        """
        padded = next(n for n in ROW_COUNTS if len(rows) <= n)
        if padded not in self._heads:
            self._heads[padded] = self._make_head(padded)
        arrays, sequence = self._heads[padded]
        arrays.begin()
        arrays.put("logits_count", np.array([len(rows)]), 0)
        arrays.put("logits_rows", rows, 0)
        arrays.put("logits_seats", seats, -1)
        arrays.send()
        sequence.run({"logits": len(rows)})

    def capture(self) -> None:
        """Compiles every kernel and captures every graph now, not at first use."""
        for padded in self._row_counts:
            self._bodies.setdefault(padded, self._make_body(padded))
        for padded in ROW_COUNTS:
            self._heads.setdefault(padded, self._make_head(padded))

    def _draw(
        self,
        pending: Pending,
        mine: NDArray[np.int64],
        rows: NDArray[np.int64],
        seats: NDArray[np.int64],
        draws: Sequence[Draw],
    ) -> None:
        """Draws `mine` of the tokens from `rows` of the logits; argmax has drawn the plain ones."""
        plain = np.array([draws[index].plain for index in mine])
        pending.take(mine[plain], self.buffers["greedy_tokens"], rows[plain])
        chosen = np.flatnonzero(~plain)
        if len(chosen):
            tokens = draw_tokens(
                self.schedule, self.buffers["logits"], self.buffers["last_tokens"],
                rows[chosen], seats[chosen], [draws[index] for index in mine[chosen]],
            )  # fmt: skip
            pending.take(mine[chosen], tokens, np.arange(len(chosen)))

    def _tile_rows(self, padded: int) -> tuple[int, int]:
        shape, attention = self.schedule.shape, self.schedule.attention
        group = shape.heads // shape.kv_heads
        return attention.member(padded).block_m // group, attention.whole.block_m // group

    def _make_body(self, padded: int) -> tuple[DeviceArrays, BoundLaunches]:
        whole = padded > ROW_COUNTS[-1]
        arrays = DeviceArrays(
            row_arrays(padded, len(self.schedule.shape.windows), padded, padded if whole else 0)
        )
        launches = body_launches(self.schedule, padded, whole)
        sequence = BoundLaunches(launches, self._with(arrays))
        if self.graphs and not whole:
            sizes = {"rows": padded, "tiles": padded, "whole_tiles": 0, "split_rows": padded}
            sequence.capture(sizes)
        return arrays, sequence

    def _make_head(self, padded: int) -> tuple[DeviceArrays, BoundLaunches]:
        arrays = DeviceArrays({"logits_count": 1, "logits_rows": padded, "logits_seats": padded})
        sequence = BoundLaunches(head_launches(self.schedule, padded), self._with(arrays))
        if self.graphs:
            sequence.capture({"logits": padded})
        return arrays, sequence

    def _with(self, arrays: DeviceArrays) -> dict[str, torch.Tensor]:
        return self.buffers | {name: arrays.tensor(name) for name in arrays.offsets}

    def _update_tables(self, plan: Plan) -> None:
        for group, (seats, indices, blocks) in enumerate(plan.table_updates):
            if len(seats) == 0:
                continue
            table = self.buffers[f"tables.{group}"]
            flat = seats.astype(np.int64) * table.shape[1] + indices
            _, last = np.unique(flat[::-1], return_index=True)  # a later update wins
            last = len(flat) - 1 - last
            place = torch.from_numpy(flat[last]).pin_memory().cuda(non_blocking=True)
            value = torch.from_numpy(blocks[last].astype(np.int32)).pin_memory()
            table.view(-1)[place] = value.cuda(non_blocking=True)
