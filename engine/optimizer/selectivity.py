"""Selectivity: which share of rows a predicate keeps, from column statistics or a documented default per kind.

    kind                     with statistics                               default
    equal                    share of the heavy key, or 1/distinct         0.1
    not_equal                1 - equal                                     0.9
    less, greater, ...       position between minimum and maximum          1/3
    between                  covered part of [minimum, maximum]            1/4
    less and greater         the same, of one column                       product
    is_null                  null fraction                                 0.05
    is_in (n values)         sum of equal for each, at most 1              n * 0.1, at most 0.5
    contains                 -                                             0.25
    starts_with, ends_with   -                                             0.1
    and, or, not             product, 1 - product of complements, 1 - s
    values of one column     the least of what each names: x IN (1, 2) AND (x = 1 OR x = 2)
    anything else            -                                             1/3

Every share lies in (0, 1]; a constant true keeps all, a constant false one row in a thousand (never none: an estimate
of no rows would make everything above it free).

What a sample of the source kept of a predicate, or of parts of it, wins over all that: it knows texts, columns that are
compared, and parts that are true of the same rows (``ComputedStatistics``: the share of "true"). So few rows of a
sample that chance made them count half, as a power: what would have been said without it counts, too.

Source: the defaults of System R (Selinger et al., 1979), adapted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from engine.graph.expression import Call, ColumnRef, Expression, Literal, conjunction, conjuncts
from engine.graph.source_spec import ColumnStatistics, ComputedStatistics

DEFAULT_EQUAL = 0.1
DEFAULT_RANGE = 1 / 3
#: selectivity of a comparison of two columns: either may be the smaller one
DEFAULT_COLUMNS = 0.5
DEFAULT_BETWEEN = 0.25
DEFAULT_NULL = 0.05
DEFAULT_CONTAINS = 0.25
DEFAULT_PREFIX = 0.1
DEFAULT_OTHER = 1 / 3
SMALLEST = 0.001

#: comparison -> the comparison with sides swapped
_SWAPPED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_TEXT_DEFAULTS = {
    "str_contains": DEFAULT_CONTAINS,
    "str_starts_with": DEFAULT_PREFIX,
    "str_ends_with": DEFAULT_PREFIX,
}

#: share of the sample from which it is trusted
SAMPLED_SURELY = 0.001
SAMPLED_LEAST = 0.00005
_DAY_SECONDS = 86_400.0

Columns = Mapping[str, ColumnStatistics]
_NOTHING_KNOWN = ColumnStatistics()


def selectivity(
    predicate: Expression, columns: Columns, computed: Sequence[ComputedStatistics] = ()
) -> tuple[float, str]:
    """Return (share of rows kept, where it comes from: "sample", "statistics" or "default" and the kind).

    computed: what samples say of expressions, predicates among them; those of more parts before those of fewer.
    """
    rest = list(conjuncts(predicate))
    share = 1.0
    origins: list[str] = []
    for known in computed:
        parts = conjuncts(known.expression)
        sampled = next((part for text, part in known.statistics.heavy_keys if text == "true"), None)
        if sampled is None or not all(part in rest for part in parts):
            continue
        rest = [part for part in rest if part not in parts]
        if sampled < SAMPLED_SURELY:
            guessed, origin = _share(conjunction(parts), columns)
            sampled = max(SAMPLED_LEAST, math.sqrt(sampled * min(1.0, max(SMALLEST, guessed))))
            origins.append(f"rare in the sample, {origin}")
        else:
            origins.append("sample")
        share *= sampled
    if not rest:
        return min(1.0, share), _merge(origins)
    other, origin = _share(conjunction(rest), columns)
    share *= min(1.0, max(SMALLEST, other))
    return share, _merge([*origins, origin])


def _share(predicate: Expression, columns: Columns) -> tuple[float, str]:
    match predicate:
        case Literal(value=value):
            return (1.0 if value is True else SMALLEST), "constant"
        case ColumnRef(name=name):
            return 0.5, f"default for {name}"
        case Call(function="and", arguments=arguments) if ranges := _ranges(conjuncts(predicate), columns):
            inside = [_covered(columns[name], parts) for name, parts in ranges.items()]
            rest = [part for part in conjuncts(predicate) if not any(part in parts for parts in ranges.values())]
            share, origin = _share(conjunction(rest), columns) if rest else (1.0, "")
            return share * math.prod(inside), _merge(["statistics (range)", *([origin] if rest else [])])
        case Call(function="and"):
            return _joint_share(conjuncts(predicate), columns)
        case Call(function="or", arguments=arguments):
            parts = [_share(argument, columns) for argument in arguments]
            return 1 - math.prod(1 - share for share, _ in parts), _merge([origin for _, origin in parts])
        case Call(function="not", arguments=(operand,)):
            share, origin = _share(operand, columns)
            return 1 - share, origin
        case Call():
            return _call_share(predicate, columns)
        case _:
            return DEFAULT_OTHER, "default"


def _joint_share(parts: Sequence[Expression], columns: Columns) -> tuple[float, str]:
    """Return the share that all parts leave; of those that name values of one column, the one that leaves fewest."""
    shares = [_share(part, columns) for part in parts]
    least: dict[str, float] = {}
    product = 1.0
    for part, (share, _) in zip(parts, shares, strict=True):
        column = _column_of_values(part)
        if column is None:
            product *= share
        else:
            least[column] = min(share, least.get(column, 1.0))
    return product * math.prod(least.values()), _merge([origin for _, origin in shares])


def _column_of_values(part: Expression) -> str | None:
    """Return the column of which a condition names the values: x = 1, x IN (1, 2), x = 1 OR x = 2."""
    match part:
        case Call(function="equal" | "is_in", arguments=(ColumnRef(name=name), *values)):
            return name if all(isinstance(value, Literal) for value in values) else None
        case Call(function="or", arguments=branches):
            names = {_column_of_values(branch) for branch in branches}
            return names.pop() if len(names) == 1 else None
    return None


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
        share, is_known = _equal_share(known, arguments, dict(known.heavy_keys))
        return (share if function == "equal" else 1 - share), _origin(function, is_known)
    if function == "is_in":
        heavy = dict(known.heavy_keys)
        shares = [_equal_share(known, (value,), heavy) for value in arguments[1:]]
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


def _equal_share(
    known: ColumnStatistics, arguments: tuple[Expression, ...], heavy: Mapping[str, float]
) -> tuple[float, bool]:
    constant = next((argument for argument in arguments if isinstance(argument, Literal)), None)
    if constant is not None and heavy:
        share = heavy.get(constant.text, heavy.get(str(constant.value)))
        if share is not None:
            return share, True
    if known.distinct_count:
        return 1 / max(1.0, known.distinct_count), True
    return DEFAULT_EQUAL, False


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _position(bound: Expression) -> float | None:
    """Return a constant as bounds have it: decimals as numbers, dates and times as days."""
    if not isinstance(bound, Literal) or bound.value is not None:
        return _number(bound.value) if isinstance(bound, Literal) else None
    try:
        return float(bound.text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(bound.text)
            return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() / _DAY_SECONDS
        except ValueError:
            return None


def _fraction_below(known: ColumnStatistics, bound: Expression) -> float | None:
    """Return the share of [minimum, maximum] below a constant, taking values as evenly spread."""
    low, high, at = _number(known.minimum), _number(known.maximum), _position(bound)
    if low is None or high is None or at is None or high <= low:
        return None
    return min(1.0, max(0.0, (at - low) / (high - low)))


def _ranges(parts: Sequence[Expression], columns: Columns) -> dict[str, list[Call]]:
    """Return the comparisons with constants, by column, that together leave a range of its values."""
    found: dict[str, list[Call]] = {}
    for part in parts:
        match part:
            case Call(function=function, arguments=(ColumnRef(name=name), Literal() as bound)) if function in _SWAPPED:
                if _fraction_below(columns.get(name, _NOTHING_KNOWN), bound) is not None:
                    found.setdefault(name, []).append(part)
    return {name: listed for name, listed in found.items() if len({part.function[:4] for part in listed}) > 1}


def _covered(known: ColumnStatistics, parts: Sequence[Call]) -> float:
    """Return the share of [minimum, maximum] that comparisons of one column leave."""
    at = [(part.function.startswith("less"), _fraction_below(known, part.arguments[1]) or 0.0) for part in parts]
    return max(0.0, min(end for is_end, end in at if is_end) - max(begin for is_end, begin in at if not is_end))


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
