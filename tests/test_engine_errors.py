"""What the engine refuses: the right exception, a clear sentence, and nothing changed.

A fixed run of 400 calls is made twice, the second time with the refused call after each of them:
plans, statuses and counts must be the same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from audited_engine import SIZES, prompt, u32
from pyvosti._core import Engine
from simulated_device import UNKNOWN_TOKEN


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"num_blocks": []}, "1 to 65,536 layer groups"),
        ({"num_blocks": [1] * 65_537}, "1 to 65,536 layer groups"),
        ({"num_blocks": [4, 0]}, "at least 1 block"),
        ({"num_blocks": [4, 4], "windows": [3]}, "one entry for each of num_blocks"),
        ({"windows": []}, "one entry for each of num_blocks"),
        ({"num_blocks": [2**31], "block_size": 2}, "below 2\\^32"),
        ({"block_size": 0}, "block_size must be at least 1"),
        ({"max_seqs": 0}, "max_seqs must be at least 1"),
        ({"max_batched_tokens": 0}, "max_batched_tokens must be at least 1"),
        ({"max_model_len": 1}, "max_model_len must be at least 2"),
        ({"max_model_len": 2**31}, "below 2,147,483,648"),
        ({"vocab_size": 0}, "vocab_size must be at least 1"),
        ({"max_seqs": 2**31, "max_model_len": 2**30}, "lower max_seqs or max_model_len"),
    ],
)
def test_sizes_are_checked(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Engine(**(SIZES | sizes))


@pytest.mark.parametrize("size", [-1, 2**32])
@pytest.mark.parametrize("name", [name for name in SIZES if name != "num_blocks"])
def test_sizes_are_32_bits(name: str, size: int) -> None:
    with pytest.raises(OverflowError):
        Engine(**(SIZES | {name: size}))


def plan_bytes(plan: Any) -> bytes:
    arrays = [
        plan.token_ids, plan.positions, plan.query_start, plan.seq_lens, plan.seats, plan.seq_ids,
        plan.logits_rows, plan.sample_seqs, *plan.slots,
        *(column for update in plan.table_updates for column in update),
    ]  # fmt: skip
    return b"|".join([str(plan.plan_id).encode(), *(a.tobytes() for a in arrays)])


def history(refused: Callable[[Engine, list[Any]], None] | None = None) -> list[bytes]:
    """Plans, statuses and counts of a fixed run, with `refused` called between all its calls."""
    rng = random.Random(7)
    sizes = {"num_blocks": [9, 11], "max_seqs": 3, "max_batched_tokens": 9, "max_model_len": 30}
    engine = Engine(**(SIZES | sizes))
    flights: list[Any] = []
    seen: list[bytes] = []
    ids: list[int] = []
    for _ in range(400):
        call = rng.choice(["add", "schedule", "schedule", "commit", "commit", "cancel", "rare"])
        if call == "add" and engine.stats()["waiting"] < 4:
            n = rng.randint(1, 12)
            ids.append(engine.add_request(u32(prompt(n, rng.randrange(2))), 6, u32([5]), n - 1, 0))
        elif call == "schedule" and len(flights) < 3:
            plan = engine.schedule()
            if plan is not None:
                flights.append(plan)
                seen.append(plan_bytes(plan))
        elif call == "commit" and flights:
            plan = flights.pop(0)
            drawn = u32([rng.randrange(9) for _ in plan.sample_seqs])
            seen.append(engine.commit(plan.plan_id, drawn).tobytes())
        elif call == "cancel" and flights and rng.random() < 0.3:
            engine.cancel(flights.pop().plan_id)
        elif call == "rare" and ids and rng.random() < 0.3:
            seen.append(str(engine.abort(rng.choice(ids))).encode())
        if refused is not None:
            refused(engine, flights)
        seen.append(str(sorted(engine.stats().items())).encode())
    return seen


def add(engine: Engine, tokens: Any, max_tokens: int = 4, logits_from: int = 0) -> int:
    return engine.add_request(u32(tokens), max_tokens, u32([]), logits_from)


Refusal = tuple[type[Exception], str | None, Callable[..., object]]

REQUEST_ERRORS: dict[str, Refusal] = {
    "no prompt": (ValueError, "no token", lambda e: add(e, [])),
    "long prompt": (ValueError, "shorter than max_model_len", lambda e: add(e, prompt(30))),
    "token": (ValueError, "below vocab_size", lambda e: add(e, [1, 100])),
    "unknown token": (ValueError, "below vocab_size", lambda e: add(e, [UNKNOWN_TOKEN])),
    "no output": (ValueError, "max_tokens must be at least 1", lambda e: add(e, [1], 0)),
    "logits_from": (ValueError, "logits_from", lambda e: add(e, [1, 2], 4, 2)),
    "never fits": (
        ValueError,
        "lower max_tokens or raise num_blocks",
        lambda e: Engine([7, 2], 4, 3, 9, 30, 100).add_request(u32([1]), 9, u32([]), 0),
    ),
    "negative": (OverflowError, None, lambda e: add(e, [1], -1)),
    "dtype": (TypeError, "int64", lambda e: e.add_request(np.array([1]), 1, u32([]), 0)),
    "shape": (TypeError, "dim", lambda e: e.add_request(u32([[1]]), 1, u32([]), 0)),
    "list": (TypeError, "ndarray", lambda e: e.add_request([1], 1, u32([]), 0)),
    "salt": (OverflowError, None, lambda e: e.add_request(u32([1]), 1, u32([]), 0, 2**64)),
    "fork": (RuntimeError, "no such sequence", lambda e: e.fork(2**40 + 9)),
    "abort": (OverflowError, None, lambda e: e.abort(-1)),
    "cancel": (RuntimeError, "newest first|no plan", lambda e: e.cancel(2**60)),
    "commit": (RuntimeError, "oldest first|no plan", lambda e: e.commit(2**60, u32([]))),
}


@pytest.mark.parametrize("name", REQUEST_ERRORS)
def test_refused_call_changes_nothing(name: str) -> None:
    kind, message, call = REQUEST_ERRORS[name]

    def refused(engine: Engine, flights: list[Any]) -> None:
        with pytest.raises(kind, match=message):
            call(engine)

    assert history(refused) == history()


def tokens_for(plan: Any, token: int = 0, more: int = 0) -> Any:
    return u32([token] * (len(plan.sample_seqs) + more))


COMMIT_ERRORS: dict[str, Refusal] = {
    "load": (RuntimeError, "no sequence is open", lambda e, f: e.load_weights()),
    "newest": (RuntimeError, "oldest", lambda e, f: e.commit(f[-1].plan_id, tokens_for(f[-1]))),
    "next": (RuntimeError, "oldest", lambda e, f: e.commit(f[-1].plan_id + 1, tokens_for(f[0]))),
    "twice": (RuntimeError, "oldest", lambda e, f: e.commit(f[0].plan_id - 1, tokens_for(f[0]))),
    "more": (ValueError, "one token", lambda e, f: e.commit(f[0].plan_id, tokens_for(f[0], 0, 1))),
    "fewer": (ValueError, "one token", lambda e, f: e.commit(f[0].plan_id, u32([]))),
    "range": (ValueError, "vocab_size", lambda e, f: e.commit(f[0].plan_id, tokens_for(f[0], 100))),
    "dtype": (TypeError, None, lambda e, f: e.commit(f[0].plan_id, np.zeros(1, np.int32))),
    "cancel oldest": (RuntimeError, "newest", lambda e, f: e.cancel(f[0].plan_id)),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMIT_ERRORS)
def test_refused_commit_changes_nothing(name: str) -> None:
    kind, message, call = COMMIT_ERRORS[name]
    tried = 0

    def refused(engine: Engine, flights: list[Any]) -> None:
        nonlocal tried
        if name == "twice" and flights and flights[0].plan_id == 0:
            return
        if len(flights) >= 2 and len(flights[0].sample_seqs):
            tried += 1
            with pytest.raises(kind, match=message):
                call(engine, flights)

    assert history(refused) == history()
    assert tried > 10


def test_commit_and_cancel_without_a_plan() -> None:
    engine = Engine(**SIZES)
    with pytest.raises(RuntimeError, match="no plan is in flight"):
        engine.commit(0, u32([]))
    with pytest.raises(RuntimeError, match="no plan is in flight"):
        engine.cancel(0)
    assert engine.schedule() is None


def test_same_calls_same_plans() -> None:
    first = history()
    assert first == history()
    assert sum(b"|" in entry for entry in first) > 50
