"""One faulty kernel: a shipped kernel, an edit, and where the fault comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyvosti.analyzer.contracts import Contract
from pyvosti.analyzer.corpus.bases import small_spec
from pyvosti.analyzer.kernel_contracts import contract_of
from pyvosti.analyzer.patched import Edits, PatchedSpec

KINDS = (
    "splits or tile from the batch",
    "row-count-dependent branch",
    "num_programs in the order",
    "order from the row's place",
    "cross-row reduce",
    "another row's data",
    "atomics",
    "accumulate into output",
    "mask with a wrong identity",
    "mask with a wrong bound",
    "stale page-table tail",
    "split boundary relative to the chunk",
    "physical instead of logical position",
    "padding row stores",
    "store outside of the row",
    "fp fusion left on",
    "unspecialised alignment",
    "layout along the reduced axis",
)


@dataclass(frozen=True)
class Fault:
    """A kernel that must be found unequal, with a counterexample that two launches show.

    `seen` names where the fault was met, "-" where it was made up. `changed` are constants in
    which the small specialisation differs, `contract` turns the shipped kernel's contract into
    this one's.
    """

    name: str
    kind: str
    kernel: str
    edits: Edits
    seen: str = "-"
    changed: dict[str, Any] = field(default_factory=dict)
    contract: Callable[[Contract], Contract] | None = None

    def spec(self) -> PatchedSpec:
        """The small specialisation of the edited kernel."""
        return small_spec(self.kernel, self.edits, **self.changed)

    def contract_of(self) -> Contract:
        """What the kernel should keep."""
        shipped = contract_of(self.spec())
        return shipped if self.contract is None else self.contract(shipped)
