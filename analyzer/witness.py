"""From a model of a failed query to two concrete launches."""

from __future__ import annotations

from typing import Any

import z3

from pyvosti.analyzer import report
from pyvosti.analyzer.launch import Launch
from pyvosti.analyzer.obligations import Broken
from pyvosti.analyzer.stores import Store


def number(model: Any, term: Any) -> int:
    """A term's value in the model."""
    value = model.eval(term, model_completion=True)
    return int(value.as_long()) if z3.is_int_value(value) else 0


def counterexample(name: str, a: Launch, b: Launch, broken: Broken) -> report.Counterexample:
    """The two launches of a broken obligation."""
    column = tuple(number(broken.model, c) for c in broken.column) if broken.model else ()
    stores = (broken.a, broken.b or broken.a)
    launches = [
        concrete(launch, store, broken.model) for launch, store in zip((a, b), stores, strict=True)
    ]
    return report.Counterexample(name, broken.output, column, *launches)


def concrete(launch: Launch, store: Store | None, model: Any) -> report.Launch:
    """One launch with the numbers of the model; without a model, two rows and nothing else."""
    if model is None:
        return report.Launch(0, 2, (1, 1, 1), (0, 0, 0))
    where = store.launch if store else launch
    return report.Launch(
        row=number(model, where.row),
        rows=number(model, where.rows),
        grid=tuple(number(model, g) for g in where.grid),
        program=tuple(number(model, p) for p in where.program),
        index=tuple(number(model, i) for i in store.index) if store else (),
        loops=tuple(number(model, v) for v in store.variables) if store else (),
        arrays=arrays(where, model),
    )


def arrays(launch: Launch, model: Any) -> dict[str, dict[int, int]]:
    """Integer arrays at the addresses for which the model has values."""
    found: dict[str, dict[int, int]] = {}
    for decl in model.decls():
        name, _, rest = decl.name().partition("@")
        side = rest.partition(":")[0]
        is_int = decl.arity() == 1 and decl.range() == z3.IntSort()
        if name in launch.memory.roles and side == launch.side and is_int:
            interpretation = model[decl]
            entries = interpretation.as_list()[:-1]
            found[name] = {int(k.as_long()): int(v.as_long()) for k, v in entries}
    return found
