"""Relations that depend on the rows before them: LATERAL and unnest().

Held by: tests/sql/test_subqueries.py
Held by: tests/sql/test_unnested.py
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.api.data_set import DataSet
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col
from engine.dialects.parser import sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.argument_kinds import is_list
from engine.sql.dependent import bound, keys_of
from engine.sql.frames import Binder, Context, Frame, Way
from engine.sql.join_binder import kind_of, pair_frame
from engine.sql.joins import joined, split
from engine.sql.relations import Rows, aliased
from engine.sql.scopes import ColumnNames, Named, Scope, ScopeTable
from engine.sql_values.data_types import shown_type


def of_lateral(node: exp.Lateral) -> exp.Expr:
    """Return the relation behind LATERAL."""
    inner: exp.Expr = node.this
    if isinstance(inner, exp.Anonymous):
        inner = exp.Table(this=inner)
        node.set("this", inner)
    if node.args.get("alias") is not None:
        inner.set("alias", node.args["alias"])
    return inner


def beside(left: Rows, join: exp.Join, context: Context) -> Rows:
    """Return the rows with those of a relation that depends on them."""
    node = join.this
    inner = of_lateral(node) if isinstance(node, exp.Lateral) else node
    if isinstance(inner, exp.Unnest):
        return unnested(left, join if inner is node else _with_this(join, inner), context)
    how = kind_of(join, context)
    if how not in ("inner", "left"):
        raise NotYetSupportedError(sentence(node, f"{how.upper()} JOIN LATERAL", context.session.text))
    frame = Frame(context, left.data, left.scope, left.carried)
    binder = frame.binder
    query = inner.this if isinstance(inner, exp.Subquery) and not inner.args.get("order") else inner
    found, dependent = bound(binder, query, (Way.EQUALITIES, Way.DOMAIN))
    left = left._replace(data=frame.data)
    keys = keys_of(found, dependent)
    right = aliased(found._replace(carried={}), inner, context)
    on = join.args.get("on")
    rest: Expr | None = None
    if on is not None:
        pair = pair_frame(left, right, context)
        more, rest = split(pair.binder.condition(on, "ON"), left.data.columns, right.data.columns)
        keys += more
    return Rows(joined(left.data, right.data, how, keys, rest), left.scope + right.scope, left.carried)


def _with_this(join: exp.Join, inner: exp.Expr) -> exp.Join:
    return exp.Join(this=inner, **{name: value for name, value in join.args.items() if name != "this"})


def unnested(left: Rows, join: exp.Join, context: Context) -> Rows:
    """Return the rows of the left side, one for each element of a list."""
    node, session = join.this, context.session
    how = kind_of(join, context)
    if how not in ("inner", "left") and not is_comma(join):
        raise NotYetSupportedError(sentence(node, f"{how.upper()} JOIN unnest()", session.text))
    frame = Frame(context, left.data, left.scope, left.carried)
    binder = frame.binder
    values = [list_of(binder, one) for one in node.expressions]
    on = join.args.get("on")
    has_condition = on is not None and not (isinstance(on.unnest(), exp.Boolean) and on.unnest().this)
    if on is not None and has_condition and how == "left":
        raise NotYetSupportedError(
            sentence(on, "unnest() joined ON a condition; write ON TRUE, and the condition in WHERE", session.text)
        )
    alias = node.args.get("alias")
    names = [one.name for one in alias.columns] if alias is not None else []
    offset = node.args.get("offset")
    element, position = session.names.unique("element"), session.names.unique("position") if offset else ""
    data = frame.data.with_columns(**{element: zipped(values)})
    data = data.explode(element, position or None, keep_empty=how == "left")
    data, elements = parts_of(data, element, len(values), session.names)
    if position:
        data = data.with_columns(**{position: col(position) + 1})
    table = node.alias or "unnest"
    shown = [Named(name, one) for name, one in zip([*names, *["unnest"] * len(elements)], elements, strict=False)]
    if position:
        shown.append(Named(offset.name if isinstance(offset, exp.Identifier) else "ordinality", position))
    found = Rows(data, left.scope + Scope((ScopeTable(table, tuple(shown)),)), left.carried)
    if on is not None and has_condition:
        filtered = Frame(context, found.data, found.scope, found.carried)
        condition = filtered.binder.condition(on, "ON")
        found = found._replace(data=filtered.data.filter(condition))
    return found


def list_of(binder: Binder, node: exp.Expr) -> Expr:
    """Return the list that unnest() takes apart. Raises: PlanError."""
    value = binder.bind(node)
    data_type = binder.type_of(value)
    if not is_list(data_type):
        raise PlanError(binder.said(node, f"unnest() of {shown_type(data_type)}, which is no list"))
    return value


def zipped(values: Sequence[Expr]) -> Expr:
    """Return one list of several: what they have at each place, nulls behind the end of a shorter one."""
    return values[0] if len(values) == 1 else values[0].call("list_zip", *values[1:])


def parts_of(data: DataSet, element: str, count: int, names: ColumnNames) -> tuple[DataSet, list[str]]:
    """Return rows with what each of several lists had at the place of an element, and the names of those columns."""
    if count == 1:
        return data, [element]
    parts = [names.unique("element") for _ in range(count)]
    fields = {name: col(element).field(f"part{number}") for number, name in enumerate(parts)}
    return data.with_columns(**fields).drop(element), parts


def is_comma(join: exp.Join) -> bool:
    """Return whether a join is a comma."""
    return not any(join.args.get(one) for one in ("on", "using", "kind", "side", "method"))


def depends_on_rows(node: exp.Expr) -> bool:
    """Return whether a relation depends on the rows before it."""
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
        return node.find(exp.Column) is not None
    return isinstance(node, exp.Lateral | exp.Unnest)
