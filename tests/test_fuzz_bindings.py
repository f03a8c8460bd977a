"""The bindings with anything in their arguments: an exception of the expected kind, no panic.

A call that is refused must have changed nothing: the valid call after it gives the same bits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyvosti import _core
from pyvosti.limits import make_limits
from pyvosti.loader import load_model
from pyvosti.runner import CpuRunner

REFUSED = (ValueError, TypeError, OverflowError)
FUZZ = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS = st.one_of(
    st.integers(0, 40),
    st.sampled_from([-1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 1.5, None, "x", True]),
)
ARRAYS = st.one_of(
    st.lists(st.integers(0, 12), max_size=9).map(lambda x: np.array(x, np.uint32)),
    st.lists(st.integers(0, 2**32 - 1), max_size=3).map(lambda x: np.array(x, np.uint32)),
    st.sampled_from([
        np.zeros(3, np.int64), np.zeros((2, 2), np.uint32), np.zeros(8, np.uint32)[::2], [1, 2],
        None, "abc", np.zeros(0, np.uint32), np.zeros(0, np.float32),
    ]),
)  # fmt: skip


@FUZZ
@given(calls=st.lists(st.tuples(st.integers(0, 9), NUMBERS, NUMBERS, ARRAYS, ARRAYS), max_size=30))
def test_engine(calls: list[tuple[int, Any, Any, Any, Any]]) -> None:
    """Any calls in any order; afterwards the engine still serves a request to its end."""
    engine: Any = _core.Engine([8, 9], 2, 3, 7, 14, 10)
    for kind, one, other, array, second in calls:
        try:
            if kind <= 1:
                engine.add_request(array, one, second, other, 0)
            elif kind == 2:
                engine.fork(one)
            elif kind == 3:
                engine.schedule()
            elif kind == 4:
                engine.commit(one, array)
            elif kind == 5:
                engine.cancel(one)
            elif kind == 6:
                engine.abort(one)
            elif kind == 7:
                engine.reset_cache()
            elif kind == 8:
                engine.load_weights()
            else:
                engine.stats()
        except (*REFUSED, RuntimeError) as error:
            assert "panic" not in str(error)
    for plan_id in reversed(engine.plans().tolist()):
        engine.cancel(plan_id)
    mine = engine.add_request(np.arange(5, dtype=np.uint32), 3, np.zeros(0, np.uint32), 4)
    outcomes = {}
    while (plan := engine.schedule()) is not None:
        statuses = engine.commit(plan.plan_id, np.zeros(len(plan.sample_seqs), np.uint32))
        outcomes |= dict(zip(plan.seq_ids[plan.sample_seqs].tolist(), statuses, strict=True))
    assert outcomes[mine] == 2
    stats = engine.stats()
    assert stats["referenced_blocks"] == stats["running"] == stats["waiting"] == 0
    assert stats["free_blocks"] + stats["cached_blocks"] == 17


@FUZZ
@given(sizes=st.tuples(st.one_of(ARRAYS, st.lists(NUMBERS, max_size=3)), *[NUMBERS] * 5))
def test_engine_sizes(sizes: tuple[Any, ...]) -> None:
    make: Any = _core.Engine
    try:
        make(*sizes)
    except (*REFUSED, MemoryError) as error:
        assert "panic" not in str(error)


@pytest.fixture(scope="module")
def model(tiny_folder: Path) -> Any:
    loaded = load_model(tiny_folder)
    limits = make_limits(loaded.config, "cpu", num_blocks=4, max_seqs=3, max_model_len=48)
    return CpuRunner(loaded.config, loaded.tensors, limits).model


def u32(*values: int) -> Any:
    return np.array(values, np.uint32)


def step() -> dict[str, Any]:
    """Two sequences of two and three rows, their tables in three blocks of 16."""
    return {
        "token_ids": u32(1, 2, 3, 4, 5),
        "positions": u32(0, 1, 0, 1, 2),
        "slots": [u32(16, 17, 32, 33, 34)],
        "query_start": u32(0, 2, 5),
        "seq_lens": u32(2, 3),
        "seats": u32(0, 2),
        "tables": [np.array([[1, 0, 0], [0, 0, 0], [2, 0, 0]], np.uint32)],
        "logits_rows": u32(1, 4),
    }


@FUZZ
@given(data=st.data())
def test_forward(model: Any, data: Any) -> None:
    want = model.forward(**step()).tobytes()
    broken = step()
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(broken)))
        old = broken[name]
        if data.draw(st.booleans()) and isinstance(old, np.ndarray) and old.size:
            changed = old.copy()
            at = data.draw(st.integers(0, old.size - 1))
            changed.flat[at] = data.draw(st.sampled_from([0, 1, 3, 47, 64, 400, 2**31, 2**32 - 1]))
            broken[name] = changed
        else:
            new = data.draw(ARRAYS)
            broken[name] = [new] if isinstance(old, list) and data.draw(st.booleans()) else new
    try:
        model.forward(**broken)
    except REFUSED as error:
        assert "panic" not in str(error)
    assert model.forward(**step()).tobytes() == want


FLOATS = st.one_of(
    st.lists(st.floats(width=32, allow_nan=True), min_size=0, max_size=20).map(
        lambda x: np.array(x, np.float32)
    ),
    st.sampled_from([
        np.zeros((2, 2), np.float32), np.zeros(4), np.zeros(8, np.float32)[::2], None, [1.0],
        np.full(5, np.nan, np.float32), np.full(5, -np.inf, np.float32),
    ]),
)  # fmt: skip
FORMATS = ["F32", "Q8_0", "Q4_K", "BF16", "x", None]
REALS = st.one_of(st.floats(allow_nan=True), st.sampled_from([0, 1, -1, 2**70, None, "x"]))


@FUZZ
@given(row=FLOATS, reals=st.tuples(*[REALS] * 6), whole=st.tuples(*[NUMBERS] * 4), data=st.data())
def test_sample(row: Any, reals: Any, whole: Any, data: Any) -> None:
    draw: Any = _core.sample
    names = (
        "temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty",
        "frequency_penalty",
    )  # fmt: skip
    bias = data.draw(st.lists(st.tuples(NUMBERS, REALS), max_size=2))
    try:
        token = draw(
            row, **dict(zip(names, reals, strict=True)),
            **dict(zip(("seed", "sample_index", "position", "top_k"), whole, strict=True)),
            logit_bias=bias, prompt=data.draw(ARRAYS), output=data.draw(ARRAYS),
        )  # fmt: skip
    except REFUSED as error:
        assert "panic" not in str(error)
    else:
        assert 0 <= token < len(row)


@FUZZ
@given(
    rows=FLOATS, dtype=st.sampled_from(["F32", "Q8_0", "Q4_K", "BF16", "x", None]), data=st.data()
)
def test_arrays(rows: Any, dtype: Any, data: Any) -> None:
    calls: list[Any] = [
        lambda: _core.log_softmax(rows),
        lambda: _core.argmax(rows),
        lambda: _core.dequantize((dtype, shape, raw)),
    ]
    shape: Any = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 32, 256, 2**40]), max_size=3)))
    raw: Any = np.zeros(data.draw(st.sampled_from([0, 1, 34, 144, 256])), np.uint8)
    for call in calls:
        try:
            call()
        except (*REFUSED, MemoryError) as error:
            assert "panic" not in str(error)
