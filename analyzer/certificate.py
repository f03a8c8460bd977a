"""Certificates as files: what was proved of which artifact, and whether what runs is that artifact.

A store is a folder with one JSON file a kernel; in it one entry a specialisation and architecture.
Two stores are read: `triton_kernels/certificates`, which ships with the kernels for a few models,
and a cache that `pyvosti certify` fills for any other. This module only reads, writes and compares:
the runtime needs no solver.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyvosti.analyzer.lowering import family_faults, family_of
from pyvosti.analyzer.patched import PatchedSpec, edited, kernel_file
from pyvosti.triton_kernels.compile import Spec, fingerprint

Certificate = dict[str, Any]

ROW_FUNCTIONS = {
    "adjust": ["sampler"],
    "argmax": ["sampler"],
    "attention_combine": ["attention"],
    "attention_splits": ["attention"],
    "attention_whole": ["attention"],
    "embedding": ["embed"],
    "gate_up": ["gate"],
    "gather_rows": ["head"],
    "linear": ["linear", "head"],
    "log_softmax": [],
    "rms_norm": ["norm", "add"],
    "rope_kv_write": ["rope", "store"],
    "sample": ["sampler"],
    "sandwich_norm": ["norm", "add"],
}
"""Kernel -> the row functions of `verus-proofs/src/trusted/row_functions.rs` that it computes.

No theorem speaks of `log_softmax`: log-probabilities are reported, nothing is drawn from them.
"""

UNTRUSTED = ("certify.py", "explain.py", "mutation.py", "shapes.py")
"""Files of the analyzer that no certificate depends on."""


def shipped_store() -> Path:
    """The certificates that come with the kernels."""
    return kernel_file("linear").parent / "certificates"


def cache_store() -> Path:
    """`$PYVOSTI_CACHE`, or `pyvosti` in the user's cache folder; by the version of the analyzer."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    base = Path(os.environ.get("PYVOSTI_CACHE") or cache / "pyvosti")
    return base / "certificates" / analyzer_digest()[:12]


@cache
def analyzer_digest() -> str:
    """SHA-256 of the analyzer's source: another analyzer makes other certificates."""
    state = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.name not in UNTRUSTED:
            state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def sources_of(spec: Spec) -> dict[str, str]:
    """SHA-256 of the kernel's file and of those that it takes functions from, by name."""
    first = kernel_file(spec.kernel)
    waiting, found = [first], {}
    while waiting:
        path = waiting.pop()
        text = path.read_text(encoding="utf-8")
        if path == first and isinstance(spec, PatchedSpec):
            text = edited(text, spec.edits, path.name)
        found[path.name] = hashlib.sha256(text.encode()).hexdigest()
        names = re.findall(r"^from \.(\w+) import", text, flags=re.M)
        waiting += [path.parent / f"{name}.py" for name in names if f"{name}.py" not in found]
    return dict(sorted(found.items()))


def entry_name(spec: Spec, arch: int) -> str:
    """The certificate's name in its file."""
    return f"{spec.key()}-sm{arch}"


def read_store(folder: Path) -> dict[str, Certificate]:
    """All entries of a store, by name; empty when there is none. Raises ValueError if damaged."""
    found: dict[str, Certificate] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found |= json.loads(path.read_text(encoding="utf-8"))["certificates"]
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"the certificates in {path} cannot be read: {error}") from None
    return found


def write_store(folder: Path, made: Iterable[Certificate]) -> None:
    """Adds certificates to a store; each file is replaced as a whole."""
    by_kernel: dict[str, dict[str, Certificate]] = {}
    for one in made:
        by_kernel.setdefault(one["kernel"], {})[one["name"]] = one
    folder.mkdir(parents=True, exist_ok=True)
    for kernel, entries in by_kernel.items():
        path = folder / f"{kernel}.json"
        if path.exists():
            entries = json.loads(path.read_text(encoding="utf-8"))["certificates"] | entries
        lines = [f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries)]
        head = {"kernel": kernel, "row_functions": ROW_FUNCTIONS[kernel]}
        text = json.dumps(head)[:-1] + ', "certificates": {\n' + ",\n".join(lines) + "\n}}\n"
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)


def objections(certificate: Certificate, spec: Spec, arch: int) -> list[str]:
    """Why a certificate does not let this artifact run; empty when it does. Compiles it."""
    if certificate["verdict"] != "proved":
        return [f"it was found {certificate['verdict']}"]
    now = {f"source {name}": digest for name, digest in sources_of(spec).items()}
    now |= fingerprint(spec, arch)
    then = {f"source {name}": digest for name, digest in certificate["sources"].items()}
    then |= certificate["artifacts"]
    changed = [name for name in now if then.get(name) != now[name]]
    return [f"{', '.join(changed)} changed since it was certified"] if changed else []


def family_objections(certificates: Mapping[Spec, Certificate], arch: int) -> list[str]:
    """Why the members of some family are not one class; certificates by specialisation."""
    families: dict[str, list[Spec]] = {}
    for spec in certificates:
        families.setdefault(family_of(spec), []).append(spec)
    found = []
    for name, specs in families.items():
        kernels = " and ".join(dict.fromkeys(spec.kernel for spec in specs))
        faults = family_faults([certificates[spec]["lowering"] for spec in specs], arch)
        faults += [
            f"{one.kernel} {one.key()} was not proved equal to {specs[0].key()}"
            for one in unconnected(specs, certificates)
        ]
        found += [f"{kernels} (family {name}): {fault}" for fault in faults]
    return found


def unconnected(specs: Sequence[Spec], certificates: Mapping[Spec, Certificate]) -> list[Spec]:
    """Members of a family that no chain of proved pairs ties to its first member.

    A pair that was proved through an `attention_combine` counts where that one runs, too.
    """
    present = {spec.key() for spec in certificates}
    ties = {
        spec.key(): {
            key
            for key, pair in certificates[spec]["equal_to"].items()
            if pair.get("combine", spec.key()) in present
        }
        for spec in specs
    }
    reached: set[str] = set()
    waiting = {specs[0].key()}
    while waiting:
        reached |= waiting
        waiting = {k for k, others in ties.items() if others & reached}
        waiting |= {other for key in reached for other in ties.get(key, ())}
        waiting -= reached
    return [spec for spec in specs if spec.key() not in reached]
