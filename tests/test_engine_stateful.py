"""The engine under random calls, with a simulated device and an audit after each of them.

hypothesis looks for short histories that go wrong; one long seeded run looks for what needs
thousands of steps. The same run must fail on each planted fault, or it would be blind: on the
audit, and for faults of paging on the tokens alone, with the audit switched off.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from audited_engine import AuditedEngine, u32
from engine_mirror import Sequence
from pyvosti._core import Engine

VOCAB = 4
MAX_LEN = 24
IN_FLIGHT = 4
PREFIXES = [[0] * MAX_LEN, [0, 1] * MAX_LEN, [0, 0, 0, 0, 1] * MAX_LEN]


class EngineMachine(RuleBasedStateMachine):
    """Any call in any order; `AuditedEngine` checks each."""

    @initialize(
        block_size=st.integers(1, 5),
        spare=st.lists(st.sampled_from([0, 1, 3, 30]), min_size=1, max_size=2),
        max_seqs=st.integers(1, 5),
        budget=st.integers(1, 12),
        prefix_cache=st.sampled_from([True, True, True, False]),
    )
    def start(
        self, block_size: int, spare: list[int], max_seqs: int, budget: int, prefix_cache: bool
    ) -> None:
        # The largest request fits when spare is 3 or more, and some do not when it is 0.
        blocks = [max(1, MAX_LEN // block_size - 2 + n) for n in spare]
        self.engine = AuditedEngine(
            blocks, block_size, max_seqs, budget, MAX_LEN, VOCAB, prefix_cache
        )

    @rule(
        prefix=st.sampled_from(PREFIXES),
        shared=st.integers(0, 16),
        tail=st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=8),
        max_tokens=st.integers(1, 12),
        stop=st.sampled_from([(), (), (1,), (2, 3)]),
        all_logits=st.booleans(),
        salt=st.sampled_from([0, 0, 0, 1]),
    )
    def add(
        self,
        prefix: list[int],
        shared: int,
        tail: list[int],
        max_tokens: int,
        stop: tuple[int, ...],
        all_logits: bool,
        salt: int,
    ) -> None:
        prompt = prefix[:shared] + tail
        logits_from = 0 if all_logits else len(prompt) - 1
        if self.engine.fits(len(prompt), max_tokens):
            self.engine.add(prompt, max_tokens, stop, logits_from, salt)
        else:
            with pytest.raises(ValueError):
                self.engine.add(prompt, max_tokens, stop, logits_from, salt)

    @precondition(lambda self: self.engine.unfinished())
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        self.engine.fork(data.draw(st.sampled_from([s.id for s in self.engine.unfinished()])))

    @precondition(lambda self: len(self.engine.flights) < IN_FLIGHT)
    @rule()
    def schedule(self) -> None:
        self.engine.schedule()

    @precondition(lambda self: self.engine.to_run)
    @rule()
    def run(self) -> None:
        self.engine.run_next()

    @precondition(lambda self: self.engine.flights)
    @rule()
    def commit(self) -> None:
        self.engine.commit()

    @precondition(lambda self: self.engine.flights)
    @rule()
    def commit_all(self) -> None:
        while self.engine.flights:
            self.engine.commit()

    @precondition(lambda self: self.engine.flights)
    @rule()
    def cancel(self) -> None:
        self.engine.cancel()

    @precondition(lambda self: self.engine.sequences)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.engine.abort(data.draw(st.sampled_from(sorted(self.engine.sequences))))

    @rule()
    def reset_cache(self) -> None:
        self.engine.reset_cache()

    @rule(drain=st.booleans())
    def load_weights(self, drain: bool) -> None:
        if drain:
            self.engine.drain()
        self.engine.load_weights()

    @precondition(lambda self: self.engine.flights)
    @rule(wrong=st.sampled_from(["plan", "newest", "count", "token", "oldest"]))
    def refused(self, wrong: str) -> None:
        """Calls that must change nothing; what comes after shows whether they did."""
        core, flights = self.engine.engine, self.engine.flights
        oldest, newest = flights[0].plan, flights[-1].plan
        tokens = u32([0] * len(oldest.sample_seqs))
        if wrong == "plan":
            with pytest.raises(RuntimeError):
                core.commit(newest.plan_id + 1, tokens)
        elif wrong == "newest" and len(flights) > 1:
            with pytest.raises(RuntimeError):
                core.commit(newest.plan_id, u32([0] * len(newest.sample_seqs)))
        elif wrong == "oldest" and len(flights) > 1:
            with pytest.raises(RuntimeError):
                core.cancel(oldest.plan_id)
        elif wrong == "count":
            with pytest.raises(ValueError):
                core.commit(oldest.plan_id, u32([*tokens, 0]))
        elif wrong == "token" and len(tokens):
            with pytest.raises(ValueError):
                core.commit(oldest.plan_id, tokens + np.uint32(VOCAB))

    @invariant()
    def counts(self) -> None:
        self.engine.audit()

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.engine.drain()


def test_any_calls_in_any_order() -> None:
    run_state_machine_as_test(
        EngineMachine,
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def random_calls(engine: AuditedEngine, random: random.Random, steps: int) -> None:
    """This many calls of all kinds, mostly schedule and commit; at the end all sequences finish."""
    for _ in range(steps):
        unfinished = engine.unfinished()
        crowded = len(unfinished) > 12
        choices: list[tuple[int, Callable[[], object]]] = [
            (1 if crowded else 18, lambda: add_random(engine, random)),
            (32 * (len(engine.flights) < IN_FLIGHT), engine.schedule),
            (28 * bool(engine.flights), engine.commit),
            (6 * bool(engine.to_run), engine.run_next),
            (2 * bool(engine.flights), engine.cancel),
        ]
        if unfinished:
            target = random.choice(unfinished).id
            choices.append((0 if crowded else 3, partial(engine.fork, target)))
            choices.append((1, partial(engine.abort, target)))
        if random.random() < 0.002:
            engine.reset_cache()
        elif random.random() < 0.004:
            if random.random() < 0.5:
                engine.drain()
            engine.load_weights()
        else:
            weights, calls = zip(*choices, strict=True)
            random.choices(calls, weights)[0]()
    engine.drain()


def add_random(engine: AuditedEngine, random: random.Random) -> None:
    prompt = random.choice(PREFIXES)[: random.randint(0, 12)]
    prompt = prompt + [random.randrange(VOCAB) for _ in range(random.randint(1, 4))]
    last = len(prompt) - 1
    engine.add(
        prompt,
        max_tokens=random.randint(1, 10),
        stop=random.choice([(), (), (1,)]),
        logits_from=random.choice([last, last, 0, random.randint(0, last)]),
        salt=random.choice([0, 0, 0, 7]),
    )


# Pools of two requests, of a few, and of more than all need; one group and two.
SHAPES = [
    ([8], 4, 6, 9),
    ([30, 26], 1, 4, 5),
    ([13, 40], 2, 5, 7),
    ([200], 3, 8, 32),
    ([9, 9], 5, 3, 3),
]


def test_twenty_thousand_steps() -> None:
    rng = random.Random(20_000)
    seen: Counter[str] = Counter()
    for num_blocks, block_size, max_seqs, budget in SHAPES:
        for prefix_cache, steps in ((True, 3600), (False, 600)):
            engine = AuditedEngine(
                num_blocks, block_size, max_seqs, budget, MAX_LEN, VOCAB, prefix_cache
            )
            random_calls(engine, rng, steps)
            seen += engine.seen
    assert seen["plans"] > 7_000 and seen["finished"] > 1_000
    for event in ("preempted with output", "resumed with hit", "evicted", "cancelled", "aborted"):
        assert seen[event] >= 20, f"{event}: {seen[event]} times"
    assert seen["hits"] > 500 and seen["placeholders"] > 1_000


class FaultyEngine:
    """The engine, but from its 20th plan on each has the fault, where it has something to spoil."""

    def __init__(self, fault: str, *args: Any) -> None:
        self.fault = fault
        self.engine = Engine(*args)
        self.spoilt = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def add_request(
        self, prompt: Any, max_tokens: int, stop: Any, logits_from: int, salt: int
    ) -> int:
        if self.fault == "salt ignored":
            self.spoilt, salt = 1, 0
        if self.fault == "logits_from ignored":
            self.spoilt, logits_from = 1, len(prompt) - 1
        return self.engine.add_request(prompt, max_tokens, stop, logits_from, salt)

    def reset_cache(self) -> None:
        if self.fault != "reset ignored":
            self.engine.reset_cache()

    def load_weights(self) -> None:
        counts = self.engine.stats()
        idle = not (counts["waiting"] or counts["running"])
        if self.fault == "cache kept across weights" and idle:
            self.spoilt = 1
        else:
            self.engine.load_weights()

    def commit(self, plan_id: int, tokens: Any) -> Any:
        if self.fault == "other token registered" and len(tokens) and plan_id >= 20:
            self.spoilt, tokens = 1, (tokens + np.uint32(1)) % np.uint32(VOCAB)
        return self.engine.commit(plan_id, tokens)

    def schedule(self) -> Any | None:
        plan = self.engine.schedule()
        if plan is None or plan.plan_id < 20:
            return plan
        names = [name for name in dir(plan) if not name.startswith("_")]
        copy = SimpleNamespace(**{name: getattr(plan, name) for name in names})
        copy.table_updates = [list(update) for update in plan.table_updates]
        spoil = FAULTS[self.fault]
        self.spoilt += spoil is not None and spoil(copy)
        return copy


def swap_updates(plan: Any) -> bool:
    """Two blocks of one table, exchanged: both in range, each of them written by nobody else."""
    blocks = plan.table_updates[0][2]
    if len(blocks) < 2:
        return False
    blocks[[0, 1]] = blocks[[1, 0]]
    return True


def drop_update(plan: Any) -> bool:
    if not len(plan.table_updates[0][2]):
        return False
    plan.table_updates[0] = [column[:-1] for column in plan.table_updates[0]]
    return True


def shift_slot(plan: Any) -> bool:
    plan.slots[-1][0] ^= 1
    return True


def known_token(plan: Any) -> bool:
    unknown = plan.token_ids == 0xFFFFFFFF
    plan.token_ids[unknown] = 0
    return bool(unknown.any())


def shift_position(plan: Any) -> bool:
    plan.positions[-1] -= plan.positions[-1] > 0
    return True


def lose_row(plan: Any) -> bool:
    """A prompt's row is not delivered."""
    if len(plan.logits_rows) <= len(plan.sample_seqs):
        return False
    plan.logits_rows = plan.logits_rows[1:]
    return True


