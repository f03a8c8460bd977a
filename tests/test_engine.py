"""The engine through its bindings: what each call does, refuses, and leaves alone.

Most tests go through `AuditedEngine`, which compares every plan with what it must be and every
output with the prompt's solo run; the tests say what is particular. Requests are named a, b, ...
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from audited_engine import SIZES, AuditedEngine, prompt, u32
from engine_mirror import DROPPED, LENGTH, RUNNING, STOP
from simulated_device import UNKNOWN_TOKEN, Solo


def make(**sizes: Any) -> AuditedEngine:
    return AuditedEngine(**(SIZES | sizes))


def hits(engine: AuditedEngine) -> int:
    return int(engine.engine.stats()["hits"])


def finish(engine: AuditedEngine, tokens: list[int], **options: Any) -> int:
    """Runs one request to its end; returns the blocks that it did not compute."""
    before = hits(engine)
    engine.add(tokens, **options)
    engine.drain()
    return hits(engine) - before


# Rows of a step


def test_prompt_is_cut_to_the_budget() -> None:
    engine = make(max_batched_tokens=4)
    engine.add(prompt(10), max_tokens=3, logits_from=8)
    chunks, sampled, wanted = [], [], []
    while (plan := engine.step()) is not None:
        chunks.append(plan.positions.tolist())
        sampled.append(plan.sample_seqs.tolist())
        wanted.append(plan.logits_rows.tolist())
    assert chunks == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [10], [11]]
    assert sampled == [[], [], [0], [0], [0]]
    assert wanted == [[], [], [0, 1], [0], [0]]


def test_decode_and_prefill_share_a_step() -> None:
    engine = make(max_batched_tokens=5)
    a = engine.add(prompt(3), max_tokens=4)
    engine.step()
    b = engine.add(prompt(9, 50), max_tokens=1)
    plan = engine.step()
    assert plan.seq_ids.tolist() == [a, b]
    assert plan.positions.tolist() == [3, 0, 1, 2, 3]
    assert plan.query_start.tolist() == [0, 1, 5] and plan.seq_lens.tolist() == [4, 4]
    assert plan.sample_seqs.tolist() == [0]
    engine.drain()


def test_arrays_are_numpy_of_the_stated_types() -> None:
    engine = make(num_blocks=[8, 9])
    engine.add(prompt(9))
    plan = engine.schedule()
    names = ["token_ids", "positions", "query_start", "seq_lens", "seats", "logits_rows"]
    arrays = [getattr(plan, name) for name in [*names, "sample_seqs"]] + plan.slots
    arrays += [column for update in plan.table_updates for column in update]
    assert {array.dtype for array in arrays} == {np.dtype(np.uint32)}
    assert plan.seq_ids.dtype == np.uint64
    assert len(plan.slots) == len(plan.table_updates) == 2
    statuses = engine.engine.commit(plan.plan_id, u32([0]))
    assert statuses.dtype == np.uint8 and statuses.tolist() == [RUNNING]
    with pytest.raises(AttributeError):
        plan.plan_id = 7


def test_seats_are_given_first_come_first_served() -> None:
    engine = make(max_seqs=2)
    ids = [engine.add(prompt(3, k), max_tokens=2) for k in range(4)]
    assert engine.step().seq_ids.tolist() == ids[:2]
    assert engine.engine.stats()["waiting"] == 2
    assert engine.step().seq_ids.tolist() == ids[:2]
    assert engine.step().seq_ids.tolist() == ids[2:]
    engine.drain()


def test_plans_in_flight_use_placeholders() -> None:
    engine = make()
    engine.add(prompt(5), max_tokens=4)
    plans = [engine.schedule() for _ in range(4)]
    assert engine.schedule() is None, "all of it is in flight"
    assert [p.positions.tolist() for p in plans] == [[0, 1, 2, 3, 4], [5], [6], [7]]
    assert [p.token_ids.tolist() for p in plans[1:]] == [[UNKNOWN_TOKEN]] * 3
    assert [engine.commit() for _ in plans] == [[RUNNING]] * 3 + [[LENGTH]]


# Finishing


def test_stop_token_ends_and_the_rest_in_flight_is_dropped() -> None:
    engine = make()
    solo = Solo(tuple(prompt(5)), 0, 1, 100)
    outputs = [solo.token(p) for p in range(5, 8)]
    a = engine.add(prompt(5), max_tokens=20, stop=(outputs[2],))
    for _ in range(4):
        engine.schedule()
    first = outputs.index(outputs[2])
    assert [engine.commit() for _ in range(4)] == [
        [RUNNING if k < first else STOP if k == first else DROPPED] for k in range(4)
    ]
    assert engine.sequences[a].output() == outputs[: first + 1]
    assert engine.engine.stats()["referenced_blocks"] == 0


@pytest.mark.parametrize(("max_tokens", "outputs"), [(1, 1), (5, 5), (400, 54)])
def test_max_tokens_and_max_model_len(max_tokens: int, outputs: int) -> None:
    engine = make()
    a = engine.add(prompt(10), max_tokens=max_tokens)
    engine.drain()
    assert engine.sequences[a].outcome == LENGTH
    assert len(engine.sequences[a].output()) == outputs


@pytest.mark.parametrize(("length", "max_tokens", "fits"), [(9, 3, True), (9, 4, False)])
def test_never_fits(length: int, max_tokens: int, fits: bool) -> None:
    engine = make(num_blocks=[9, 3])
    if fits:
        engine.add(prompt(length), max_tokens=max_tokens)
        engine.drain()
    else:
        with pytest.raises(ValueError, match="more blocks than the KV cache has"):
            engine.add(prompt(length), max_tokens=max_tokens)
        assert engine.schedule() is None


# Prefix cache


@pytest.mark.parametrize("length", range(1, 14))
def test_hit_leaves_the_last_token(length: int) -> None:
    engine = make()
    assert finish(engine, prompt(length)) == 0
    assert finish(engine, prompt(length)) == (length - 1) // 4


def test_no_hit_without_the_cache() -> None:
    engine = make(prefix_cache=False)
    finish(engine, prompt(12))
    assert finish(engine, prompt(12)) == 0


def test_generated_tokens_are_hit() -> None:
    engine = make()
    a = engine.add(prompt(6), max_tokens=8)
    engine.drain()
    # Of its 14 tokens the last was never computed.
    assert finish(engine, [*engine.sequences[a].tokens(14), 1, 2, 3]) == 3


@pytest.mark.parametrize("logits_from", range(0, 12, 3))
def test_wanted_rows_are_not_skipped_by_hits(logits_from: int) -> None:
    engine = make()
    finish(engine, prompt(12))
    assert finish(engine, prompt(12), logits_from=logits_from) == logits_from // 4


def test_equal_prompts_in_one_step_share_nothing_yet() -> None:
    engine = make()
    engine.add(prompt(9))
    engine.add(prompt(9))
    plan = engine.step()
    assert len(plan.positions) == 18 and hits(engine) == 0
    engine.add(prompt(9))
    engine.step()
    assert hits(engine) == 2
    engine.drain()


def test_block_is_found_only_after_its_commit() -> None:
    engine = make()
    engine.add(prompt(9))
    engine.schedule()
    b = engine.add(prompt(9))
    plan = engine.schedule()
    assert b in plan.seq_ids.tolist() and hits(engine) == 0, "its KV is not committed"
    engine.commit()
    engine.add(prompt(9))
    engine.schedule()
    assert hits(engine) == 2
    engine.drain()


def test_cancelled_plan_leaves_nothing_to_find() -> None:
    engine = make()
    a = engine.add(prompt(9))
    first = engine.schedule()
    engine.run_next()
    engine.cancel()
    engine.abort(a)
    assert finish(engine, prompt(9)) == 0
    b = engine.add(prompt(9, 1))
    second = engine.schedule()
    engine.cancel()
    again = engine.schedule()
    assert again.plan_id == second.plan_id + 1 > first.plan_id
    assert again.seq_ids.tolist() == [b]
    for name in ("token_ids", "positions", "query_start", "logits_rows", "sample_seqs"):
        assert getattr(again, name).tolist() == getattr(second, name).tolist()
    assert again.slots[0].tolist() == second.slots[0].tolist()
    for now, before in zip(again.table_updates[0], second.table_updates[0], strict=True):
        assert now.tolist() == before.tolist(), "the runner may not have seen them"
    engine.drain()


def test_salts_do_not_share() -> None:
    engine = make()
    finish(engine, prompt(12), salt=1)
    assert finish(engine, prompt(12), salt=2) == 0
    assert finish(engine, prompt(12), salt=0) == 0
    assert finish(engine, prompt(12), salt=1) == 2
    assert finish(engine, prompt(12), salt=2**64 - 1) == 0


def test_same_block_after_another_prefix_is_no_hit() -> None:
    engine = make()
    finish(engine, prompt(4) + prompt(5, 50))
    assert finish(engine, prompt(5, 50)) == 0
    assert finish(engine, prompt(4, 1) + prompt(5, 50)) == 0
    assert finish(engine, prompt(4) + prompt(5, 50)) == 2


def test_reset_forgets_and_spares_what_runs() -> None:
    engine = make()
    finish(engine, prompt(12))
    a = engine.add(prompt(6, 50), max_tokens=8)
    engine.step()
    engine.schedule()
    engine.reset_cache()
    assert finish(engine, prompt(12)) == 0
    assert engine.sequences[a].outcome == LENGTH
    assert finish(engine, prompt(5, 50)) == 0, "computed before the reset"
    assert finish(engine, prompt(5, 50)) == 1


def test_least_recently_used_goes_first() -> None:
    engine = make(num_blocks=[6])
    for first in (1, 2, 3, 1):  # each leaves one cached block; the first is used again
        finish(engine, prompt(5, first), max_tokens=1)
    assert engine.engine.stats()["cached_blocks"] == 3
    finish(engine, prompt(20, 50), max_tokens=1)  # five blocks: three free, two evicted
    assert finish(engine, prompt(5, 1), max_tokens=1) == 1
    assert finish(engine, prompt(5, 2), max_tokens=1) == 0


def test_ends_of_prefixes_go_before_their_beginnings() -> None:
    engine = make(num_blocks=[6])
    finish(engine, prompt(17), max_tokens=1)  # four cached blocks, two free
    finish(engine, prompt(9, 50), max_tokens=1)  # evicts one
    assert finish(engine, prompt(17), max_tokens=1) == 3


def test_groups_have_pools_of_their_own() -> None:
    engine = make(num_blocks=[20, 5])
    finish(engine, prompt(17), max_tokens=1)
    assert engine.engine.stats()["cached_blocks"] == 8
    finish(engine, prompt(17, 50), max_tokens=1)  # evicts in the smaller group only
    assert engine.seen["evicted"] == 4
    assert finish(engine, prompt(17), max_tokens=1) == 0, "a hit needs the block in every group"
    for k in range(3):
        engine.add(prompt(6, k), max_tokens=8)
    engine.drain()
    assert engine.seen["preempted"] > 0


# Fork


@pytest.mark.parametrize("prefix_cache", [True, False])
def test_fork_shares_full_blocks(prefix_cache: bool) -> None:
    engine = make(prefix_cache=prefix_cache)
    a = engine.add(prompt(10), max_tokens=6)
    children = [engine.fork(a), engine.fork(a)]
    first = engine.schedule()
    assert first.seq_ids.tolist() == [a], "children wait for their parent's prompt"
    engine.commit()
    second = engine.schedule()
    assert second.seq_ids.tolist() == [a, *children]
    assert second.positions.tolist() == [10, 8, 9, 8, 9] and hits(engine) == 4
    assert engine.engine.stats()["referenced_blocks"] == 2 + 3
    engine.drain()
    outputs = [engine.sequences[i].output() for i in (a, *children)]
    assert len({tuple(output) for output in outputs}) == 3


def test_fork_waits_for_every_chunk_of_the_parent() -> None:
    engine = make(max_batched_tokens=4)
    a = engine.add(prompt(10))
    b = engine.fork(a)
    for _ in range(3):
        assert engine.step().seq_ids.tolist() == [a]
    assert b in engine.step().seq_ids.tolist() and hits(engine) == 2
    engine.drain()


def test_fork_while_the_parent_decodes() -> None:
    engine = make(prefix_cache=False)
    a = engine.add(prompt(9), max_tokens=12)
    for _ in range(6):
        engine.step()
    b = engine.fork(a)
    engine.drain()
    assert hits(engine) == 2
    assert len(engine.sequences[b].output()) == 12


@pytest.mark.parametrize("prefix_cache", [True, False])
def test_fork_outlives_its_parent(prefix_cache: bool) -> None:
    engine = make(prefix_cache=prefix_cache)
    a = engine.add(prompt(10), max_tokens=1)
    b = engine.fork(a)
    engine.drain()
    assert engine.sequences[a].outcome == LENGTH
    c = engine.add(prompt(10, 50))
    d = engine.fork(c)
    engine.schedule()
    engine.abort(c)
    engine.drain()
    for child in (b, d):
        assert engine.sequences[child].outcome == LENGTH
    assert hits(engine) == (2 if prefix_cache else 0)
    with pytest.raises(RuntimeError, match="no such sequence"):
        engine.engine.fork(a)
    with pytest.raises(RuntimeError, match="no such sequence"):
        engine.engine.fork(c)


def test_fork_of_a_preempted_parent() -> None:
    engine = make(num_blocks=[8], prefix_cache=False)
    engine.add(prompt(15), max_tokens=16)
    parent = engine.add(prompt(6, 50), max_tokens=10)
    while not engine.seen["preempted with output"]:
        assert engine.step() is not None
    child = engine.fork(parent)
    engine.drain()
    assert len(engine.sequences[child].output()) == 10


# Preemption and abort


def test_youngest_is_preempted_and_resumes() -> None:
    engine = make(num_blocks=[6], block_size=2)
    a = engine.add(prompt(4), max_tokens=6)
    b = engine.add(prompt(4, 50), max_tokens=6, logits_from=1)
    order = []
    while (plan := engine.step()) is not None:
        order.append(plan.seq_ids.tolist())
    assert [a] in order[1:] and order[-1] == [b]
    assert engine.seen["preempted with output"] >= 1
    assert engine.seen["resumed with hit"] >= 1
    assert [len(engine.sequences[i].output()) for i in (a, b)] == [6, 6]


def test_what_is_in_flight_is_not_preempted() -> None:
    engine = make(num_blocks=[4], block_size=2)
    engine.add(prompt(4), max_tokens=3)
    engine.add(prompt(4, 50), max_tokens=3)
    engine.schedule()
    assert engine.schedule() is None, "blocks are pinned until their plan is over"
    assert engine.seen["preempted"] == 0
    engine.drain()
    assert engine.seen["preempted"] > 0


def test_abort_waiting_running_and_twice() -> None:
    engine = make(max_seqs=1)
    a, b, c = (engine.add(prompt(6, k)) for k in range(3))
    engine.step()
    assert engine.abort(b) and not engine.abort(b)
    assert engine.abort(a) and not engine.abort(a)
    assert engine.engine.stats()["referenced_blocks"] == 0
    engine.drain()
    assert engine.sequences[c].outcome == LENGTH
    assert not engine.abort(c)
    assert not engine.engine.abort(2**50)


def test_abort_in_flight_pins_the_blocks() -> None:
    engine = make()
    a = engine.add(prompt(6))
    engine.schedule()
    engine.schedule()
    assert engine.abort(a)
    assert engine.engine.stats()["referenced_blocks"] == 2
    engine.reset_cache()
    assert engine.commit() == [DROPPED]
    assert engine.engine.stats()["referenced_blocks"] == 2
    assert engine.commit() == [DROPPED]
    assert engine.engine.stats()["referenced_blocks"] == 0
    assert finish(engine, prompt(6)) == 0, "what was dropped is not cached"


def test_abort_then_cancel_frees_the_blocks() -> None:
    engine = make()
    a = engine.add(prompt(6))
    engine.schedule()
    engine.abort(a)
    engine.cancel()
    assert engine.engine.stats()["referenced_blocks"] == 0
    assert engine.schedule() is None
