"""The open requests and the step that advances all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyvosti import _core
from pyvosti._core import Engine, Plan
from pyvosti.errors import RequestError
from pyvosti.outputs import FinishReason
from pyvosti.request import Request, Sample
from pyvosti.runner import Runner

_FINISHED: dict[int, FinishReason] = {1: "stop", 2: "length"}
"""What the engine's commit says of a sampled sequence; 0: it goes on."""


class Session:
    """Engine, runner and open requests. Not for several threads at once.

    Several callers may interleave: each adds its requests and steps until they are finished;
    every step advances the requests of all.
    """

    def __init__(self, engine: Engine, runner: Runner) -> None:
        self.engine = engine
        self.runner = runner
        self._open: dict[int, Sample] = {}

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
        """Schedules, computes, draws and commits once.

        An exception on the way (Ctrl-C too) cancels the plan: the engine is as before the step.
        """
        self._cancel_leftovers()
        plan = self.engine.schedule()
        if plan is None:
            raise RuntimeError("the engine has nothing to schedule, but requests are open")
        try:
            logits = self.runner.execute(plan)
            tokens = self._draw(plan, logits)
            statuses = self.engine.commit(plan.plan_id, tokens)
            self._record(plan, logits, tokens, statuses)
        except BaseException:
            self._withdraw(plan)
            raise

    def abort(self, request: Request) -> None:
        """Ends a request now; what it has received stays."""
        for sample in request.samples:
            if sample.finish_reason is None:
                self._end(sample, "abort")

    def _register(self, sample: Sample, sequence_id: int) -> None:
        sample.sequence_id = sequence_id
        self._open[sequence_id] = sample

    def _end(self, sample: Sample, reason: FinishReason) -> None:
        """Finishes a sample for which the engine may still be working."""
        sample.finish(reason)
        if self._open.pop(sample.sequence_id, None) is not None:
            self.engine.abort(sample.sequence_id)

    def _cancel_leftovers(self) -> None:
        """Cancels what a step that was interrupted before it had its plan in hand left."""
        for plan_id in reversed(self.engine.plans().tolist()):
            self.engine.cancel(plan_id)

    def _withdraw(self, plan: Plan) -> None:
        """Cancels a plan; when it has been committed, ends its requests: they miss a token."""
        try:
            self.engine.cancel(plan.plan_id)
        except RuntimeError:
            for sequence_id in plan.seq_ids:
                if (sample := self._open.get(int(sequence_id))) is not None:
                    self.abort(sample.request)

    def _draw(self, plan: Plan, logits: NDArray[np.float32]) -> NDArray[np.uint32]:
        """u32[N]: one token for each sampled sequence, from its own row and history alone."""
        last_rows = plan.query_start[plan.sample_seqs + 1] - 1
        rows = np.searchsorted(plan.logits_rows, last_rows)
        samples = [self._open.get(int(plan.seq_ids[s])) for s in plan.sample_seqs]
        tokens = [
            0 if sample is None else draw_token(logits[row], sample)  # 0: aborted, to be dropped
            for sample, row in zip(samples, rows, strict=True)
        ]
        return np.array(tokens, np.uint32)

    def _record(
        self,
        plan: Plan,
        logits: NDArray[np.float32],
        tokens: NDArray[np.uint32],
        statuses: NDArray[np.uint8],
    ) -> None:
        sampled = {
            int(plan.query_start[s + 1]) - 1: (int(token), int(status))
            for s, token, status in zip(plan.sample_seqs, tokens, statuses, strict=True)
        }
        owners = np.searchsorted(plan.query_start, plan.logits_rows, side="right") - 1
        for row, plan_row, owner in zip(logits, plan.logits_rows, owners, strict=True):
            sample = self._open.get(int(plan.seq_ids[owner]))
            if sample is None:
                continue
            position = int(plan.positions[plan_row])
            if int(plan_row) in sampled:
                self._record_token(sample, position, row, *sampled[int(plan_row)])
            elif position < len(sample.request.prompt) - 1:
                sample.record_prompt_row(position, row)

    def _record_token(
        self, sample: Sample, position: int, row: NDArray[np.float32], token: int, status: int
    ) -> None:
        sample.record_token(position, row, token)
        sample.request.inbox[sample] = None
        if status in _FINISHED:
            sample.finish(_FINISHED[status])
            del self._open[sample.sequence_id]
        elif sample.finish_reason is not None:  # a stop string, which the engine cannot see
            self._end(sample, "stop")


def draw_token(row: NDArray[np.float32], sample: Sample) -> int:
    """The next token of a sample: a function of this row, its history and its seed."""
    request, params = sample.request, sample.request.params
    return _core.sample(
        row,
        seed=request.seed,
        sample_index=sample.index,
        position=len(sample.tokens),
        temperature=params.temperature,
        top_k=min(max(params.top_k, 0), request.vocab),
        top_p=params.top_p,
        min_p=params.min_p,
        repetition_penalty=params.repetition_penalty,
        presence_penalty=params.presence_penalty,
        frequency_penalty=params.frequency_penalty,
        logit_bias=list(params.logit_bias.items()),
        prompt=request.prompt,
        output=sample.tokens,
    )
