"""Attention in one kernel and in two: the state of a split is what the two hand over in memory.

First, what `attention_splits` stores for a row, head and split is what the inner loop of
`attention_whole` gives in the iteration of that split, which runs. Then `attention_whole` and
`attention_combine` store the same, where the inner loop's result *is* what the other kernel finds
in memory. The two together make them one family.
"""

from __future__ import annotations

import z3

from pyvosti.analyzer.contracts import Row
from pyvosti.analyzer.launch import Launch
from pyvosti.analyzer.loops import iteration
from pyvosti.analyzer.obligations import Broken, Outcome, at_row, columns, same_bits
from pyvosti.analyzer.relate import Relation
from pyvosti.analyzer.stores import Store, execute, sites
from pyvosti.analyzer.terms import Hole
from pyvosti.analyzer.ttir import NotAnalysable, Op

STATES = ("m_ptr", "l_ptr", "acc_ptr")
"""The arguments that hold a split's state, in the order of the loop's results."""


def inner_loop(whole: Launch) -> tuple[Op, Op]:
    """The loop over splits of `attention_whole`, and the loop over the keys of one."""
    outer = [op for op in whole.function.body.ops if op.name == "scf.for"]
    inner = [op for loop in outer for op in loop.regions[0].ops if op.name == "scf.for"]
    if len(outer) != 1 or len(inner) != 1 or len(inner[0].results) != len(STATES):
        raise NotAnalysable("attention_whole is not one loop in another")
    return outer[0], inner[0]


def only_store(launch: Launch) -> Store:
    """Any execution of the one store of a kernel."""
    found = sites(launch.function)
    if len(found) != 1:
        raise NotAnalysable(f"{launch.function.name} does not have one store")
    return execute(found[0], launch)


def stored_states(splits: Launch, whole: Launch) -> Outcome:
    """Each stored state is the inner loop's result, in an iteration that `attention_whole` runs."""
    outer, inner = inner_loop(whole)
    for site in sites(splits.function):
        one, two = execute(site, splits), only_store(whole)
        result = STATES.index(one.name)
        column = columns(splits.terms, one.role)
        lane = two.index[1] if len(column) == 2 else column[2]
        joint = tuple(at_row(one, column) + at_row(two, [column[0], lane]))
        joint += tuple(x == column[1] for x in one.variables)
        bounds = tuple(two.frames[0].element(v) for v in outer.operands[:3])
        split = column[1]
        runs = z3.And(split >= bounds[0], split < bounds[1])
        model = splits.terms.refute([*joint, z3.Not(runs)])
        if model is not None:
            return Broken(model, one, two, tuple(column), one.name, "a split that is left out")
        frame = iteration(two.frames[0], outer, bounds, split)
        relation = Relation(splits.terms, False)
        for x in one.frames:
            relation.join(x, frame, joint)
        joint = relation.join(one.frames[-1], frame, joint)
        index = two.index[: len(inner.results[result].type.shape)]
        values = (
            one.frames[-1].element(one.value, one.index, one.role.modulo_zero),
            frame.element(inner.results[result], index, one.role.modulo_zero),
        )
        if not relation.equal(*values, joint, "the state of a split"):
            model, what = relation.failure or (None, "")
            return Broken(model, one, two, tuple(column), one.name, what)
        if splits.terms.refute([*joint, values[0] == values[1]]) is None:
            raise NotAnalysable("the premises contradict each other")
    return None


def folded_states(whole: Launch, combine: Launch) -> Outcome:
    """Both store the same, if what `attention_combine` reads is the inner loop's result."""
    outer, inner = inner_loop(whole)
    two = only_store(combine)
    roles = combine.memory.roles
    column = columns(whole.terms, two.role)

    def handed_over(hole: Hole) -> None:
        """The fact about a result of the inner loop, for the row and head that are looked at."""
        if hole.op is not inner or not hole.index[0].eq(one.index[0]):
            return
        split = hole.frame.variables[outer.regions[0].arguments[0]]
        name = STATES[hole.result]
        role = roles[name]
        assert isinstance(role, Row)
        if hole.modulo_zero != role.modulo_zero or not all(
            x.eq(y) for x, y in zip(hole.index, one.index, strict=False)
        ):
            return
        place = [column[0], split, *column[1:]][: len(role.at.dims)]
        address = combine.memory.place(role.at, z3.IntVal(0), place)
        address = address - combine.memory.base(role.at, z3.IntVal(0))
        element = combine.memory.kinds[name].element
        shared = whole.terms.function(f"{name}@row:{element}", "int", "float")(address)
        live = combine.memory.live(role.live, combine.row, place)
        inside = [z3.And(i >= 0, i < n) for i, (n, _) in zip(place, role.at.dims, strict=True)]
        whole.terms.fact(hole.term, z3.Implies(z3.And(*live, *inside), hole.term == shared))

    whole.on_hole = handed_over
    one = only_store(whole)
    broken, meets = same_bits(one, two, False, column)
    if broken is None and not meets:
        raise NotAnalysable("the premises contradict each other")
    return broken
