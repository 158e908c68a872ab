"""Conditions of a query: comparisons, AND and OR, IN, BETWEEN, LIKE, patterns, ANY and ALL.

Held by: tests/sql/test_expressions.py
Held by: tests/sql/test_rows_compared.py
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.argument_kinds import is_list
from engine.sql import dependent
from engine.sql.calls import called
from engine.sql.frames import Binder
from engine.sql_values.constants import computed, is_constant, is_null, scalar_of
from engine.sql_values.data_types import shown_type
from engine.sql_values.list_functions import is_any
from engine.sql_values.operators import compared, conjoined, fitted, is_text, rows_compared, without_widening

COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_QUERIES: Final = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
MATCHES: Final[dict[type[exp.Expr], tuple[str, str]]] = {
    exp.RegexpLike: ("regexp_matches", ""),
    exp.RegexpFullMatch: ("regexp_matches", ""),
    exp.RegexpILike: ("regexp_matches", "i"),
}


def connected(binder: Binder, node: exp.Connector) -> Expr:
    """Return conditions that AND or OR connects."""
    is_and = isinstance(node, exp.And)
    word = "AND" if is_and else "OR"
    return conjoined([binder.condition(one, word) for one in node.flatten()], is_and)


def negated(binder: Binder, node: exp.Not) -> Expr:
    """Return a condition turned."""
    inner = node.this.unnest()
    if isinstance(inner, exp.In) and inner.args.get("query") is not None:
        return ~binder.bind(inner)
    return ~binder.condition(node.this, "NOT")


def comparison(binder: Binder, node: exp.Binary) -> Expr:
    """Return a comparison of two values, of rows, or with ANY and ALL."""
    sign = COMPARISONS[type(node)]
    left, right = node.this, node.expression
    for one, other, turned in ((left, right, sign), (right, left, _turned(sign))):
        if isinstance(other, exp.Any | exp.All):
            return _quantified(binder, node, one, turned, other)
        if isinstance(other, exp.Anonymous) and other.name.lower() == "all" and len(other.expressions) == 1:
            if turned != "<>":
                raise NotYetSupportedError(binder.said(node, f"{turned} ALL (list); write it with list functions"))
            return ~is_any(binder.bind(other.expressions[0]), binder.bind(one))
    if _is_row(left) or _is_row(right):
        return rows_compared(sign, _row(binder, left), _row(binder, right), binder.type_of)
    return compared(sign, binder.bind(left), binder.bind(right), binder.type_of)


def _is_row(node: exp.Expr) -> bool:
    """Return whether a node is a row that is written: (a, b) or ROW(a, b)."""
    inner = node.unnest()
    return isinstance(inner, exp.Tuple) or (isinstance(inner, exp.Anonymous) and inner.name.lower() == "row")


def _row(binder: Binder, node: exp.Expr) -> list[Expr]:
    if not _is_row(node):
        raise PlanError(binder.said(node, "a row is compared with what is none"))
    if not node.unnest().expressions:
        raise PlanError(binder.said(node, "a row of no values is compared"))
    return binder.all(node.unnest().expressions)


def _quantified(binder: Binder, node: exp.Expr, one: exp.Expr, sign: str, other: exp.Expr) -> Expr:
    inner = other.this.unnest() if isinstance(other.this, exp.Paren) else other.this
    if isinstance(inner, _QUERIES):
        return dependent.quantified(binder, node, one, sign, inner, is_all=isinstance(other, exp.All))
    if sign != "=" or isinstance(other, exp.All):
        raise NotYetSupportedError(
            binder.said(node, f"{sign} {other.key.upper()} (list); write it with list functions")
        )
    return is_any(binder.bind(inner), binder.bind(one))


def is_test(binder: Binder, node: exp.Is) -> Expr:
    """Return IS NULL, IS TRUE and the like."""
    wanted = node.expression
    if isinstance(wanted, exp.Null):
        return binder.bind(node.this).is_null()
    if isinstance(wanted, exp.Boolean):
        return binder.condition(node.this, "IS").eq_null_safe(lit(bool(wanted.this)))
    return compared("IS NOT DISTINCT FROM", binder.bind(node.this), binder.bind(wanted), binder.type_of)


def between(binder: Binder, node: exp.Between) -> Expr:
    """Return a test of BETWEEN, in either order of its limits where it is symmetric."""
    limits = [node.args["low"], node.args["high"]]
    if any(map(_is_row, (node.this, *limits))):
        return _row_between(binder, node, limits)
    value, low, high = fitted(binder.all([node.this, *limits]), binder.type_of)
    below, above = compared(">=", value, low, binder.type_of), compared("<=", value, high, binder.type_of)
    if node.args.get("symmetric"):
        turned = compared(">=", value, high, binder.type_of) & compared("<=", value, low, binder.type_of)
        return (below & above) | turned
    if is_constant(low) and is_constant(high) and not is_null(low) and not is_null(high):
        return below & above
    return conjoined([computed(below), computed(above)], is_and=True)


def _row_between(binder: Binder, node: exp.Between, limits: Sequence[exp.Expr]) -> Expr:
    """Return a test of BETWEEN of rows."""
    row, low, high = (_row(binder, one) for one in (node.this, *limits))

    def holds(low: list[Expr], high: list[Expr]) -> Expr:
        return rows_compared(">=", row, low, binder.type_of) & rows_compared("<=", row, high, binder.type_of)

    return holds(low, high) | holds(high, low) if node.args.get("symmetric") else holds(low, high)


def in_list(binder: Binder, node: exp.In) -> Expr:
    """Return a test of IN: values that are written, a query, or a list without parentheses around it."""
    if node.args.get("query") is not None:
        return dependent.membership(binder, node)
    if node.args.get("unnest") is not None:
        return is_any(binder.bind(node.args["unnest"].expressions[0]), binder.bind(node.this))
    options = node.expressions
    if len(options) == 1 and isinstance(options[0], _QUERIES):
        return dependent.membership(binder, node)
    if node.args.get("field") is not None:
        return _in_value(binder, node, node.args["field"])
    if _is_row(node.this):
        row = _row(binder, node.this)
        return reduce(or_, (rows_compared("=", row, _row(binder, one), binder.type_of) for one in options), lit(False))
    return _in_values(binder, binder.bind(node.this), [_option(binder, one) for one in options])


def _option(binder: Binder, node: exp.Expr) -> Expr:
    """Return a value that is written in parentheses behind IN. Raises: PlanError for a parameter that is a list."""
    value = binder.bind(node)
    if isinstance(node, exp.Placeholder | exp.Parameter) and is_list(binder.type_of(value)):
        sign = "$" if node.name.isdigit() else ":"
        said = f"IN ({sign}{node.name}) of a parameter that is a list; write IN {sign}{node.name}, without parentheses"
        raise PlanError(binder.said(node, said))
    return value


def _in_value(binder: Binder, node: exp.In, field: exp.Expr) -> Expr:
    """Return a test of IN a list, which is a parameter or a column. Raises: PlanError for what is no list."""
    if _is_row(node.this):
        raise PlanError(binder.said(field, "rows IN a list; write (a, b) IN ((1, 2), (3, 4)), or a query"))
    values = binder.bind(field)
    data_type = binder.type_of(values)
    if not is_list(data_type) and not is_null(values):
        said = f"IN takes values in parentheses, a query or a list, and this is {shown_type(data_type)}"
        raise PlanError(binder.said(field, said))
    if not is_constant(values) or is_null(values):
        return is_any(values, binder.bind(node.this))
    elements = scalar_of(values).values
    return _in_values(binder, binder.bind(node.this), [lit(one.as_py(), elements.type) for one in elements])


def _in_values(binder: Binder, tested: Expr, options: Sequence[Expr]) -> Expr:
    """Return a test of IN: whether a value is one of others."""
    if not options:
        return lit(False)
    value, *others = fitted([tested, *options], binder.type_of)
    for other in others:
        compared("=", value, other, binder.type_of)
    if all(map(is_constant, others)):
        return _among(binder, value, others)
    return reduce(or_, (compared("=", value, other, binder.type_of) for other in others))


def _among(binder: Binder, value: Expr, others: Sequence[Expr]) -> Expr:
    value, *others = without_widening([value, *others], binder.type_of)
    return value.is_in(list(others))


def like(binder: Binder, node: exp.Expr) -> Expr:
    """Return LIKE and ILIKE, with or without ESCAPE."""
    escape = None
    if isinstance(node, exp.Escape):
        escape, node = node.expression.name, node.this
    name = "str_ilike" if isinstance(node, exp.ILike) else "str_like"
    if isinstance(node.expression, exp.Any | exp.All):
        raise NotYetSupportedError(binder.said(node, "LIKE ANY; write a LIKE for each pattern, with OR"))
    value, pattern = binder.bind(node.this), binder.bind(node.expression)
    types = [binder.type_of(value), binder.type_of(pattern)]
    sign = "ILIKE" if name == "str_ilike" else "LIKE"
    if is_null(value) or is_null(pattern):
        return lit(None, pa.bool_())
    if not all(map(is_text, types)):
        raise PlanError(
            binder.said(node, f"{shown_type(types[0])} {sign} {shown_type(types[1])} is not defined; cast one side")
        )
    if escape is not None and escape != "\\":
        pattern = _escaped(binder, node, pattern, escape)
    found = value.call(name, pattern)
    return ~found if node.args.get("negate") else found


def _escaped(binder: Binder, node: exp.Expr, pattern: Expr, escape: str) -> Expr:
    """Return a pattern whose escape is the one that patterns have."""
    if not is_constant(pattern):
        raise NotYetSupportedError(binder.said(node, "ESCAPE of a pattern that is a column"))
    written, found, at = str(scalar_of(pattern).as_py()), "", 0
    while at < len(written):
        if written[at] == escape and at + 1 < len(written):
            found += f"\\{written[at + 1]}" if written[at + 1] in "%_\\" else written[at + 1]
            at += 2
            continue
        found += "\\\\" if written[at] == "\\" else written[at]
        at += 1
    return lit(found)


def matched(binder: Binder, node: exp.Expr) -> Expr:
    """Return whether a regular expression matches somewhere."""
    name, flags = MATCHES[type(node)]
    given = [binder.bind(node.this), binder.bind(node.expression), *([lit(flags)] if flags else [])]
    return called(binder, name, given)


def _turned(sign: str) -> str:
    return {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
