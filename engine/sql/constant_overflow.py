"""Arithmetic of integer constants whose value their type cannot hold: 9223372036854775807 + 1.

Drey's arithmetic raises an error where a row is there to be computed; here a query is refused before it runs. So the
constants in the text of the bound plan are computed, from the inside out, as far as both sides are integers:

    (Int64(1) + Int64(2)) * Int64(9223372036854775807)  ─►  Int64(3) * Int64(9223372036854775807)  ─►  PlanError

Held by: tests/sql/test_constant_overflow.py
"""

from __future__ import annotations

import re
from typing import Final

from engine.errors import PlanError

_TEXT: Final = re.compile(r'Utf8(?:View)?\(".*?"\)')
_INTEGER: Final = r"Int(\d+)\((-?\d+)\)"
_BETWEEN: Final = re.compile(r"\) [-+*/%] \(*(?:CAST\(\(*)*Int\d")
_CAST: Final = re.compile(rf"\bCAST\({_INTEGER} AS Int(\d+)\)")
_IN_PARENTHESES: Final = re.compile(rf"(?<!\w)\(({_INTEGER})\)")
_PRODUCT: Final = re.compile(rf"(?<![*/%] )\b{_INTEGER} ([*/%]) {_INTEGER}")
_SUM: Final = re.compile(rf"(?<![-+*/%] )\b{_INTEGER} ([-+]) {_INTEGER}(?! [*/%])")


def check_constants(shown: str) -> None:
    """Raise PlanError where the text of a bound plan has integer constants that overflow."""
    # each expression is on a line, most have nothing to compute, and plans say the same again and again
    for line in dict.fromkeys(shown.splitlines()):
        if _BETWEEN.search(line):
            _check(line)


def _check(line: str) -> None:
    text = _TEXT.sub("''", line)
    before = ""
    while text != before:
        before = text
        text = _CAST.sub(_cast, text)
        text = _IN_PARENTHESES.sub(r"\1", text)
        text = _PRODUCT.sub(_computed, text, count=1)
        text = _SUM.sub(_computed, text, count=1) if text == before else text


def _cast(found: re.Match[str]) -> str:
    return f"Int{found[3]}({found[2]})" if _fits(int(found[2]), int(found[3])) else found[0]


def _computed(found: re.Match[str]) -> str:
    left, right, bits = int(found[2]), int(found[5]), max(int(found[1]), int(found[4]))
    if right == 0 and found[3] in "/%":
        return "NULL"  # no constant: what it gives is found when the query runs
    value = _value(left, found[3], right)
    if not _fits(value, bits):
        raise PlanError(f"sql: {left} {found[3]} {right} overflows an integer of {bits} bits; cast one side to DECIMAL")
    return f"Int{bits}({value})"


def _value(left: int, operator: str, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    # integers divide toward zero
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if operator == "/" else left - quotient * right


def _fits(value: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)
