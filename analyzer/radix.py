"""Addresses as mixed radix numbers: exact steps on linear terms that z3 finds only by search.

Everything rests on intervals that hold always (`Terms.bounds`): if G divides H and |L| < G, then
H + L = 0 says H = 0 and L = 0, and (H + L) div G is H / G for 0 <= L < G.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import z3

from pyvosti.analyzer.terms import Terms

Units = dict[int, tuple[Any, int]]
"""Id of an atom -> (the atom, its coefficient)."""


def linear(term: Any, factor: int = 1, units: Units | None = None) -> tuple[Units, int]:
    """A sum of atoms with coefficients, and a constant."""
    units = {} if units is None else units
    if z3.is_int_value(term):
        return units, factor * term.as_long()
    if z3.is_add(term) or z3.is_sub(term):
        total = 0
        for place, part in enumerate(term.children()):
            sign = -1 if place and z3.is_sub(term) else 1
            total += linear(part, sign * factor, units)[1]
        return units, total
    if z3.is_mul(term) and term.num_args() == 2:
        for x, y in (term.children(), term.children()[::-1]):
            if z3.is_int_value(x):
                return linear(y, factor * x.as_long(), units)
    if term.decl().kind() == z3.Z3_OP_UMINUS:
        return linear(term.arg(0), -factor, units)
    known = units.get(term.get_id(), (term, 0))
    units[term.get_id()] = (term, known[1] + factor)
    if not units[term.get_id()][1]:
        del units[term.get_id()]
    return units, 0


def total(parts: list[tuple[Any, int]], constant: int) -> Any:
    """The term again."""
    scaled = [x if k == 1 else x * k for x, k in parts]
    if constant or not scaled:
        scaled.append(z3.IntVal(constant))
    return scaled[0] if len(scaled) == 1 else z3.Sum(scaled)


def span(terms: Terms, parts: list[tuple[Any, int]], constant: int) -> tuple[int, int] | None:
    """The interval of a sum, if all atoms have one."""
    low = high = constant
    for x, k in parts:
        bounds = terms.bounds(x)
        if bounds is None:
            return None
        low += min(k * bounds[0], k * bounds[1])
        high += max(k * bounds[0], k * bounds[1])
    return low, high


def equations(terms: Terms, left: Any, right: Any) -> list[Any]:
    """Equations that together say left = right: one a digit, as far as intervals tell."""
    units, constant = linear(left - right)
    parts, found = sorted(units.values(), key=lambda p: -abs(p[1])), []
    while parts:
        for cut in range(len(parts) - 1, 0, -1):
            step = gcd(*(k for _, k in parts[:cut]))
            rest = span(terms, parts[cut:], constant)
            if rest is not None and -step < rest[0] and rest[1] < step:
                found.append(total(parts[cut:], constant) == 0)
                parts, constant = [(x, k // step) for x, k in parts[:cut]], 0
                break
        else:
            break
    return [*found, total(parts, constant) == 0]


def quotient(terms: Terms, term: Any, divisor: int) -> Any:
    """term div divisor (rounded down), without what intervals show to be a digit above or below."""
    units, constant = linear(term)
    above = [(x, k // divisor) for x, k in units.values() if k % divisor == 0]
    below = [(x, k) for x, k in units.values() if k % divisor]
    rest = span(terms, below, constant)
    if rest is not None and 0 <= rest[0] and rest[1] < divisor:
        return total(above, 0)
    return total([*above, (total(below, constant) / divisor, 1)], 0)


def remainder(terms: Terms, term: Any, divisor: int) -> Any:
    """term mod divisor, without multiples of the divisor."""
    units, constant = linear(term)
    below = [(x, k) for x, k in units.values() if k % divisor]
    rest = span(terms, below, constant)
    left = total(below, constant)
    return left if rest and 0 <= rest[0] and rest[1] < divisor else left % divisor
