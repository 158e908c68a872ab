"""Parts of JSON texts by arrows, and maps that are written.

    js -> 'a' -> 0 ->> 'b'      json_extract(json_extract(js, "$['a']"), '$[0]') and json_extract_string of it
    MAP {'a': 1}, MAP(k, v)     map_from of a list of keys and a list of values

Held by: tests/sql/test_lambdas.py
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from engine.api.expression import Expr
from engine.api.expressions import lit
from engine.api.row_functions import array
from engine.errors import NotYetSupportedError
from engine.sql.constants import computed
from engine.sql.frames import Binder
from engine.sql.function_calls import called
from engine.sql.operators import fitted


def json_part(binder: Binder, node: exp.Expr) -> Expr:
    """Return a part of a JSON text: as JSON behind ``->``, as a text behind ``->>``."""
    name = "json_extract" if isinstance(node, exp.JSONExtract) else "json_extract_string"
    path = node.expression
    step = binder.bind(path) if not isinstance(path, exp.JSONPath) else lit(_path(binder, node, path))
    if pa.types.is_integer(binder.type_of(step)):
        step = computed(lit("$[") + step.cast(pa.string()) + lit("]"))
    return called(binder, node, name, [binder.bind(node.this), step])


def _path(binder: Binder, node: exp.Expr, path: exp.JSONPath) -> str:
    """Return the path that stands behind an arrow, as functions of JSON read it."""
    steps = []
    for one in path.expressions:
        if isinstance(one, exp.JSONPathKey) and isinstance(one.this, str):
            steps.append(f"['{one.this}']")
        elif isinstance(one, exp.JSONPathSubscript) and isinstance(one.this, int):
            steps.append(f"[{one.this}]")
        elif not isinstance(one, exp.JSONPathRoot):
            raise NotYetSupportedError(binder.said(node, "a path of JSON with *, .. or a condition"))
    return "".join(("$", *steps))


def as_json(node: exp.Expr) -> exp.Expr:
    """Return a part of a JSON text for an arrow where no function is taken; another node as it is."""
    if not isinstance(node, exp.Lambda):
        return node
    return exp.JSONExtract(this=node.expressions[0], expression=node.this)


def map_of(binder: Binder, node: exp.Expr) -> Expr:
    """Return MAP {'a': 1} or MAP(keys, values)."""
    if isinstance(node, exp.Map):
        return called(binder, node, "map", binder.all([node.args["keys"], node.args["values"]]))
    if isinstance(node.this, exp.Bracket):
        # the parser puts a place behind the braces into them
        inner = exp.Bracket(this=exp.ToMap(this=node.this.this), expressions=node.this.expressions)
        return binder.bind(inner)
    pairs = node.this.expressions
    sides = ([one.this for one in pairs], [one.expression for one in pairs])
    return called(binder, node, "map", [array(*fitted(binder.all(side), binder.type_of)) for side in sides])
