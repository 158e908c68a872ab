"""SQL's aggregates by name; groups and windows both look here.

    sum(DISTINCT v) FILTER (WHERE k > 1)      sum_(v, distinct=True, filter=k > 1)
    string_agg(s, ',' ORDER BY k DESC)        string_agg(s, ",", order_by=k, descending=True)
    percentile_cont(0.5) WITHIN GROUP (ORDER BY v)   quantile(v, 0.5)
    regr_slope(y, x)                          covar_pop(y, x) / nullif(var_pop(x of pairs), 0)

Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.aggregates import (
    Aggregate,
    all_,
    any_,
    avg,
    bit_and,
    bit_or,
    bit_xor,
    corr,
    count,
    count_distinct,
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
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.column_expressions.value_aggregates import (
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
from engine.errors import NotYetSupportedError, PlanError
from engine.sql.frames import Binder
from engine.sql_values.arguments import constant_of
from engine.sql_values.casts import cast
from engine.sql_values.constants import is_constant, is_null
from engine.sql_values.data_types import shown_type
from engine.sql_values.operators import is_number, is_text
from engine.sql_values.refused_functions import wrong_number


class OrderKey(NamedTuple):
    """A key of ORDER BY."""

    value: Expr
    descending: bool
    nulls_last: bool


class AggregateCall(NamedTuple):
    """An aggregate as a query has it."""

    name: str
    arguments: Sequence[Expr]
    filter: Expr | None = None
    is_distinct: bool = False
    order_by: Sequence[OrderKey] = ()


Made = Callable[[AggregateCall], Expr]

#: aggregates that do not depend on the order of rows
_OF_VALUES: Final[dict[str, Callable[..., Aggregate]]] = {
    **dict.fromkeys(("min", "any_value", "arbitrary"), min_),
    "max": max_,
    "bit_and": bit_and,
    "bit_or": bit_or,
    "bit_xor": bit_xor,
}
_OF_NUMBERS: Final[dict[str, Callable[..., Aggregate]]] = {
    **dict.fromkeys(("sum", "fsum", "kahan_sum", "sumkahan"), sum_),
    **dict.fromkeys(("avg", "mean", "favg"), avg),
    **dict.fromkeys(("stddev", "std", "stddev_samp"), stddev),
    "stddev_pop": stddev_pop,
    **dict.fromkeys(("variance", "var_samp"), variance),
    "var_pop": variance_pop,
    "median": median,
}
_OF_DOUBLES: Final[dict[str, Callable[..., Aggregate]]] = {
    "product": product,
    "skewness": skewness,
    "kurtosis": kurtosis,
}
_OF_PAIRS: Final[dict[str, Callable[..., Aggregate]]] = {"covar_samp": covar, "covar_pop": covar_pop, "corr": corr}
_OF_CONDITIONS: Final[dict[str, Callable[..., Aggregate]]] = {
    **dict.fromkeys(("bool_and", "every"), all_),
    "bool_or": any_,
}
_OF_OTHERS: Final[dict[str, Callable[..., Aggregate]]] = {
    **dict.fromkeys(("arg_min", "argmin", "min_by"), min_by),
    **dict.fromkeys(("arg_max", "argmax", "max_by"), max_by),
}
_JOINED: Final = {"string_agg": ",", "group_concat": ",", "listagg": ""}
_LISTS: Final = frozenset(("array_agg", "list", "collect_list", "collect_set"))
_QUANTILES: Final = frozenset(("percentile_cont", "quantile_cont", "percentile"))
_APPROXIMATE: Final = frozenset(("approx_quantile", "approx_percentile", "percentile_approx", "approx_percentile_cont"))
_OF_ROWS: Final = {"first": first, "first_value": first, "last": last, "last_value": last}
_WEIGHTED: Final = ("wavg", "weighted_avg")
_COUNTS: Final = frozenset(
    ("count", "count_star", "count_if", "countif", "regr_count", "approx_count_distinct", "approx_distinct")
)


def _regression(name: str, call: AggregateCall) -> Expr:
    """Return one of the aggregates of a line through points (y, x)."""
    y, x = call.arguments
    both, kept = y.is_not_null() & x.is_not_null(), call.filter
    of_x, of_y = when(both).then(x), when(both).then(y)
    number = count(when(both).then(1), filter=kept)
    match name:
        case "count":
            return number
        case "avgx":
            return avg(of_x, filter=kept)
        case "avgy":
            return avg(of_y, filter=kept)
        case "sxx":
            return variance_pop(of_x, filter=kept) * number
        case "syy":
            return variance_pop(of_y, filter=kept) * number
        case "sxy":
            return covar_pop(y, x, filter=kept) * number
    slope = covar_pop(y, x, filter=kept) / variance_pop(of_x, filter=kept).nullif(0.0)
    if name == "slope":
        return slope
    if name == "intercept":
        return avg(of_y, filter=kept) - avg(of_x, filter=kept) * slope
    chain = when(variance_pop(of_x, filter=kept) == 0.0).then(lit(None, pa.float64()))
    return chain.when(variance_pop(of_y, filter=kept) == 0.0).then(1.0).otherwise(corr(y, x, filter=kept).power(2))


_REGRESSION: Final = {
    f"regr_{one}": one for one in ("count", "avgx", "avgy", "sxx", "syy", "sxy", "slope", "intercept", "r2")
}
AGGREGATE_NAMES: Final = frozenset(
    (
        *("count", "count_star", "count_if", "countif", "mode", "approx_count_distinct", "approx_distinct"),
        *("approx_median", "geomean", "geometric_mean", *_WEIGHTED),
        *(*_OF_VALUES, *_OF_NUMBERS, *_OF_DOUBLES, *_OF_PAIRS, *_OF_CONDITIONS, *_OF_OTHERS, *_JOINED, *_LISTS),
        *(*_QUANTILES, *_APPROXIMATE, *_OF_ROWS, *_REGRESSION),
    )
)


#: words behind a call that are a part of it
_BEHIND_CALLS: Final = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_OF_CALLS: Final = frozenset((exp.Anonymous, *_BEHIND_CALLS))


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate, with what stands behind it, and no function over a window."""
    call = _call_of(node) if type(node) in _OF_CALLS else None
    return call is not None and str(call.name).lower() in AGGREGATE_NAMES and not isinstance(node.parent, exp.Window)


