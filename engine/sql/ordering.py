"""ORDER BY, LIMIT and OFFSET of any query: keys, numbers of columns, and the rows between two places.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.api.data_set import DataSet
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col
from engine.column_expressions.windows import row_number
from engine.dialects.parser import sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.sql.aggregates import OrderKey
from engine.sql.frames import Context, Frame
from engine.sql.values import one_row
from engine.sql_values.constants import is_constant, scalar_of


def order_key(node: exp.Ordered, value: Expr) -> OrderKey:
    """Return a key of ORDER BY."""
    return OrderKey(value, bool(node.args.get("desc")), not node.args.get("nulls_first"))


def ordinal(node: exp.Expr, count: int, context: Context) -> int | None:
    """Return the place of a column that is written as a number, None for another expression."""
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        return None
    place = int(node.this)
    if not 1 <= place <= count:
        raise PlanError(
            sentence(node, f"there is no column {place}; the list of SELECT has {count}", context.session.text)
        )
    return place - 1


def bounds(node: exp.Expr, context: Context) -> tuple[exp.Order | None, int | None, int]:
    """Return ORDER BY, LIMIT and OFFSET of a query."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    count = None
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
            said = "FETCH FIRST ... WITH TIES; write QUALIFY rank() OVER (ORDER BY ...) <= 3"
            raise NotYetSupportedError(sentence(node, said, context.session.text))
        count = _number(limit.args.get("count") or exp.Literal.number(1), "LIMIT", context)
    elif limit is not None:
        options = limit.args.get("limit_options")
        if options is not None and options.args.get("percent"):
            raise NotYetSupportedError(sentence(node, "LIMIT of a share of the rows", context.session.text))
        count = _number(limit.expression, "LIMIT", context)
    return (
        node.args.get("order"),
        count,
        _number(offset.expression, "OFFSET", context) or 0 if offset is not None else 0,
    )


def _number(node: exp.Expr, word: str, context: Context) -> int | None:
    session = context.session
    if isinstance(node.unnest(), exp.Query):
        raise PlanError(sentence(node, "LIMIT and OFFSET take a constant that is not negative", session.text))
    if isinstance(node, exp.Literal) and node.name.isdigit() and not node.is_string and len(node.name) < 19:
        return int(node.name)
    value = one_row(context).binder.bind(node)
    number = scalar_of(value).as_py() if is_constant(value) else "?"
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int):
        raise PlanError(sentence(node, f"{word} takes a number of rows", session.text))
    if number < 0:
        raise PlanError(sentence(node, f"{word} {number} is negative", session.text))
    return number


def in_order(frame: Frame, keys: Sequence[OrderKey], limit: int | None, offset: int, is_whole: bool) -> DataSet:
    """Return the rows of a frame in an order, those between two places; of each of the rows outside by themselves."""
    kept: list[OrderKey] = []
    for key in keys:
        if not is_constant(key.value) and all(key.value.expression != one.value.expression for one in kept):
            kept.append(key)
    descending, nulls_last = [key.descending for key in kept], [key.nulls_last for key in kept]
    if frame.carried and (limit is not None or offset):
        own = [col(name) for name in frame.carried.values()]
        number = frame.unique("number")
        place = row_number().over(
            partition_by=own,
            order_by=[key.value for key in kept] or own[:1],
            descending=descending or False,
            nulls_last=nulls_last or False,
        )
        numbered = frame.data.with_columns(**{number: place})
        condition = col(number) > offset
        return numbered.filter(condition if limit is None else condition & (col(number) <= offset + limit))
    if limit is None and not offset and (not is_whole or not kept):
        return frame.data
    names = [frame.with_column(key.value, "sort_key") for key in kept]
    data = frame.data
    if names and limit is not None and limit > 0 and not offset:
        return data.top(limit, names, descending, nulls_last)
    if names:
        data = data.sort(names, descending=descending, nulls_last=nulls_last)
    return data if limit is None and not offset else data.limit(limit, offset)
