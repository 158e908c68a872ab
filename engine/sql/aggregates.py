"""SQL's aggregates by the names that the planner gives them; groups and windows both look here.

    sum(DISTINCT v) FILTER (WHERE k > 1)      sum_(v, distinct=True, filter=k > 1)
    string_agg(s, ',' ORDER BY k DESC)        string_agg(s, ",", order_by=k, descending=True)

Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from engine.api.aggregates import (
    Aggregate,
    all_,
    any_,
    avg,
    bit_and,
    bit_or,
    bit_xor,
    corr,
    count,
    covar,
    covar_pop,
    first,
    kurtosis,
    last,
    max_,
    min_,
    product,
    skewness,
    stddev,
    stddev_pop,
    sum_,
    variance,
    variance_pop,
)
from engine.api.expression import Expr
from engine.api.value_aggregates import (
    approx_count_distinct,
    approx_quantile,
    collect_list,
    max_by,
    median,
    min_by,
    mode,
    quantile,
    string_agg,
)
from engine.errors import NotYetSupportedError
from engine.sql.arguments import constant_of


class AggregateCall(NamedTuple):
    """An aggregate as a query has it."""

    name: str
    arguments: Sequence[Expr]
    #: True for count(*) and count(1), which count rows
    is_of_rows: bool = False
    filter: Expr | None = None
    is_distinct: bool = False
    order_by: Sequence[Expr] = ()
    descending: Sequence[bool] = ()
    nulls_last: Sequence[bool] = ()


#: aggregates that do not depend on the order of rows
_OF_VALUES: Final[dict[str, Callable[..., Aggregate]]] = {
    "sum": sum_,
    "avg": avg,
    "min": min_,
    "max": max_,
    "any_value": min_,
    "stddev": stddev,
    "stddev_pop": stddev_pop,
    "var": variance,
    "var_pop": variance_pop,
    "median": median,
    "bit_and": bit_and,
    "bit_or": bit_or,
    "bit_xor": bit_xor,
    "product": product,
    "skewness": skewness,
    "kurtosis": kurtosis,
}
_OF_PAIRS: Final[dict[str, Callable[..., Aggregate]]] = {"covar_samp": covar, "covar_pop": covar_pop, "corr": corr}
_OF_CONDITIONS: Final[dict[str, Callable[..., Aggregate]]] = {"bool_and": all_, "bool_or": any_}


def aggregate(call: AggregateCall) -> Aggregate:
    """Return an aggregate; NotYetSupportedError for one that is not here."""
    name, arguments, kept = call.name, call.arguments, call.filter
    if name in _ORDERED:
        return _ORDERED[name](call)
    if call.order_by:
        raise NotYetSupportedError(f"ORDER BY in the SQL aggregate {name}(...)")
    if name == "count" and call.is_of_rows and not call.is_distinct:
        return count(filter=kept)
    if len(arguments) == 1:
        if name == "count":
            return count(arguments[0], filter=kept, distinct=call.is_distinct)
        if name in _OF_VALUES:
            return _OF_VALUES[name](arguments[0], filter=kept, distinct=call.is_distinct)
        if name in _OF_CONDITIONS:
            return _OF_CONDITIONS[name](arguments[0], filter=kept)
        if name == "approx_distinct":
            return approx_count_distinct(arguments[0], filter=kept)
        if name == "approx_median":
            return approx_quantile(arguments[0], 0.5, filter=kept)
    if name in _OF_PAIRS and not call.is_distinct:
        return _OF_PAIRS[name](arguments[0], arguments[1], filter=kept)
    if name == "count":
        raise NotYetSupportedError("count(DISTINCT a, b) in SQL (write count(*) of a SELECT DISTINCT a, b)")
    raise NotYetSupportedError(f"the SQL aggregate {name}({'DISTINCT ' if call.is_distinct else ''}...)")


def _order(call: AggregateCall) -> dict[str, Any]:
    if not call.order_by:
        return {}
    return {"order_by": list(call.order_by), "descending": list(call.descending), "nulls_last": list(call.nulls_last)}


def _list(call: AggregateCall) -> Aggregate:
    return collect_list(call.arguments[0], filter=call.filter, distinct=call.is_distinct, **_order(call))


def _of_row(call: AggregateCall) -> Aggregate:
    """``first_value(v ORDER BY k)``; without an order that of any row."""
    is_first = call.name == "first_value"
    if not call.order_by:
        return (first if is_first else last)(call.arguments[0], filter=call.filter)
    ordered = _list(call).list
    return Aggregate((ordered.first() if is_first else ordered.last()).expression)


def _numbered(call: AggregateCall) -> Aggregate:
    """Return the aggregate behind the planner's only other aggregate of values of any type, by its number."""
    number = constant_of(call.arguments[1], "the number of NTH_VALUE")
    if number not in NUMBERED or len(call.order_by) != (number != MODE):
        raise NotYetSupportedError("the SQL aggregate nth_value(...); write it OVER (...), or array_agg(...)[n]")
    values = [call.arguments[0], *call.order_by]
    found: Aggregate = NUMBERED[number](*values, filter=call.filter)
    return found


def _text(call: AggregateCall) -> Aggregate:
    separator = str(constant_of(call.arguments[1], "what STRING_AGG puts between texts"))
    return string_agg(call.arguments[0], separator, filter=call.filter, distinct=call.is_distinct, **_order(call))


def _quantile(call: AggregateCall) -> Aggregate:
    """``percentile_cont(q) WITHIN GROUP (ORDER BY v)``: its order is that of the values."""
    share = float(constant_of(call.arguments[1], "the share of a percentile"))
    share = 1 - share if list(call.descending) == [True] else share
    if call.name == "approx_percentile_cont":
        return approx_quantile(call.arguments[0], share, filter=call.filter)
    return quantile(call.arguments[0], share, filter=call.filter, distinct=call.is_distinct)


MODE: Final = -1
#: forms of mode(x) and nth_value(x, -2 ORDER BY key)
NUMBERED: Final[dict[int, Callable[..., Aggregate]]] = {MODE: mode, -2: min_by, -3: max_by}
_ORDERED: Final[dict[str, Callable[[AggregateCall], Aggregate]]] = {
    "array_agg": _list,
    "first_value": _of_row,
    "last_value": _of_row,
    "nth_value": _numbered,
    "string_agg": _text,
    "percentile_cont": _quantile,
    "approx_percentile_cont": _quantile,
}
