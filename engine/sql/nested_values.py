"""Parts of JSON texts by arrows, and maps that are written.

    js -> 'a' -> 0 ->> 'b'      json_extract(json_extract(js, 'a'), '$[0]') and json_extract_string of it
    MAP {'a': 1}, MAP(k, v)     map_from of a list of keys and a list of values

Held by: tests/sql/test_lambdas.py
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit
from engine.column_expressions.row_functions import array
from engine.errors import PlanError
from engine.sql.calls import called
from engine.sql.frames import Binder
from engine.sql_values.composed_functions import with_fields
from engine.sql_values.constants import computed
from engine.sql_values.operators import fitted


def json_part(binder: Binder, node: exp.Expr) -> Expr:
    """Return a part of a JSON text: as JSON behind ``->``, as a text behind ``->>``."""
    name = "json_extract" if isinstance(node, exp.JSONExtract) else "json_extract_string"
    step = binder.bind(node.expression)
    if pa.types.is_integer(binder.type_of(step)):
        step = computed(lit("$[") + step.cast(pa.string()) + lit("]"))
    return called(binder, name, [binder.bind(_text_of(node.this)), step])


def _text_of(node: exp.Expr) -> exp.Expr:
    """Return the text that is cast to JSON, since an arrow reads a text as JSON; another node as it is."""
    inner = node.unnest()
    is_json = type(inner) is exp.Cast and inner.to.this in (exp.DataType.Type.JSON, exp.DataType.Type.JSONB)
    return inner.this if is_json else node


def as_json(node: exp.Expr) -> exp.Expr:
    """Return a part of a JSON text for an arrow where no function is taken; another node as it is."""
    if not isinstance(node, exp.Lambda):
        return node
    return exp.JSONExtract(this=node.expressions[0], expression=node.this)


def struct_with(binder: Binder, node: exp.Anonymous) -> Expr:
    """Return struct_insert(s, b := x) or struct_update of it. Raises: PlanError."""
    name, fields = str(node.name).lower(), node.expressions[1:]
    if not fields or not all(isinstance(one, exp.PropertyEQ) for one in fields):
        raise PlanError(binder.said(node, f"{name}() takes a struct and fields, as in {name}(s, b := x)"))
    given = {one.this.name: binder.bind(one.expression) for one in fields}
    return with_fields(binder.type_of, name, binder.bind(node.expressions[0]), given)


def map_of(binder: Binder, node: exp.Expr) -> Expr:
    """Return MAP {'a': 1} or MAP(keys, values)."""
    if isinstance(node, exp.Map):
        return called(binder, "map", binder.all([node.args["keys"], node.args["values"]]))
    if isinstance(node.this, exp.Bracket):
        # the parser puts a place behind the braces into them
        inner = exp.Bracket(this=exp.ToMap(this=node.this.this), expressions=node.this.expressions)
        return binder.bind(inner)
    pairs = node.this.expressions
    sides = ([one.this for one in pairs], [one.expression for one in pairs])
    return called(binder, "map", [array(*fitted(binder.all(side), binder.type_of)) for side in sides])
