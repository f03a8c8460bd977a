"""No certificate, no launch: what a GPU kernel needs before it may run.

`require` compares a schedule's certificates with what the compiler has just produced; only kernels
that it admitted can be bound. Certificates that a model has none of yet are made here, once, by the
analyzer in processes of its own, from the kernels as they were shipped; certificates that do not
match are never made anew on the way: that takes `pyvosti certify`, deliberately.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pyvosti.errors import ConfigError

if TYPE_CHECKING:
    from pyvosti.analyzer.certificate import Certificate
    from pyvosti.triton_kernels.compile import Spec
    from pyvosti.triton_kernels.schedule import Schedule

REMEDY = "run `pyvosti certify` for this model, or pass allow_uncertified for research"

_admitted: set[tuple[Spec, int]] = set()
_uncertified_allowed = False


def allow_uncertified(why: str) -> None:
    """Lets this process launch kernels that nothing was proved of, and says so on stderr."""
    global _uncertified_allowed
    if not _uncertified_allowed:
        sys.stderr.write(f"UNCERTIFIED: GPU kernels may run without a certificate ({why})\n")
    _uncertified_allowed = True


def check_admitted(spec: Spec, arch: int) -> None:
    """Raises ConfigError for a kernel that `require` has not admitted in this process."""
    if (spec, arch) not in _admitted and not _uncertified_allowed:
        raise ConfigError(f"{spec.kernel} {spec.key()} has no certificate on sm_{arch}: {REMEDY}")


def require(schedule: Schedule) -> tuple[str, ...]:
    """Admits every kernel of a schedule that is certified, after compiling it.

    Returns what stands against the others, where uncertified kernels are allowed. Raises
    ConfigError, naming the first kernel and what is wrong with it, where they are not.
    """
    from pyvosti.triton_kernels.launches import all_specs

    specs = all_specs(schedule)
    certificates, against, missing = _matched(specs, schedule.arch)
    if missing and not against and not _uncertified_allowed:
        _make(schedule, missing)
        certificates, against, missing = _matched(specs, schedule.arch)
    against += [f"{spec.kernel} {spec.key()} has no certificate" for spec in missing]
    against += _families(certificates, schedule.arch)
    if against and not _uncertified_allowed:
        raise ConfigError(f"{against[0]}: {REMEDY}")
    for sentence in against:
        sys.stderr.write(f"UNCERTIFIED: {sentence}\n")
    _admitted.update((spec, schedule.arch) for spec in certificates)
    return tuple(against)


def _stores() -> list[Path]:
    from pyvosti.analyzer.certificate import cache_store, shipped_store

    return [shipped_store(), cache_store()]


def _matched(
    specs: Sequence[Spec], arch: int
) -> tuple[dict[Spec, Certificate], list[str], list[Spec]]:
    """Certificates that fit, what stands against those that do not, and what has none."""
    from pyvosti.analyzer.certificate import analyzer_digest, entry_name, objections, read_store

    try:
        stores = [read_store(folder) for folder in _stores()]
    except ValueError as error:
        raise ConfigError(f"{error}; delete it and run `pyvosti certify`") from None
    digest = analyzer_digest()
    fitting: dict[Spec, Certificate] = {}
    against: list[str] = []
    missing = []
    for spec in specs:
        name = entry_name(spec, arch)
        found = [store[name] for store in stores if name in store]
        faults: list[str] = []
        for one in found:
            faults = objections(one, spec, arch)
            if one["versions"]["analyzer"] != digest:
                faults.append("another analyzer made its certificate")
            if not faults:
                fitting[spec] = one
                break
        if not found:
            missing.append(spec)
        elif spec not in fitting:
            against.append(f"{spec.kernel} {spec.key()}: {'; '.join(faults)}")
    return fitting, against, missing


def _families(certificates: Mapping[Spec, Certificate], arch: int) -> list[str]:
    from pyvosti.analyzer.certificate import family_objections

    return family_objections(certificates, arch)


def _make(schedule: Schedule, missing: Sequence[Spec]) -> None:
    """Certifies the schedule into the cache, if its kernels are those that were shipped."""
    from pyvosti.analyzer.certificate import cache_store, read_store, shipped_store, sources_of

    sealed = {one["kernel"]: one["sources"] for one in read_store(shipped_store()).values()}
    for spec in missing:
        if sealed.get(spec.kernel) != sources_of(spec):
            raise ConfigError(
                f"the source of {spec.kernel} is not the one that was shipped, and it has no "
                f"certificate: {REMEDY}"
            )
    if not find_spec("z3"):
        raise ConfigError(
            f"{missing[0].kernel} has no certificate for this model, and making one needs z3; "
            "run: pip install 'pyvosti[analyzer]'"
        )
    from pyvosti.analyzer.certify import certify
    from pyvosti.triton_kernels.launches import all_specs

    specs = all_specs(schedule)
    sys.stderr.write(f"certifying {len(specs)} GPU kernels for this model, once: a minute or two\n")
    for _ in certify(specs, schedule.arch, cache_store()):
        pass
