"""Clauses that a parser takes although they say nothing, or two things: refused before anything is bound.

    JOIN u ON, JOIN u USING (), WHERE k IN          nothing stands behind the word
    WITH x AS ..., x AS ...   * EXCLUDE (k, k)      a name that is there twice
    JOIN u, ORDER BY 'k'                            all pairs, no order
    FOR UPDATE, WITH (NOLOCK)                       nothing is locked
    LIMIT 1 BY p, CHANGES (...), SELECT AS STRUCT   nothing here is so

Held by: tests/sql/test_clauses.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlglot import exp

from engine.dialects.parser import nodes_in, sentence
from engine.errors import NotYetSupportedError, PlanError


def check_clauses(statement: exp.Expr, text: str) -> None:
    """Raise PlanError, NotYetSupportedError for a clause that says nothing, or two things."""
    for node in nodes_in(statement):
        check = _CHECKS.get(type(node))
        said = None if check is None else check(node)
        if said is not None:
            raise PlanError(sentence(node, said, text))
        is_foreign, words = _FOREIGN.get(type(node), _KNOWN)
        if is_foreign(node):
            raise NotYetSupportedError(sentence(node, words, text))
        for part in (*(node.args.get("locks") or ()), *(node.args.get("hints") or ())):
            if isinstance(part, exp.Lock | exp.WithTableHint):
                raise NotYetSupportedError(sentence(node, "a lock of rows; a query reads what is there", text))


def _twice(what: str, names: Iterable[str]) -> str | None:
    """Return the words for a name that is there twice, None without one."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return f"{what} {name} is there twice"
        seen.add(name.lower())
    return None


def _of_join(join: exp.Join) -> str | None:
    if "on" in join.args and join.args["on"] is None:
        return "ON is not complete; write ON a.k = b.k"
    if "using" in join.args and not join.args["using"]:
        return "USING is not complete; write USING (k)"
    if not join.meta.get("lacks_condition"):
        return None
    name = join.this.alias_or_name
    return f"JOIN {name} has no condition; write ON a.k = b.k, USING (k), or CROSS JOIN {name} for all pairs"


def _of_in(node: exp.In) -> str | None:
    is_empty = not any(node.args.get(one) for one in ("query", "field", "unnest")) and "expressions" not in node.args
    return "IN is not complete; write IN (1, 2), or a query" if is_empty else None


def _of_star(star: exp.Star) -> str | None:
    return (
        _twice("EXCLUDE: the column", (one.name for one in star.args.get("except_") or ()))
        or _twice("REPLACE: the column", (one.alias for one in star.args.get("replace") or ()))
        or _twice("RENAME: the column", (one.this.name for one in star.args.get("rename") or ()))
    )


def _of_table(table: exp.Table) -> str | None:
    if isinstance(table.this, exp.Placeholder | exp.Parameter):
        return f"the parameter {table.name} in place of a table; parameters are values, so write the name of the table"
    is_call = isinstance(table.this, exp.Func)
    return "a version of a function's rows; only tables have versions" if is_call and _versions(table) else None


def _versions(table: exp.Table) -> bool:
    return any(table.args.get(one) is not None for one in ("version", "when"))


def _of_escape(node: exp.Escape) -> str | None:
    sign = node.expression
    is_wrong = isinstance(sign, exp.Literal) and len(sign.name) > 1
    return f"ESCAPE takes one character, and this is {sign.name!r}" if is_wrong else None


def _of_order(order: exp.Order) -> str | None:
    """Return the words for ORDER BY of a query that has a constant as a key, which is no order."""
    if not isinstance(order.parent, exp.Query):
        return None
    for key in order.expressions:
        node = key.this if isinstance(key, exp.Ordered) else key
        if isinstance(node, exp.Literal) and node.is_string:
            return f"ORDER BY of the text '{node.name}' is no order; a name stands in double quotes, or in none"
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
            return f"ORDER BY -{node.this.name} is no order; write ORDER BY {node.this.name} DESC for a column's number"
    return None


def _is_bucket(sample: exp.TableSample) -> bool:
    return sample.args.get("bucket_numerator") is not None


_KNOWN: Final[tuple[Callable[[Any], bool], str]] = (lambda _node: False, "")
#: forms of other engines, and the words about them
_FOREIGN: Final[dict[type[exp.Expr], tuple[Callable[[Any], bool], str]]] = {
    exp.Limit: (
        lambda node: bool(node.expressions),
        "LIMIT n BY k (write QUALIFY row_number() OVER (PARTITION BY k ORDER BY ...) <= n)",
    ),
    exp.Table: (
        lambda node: node.args.get("changes") is not None,
        "CHANGES, the changes of a table as rows (env.read_changes(path) has those of a Delta table)",
    ),
    exp.TableSample: (_is_bucket, "TABLESAMPLE of buckets (write (50 PERCENT), or (100 ROWS))"),
    exp.Select: (
        lambda node: node.args.get("kind") is not None,
        "SELECT AS STRUCT and AS VALUE (write SELECT struct_pack(a := a, b := b) AS name)",
    ),
}
_CHECKS: Final[dict[type[exp.Expr], Callable[[Any], str | None]]] = {
    exp.Join: _of_join,
    exp.In: _of_in,
    exp.With: lambda node: _twice("WITH: the name", (one.alias for one in node.expressions)),
    exp.Select: lambda node: _twice("WINDOW: the name", (one.name for one in node.args.get("windows") or ())),
    exp.Star: _of_star,
    exp.Table: _of_table,
    exp.Order: _of_order,
    exp.Escape: _of_escape,
}
