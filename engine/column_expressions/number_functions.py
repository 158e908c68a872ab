"""Functions of numbers that every Expr has: ``col("x").round(2)``.

Integers are worked on as int64, float32 stays float32, decimals keep digits and scale; what has a real number as
result is float64 for integers and decimals. Null gives null.

Held by: tests/api/test_documented_functions.py
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self, get_args

from engine.errors import SchemaError

#: treatment of a value in the middle between two
RoundMode = Literal["half_away_from_zero", "half_to_even"]


class NumberFunctions:
    """Functions of a number; null gives null."""

    __slots__ = ()

    def call(self, function: str, *others: Any, **options: bool | int | float | str | None) -> Self:
        """Return a function of this value and others."""
        raise NotImplementedError

    def round(self, digits: int = 0, mode: RoundMode = "half_away_from_zero") -> Self:
        """Round to digits behind the decimal point, halves away from zero; negative digits are before the point.

        mode: "half_to_even" rounds halves to the even digit; floats that keep digits are cast to a decimal first.

        >>> values(col("x").round(1), x=[0.25, -0.25, 7.0])
        [0.3, -0.3, 7.0]
        >>> values(col("x").round(mode="half_to_even"), x=[0.5, 1.5])
        [0.0, 2.0]
        """
        if isinstance(digits, bool) or not isinstance(digits, int):
            raise SchemaError(f"round({digits!r}): the digits are an int")
        if mode not in get_args(RoundMode):
            raise SchemaError(f"round(mode={mode!r}): choose one of {', '.join(get_args(RoundMode))}")
        return self.call("round", digits=digits, **({"to_even": True} if mode == "half_to_even" else {}))

    def clip(self, lower: Any = None, upper: Any = None) -> Self:
        """Return the nearest value between two bounds; None does not bound.

        >>> values(col("x").clip(0, 9), x=[-5, 5, 50])
        [0, 5, 9]
        """
        return self.call("clip", lower, upper)

    def abs(self) -> Self:
        """Return the value without its sign; of the least int64 an error.

        >>> values(col("x").abs(), x=[-2, 3, None])
        [2, 3, None]
        """
        return self.call("abs")

    def sign(self) -> Self:
        """Return -1, 0 or 1; of a float as a float.

        >>> values(col("x").sign(), x=[-2, 0, 5])
        [-1, 0, 1]
        """
        return self.call("sign")

    def floor(self) -> Self:
        """Return the next whole number below, in the same type.

        >>> values(col("x").floor(), x=[2.5, -2.5])
        [2.0, -3.0]
        """
        return self.call("floor")

    def ceil(self) -> Self:
        """Return the next whole number above, in the same type.

        >>> values(col("x").ceil(), x=[2.5, -2.5])
        [3.0, -2.0]
        """
        return self.call("ceil")

    def trunc(self) -> Self:
        """Return the next whole number towards zero, in the same type.

        >>> values(col("x").trunc(), x=[2.5, -2.5])
        [2.0, -2.0]
        """
        return self.call("trunc")

    def sqrt(self) -> Self:
        """Return the square root; NaN of a negative number.

        >>> values(col("x").sqrt(), x=[4.0, -1.0])
        [2.0, nan]
        """
        return self.call("sqrt")

    def cbrt(self) -> Self:
        """Return the cube root.

        >>> values(col("x").cbrt(), x=[27, -8])
        [3.0, -2.0]
        """
        return self.call("cbrt")

    def exp(self) -> Self:
        """Return e to the power of it.

        >>> values(col("x").exp(), x=[0, 1])
        [1.0, 2.718281828459045]
        """
        return self.call("exp")

    def ln(self) -> Self:
        """Return the natural logarithm; -inf of 0, NaN of a negative number.

        >>> values(col("x").ln(), x=[1.0, 0.0, -1.0])
        [0.0, -inf, nan]
        """
        return self.call("ln")

    def log10(self) -> Self:
        """Return the logarithm to the base 10.

        >>> values(col("x").log10(), x=[1000])
        [3.0]
        """
        return self.call("log10")

    def log2(self) -> Self:
        """Return the logarithm to the base 2.

        >>> values(col("x").log2(), x=[8])
        [3.0]
        """
        return self.call("log2")

    def log(self, base: float) -> Self:
        """Return the logarithm to a base, a positive number other than 1; ``ln`` is the natural one.

        >>> values(col("x").log(3), x=[9.0, 0.0])
        [2.0, -inf]
        """
        if isinstance(base, bool) or not isinstance(base, int | float) or not 0 < base < math.inf or base == 1:
            raise SchemaError(f"log({base!r}): the base is a positive number other than 1")
        known = {2.0: "log2", 10.0: "log10"}.get(float(base))
        return self.call("ln").call("divide", math.log(base)) if known is None else self.call(known)

    def log1p(self) -> Self:
        """Return the natural logarithm of the value and 1, which is exact for values near 0.

        >>> values(col("x").log1p(), x=[0.0, -1.0])
        [0.0, -inf]
        """
        return self.call("log1p")

    def expm1(self) -> Self:
        """Return e to the power of the value, without 1, which is exact for values near 0.

        >>> values(col("x").expm1(), x=[0.0, 1.0])
        [0.0, 1.718281828459045]
        """
        return self.call("expm1")

    def sin(self) -> Self:
        """Return the sine of an angle in radians; NaN of an infinite one.

        >>> values(col("x").sin(), x=[0.0])
        [0.0]
        """
        return self.call("sin")

    def cos(self) -> Self:
        """Return the cosine of an angle in radians.

        >>> values(col("x").cos(), x=[0.0])
        [1.0]
        """
        return self.call("cos")

    def tan(self) -> Self:
        """Return the tangent of an angle in radians.

        >>> values(col("x").tan(), x=[0.0])
        [0.0]
        """
        return self.call("tan")

    def asin(self) -> Self:
        """Return the angle whose sine it is; NaN beyond -1 and 1.

        >>> values(col("x").asin(), x=[0.0, 2.0])
        [0.0, nan]
        """
        return self.call("asin")

    def acos(self) -> Self:
        """Return the angle whose cosine it is; NaN beyond -1 and 1.

        >>> values(col("x").acos(), x=[1.0])
        [0.0]
        """
        return self.call("acos")

    def atan(self) -> Self:
        """Return the angle whose tangent it is.

        >>> values(col("x").atan(), x=[0.0])
        [0.0]
        """
        return self.call("atan")

    def degrees(self) -> Self:
        """Return an angle in radians as degrees.

        >>> values(col("x").degrees(), x=[0.0, -0.0])
        [0.0, -0.0]
        """
        return self.call("degrees")

    def radians(self) -> Self:
        """Return an angle in degrees as radians.

        >>> values(col("x").radians(), x=[180.0])
        [3.141592653589793]
        """
        return self.call("radians")

    def is_nan(self) -> Self:
        """Whether it is NaN; false for integers and decimals.

        >>> values(col("x").is_nan(), x=[1.0, float("nan"), None])
        [False, True, None]
        """
        return self.call("is_nan")

    def is_finite(self) -> Self:
        """Whether it is neither infinite nor NaN.

        >>> values(col("x").is_finite(), x=[1.0, float("inf")])
        [True, False]
        """
        return self.call("is_finite")

    def is_infinite(self) -> Self:
        """Whether it is infinite.

        >>> values(col("x").is_infinite(), x=[1.0, float("-inf")])
        [False, True]
        """
        return self.call("is_infinite")

    def bit_not(self) -> Self:
        """Invert every bit.

        >>> values(col("x").bit_not(), x=[0, 5])
        [-1, -6]
        """
        return self.call("bit_not")

    def power(self, exponent: Any) -> Self:
        """Raise to the power of another, as float64; also ``x ** y``.

        >>> values(col("x").power(2), x=[3, -3])
        [9.0, 9.0]
        """
        return self.call("power", exponent)

    def sinh(self) -> Self:
        """Return the hyperbolic sine.

        >>> values(col("x").sinh(), x=[0.0])
        [0.0]
        """
        return self.call("sinh")

    def cosh(self) -> Self:
        """Return the hyperbolic cosine.

        >>> values(col("x").cosh(), x=[0.0])
        [1.0]
        """
        return self.call("cosh")

    def tanh(self) -> Self:
        """Return the hyperbolic tangent.

        >>> values(col("x").tanh(), x=[0.0])
        [0.0]
        """
        return self.call("tanh")

    def asinh(self) -> Self:
        """Return the inverse hyperbolic sine.

        >>> values(col("x").asinh(), x=[0.0])
        [0.0]
        """
        return self.call("asinh")

    def acosh(self) -> Self:
        """Return the inverse hyperbolic cosine, NaN below 1.

        >>> values(col("x").acosh(), x=[1.0])
        [0.0]
        """
        return self.call("acosh")

    def atanh(self) -> Self:
        """Return the inverse hyperbolic tangent, NaN beyond -1 and 1.

        >>> values(col("x").atanh(), x=[0.0])
        [0.0]
        """
        return self.call("atanh")

    def atan2(self, width: Any) -> Self:
        """Return the angle of the point whose height it is; the other value is the width.

        >>> values(col("y").atan2(col("x")), y=[0.0, 1.0], x=[1.0, 0.0])
        [0.0, 1.5707963267948966]
        """
        return self.call("atan2", width)

    def gcd(self, other: Any) -> Self:
        """Return the greatest common divisor of two integers; of 0 and a number it is the number, without its sign.

        >>> values(col("x").gcd(12), x=[18, -8, 0, None])
        [6, 4, 12, None]
        """
        return self.call("gcd", other)

    def bit_count(self) -> Self:
        """Return the number of its 64 bits that are set.

        >>> values(col("x").bit_count(), x=[0, 7, -1])
        [0, 3, 64]
        """
        return self.call("bit_count")

    def to_hex(self) -> Self:
        """Return an integer in hexadecimal digits; a negative one as its 64 bits.

        >>> values(col("x").to_hex(), x=[255, -1])
        ['FF', 'FFFFFFFFFFFFFFFF']
        """
        return self.call("to_hex")

    def to_bin(self) -> Self:
        """Return an integer in binary digits; a negative one as its 64 bits.

        >>> values(col("x").to_bin(), x=[5, 0])
        ['101', '0']
        """
        return self.call("to_bin")

    def chr(self) -> Self:
        """Return the character of a Unicode code; what is the code of none fails the job.

        >>> values(col("x").chr(), x=[97, 128512])
        ['a', '😀']
        """
        return self.call("chr")

    def bit_and(self, other: Any) -> Self:
        """Return the bits that both have.

        >>> values(col("x").bit_and(6), x=[3])
        [2]
        """
        return self.call("bit_and", other)

    def bit_or(self, other: Any) -> Self:
        """Return the bits that one of them has.

        >>> values(col("x").bit_or(6), x=[3])
        [7]
        """
        return self.call("bit_or", other)

    def bit_xor(self, other: Any) -> Self:
        """Return the bits that just one of them has.

        >>> values(col("x").bit_xor(6), x=[3])
        [5]
        """
        return self.call("bit_xor", other)

    def shift_left(self, places: Any) -> Self:
        """Return the bits moved up; those beyond bit 63 are lost. 0 to 63 places, else an error.

        >>> values(col("x").shift_left(2), x=[3])
        [12]
        """
        return self.call("shift_left", places)

    def shift_right(self, places: Any) -> Self:
        """Return the bits moved down, the sign stays. 0 to 63 places, else an error.

        >>> values(col("x").shift_right(1), x=[12, -3])
        [6, -2]
        """
        return self.call("shift_right", places)
