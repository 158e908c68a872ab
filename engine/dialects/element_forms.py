"""Forms over the elements of lists: FLATTEN of Snowflake, and totals that a function of their own finishes.

    FROM t, LATERAL FLATTEN(INPUT => t.l) f          t CROSS JOIN unnest(range(0, len(t.l)), t.l) AS f(index, value)
    FROM t, TABLE(FLATTEN(t.l, OUTER => TRUE)) f     t LEFT JOIN unnest(...) ON true
    reduce(l, 0, (s, x) -> s + x, s -> s * 2)        reduce(l, 0, (s, x) -> s + x) * 2

Held by: tests/sql/dialects/test_element_forms.py
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from engine.dialects.shared_forms import call, number
from engine.errors import NotYetSupportedError

#: columns of the rows of FLATTEN that are made
_ELEMENTS: Final = ("index", "value")
_OTHERS: Final = ("seq", "key", "path", "this")


def flattened(node: exp.Expr) -> exp.Expr:
    """Return a SELECT whose FLATTENs are joins with unnest()."""
    for join in node.args.get("joins") or []:
        rows = join.this
        if isinstance(rows, exp.Lateral | exp.TableFromRows) and isinstance(rows.this, exp.Explode):
            _unnest(join, rows, node)
    return node


def _unnest(join: exp.Join, rows: Any, select: exp.Expr) -> None:
    given = [rows.this.this, *rows.this.expressions]
    named = {one.this.name.lower(): one.expression for one in given if isinstance(one, exp.Kwarg)}
    values = named.pop("input", None) or given[0]
    is_outer = named.pop("outer", exp.false())
    if named or not isinstance(is_outer, exp.Boolean) or isinstance(values, exp.Kwarg):
        raise NotYetSupportedError("sql: FLATTEN() with other arguments than INPUT, a list, and OUTER => TRUE or FALSE")
    name = rows.alias_or_name
    for column in select.find_all(exp.Column):
        if column.table.lower() == name.lower() and column.name.lower() in _OTHERS:
            raise NotYetSupportedError(f"sql: {column.name} of FLATTEN(); its rows have {' and '.join(_ELEMENTS)}")
    alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier(one) for one in _ELEMENTS])
    lists = [call("range", number(0), call("len", values.copy())), values.copy()]
    join.set("this", exp.Unnest(expressions=lists, alias=alias))
    if is_outer.this or join.side == "LEFT":
        join.set("side", "LEFT")
        join.set("kind", None)
        join.set("on", exp.true())
    elif not join.args.get("on"):
        join.set("kind", "CROSS")


def finished(node: exp.Expr) -> exp.Expr:
    """Return the total of a list in the place of the parameter of the function that finishes it."""
    finish = node.args.get("finish")
    if finish is None:
        return node
    node.set("finish", None)
    if not isinstance(finish, exp.Lambda) or len(finish.expressions) != 1 or finish.this.find(exp.Lambda):
        raise NotYetSupportedError("sql: the last function of reduce() has one parameter, and no function in it")
    name = finish.expressions[0].name.lower()
    whole = exp.Paren(this=finish.this.copy())
    for one in list(whole.find_all(exp.Identifier)):
        is_field = isinstance(one.parent, exp.Column) or (
            isinstance(one.parent, exp.Dot) and one.arg_key == "expression"
        )
        if one.name.lower() == name and not is_field:
            one.replace(node.copy())
    return whole
