"""Shipped kernels with their text edited: the faulty kernels of the corpus, and mutants.

An edit replaces a piece of the kernel's source file; Triton reads source from files, so the edited
text is written to a folder of its own and imported from there. An edit that no longer applies is
an error: the corpus cannot rot silently. One that fits in several places applies in all of them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyvosti.triton_kernels import compile as shipped
from pyvosti.triton_kernels.compile import Spec

Edits = tuple[tuple[str, str], ...]
"""(old text, new text), applied in order."""


@dataclass(frozen=True)
class PatchedSpec(Spec):
    """A specialisation of an edited kernel."""

    edits: Edits = ()

    @property
    def function(self) -> Any:
        """The edited kernel's function. Raises ValueError when an edit does not apply."""
        return patched_module(self.kernel, self.edits)[self.kernel]


def kernel_file(kernel: str) -> Path:
    """The source file of a shipped kernel."""
    return Path(inspect.getfile(shipped.KERNELS[kernel].fn))


def edited(text: str, edits: Edits, name: str) -> str:
    """The text with every edit applied. Raises ValueError for one that does not apply."""
    for old, new in edits:
        if old not in text:
            raise ValueError(f"an edit of {name} does not apply: {old!r}")
        text = text.replace(old, new)
    return text


@cache
def patched_module(kernel: str, edits: Edits) -> dict[str, Any]:
    """The names of the kernel's module after the edits."""
    file = kernel_file(kernel)
    return imported(edited(file.read_text(encoding="utf-8"), edits, file.name), file.stem)


def imported(text: str, stem: str) -> dict[str, Any]:
    """The names of a kernel module with this text; its relative imports are the package's."""
    text = text.replace("from .", "from pyvosti.triton_kernels.")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    name = f"pyvosti_patched_{stem}_{digest}"
    if name not in sys.modules:
        path = _folder() / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return vars(sys.modules[name])


@cache
def _folder() -> Path:
    """Removed when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="pyvosti-kernels-")
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[Any] = []
