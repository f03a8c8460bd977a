"""The stores of a kernel, each as one symbolic execution: any program, iteration and element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from pyvosti.analyzer.contracts import Out
from pyvosti.analyzer.elements import Frame
from pyvosti.analyzer.integers import type_range
from pyvosti.analyzer.launch import Launch
from pyvosti.analyzer.loops import iteration
from pyvosti.analyzer.ttir import Block, Function, NotAnalysable, Op, Value


@dataclass(frozen=True)
class Site:
    """A store and the loops and branches around it, outermost first."""

    op: Op
    path: tuple[tuple[Op, Block], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor that is stored."""
        return self.op.operands[0].type.shape


@dataclass(frozen=True)
class Store:
    """One element stored by one program. It happens when `conditions` hold."""

    launch: Launch
    site: Site
    frames: tuple[Frame, ...]
    variables: tuple[Any, ...]
    index: tuple[Any, ...]
    name: str
    offset: Any
    conditions: tuple[Any, ...]

    @property
    def value(self) -> Value:
        """What is stored."""
        return self.site.op.operands[1]

    @property
    def role(self) -> Out:
        """The role of the argument that is stored to."""
        role = self.launch.memory.roles[self.name]
        if not isinstance(role, Out):
            raise NotAnalysable(f"{self.name} is stored to, against the contract")
        return role

    def coordinates(self) -> list[Any]:
        """What tells this execution from others: program ids, loop variables, index."""
        return [*self.launch.program, *self.variables, *self.index]


def sites(function: Function, names: tuple[str, ...] = ("tt.store",)) -> list[Site]:
    """All operations of these names, in order."""
    found: list[Site] = []

    def walk(block: Block, path: tuple[tuple[Op, Block], ...]) -> None:
        for op in block.ops:
            if op.name in names:
                found.append(Site(op, path))
            for region in op.regions:
                walk(region, (*path, (op, region)))

    walk(function.body, ())
    return found


def execute(
    site: Site,
    launch: Launch,
    index: tuple[Any, ...] | None = None,
    variables: tuple[Any, ...] | None = None,
) -> Store:
    """The store in a launch's program: any iteration and element, or those given."""
    terms = launch.terms
    frame = Frame(launch, launch.function.body)
    frames = [frame]
    chosen: list[Any] = []
    conditions: list[Any] = []
    for op, block in site.path:
        if op.name == "scf.if":
            holds = frame.element(op.operands[0])
            conditions.append(holds if block is op.regions[0] else z3.Not(holds))
            frame = frame.branch(block)
        else:
            bounds = tuple(frame.element(v) for v in op.operands[:3])
            if not z3.is_int_value(bounds[2]) or bounds[2].as_long() < 1:
                raise NotAnalysable("the step of a loop is not a positive constant")
            if variables is None:
                low, high = (terms.bounds(b) or type_range(64) for b in bounds[:2])
                variable = terms.integer("iteration", low[0], max(low[0], high[1] - 1))
            else:
                variable = variables[len(chosen)]
            chosen.append(variable)
            frame = iteration(frame, op, bounds, variable)
        frames.append(frame)
    if index is None:
        index = tuple(terms.integer("index", 0, extent - 1) for extent in site.shape)
    argument, offset = frame.element(site.op.operands[0], index)
    if len(site.op.operands) > 2:
        conditions.append(frame.element(site.op.operands[2], index))
    conditions = [c for c in conditions if not z3.is_true(c)]
    return Store(
        launch,
        site,
        tuple(frames),
        tuple(chosen),
        index,
        launch.memory.names[argument],
        offset,
        (*frame.hypotheses, *conditions),
    )
