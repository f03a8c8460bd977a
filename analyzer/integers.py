"""Integer operations of TTIR on z3 integers: exact where no overflow is possible, else wrapped.

Every value is the signed reading of its bits. A sum that may leave the type's range is
`If(in range, sum, wrap(sum))` with an uninterpreted `wrap`: still a function of its operands.
Operations on bits, and products of two variables, are uninterpreted.
"""

from __future__ import annotations

from typing import Any

import z3

from pyvosti.analyzer.terms import Terms
from pyvosti.analyzer.ttir import NotAnalysable


def type_range(bits: int) -> tuple[int, int]:
    """Least and largest signed value."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


class Integers:
    """Builds integer terms."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def constant(self, value: int) -> Any:
        return z3.IntVal(value)

    def bounds(self, term: Any, bits: int) -> tuple[int, int]:
        """The interval of a term, at worst its type's."""
        return self.terms.bounds(term) or type_range(bits)

    def fit(self, exact: Any, low: int, high: int, bits: int) -> Any:
        """An exact result in [low, high], wrapped to the type where it does not fit."""
        least, most = type_range(bits)
        if z3.is_int_value(exact):
            wrapped = (exact.as_long() - least) % (1 << bits) + least
            return z3.IntVal(wrapped)
        if least <= low and high <= most:
            return self.terms.interval(exact, low, high)
        wrapped = self.terms.function(f"wrap{bits}", "int", "int")(exact)
        self.terms.bounded(wrapped, least, most)
        inside = [exact >= least] * (low < least) + [exact <= most] * (high > most)
        return self.terms.interval(z3.If(z3.And(*inside), exact, wrapped), least, most)

    def opaque(self, name: str, bits: int, *operands: Any) -> Any:
        """An uninterpreted operation with a result of the type."""
        function = self.terms.function(f"{name}{bits}", *["int"] * len(operands), "int")
        return self.terms.bounded(function(*operands), *type_range(bits))

    def binary(self, name: str, x: Any, y: Any, bits: int) -> Any:
        """An operation of `arith` on two integers of a width of at least 8."""
        (a, b), (c, d) = self.bounds(x, bits), self.bounds(y, bits)
        if name == "addi":
            return self.fit(simple(x + y), a + c, b + d, bits)
        if name == "subi":
            return self.fit(simple(x - y), a - d, b - c, bits)
        if name == "muli" and (z3.is_int_value(x) or z3.is_int_value(y)):
            corners = (a * c, a * d, b * c, b * d)
            return self.fit(simple(x * y), min(corners), max(corners), bits)
        if name in ("divsi", "remsi") and z3.is_int_value(y) and c > 0:
            return self.divided(name, x, c, bits)
        if name == "maxsi":
            return self.terms.interval(z3.If(x >= y, x, y), max(a, c), max(b, d))
        if name == "minsi":
            return self.terms.interval(z3.If(x <= y, x, y), min(a, c), min(b, d))
        if name == "shli" and z3.is_int_value(x) and z3.is_int_value(y) and 0 <= c < bits:
            return self.fit(z3.IntVal(a << c), a << c, a << c, bits)
        return self.opaque(name, bits, x, y)

    def divided(self, name: str, x: Any, divisor: int, bits: int) -> Any:
        """Quotient towards zero, or remainder, by a positive constant."""
        low, high = self.bounds(x, bits)
        if z3.is_int_value(x):
            quotient = abs(low) // divisor * (1 if low >= 0 else -1)
            return z3.IntVal(quotient if name == "divsi" else low - quotient * divisor)
        if divisor == 1:
            return x if name == "divsi" else z3.IntVal(0)
        whole = x / divisor if low >= 0 else z3.If(x >= 0, x / divisor, -((-x) / divisor))
        if name == "divsi":
            least = low // divisor if low >= 0 else -(-low // divisor)
            most = high // divisor if high >= 0 else -(-high // divisor)
            return self.terms.interval(whole, least, most)
        if low >= 0:
            return self.terms.interval(x % divisor, 0, min(high, divisor - 1))
        rest = z3.If(x >= 0, x % divisor, -((-x) % divisor))
        return self.terms.interval(rest, 1 - divisor, divisor - 1)

    def compare(self, predicate: str, x: Any, y: Any, bits: int) -> Any:
        """A comparison; those of unsigned numbers read both operands so."""
        if predicate[0] == "u":
            x, y = self.unsigned(x, bits), self.unsigned(y, bits)
        (a, b), (c, d) = self.bounds(x, 2 * bits), self.bounds(y, 2 * bits)
        kind = predicate if predicate in ("eq", "ne") else predicate[1:]
        if kind in ("eq", "ne"):
            known = False if b < c or d < a else True if x.eq(y) else None
            result = x == y if known is None else z3.BoolVal(known)
            return result if kind == "eq" else z3.Not(result)
        if kind in ("gt", "ge"):
            (x, a, b), (y, c, d) = (y, c, d), (x, a, b)
        strict = kind in ("lt", "gt")
        if b < c or (b == c and not strict):
            return z3.BoolVal(True)
        if a > d or (a == d and strict):
            return z3.BoolVal(False)
        return x < y if strict else x <= y

    def unsigned(self, x: Any, bits: int) -> Any:
        """The unsigned reading of the bits."""
        low, _ = self.bounds(x, bits)
        if low >= 0:
            return x
        shifted = z3.If(x >= 0, x, x + (1 << bits))
        return self.terms.interval(shifted, 0, (1 << bits) - 1)

    def cast(self, name: str, x: Any, before: int, after: int) -> Any:
        """extsi, extui and trunci. A boolean is a z3 Bool."""
        if before == 1:
            one = 1 if name == "extui" else -1
            value = z3.If(x, z3.IntVal(one), z3.IntVal(0))
            return self.terms.interval(value, min(one, 0), max(one, 0))
        if after == 1:
            raise NotAnalysable("an integer is cut to one bit")
        if name == "extsi":
            return x
        if name == "extui":
            return self.unsigned(x, before)
        return self.fit(x, *self.bounds(x, before), after)

    def boolean(self, name: str, x: Any, y: Any) -> Any:
        """andi, ori and xori of booleans."""
        if name == "andi":
            if z3.is_false(x) or z3.is_false(y):
                return z3.BoolVal(False)
            return y if z3.is_true(x) else x if z3.is_true(y) else z3.And(x, y)
        if name == "ori":
            if z3.is_true(x) or z3.is_true(y):
                return z3.BoolVal(True)
            return y if z3.is_false(x) else x if z3.is_false(y) else z3.Or(x, y)
        if name == "xori":
            return z3.Xor(x, y)
        raise NotAnalysable(f"arith.{name} of booleans")


def simple(term: Any) -> Any:
    """Folds constants: `x + 0`, `x * 1`, sums of numbers."""
    children = term.children()
    if all(z3.is_int_value(c) for c in children):
        return z3.simplify(term)
    if len(children) == 2:
        x, y = children
        zero, one = z3.IntVal(0), z3.IntVal(1)
        if z3.is_add(term):
            return y if x.eq(zero) else x if y.eq(zero) else term
        if z3.is_sub(term):
            return x if y.eq(zero) else term
        if z3.is_mul(term):
            if x.eq(zero) or y.eq(zero):
                return zero
            return y if x.eq(one) else x if y.eq(one) else term
    return term