def wrong_seat(plan: Any) -> bool:
    if len(plan.seats) < 2:
        return False
    plan.seats[[0, 1]] = plan.seats[[1, 0]]
    return True


FAULTS: dict[str, Any] = {
    "two table updates swapped": swap_updates,
    "a table update dropped": drop_update,
    "a slot shifted": shift_slot,
    "a placeholder filled in": known_token,
    "a position shifted": shift_position,
    "a wanted row lost": lose_row,
    "seats swapped": wrong_seat,
    "other token registered": None,
    "salt ignored": None,
    "logits_from ignored": None,
    "reset ignored": None,
    "cache kept across weights": None,
}
PAGING = [
    *list(FAULTS)[:5],
    "seats swapped",
    "other token registered",
    "cache kept across weights",
]


class Blind(AuditedEngine):
    """Looks at logits and tokens only."""

    def check_order(self, plan: Any, new: list[Sequence]) -> None: ...
    def check_plan(self, plan: Any) -> None: ...
    def apply_updates(self, plan: Any, new: list[Sequence]) -> None: ...
    def seal(self, sequence: Sequence, end: int) -> None: ...
    def audit(self) -> None: ...


def run_with(fault: str, kind: type[AuditedEngine]) -> None:
    engine = kind([13, 40], 2, 5, 7, MAX_LEN, VOCAB, make=lambda *args: FaultyEngine(fault, *args))
    rng = random.Random(fault)
    try:
        for _ in range(3):
            random_calls(engine, rng, 500)
            engine.reset_cache()
    finally:
        assert engine.engine.spoilt or fault == "reset ignored", "the fault had no chance"


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(fault: str) -> None:
    with pytest.raises(AssertionError) as failure:
        run_with(fault, AuditedEngine)
    assert "no chance" not in str(failure.value)


@pytest.mark.parametrize("fault", PAGING)
def test_tokens_alone_show_paging_faults(fault: str) -> None:
    with pytest.raises(AssertionError, match=r"logits differ|: token|statuses"):
        run_with(fault, Blind)
