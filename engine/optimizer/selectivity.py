"""Selectivity: which share of rows a predicate keeps, from column statistics or a documented default per kind.

    kind                     with statistics                               default
    equal                    share of the heavy key, or 1/distinct         0.1
    not_equal                1 - equal                                     0.9
    less, greater, ...       position between minimum and maximum          1/3
    between                  covered part of [minimum, maximum]            1/4
    is_null                  null fraction                                 0.05
    is_in (n values)         sum of equal for each, at most 1              n * 0.1, at most 0.5
    contains                 -                                             0.25
    starts_with, ends_with   -                                             0.1
    and, or, not             product, 1 - product of complements, 1 - s
    anything else            -                                             1/3

Every share lies in (0, 1]; a constant true keeps all, a constant false one row in a thousand (never none: an estimate
of no rows would make everything above it free).

Source: the defaults of System R (Selinger et al., 1979), adapted.
Held by: tests/optimizer/test_estimates.py
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.graph.expression import Call, ColumnRef, Expression, Literal
from engine.graph.source_spec import ColumnStatistics

DEFAULT_EQUAL = 0.1
DEFAULT_RANGE = 1 / 3
#: of two columns either may be the smaller one
DEFAULT_COLUMNS = 0.5
DEFAULT_BETWEEN = 0.25
DEFAULT_NULL = 0.05
DEFAULT_CONTAINS = 0.25
DEFAULT_PREFIX = 0.1
DEFAULT_OTHER = 1 / 3
SMALLEST = 0.001

#: comparison -> the same comparison with its sides swapped
_SWAPPED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_TEXT_DEFAULTS = {
    "str_contains": DEFAULT_CONTAINS,
    "str_starts_with": DEFAULT_PREFIX,
    "str_ends_with": DEFAULT_PREFIX,
}

Columns = Mapping[str, ColumnStatistics]
_NOTHING_KNOWN = ColumnStatistics()


def selectivity(predicate: Expression, columns: Columns) -> tuple[float, str]:
    """Return (share of rows kept, where it comes from: "statistics" or "default" and the kind)."""
    share, origin = _share(predicate, columns)
    return min(1.0, max(SMALLEST, share)), origin


def _share(predicate: Expression, columns: Columns) -> tuple[float, str]:
    match predicate:
        case Literal(value=value):
            return (1.0 if value is True else SMALLEST), "constant"
        case ColumnRef(name=name):
            return 0.5, f"default for {name}"
        case Call(function="and" | "or" as function, arguments=arguments):
            parts = [_share(argument, columns) for argument in arguments]
            product = 1.0
            for share, _ in parts:
                product *= share if function == "and" else 1 - share
            return (product if function == "and" else 1 - product), _merge([origin for _, origin in parts])
        case Call(function="not", arguments=(operand,)):
            share, origin = _share(operand, columns)
            return 1 - share, origin
        case Call():
            return _call_share(predicate, columns)
        case _:
            return DEFAULT_OTHER, "default"


def _merge(origins: list[str]) -> str:
    return ", ".join(dict.fromkeys(origins))


def _call_share(call: Call, columns: Columns) -> tuple[float, str]:
    function, arguments = call.function, call.arguments
    names = (argument.name for argument in arguments if isinstance(argument, ColumnRef))
    known = columns.get(next(names, ""), _NOTHING_KNOWN)
    if function in ("is_null", "is_not_null"):
        share = DEFAULT_NULL if known.null_fraction is None else known.null_fraction
        origin = _origin(function, known.null_fraction is not None)
        return (share if function == "is_null" else 1 - share), origin
    if function in ("equal", "not_equal"):
        share, is_known = _equal_share(known, arguments)
        return (share if function == "equal" else 1 - share), _origin(function, is_known)
    if function == "is_in":
        shares = [_equal_share(known, (value,)) for value in arguments[1:]]
        is_known = any(known_one for _, known_one in shares)
        return min(sum(share for share, _ in shares), 1.0 if is_known else 0.5), _origin(function, is_known)
    if function in _SWAPPED:
        return _range_share(function, known, arguments)
    if function == "between":
        return _between_share(known, arguments)
    if function in _TEXT_DEFAULTS:
        return _TEXT_DEFAULTS[function], _origin(function, is_known=False)
    return DEFAULT_OTHER, _origin(function, is_known=False)


def _origin(function: str, is_known: bool) -> str:
    return f"statistics ({function})" if is_known else f"default for {function}"


def _equal_share(known: ColumnStatistics, arguments: tuple[Expression, ...]) -> tuple[float, bool]:
    constant = next((argument for argument in arguments if isinstance(argument, Literal)), None)
    if constant is not None and known.heavy_keys:
        for text, share in known.heavy_keys:
            if text in (constant.text, str(constant.value)):
                return share, True
    if known.distinct_count:
        return 1 / max(1.0, known.distinct_count), True
    return DEFAULT_EQUAL, False


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _fraction_below(known: ColumnStatistics, bound: Expression) -> float | None:
    """Return the share of [minimum, maximum] below a constant, taking values as evenly spread."""
    low, high = _number(known.minimum), _number(known.maximum)
    at = _number(bound.value) if isinstance(bound, Literal) else None
    if low is None or high is None or at is None or high <= low:
        return None
    return min(1.0, max(0.0, (at - low) / (high - low)))


def _range_share(function: str, known: ColumnStatistics, arguments: tuple[Expression, ...]) -> tuple[float, str]:
    if all(isinstance(argument, ColumnRef) for argument in arguments):
        return DEFAULT_COLUMNS, f"default for {function} of columns"
    if isinstance(arguments[0], Literal):
        arguments = arguments[::-1]
        function = _SWAPPED[function]
    below = _fraction_below(known, arguments[1])
    if below is None:
        return DEFAULT_RANGE, _origin(function, is_known=False)
    return (below if function.startswith("less") else 1 - below), _origin(function, is_known=True)


def _between_share(known: ColumnStatistics, arguments: tuple[Expression, ...]) -> tuple[float, str]:
    low, high = _fraction_below(known, arguments[1]), _fraction_below(known, arguments[2])
    if low is not None and high is not None:
        return max(0.0, high - low), _origin("between", is_known=True)
    return DEFAULT_BETWEEN, _origin("between", is_known=False)
