"""The open requests and the step that advances all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyvosti._core import Engine, Plan
from pyvosti.config import ModelConfig
from pyvosti.draw import GREEDY, Draw
from pyvosti.errors import RequestError
from pyvosti.limits import Limits
from pyvosti.outputs import FinishReason
from pyvosti.request import Request, Sample
from pyvosti.runner import Computing, Result, Runner

_FINISHED: dict[int, FinishReason] = {1: "stop", 2: "length"}
"""What the engine's commit says of a sampled sequence; 0: it goes on."""


def make_engine(
    config: ModelConfig,
    limits: Limits,
    num_blocks: list[int],
    prefix_cache: bool,
    make: Callable[..., Engine] = Engine,
) -> Engine:
    """The engine of a model: `num_blocks` and its layers' windows by layer group.

    Raises ValueError for sizes that the engine cannot have.
    """
    return make(
        num_blocks,
        limits.block_size,
        limits.max_seqs,
        limits.max_batched_tokens,
        limits.max_model_len,
        config.vocab,
        prefix_cache,
        [window or 0 for window in config.layer_groups()[1]],
    )


class InFlight(NamedTuple):
    """A plan that the runner has started."""

    plan: Plan
    kept: NDArray[np.uint32]
    """u32[K]: rows of the plan whose logits come back."""
    computing: Computing