def _call_of(node: exp.Expr) -> exp.Anonymous | None:
    inner = node
    while isinstance(inner, _BEHIND_CALLS):
        inner = inner.this
    return inner if isinstance(inner, exp.Anonymous) else None


def aggregates_in(node: exp.Expr) -> list[exp.Expr]:
    """Return the outermost aggregates of an expression; those of queries in it, and of windows, are not among them."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, exp.Query) and one is not node:
            continue
        if is_aggregate(one):
            found.append(one)
            continue
        if isinstance(one, exp.Window):
            # sum(sum(v)) OVER (...): the aggregate is an argument of the function
            inner = _call_of(one.this)
            parts = [*(inner.expressions if inner is not None else ()), *(one.args.get("partition_by") or ())]
            order = one.args.get("order")
            stack += [*parts, *(order.expressions if order is not None else ())]
            if isinstance(one.this, exp.Filter):
                stack.append(one.this.expression)
            continue
        stack += one.iter_expressions()
    return found


def call_of(binder: Binder, node: exp.Expr) -> AggregateCall:
    """Return an aggregate with its arguments bound."""
    kept: Expr | None = None
    order: list[exp.Ordered] = []
    inner, ignores_nulls = node, False
    while not isinstance(inner, exp.Anonymous):
        if isinstance(inner, exp.Filter):
            kept = binder.condition(inner.expression.this, "FILTER")
        elif isinstance(inner, exp.WithinGroup):
            order += inner.expression.expressions
        elif isinstance(inner, exp.IgnoreNulls):
            ignores_nulls = True
        inner = inner.this
    name, given = str(inner.name).lower(), list(inner.expressions)
    is_distinct = False
    arguments: list[exp.Expr] = []
    for item in given:
        one = item
        if isinstance(one, exp.IgnoreNulls | exp.RespectNulls):
            ignores_nulls, one = isinstance(one, exp.IgnoreNulls), one.this
        if isinstance(one, exp.Order):
            order += one.expressions
            one = one.this
        if isinstance(one, exp.Distinct):
            is_distinct = True
            arguments += different(binder, name, one)
        elif one is not None and not (isinstance(one, exp.Star) and name == "count"):
            arguments.append(one)
    if name in (*_QUANTILES, *_APPROXIMATE) and len(arguments) == 1 and order:
        arguments = [order[0].this, *arguments]
    if name == "mode" and not arguments and len(order) == 1:
        arguments, order = [order[0].this], []
    values = binder.all(arguments)
    if ignores_nulls and values:
        kept = values[0].is_not_null() if kept is None else kept & values[0].is_not_null()
    keys = [
        OrderKey(binder.bind(one.this), bool(one.args.get("desc")), not one.args.get("nulls_first")) for one in order
    ]
    return AggregateCall(name, values, kept, is_distinct, keys)


def different(binder: Binder, name: str, node: exp.Distinct) -> list[exp.Expr]:
    """Return the arguments behind DISTINCT in a function. Raises: PlanError where there is none."""
    if not node.expressions or isinstance(node.expressions[0], exp.Star):
        raise PlanError(binder.said(node.parent or node, f"{name}(DISTINCT) of nothing; write {name}(DISTINCT x)"))
    return list(node.expressions)


def aggregate(binder: Binder, call: AggregateCall) -> Expr:
    """Return an aggregate. Raises: NotYetSupportedError for one that is not here, PlanError for its arguments."""
    name, arguments = call.name, list(call.arguments)
    types = [binder.type_of(one) for one in arguments]
    _check(call, types)
    kept, distinct = call.filter, call.is_distinct
    if name in _QUANTILES or name in _APPROXIMATE:
        return _quantile(call)
    if name in _JOINED:
        return _texts(call, types)
    if name in _LISTS:
        return _list(call)
    if name in _OF_ROWS:
        return _of_row(call)
    if call.order_by:
        raise NotYetSupportedError(f"ORDER BY in the SQL aggregate {name}(...)")
    if name in ("count", "count_star"):
        return _count(call, arguments)
    if name in _REGRESSION:
        return _regression(_REGRESSION[name], call)
    if name in ("count_if", "countif"):
        return count(when(arguments[0]).then(1), filter=kept)
    if name in ("geomean", "geometric_mean"):
        return avg(arguments[0].ln(), filter=kept).exp()
    if name in _WEIGHTED and not distinct:
        value, weight = arguments
        total = sum_(value * weight, filter=kept)
        return total / sum_(when(value.is_not_null()).then(weight), filter=kept).cast(pa.float64())
    if name in _OF_PAIRS and not distinct:
        return _OF_PAIRS[name](*arguments, filter=kept)
    if name in _OF_OTHERS and not distinct:
        return _OF_OTHERS[name](*arguments, filter=kept)
    if name in _OF_CONDITIONS:
        return _OF_CONDITIONS[name](arguments[0], filter=kept)
    if name == "mode" and not distinct:
        return mode(arguments[0], filter=kept)
    if name in ("approx_count_distinct", "approx_distinct"):
        return approx_count_distinct(arguments[0], filter=kept)
    if name == "approx_median":
        return approx_quantile(arguments[0], 0.5, filter=kept)
    if name in _OF_DOUBLES:
        value = cast(arguments[0], types[0], pa.float64())
        return _OF_DOUBLES[name](value, filter=kept, distinct=distinct)
    found = (_OF_VALUES.get(name) or _OF_NUMBERS.get(name)) if len(arguments) == 1 else None
    if found is None:
        raise NotYetSupportedError(f"the SQL aggregate {name}({'DISTINCT ' if distinct else ''}...)")
    return found(arguments[0], filter=kept, distinct=distinct)


def empty_value(node: exp.Expr) -> Expr:
    """Return the value that an aggregate has of no rows."""
    call = _call_of(node)
    assert call is not None, "an aggregate"
    return lit(0) if str(call.name).lower() in _COUNTS else lit(None)


def _check(call: AggregateCall, types: Sequence[pa.DataType]) -> None:
    needed = 2 if call.name in (*_WEIGHTED, *_OF_PAIRS, *_OF_OTHERS, *_REGRESSION) else 1
    most = 2 if needed == 2 or call.name in (*_QUANTILES, *_APPROXIMATE, *_JOINED) else 1
    is_count = call.name in ("count", "count_star")
    if not is_count and not needed <= len(types) <= most:
        raise wrong_number(call.name, len(types), needed)
    wrong = call.name in _OF_NUMBERS and not (is_number(types[0]) or pa.types.is_null(types[0]))
    is_span = bool(types) and bool(pa.types.is_duration(types[0])) and call.name in ("sum", "avg", "mean", "median")
    is_moment = call.name == "median" and bool(types) and pa.types.is_temporal(types[0])
    wrong = (wrong and not is_span and not is_moment) or (
        call.name in _OF_CONDITIONS and not (pa.types.is_boolean(types[0]) or pa.types.is_null(types[0]))
    )
    if wrong:
        shown = ", ".join(map(shown_type, types))
        raise PlanError(f"no function has these types of arguments: {call.name}({shown})")


def _count(call: AggregateCall, arguments: Sequence[Expr]) -> Aggregate:
    if not arguments or (is_constant(arguments[0]) and not is_null(arguments[0]) and not call.is_distinct):
        return count(filter=call.filter)
    if len(arguments) > 1:
        if not call.is_distinct:
            raise PlanError("count(a, b) counts what? Write count(*) or count(DISTINCT a, b)")
        return count_distinct(*arguments, filter=call.filter)
    return count(arguments[0], filter=call.filter, distinct=call.is_distinct)


def _order(call: AggregateCall) -> dict[str, Any]:
    if not call.order_by:
        return {}
    return {
        "order_by": [one.value for one in call.order_by],
        "descending": [one.descending for one in call.order_by],
        "nulls_last": [one.nulls_last for one in call.order_by],
    }


def _list(call: AggregateCall) -> Aggregate:
    distinct = call.is_distinct or call.name == "collect_set"
    return collect_list(call.arguments[0], filter=call.filter, distinct=distinct, **_order(call))


def _of_row(call: AggregateCall) -> Expr:
    """Return ``first(v ORDER BY k)``; without an order that of any row."""
    is_first = call.name.startswith("first")
    if not call.order_by:
        return _OF_ROWS[call.name](call.arguments[0], filter=call.filter)
    ordered = _list(call).list
    return ordered.first() if is_first else ordered.last()


def _texts(call: AggregateCall, types: Sequence[pa.DataType]) -> Aggregate:
    value = call.arguments[0]
    value = value if is_text(types[0]) or pa.types.is_null(types[0]) else cast(value, types[0], pa.string())
    separator = _JOINED[call.name]
    if len(call.arguments) > 1:
        separator = str(constant_of(call.arguments[1], f"what {call.name.upper()} puts between texts"))
    return string_agg(value, separator, filter=call.filter, distinct=call.is_distinct, **_order(call))


def _quantile(call: AggregateCall) -> Aggregate:
    """Return ``percentile_cont(q) WITHIN GROUP (ORDER BY v)``, or ``quantile_cont(v, q)``."""
    if len(call.arguments) != 2:
        raise PlanError(f"{call.name}() needs a share, as in {call.name}(x, 0.5)")
    share = constant_of(call.arguments[1], "the share of a percentile")
    if isinstance(share, list):
        raise NotYetSupportedError(f"{call.name}() with a list of shares; write a call for each of them")
    share = float(share)
    share = 1 - share if call.order_by and call.order_by[0].descending else share
    if call.name in _APPROXIMATE:
        return approx_quantile(call.arguments[0], share, filter=call.filter)
    return quantile(call.arguments[0], share, filter=call.filter, distinct=call.is_distinct)
