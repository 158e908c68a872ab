"""Where a person finds a function of the table: its operator, its method, or its name.

faces() -> {"abs": function, "str.upper": function, "coalesce": function}      face_of("str_upper") -> "str.upper"
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from engine.column_expressions import row_functions
from engine.column_expressions.expression import Expr
from engine.column_expressions.intervals import interval
from engine.column_expressions.name_expressions import NameExpressions
from engine.column_expressions.nested_expressions import ListExpressions, MapExpressions, StructExpressions
from engine.column_expressions.string_expressions import StringExpressions
from engine.column_expressions.time_expressions import TimeExpressions

#: function -> (as it is written, method of Expr)
OPERATORS = {
    "add": ("a + b", "__add__"),
    "subtract": ("a - b", "__sub__"),
    "multiply": ("a * b", "__mul__"),
    "divide": ("a / b", "__truediv__"),
    "floor_divide": ("a // b", "__floordiv__"),
    "modulo": ("a % b", "__mod__"),
    "negate": ("-a", "__neg__"),
    "equal": ("a == b", "__eq__"),
    "not_equal": ("a != b", "__ne__"),
    "less": ("a < b", "__lt__"),
    "less_equal": ("a <= b", "__le__"),
    "greater": ("a > b", "__gt__"),
    "greater_equal": ("a >= b", "__ge__"),
    "and": ("a & b", "__and__"),
    "or": ("a | b", "__or__"),
    "not": ("~a", "__invert__"),
}
#: prefix of names in the table -> (namespace, class with its methods)
NAMESPACES: dict[str, tuple[str, Any]] = {
    "str_": ("str", StringExpressions),
    "dt_": ("dt", TimeExpressions),
    "list_": ("list", ListExpressions),
    "struct_": ("struct", StructExpressions),
    "map_": ("map", MapExpressions),
    "name_": ("name", NameExpressions),
}
#: methods of Expr that are no function of a row
_OTHERS = {"call", "alias", "named", "named_by", "made"}


def face_of(name: str) -> str:
    """Return how a function of the table is called: ``str.upper``, ``abs``."""
    for prefix, (namespace, _) in NAMESPACES.items():
        if not name.startswith("map_from") and name.startswith(prefix):
            return f"{namespace}.{name.removeprefix(prefix)}"
    return name


def faces() -> dict[str, Callable[..., Any]]:
    """Return every public function of values by how it is called."""
    found: dict[str, Callable[..., Any]] = {}
    for prefix, home in (("", Expr), *((f"{name}.", home) for name, home in NAMESPACES.values())):
        methods = inspect.getmembers(home, inspect.isfunction)
        found |= {f"{prefix}{name}": method for name, method in methods if name[0] != "_" and name not in _OTHERS}
    functions = inspect.getmembers(row_functions, inspect.isfunction)
    own = {name: each for name, each in functions if each.__module__ == row_functions.__name__}
    return found | {"interval": interval} | {name: each for name, each in own.items() if name[0] != "_"}
