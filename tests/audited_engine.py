"""The engine with a simulated device; what comes back is checked before it is believed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine_mirror import DROPPED, EngineMirror, Flight, Sequence
from pyvosti._core import Engine
from simulated_device import SimulatedDevice, Solo

# Sizes for tests that need no others.
SIZES: dict[str, Any] = {
    "num_blocks": [32],
    "block_size": 4,
    "max_seqs": 8,
    "max_batched_tokens": 64,
    "max_model_len": 64,
    "vocab_size": 100,
}


def prompt(length: int, first: int = 0) -> list[int]:
    """A prompt of this length; with another `first`, another token at each position."""
    return [(first + 3 * k) % 100 for k in range(length)]


def u32(values: Any) -> NDArray[np.uint32]:
    return np.array(values, np.uint32)


class AuditedEngine(EngineMirror):
    """Calls go to the engine; what comes back is checked before it is believed."""

    def __init__(
        self,
        num_blocks: list[int],
        block_size: int,
        max_seqs: int,
        max_batched_tokens: int,
        max_model_len: int,
        vocab_size: int,
        prefix_cache: bool = True,
        make: Callable[..., Any] = Engine,
    ) -> None:
        sizes = (num_blocks, block_size, max_seqs, max_batched_tokens, max_model_len, vocab_size)
        super().__init__(make(*sizes, prefix_cache), *sizes, prefix_cache)
        self.device = SimulatedDevice(num_blocks, block_size, max_seqs, max_model_len, vocab_size)
        self.to_run: deque[Flight] = deque()

    def fits(self, prompt_len: int, max_tokens: int) -> bool:
        blocks = -(-min(prompt_len + max_tokens, self.max_model_len) // self.block_size)
        return (
            0 < prompt_len < self.max_model_len
            and max_tokens > 0
            and blocks <= min(group.num_blocks for group in self.groups)
        )

    def add(
        self,
        prompt: list[int],
        max_tokens: int = 4,
        stop: tuple[int, ...] = (),
        logits_from: int | None = None,
        salt: int = 0,
    ) -> int:
        if logits_from is None:
            logits_from = len(prompt) - 1
        new = self.engine.add_request(u32(prompt), max_tokens, u32(stop), logits_from, salt)
        max_len = min(len(prompt) + max_tokens, self.max_model_len)
        solo = self._solo(prompt, 0)
        self._enter(Sequence(new, solo, max_len, stop, logits_from, salt, None))
        return int(new)

    def fork(self, parent_id: int) -> int:
        parent = self.sequences[parent_id]
        new = self.engine.fork(parent_id)
        assert parent.live()
        n = parent.solo.prompt_len
        solo = self._solo(parent.solo.tokens[:n], new + 1)
        self._enter(Sequence(new, solo, parent.max_len, parent.stop, n - 1, parent.salt, parent_id))
        return int(new)

    def _solo(self, tokens: list[int], key: int) -> Solo:
        groups, weights = len(self.groups), self.device.weights
        return Solo(tuple(tokens), key, groups, self.vocab_size, weights)

    def schedule(self) -> Any:
        """The next plan, checked; `None` when there is nothing to compute now."""
        before = self.engine.stats()
        plan = self.engine.schedule()
        ids = plan.seq_ids.tolist() if plan else []
        known = {s.id for s in self.running}
        new = [self.sequences[i] for i in ids if i not in known]
        stats = self.engine.stats()
        self._preempted(len(self.running) + len(new) - stats["running"], ids, new)
        if plan is None:
            assert self.flights or not self.unfinished(), "idle, though there is something to do"
            self.tables_known = False
            return None
        assert new == [self.waiting.popleft() for _ in new], "first come, first served"
        self.check_order(plan, new)
        self._seat(plan, new)
        revived = self.seen["revived"]
        self.apply_updates(plan, new)
        self.check_plan(plan)
        if stats["preemptions"] == before["preemptions"]:
            revived = self.seen["revived"] - revived
            self.seen["evicted"] += before["cached_blocks"] - stats["cached_blocks"] - revived
        self.to_run.append(self._take_off(plan))
        self.audit()
        return plan

    def commit(self) -> list[int]:
        """Commits the oldest plan in flight, and says what became of its sampled sequences."""
        flight = self.flights[0]
        self.run_until(flight)
        assert flight.result is not None
        logits, tokens = flight.result
        self.flights.popleft()
        expected = self._land(flight.plan, logits, tokens)
        statuses = self.engine.commit(flight.plan.plan_id, tokens).tolist()
        assert statuses == expected, f"statuses {statuses}, expected {expected}"
        self._settle()
        self.audit()
        return list(statuses)

    def cancel(self) -> None:
        """Cancels the newest plan in flight; whatever it wrote is spoiled."""
        flight = self.flights.pop()
        self.engine.cancel(flight.plan.plan_id)
        if flight.last_token is None:
            self.to_run.pop()
        else:
            self.device.spoil(flight.plan)
            self.device.last_token[:] = flight.last_token
        sampled = set(flight.plan.sample_seqs.tolist())
        for k, (sequence, first, _) in enumerate(self._entries(flight.plan)):
            sequence.in_flight -= 1
            if sequence.phase == "running":
                sequence.planned = first
                sequence.pending -= k in sampled
        self._settle()
        self.seen["cancelled"] += 1
        self.audit()

    def abort(self, seq_id: int) -> bool:
        sequence = self.sequences[seq_id]
        done = self.engine.abort(seq_id)
        assert done == sequence.live(), f"abort said {done} of a sequence that is {sequence.phase}"
        if sequence.phase == "waiting":
            self.waiting.remove(sequence)
            sequence.phase = "over"
        elif sequence.phase == "running":
            sequence.phase = "draining"
            self._settle()
        if done:
            sequence.outcome = DROPPED
            self.seen["aborted"] += 1
        self.audit()
        return bool(done)

    def reset_cache(self) -> None:
        self.engine.reset_cache()
        self.resets += 1
        assert self.engine.stats()["cached_blocks"] == 0
        self.audit()

    def load_weights(self) -> bool:
        """Whether it could: while a sequence is open it must not."""
        if self.unfinished() or self.flights:
            with pytest.raises(RuntimeError, match="while no sequence is open"):
                self.engine.load_weights()
            self.audit()
            return False
        self.engine.load_weights()
        self.device.weights += 1
        self.resets += 1
        self.seen["loaded"] += 1
        self.audit()
        return True

    def step(self) -> Any:
        """One plan, scheduled and committed; `None` when there is nothing to compute now."""
        plan = self.schedule()
        if plan is not None:
            self.commit()
        return plan

    def drain(self) -> None:
        """Commits what is in flight, then runs until every sequence is over."""
        while self.flights:
            self.commit()
        while self.step() is not None:
            pass
        assert not self.running and not self.unfinished()
        assert self.engine.stats()["referenced_blocks"] == 0

    def run_until(self, flight: Flight) -> None:
        """The device runs the plans in order, this one at the latest."""
        while flight.result is None:
            self.run_next()

    def run_next(self) -> None:
        """The device runs the oldest plan that it has not, unless that is cancelled first."""
        flight = self.to_run.popleft()
        flight.last_token = self.device.last_token.copy()
        keys = [self.sequences[i].solo.key for i in flight.plan.seq_ids.tolist()]
        flight.result = self.device.execute(flight.plan, keys)
