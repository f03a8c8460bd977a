"""Every float law that a proof may use, bit by bit: all 16-bit values, and f32 at random.

The law `dead_lane` is about tensor cores and is probed on a GPU by the benchmarks.
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("z3")

from pyvosti.analyzer.floats import LAWS, ZERO_CARRIERS  # noqa: E402

KINDS = [torch.float16, torch.bfloat16, torch.float32]
BITS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32}


def samples(kind):
    """All values of a 16-bit type; of f32 a million bit patterns, zeros and extremes first."""
    if kind != torch.float32:
        return torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(kind)
    special = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x7F7FFFFF]
    rest = np.random.default_rng(1).integers(0, 1 << 32, 1_000_000)
    bits = np.concatenate([special, rest]).astype(np.uint32).view(np.int32)
    return torch.from_numpy(bits).view(kind)


def z(x):
    """-0.0 becomes +0.0; nothing else changes."""
    return torch.where(x == 0, torch.zeros_like(x), x)


def same(x, y) -> bool:
    """Equal bits; all NaNs are one."""
    equal = x.view(BITS[x.dtype]) == y.view(BITS[y.dtype])
    return bool((equal | (x.isnan() & y.isnan())).all())


def pairs(kind):
    """Operands: every sample with the special ones, and with itself in another order."""
    x = samples(kind)
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.5, -3e-5])
    for y in special.to(kind):
        yield x, y.expand_as(x).contiguous()
        yield y.expand_as(x).contiguous(), x
    yield x, x.flip(0)
    yield x, x


OPERATIONS = {
    "addf": torch.add, "subf": torch.sub, "mulf": torch.mul, "maxnumf": torch.fmax,
    "minnumf": torch.fmin, "maximumf": torch.maximum, "minimumf": torch.minimum,
}  # fmt: skip


def test_every_law_is_probed_here_and_every_carrier() -> None:
    here = globals()
    for law in LAWS:
        assert law == "dead_lane" or f"test_{law}" in here, law
    unary = {"truncf", "extf", "negf"}
    assert {name.split(".")[1] for name in ZERO_CARRIERS} == set(OPERATIONS) | unary


@pytest.mark.parametrize("kind", KINDS)
def test_zero_sign_carried(kind) -> None:
    for x, y in pairs(kind):
        for name, op in OPERATIONS.items():
            assert same(z(op(x, y)), z(op(z(x), z(y)))), name
        assert same(z(x / y), z(z(x) / y))
        assert same(z(-x), z(-z(x)))
    x = samples(kind)
    for other in KINDS:
        assert same(z(x.to(other)), z(z(x).to(other)))


@pytest.mark.parametrize("kind", KINDS)
def test_zero_sign_erased(kind) -> None:
    x = samples(kind)
    assert same(x + 0.0, z(x) + 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_minus_infinity_stays(kind) -> None:
    y = samples(kind)
    gap = torch.full_like(y, -float("inf")) - y
    assert bool((gap.isnan() | (gap == -float("inf"))).all())


@pytest.mark.parametrize("kind", KINDS)
def test_exponential_of_minus_infinity(kind) -> None:
    x = torch.tensor([-float("inf"), float("nan")]).to(kind)
    for result in (torch.exp(x), torch.exp2(x)):
        assert same(result, torch.tensor([0.0, float("nan")]).to(kind))


def test_cast_of_zero() -> None:
    x = torch.tensor([0.0, float("nan")])
    for kind in KINDS[:2]:
        assert same(x.to(kind), torch.tensor([0.0, float("nan")]).to(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_finite_compare(kind) -> None:
    x = samples(kind)
    assert bool((x.isfinite() == (x.abs() < float("inf"))).all())


@pytest.mark.parametrize("kind", KINDS[:2])
def test_finite_cast(kind) -> None:
    x = samples(kind)
    wide = x.to(torch.float32)
    assert bool((wide.isfinite() == x.isfinite()).all())
    assert same(wide.to(kind), x)