class Session:
    """Engine, runner and open requests. Not for several threads at once.

    Several callers may interleave: each adds its requests and steps until they are finished;
    every step advances the requests of all.
    """

    def __init__(self, engine: Engine, runner: Runner) -> None:
        self.engine = engine
        self.runner = runner
        self._open: dict[int, Sample] = {}
        self._penalised: set[int] = set()
        """Of those, the sequences whose next draw depends on all tokens before it."""
        self._in_flight: list[InFlight] = []

    def add(self, request: Request) -> None:
        """Queues a request. Raises RequestError when the engine can never run it."""
        first, *others = request.samples
        logits_from = first.next_position
        try:
            parent = self.engine.add_request(
                request.prompt,
                request.max_tokens,
                request.stop_token_ids,
                logits_from,
                request.salt,
            )
            self._register(first, parent)
            for sample in others:
                self._register(sample, self.engine.fork(parent))
        except (ValueError, RuntimeError) as error:
            self.abort(request)
            raise RequestError(str(error)) from None

    def step(self) -> None:
        """Plans ahead as far as the backend allows; then finishes the oldest plan in flight.

        An exception on the way (Ctrl-C too) cancels all plans in flight: no request is lost, and
        what was computed and not committed is computed again.
        """
        try:
            self._cancel_strays()
            while len(self._in_flight) < self._max_in_flight() and self._start():
                pass
            if not self._in_flight:
                raise RuntimeError("the engine has nothing to schedule, but requests are open")
            self._finish()
        except BaseException:
            self._withdraw()
            raise
        if not self._open:
            self._withdraw()  # what is left computes rows that nobody waits for

    def abort(self, request: Request) -> None:
        """Ends a request now; what it has received stays."""
        for sample in request.samples:
            if sample.finish_reason is None:
                self._end(sample, "abort")
        if not self._open:
            self._withdraw()

    def _register(self, sample: Sample, sequence_id: int) -> None:
        sample.sequence_id = sequence_id
        self._open[sequence_id] = sample
        if sample.draw(sample.next_position).penalised:
            self._penalised.add(sequence_id)

    def _close(self, sample: Sample) -> bool:
        """Forgets a sample; False when that has been done."""
        self._penalised.discard(sample.sequence_id)
        return self._open.pop(sample.sequence_id, None) is not None

    def _end(self, sample: Sample, reason: FinishReason) -> None:
        """Finishes a sample for which the engine may still be working."""
        sample.finish(reason)
        if self._close(sample):
            self.engine.abort(sample.sequence_id)

    def _max_in_flight(self) -> int:
        return 1 if self._penalised else self.runner.max_in_flight

    def _start(self) -> bool:
        """Gives the runner one more plan; False when the engine has none to give."""
        plan = self.engine.schedule()
        if plan is None:
            return False
        owners = np.searchsorted(plan.query_start, plan.logits_rows, side="right") - 1
        samples = [self._open.get(int(plan.seq_ids[owner])) for owner in owners]
        kept = np.array([sample is not None and sample.keeps_logits for sample in samples], bool)
        computing = self.runner.start(plan, self._draws(plan), kept)
        self._in_flight.append(InFlight(plan, plan.logits_rows[kept], computing))
        return True

    def _draws(self, plan: Plan) -> list[Draw]:
        """One for each sampled sequence, from its own history alone."""
        positions = plan.positions[plan.query_start[plan.sample_seqs + 1] - 1]
        samples = [self._open.get(int(plan.seq_ids[s])) for s in plan.sample_seqs]
        return [
            GREEDY if sample is None else sample.draw(int(position))  # aborted: to be dropped
            for sample, position in zip(samples, positions, strict=True)
        ]

    def _finish(self) -> None:
        """Waits for the oldest plan in flight, commits it, hands out what it gave."""
        oldest = self._in_flight[0]
        result = oldest.computing.wait()
        statuses = self.engine.commit(oldest.plan.plan_id, result.tokens)
        self._record(oldest, result, statuses)
        del self._in_flight[0]

    def _cancel_strays(self) -> None:
        """Cancels plans that got lost between the engine and the runner: the newest ones."""
        known = {entry.plan.plan_id for entry in self._in_flight}
        for plan_id in reversed(self.engine.plans().tolist()):
            if plan_id not in known:
                self.engine.cancel(plan_id)

    def _withdraw(self) -> None:
        """Cancels all plans in flight, the newest first.

        All of them: a token that is not known yet is the last one drawn for its sequence, which
        a cancelled plan may have drawn anew. When one has been committed and not recorded, its
        requests end: they miss a token.
        """
        plans = self.engine.plans().tolist()
        for plan_id in reversed(plans):
            self.engine.cancel(plan_id)
        withdrawn, self._in_flight = self._in_flight, []
        for entry in withdrawn:
            if entry.plan.plan_id not in plans:
                for sequence_id in entry.plan.seq_ids:
                    if (sample := self._open.get(int(sequence_id))) is not None:
                        self.abort(sample.request)

    def _record(self, entry: InFlight, result: Result, statuses: NDArray[np.uint8]) -> None:
        """Hands out rows of logits and tokens; a sequence's prompt rows come before its token."""
        plan = entry.plan
        rows = dict(zip(entry.kept.tolist(), result.logits, strict=True))
        last_rows = (plan.query_start[plan.sample_seqs + 1] - 1).tolist()
        for plan_row in sorted(rows.keys() - set(last_rows)):
            owner = int(np.searchsorted(plan.query_start, plan_row, side="right")) - 1
            sample = self._open.get(int(plan.seq_ids[owner]))
            position = int(plan.positions[plan_row])
            if sample is not None and position < len(sample.request.prompt) - 1:
                sample.record_prompt_row(position, rows[plan_row])
        for index, plan_row, token, status in zip(
            plan.sample_seqs, last_rows, result.tokens.tolist(), statuses.tolist(), strict=True
        ):
            if (sample := self._open.get(int(plan.seq_ids[index]))) is not None:
                position = int(plan.positions[plan_row])
                self._record_token(sample, position, rows.get(plan_row), token, status)

    def _record_token(
        self,
        sample: Sample,
        position: int,
        row: NDArray[np.float32] | None,
        token: int,
        status: int,
    ) -> None:
        sample.record_token(position, row, token)
        sample.request.inbox[sample] = None
        if status in _FINISHED:
            sample.finish(_FINISHED[status])
            self._close(sample)
        elif sample.finish_reason is not None:  # a stop string, which the engine cannot see
            self._end(sample, "stop")
