"""Float operations as uninterpreted functions, with the closed list of laws that may be used.

A term may be built *modulo the sign of zero* (`modulo_zero`): it then stands for z(x), where z
turns -0.0 into +0.0 and leaves everything else as it is. `LAWS` names each law with the probe
that tests it bit by bit; nothing else is known of floats, associativity least of all.
"""

from __future__ import annotations

from typing import Any

import z3

from pyvosti.analyzer.terms import F, Terms

LAWS = {
    "zero_sign_carried": "z(x op y) is a function of z(x) and z(y) for + - * max min, casts of "
    "floats and negation; z(x / y) of z(x) and y",
    "zero_sign_erased": "x + (+0.0) is a function of z(x)",
    "minus_infinity_stays": "-inf - y is -inf or NaN",
    "exponential_of_minus_infinity": "exp(x) and exp2(x) are +0.0 or NaN for x = -inf or NaN",
    "cast_of_zero": "a cast to a narrower float keeps +0.0 and NaN",
    "finite_compare": "abs(x) < +inf holds only of finite x",
    "finite_cast": "a narrower float cast up is finite just if it was, and cast back is finite",
    "dead_lane": "in tl.dot a lane whose weight is +0.0 or NaN adds the same, up to the sign of "
    "zero, whatever finite number it meets (hardware; its own assumption)",
}
"""Every float law that a proof may use. tests/test_analyzer_laws.py probes all but the last."""

ZERO_CARRIERS = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "subf", "mulf", "maxnumf", "minnumf", "maximumf", "minimumf"),
        *("truncf", "extf", "negf"),
    )
)
"""Operations of which z(result) is a function of z(operands)."""

EXPONENT = {"f16": (10, 0x1F), "bf16": (7, 0xFF), "f32": (23, 0xFF), "f64": (52, 0x7FF)}
"""Type -> (bits of the fraction, largest exponent field)."""


def is_finite(bits: int, element: str) -> bool:
    """Whether the bits are a finite number."""
    fraction, top = EXPONENT[element]
    return (bits >> fraction) & top != top


def negative_zero(element: str) -> int:
    """Bits of -0.0."""
    return {"f16": 1 << 15, "bf16": 1 << 15, "f32": 1 << 31, "f64": 1 << 63}[element]


def infinity(element: str) -> int:
    """Bits of +inf."""
    fraction, top = EXPONENT[element]
    return top << fraction


class Floats:
    """Builds float terms and the facts that the laws give about them."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def predicate(self, name: str, x: Any) -> Any:
        """finite, zero_or_nan, minus_infinity_or_nan, or exact_<type>: x is a cast-up value."""
        return self.terms.function(name, "float", "bool")(x)

    def constant(self, bits: int, element: str, modulo_zero: bool = False) -> Any:
        """The float of these bits."""
        if modulo_zero and bits == negative_zero(element):
            bits = 0
        term = z3.Const(f"{element}:{bits:x}", F)
        if is_finite(bits, element):
            self.terms.fact(term, self.predicate("finite", term))
        if bits == 0:
            for narrow in ("f16", "bf16"):
                self.terms.fact(term, self.predicate(f"exact_{narrow}", term))
        return term

    def erased(self, x: Any) -> Any:
        """z(x) of a term built exactly."""
        return self.terms.function("z", "float", "float")(x)

    def apply(self, name: str, element: str, operands: list[Any], modulo_zero: bool) -> Any:
        """An operation between floats of one type, operands as `modulo_zero` wants them."""
        suffix = "/z" if modulo_zero else ""
        function = self.terms.function(
            f"{name}:{element}{suffix}", *["float"] * len(operands), "float"
        )
        term = function(*operands)
        if modulo_zero:
            return term
        if name == "arith.subf":
            lowest = self.constant(infinity(element) | negative_zero(element), element)
            dead = self.predicate("minus_infinity_or_nan", term)
            self.terms.fact(term, z3.Implies(operands[0] == lowest, dead))
        if name in ("math.exp", "math.exp2"):
            dead = self.predicate("minus_infinity_or_nan", operands[0])
            self.terms.fact(term, z3.Implies(dead, self.predicate("zero_or_nan", term)))
        return term

    def plus_zero(self, element: str, erased: Any) -> Any:
        """x + (+0.0), from z(x)."""
        return self.terms.function(f"plus_zero:{element}", "float", "float")(erased)

    def cast(self, name: str, before: str, after: str, x: Any, modulo_zero: bool) -> Any:
        """extf and truncf."""
        suffix = "/z" if modulo_zero else ""
        term = self.terms.function(f"{name}:{before}:{after}{suffix}", "float", "float")(x)
        if modulo_zero:
            return term
        finite = self.predicate("finite", term)
        if name == "arith.extf":
            self.terms.fact(term, self.predicate(f"exact_{before}", term))
            self.terms.fact(term, finite == self.predicate("finite", x))
        else:
            kept = z3.And(self.predicate(f"exact_{after}", x), self.predicate("finite", x))
            self.terms.fact(term, z3.Implies(kept, finite))
            dead = self.predicate("zero_or_nan", x)
            self.terms.fact(term, z3.Implies(dead, self.predicate("zero_or_nan", term)))
        return term

    def compare(self, predicate: str, element: str, x: Any, y: Any) -> Any:
        """A comparison of floats: a boolean."""
        function = self.terms.function(
            f"arith.cmpf.{predicate}:{element}", "float", "float", "bool"
        )
        term = function(x, y)
        if predicate == "olt" and y.eq(self.constant(infinity(element), element)):
            if x.decl().name() == f"math.absf:{element}":
                self.terms.fact(term, z3.Implies(term, self.predicate("finite", x.arg(0))))
        return term
