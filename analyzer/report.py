"""The result of an analysis."""

from dataclasses import asdict, dataclass, field
from typing import Any

PROVED, UNEQUAL, NOT_ANALYSABLE = "proved", "unequal", "not analysable"


@dataclass(frozen=True)
class Obligation:
    """One named thing to show. `queries`: how many z3 checks it took, all `unsat` if proved."""

    name: str
    verdict: str
    seconds: float
    queries: int
    detail: str = ""


@dataclass(frozen=True)
class Launch:
    """One concrete launch of a counterexample.

    `program`: the ids of the program that stores, `grid`: at least so many programs by axis.
    `index`: the element's place in the stored tensor, `loops`: values of the loop variables.
    `arrays`: argument -> address -> integer, as far as the model fixes them.
    """

    row: int
    rows: int
    grid: tuple[int, ...]
    program: tuple[int, ...]
    index: tuple[int, ...] = ()
    loops: tuple[int, ...] = ()
    arrays: dict[str, dict[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Counterexample:
    """Two launches that may store different bits for one row, or what is wrong with one (A = B).

    `column`: the element of the row that differs, an index by dim. The model leaves float data
    free: a replay has to pick it.
    """

    obligation: str
    output: str
    column: tuple[int, ...]
    a: Launch
    b: Launch


@dataclass(frozen=True)
class Report:
    """Verdict on one kernel specialisation (or on a pair, for two members of a family)."""

    kernel: str
    verdict: str
    obligations: tuple[Obligation, ...]
    counterexample: Counterexample | None = None
    reason: str = ""

    @property
    def seconds(self) -> float:
        """Time of all obligations."""
        return sum(obligation.seconds for obligation in self.obligations)

    def data(self) -> dict[str, Any]:
        """Plain data, for a certificate."""
        return asdict(self)
