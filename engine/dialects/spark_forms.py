"""Functions of Spark with another answer for some values: zero, null, negative lengths, times of day.

    ln(x) ──► CASE WHEN x > 0 THEN ln(x) END          left(s, n) ──► left(s, CASE WHEN n < 0 THEN 0 ELSE n END)

A form is a text of ours, in which ``a`` and ``b`` are the arguments.

Held by: tests/dataframes/test_spark_dialect.py
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp, parse_one

from engine.dialects.element_forms import finished
from engine.dialects.shared_forms import Repair, call, number, numbers_between, refused
from engine.errors import NotYetSupportedError

#: type of a moment without a zone, which is one of UTC
_MOMENT: Final = "timestampntz"
_MONTHS: Final = "((year(a) - year(b)) * 12 + month(a) - month(b))"
_SECONDS: Final = "((day({0}) * 24 + hour({0})) * 60 + minute({0})) * 60 + second({0})"
_HAS_NULL: Final = "len(list_filter({0}, x -> x IS NULL)) > 0"
_MONTHS_BETWEEN: Final = (
    "CASE WHEN day(a) = day(b) OR (day(a) = day(last_day(a)) AND day(b) = day(last_day(b))) "
    f"THEN CAST({_MONTHS} AS DOUBLE) "
    f"ELSE round({_MONTHS} + (({_SECONDS.format('a')}) - ({_SECONDS.format('b')})) / 2678400e0, 8) END"
)
_OVERLAP: Final = (
    f"CASE WHEN NOT arrays_overlap(a, b) AND len(a) > 0 AND len(b) > 0 "
    f"AND ({_HAS_NULL.format('a')} OR {_HAS_NULL.format('b')}) THEN NULL ELSE arrays_overlap(a, b) END"
)


def form(text: str) -> Repair:
    """Return the repair that puts the arguments of a node into a text of ours."""
    template = parse_one(text, dialect="duckdb")

    def repaired(node: exp.Expr) -> exp.Expr:
        given = _arguments(node)
        found = exp.Paren(this=template.copy())
        for column in list(found.find_all(exp.Column)):
            if column.name in given:
                column.replace(given[column.name].copy())
        return found

    return repaired


def _arguments(node: Any) -> dict[str, exp.Expr]:
    parts = node.expressions if isinstance(node, exp.Anonymous) else (node.this, node.args.get("expression"))
    return {name: part for name, part in zip("ab", parts, strict=False) if part is not None}


def _where(condition: str) -> Repair:
    """Return the repair of a function that is null unless a condition holds for its arguments."""
    holds = form(condition)
    return lambda node: exp.Case(ifs=[exp.If(this=holds(node), true=node.copy())])


def _of_moments(text: str) -> Repair:
    """Return a form whose arguments are moments of UTC."""
    made = form(text)

    def repaired(node: Any) -> exp.Expr:
        for name in ("this", "expression"):
            node.set(name, exp.cast(node.args[name], _MOMENT))
        return made(node)

    return repaired


def _next_month(node: Any) -> exp.Expr:
    node.set("this", exp.cast(node.this, "date"))
    return exp.cast(node, "date")


def _to_zone(node: exp.Expr) -> exp.Expr:
    """Return the local time of a zone, of a moment of UTC."""
    node.set("this", exp.AtTimeZone(this=exp.cast(node.this, _MOMENT), zone=exp.Literal.string("UTC")))
    return node


def _of_zone(node: Any) -> exp.Expr:
    """Return the moment of UTC of a local time of a zone."""
    return exp.AtTimeZone(this=exp.cast(node.this, _MOMENT), zone=node.args["zone"])


def _by_days(node: Any) -> exp.Expr:
    step = node.args.get("step")
    unit = step.args.get("unit") if isinstance(step, exp.Interval) else None
    if unit is not None and unit.name.upper().rstrip("S") in ("MONTH", "QUARTER", "YEAR"):
        said = "sequence() by months, each of which this dialect counts from the first; write generate_series() in ours"
        raise NotYetSupportedError(f"sql: {said}")
    return numbers_between(node)


#: functions of several rows that stand in SELECT there, and what to write
_ROWS_IN_SELECT: Final = {
    "explode_outer": "LATERAL VIEW OUTER explode(list) t AS value",
    "posexplode": "LATERAL VIEW posexplode(list) t AS pos, value",
    "posexplode_outer": "LATERAL VIEW OUTER posexplode(list) t AS pos, value",
    "inline": "LATERAL VIEW explode(list) t AS s, and s.* in SELECT",
    "inline_outer": "LATERAL VIEW OUTER explode(list) t AS s, and s.* in SELECT",
    "stack": "FROM (VALUES ...) AS t (a, b)",
}


def _select(node: exp.Expr) -> exp.Expr:
    """Return a SELECT whose LATERAL VIEWs are joins with unnest()."""
    for item in node.expressions:
        name = _name(item.unalias())
        if name in _ROWS_IN_SELECT:
            raise NotYetSupportedError(f"sql: {name}() in SELECT; write {_ROWS_IN_SELECT[name]}")
    laterals = node.args.get("laterals") or []
    for view in laterals:
        if view.args.get("view"):
            node.append("joins", _join(view))
    if laterals:
        node.set("laterals", [view for view in laterals if not view.args.get("view")])
    return node


def _name(node: Any) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else _NAMES.get(node.key.strip("_"), "")


#: names of functions by the keys of their nodes
_NAMES: Final = {name.replace("_", ""): name for name in ("explode", *_ROWS_IN_SELECT)}


def _join(view: Any) -> exp.Expr:
    name, alias = _name(view.this), view.args.get("alias")
    if "explode" not in name:
        raise NotYetSupportedError(f"sql: LATERAL VIEW {name or view.this.key}(); write LATERAL VIEW explode(list)")
    lists, names = [view.this.this.copy()], ["col"]
    if name.startswith("pos"):
        lists.insert(0, call("range", number(0), call("len", view.this.this.copy())))
        names.insert(0, "pos")
    if alias is not None and not alias.columns:
        alias.set("columns", [exp.to_identifier(one) for one in names])
    rows = exp.Unnest(expressions=lists, alias=alias.copy() if alias is not None else None)
    if view.args.get("outer") or name.endswith("outer"):
        return exp.Join(this=rows, side="LEFT", on=exp.true())
    return exp.Join(this=rows, kind="CROSS")


#: forms of Spark by the node that they repair
SPARK_FORMS: Final[dict[type[exp.Expr], Repair]] = {
    exp.Select: _select,
    exp.Reduce: finished,
    exp.Left: form("left(a, CASE WHEN b < 0 THEN 0 ELSE b END)"),
    exp.Right: form("right(a, CASE WHEN b < 0 THEN 0 ELSE b END)"),
    exp.Ln: _where("a > 0"),
    exp.Log: _where("a > 0 AND b > 0"),
    exp.Flatten: _where(f"NOT {_HAS_NULL.format('a')}"),
    exp.MonthsBetween: _of_moments(_MONTHS_BETWEEN),
    exp.AddMonths: _next_month,
    exp.AtTimeZone: _to_zone,
    exp.FromTimeZone: _of_zone,
    exp.GenerateSeries: _by_days,
    exp.Exists: lambda node: call("exists", node.this, node.expression) if node.expression else node,
    exp.ParseUrl: lambda node: call("parse_url", *node.args.values()),
    exp.IsNan: lambda node: exp.Coalesce(this=node, expressions=[exp.false()]),
    exp.GroupingId: lambda node: node if node.expressions else refused("grouping_id() without arguments")(node),
    exp.JSONFormat: refused("to_json(), which leaves out fields that are null in this dialect"),
}
#: forms of functions that have no node of their own
SPARK_CALLS: Final[dict[str, Repair]] = {"arrays_overlap": form(_OVERLAP), "log1p": _where("a > -1")}
