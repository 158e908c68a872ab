"""Each function and operator runs in SQL and on Spark, or it is said why not."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import get_args

import engine.dataframes
from docs.generators.function_languages import NOT_IN_SQL, NOT_ON_SPARK, OPERATORS_NOT_IN_SQL
from docs.generators.function_page import function_page
from engine import Environment
from engine.dataframes import translator
from engine.graph.expression import Call
from engine.graph.function_table import FUNCTION_TABLE
from engine.graph.plan import Operator
from engine.graph.said_operators import SAID
from engine.lowering.logical_node import LogicalNode, reachable
from engine.sql_values.function_guide import GUIDE
from tests.sql.function_columns import TABLE
from tests.sql.function_rows import VALUES
from tests.sql.group_function_rows import AGGREGATES, WINDOWS

_OPERATORS = (
    "i + j < 3",
    "f - 1 > 2",
    "i * 2 <= 4",
    "NOT b",
    "-i <> j",
    "i IN (1, 2)",
    "i / 2.0 = 1",
    "i % 2 >= 0",
    "s LIKE 'a%'",
    "s ILIKE 'a%'",
    "MAP {'a': i}['a']",
    "map_keys(MAP {'a': i})",
    "map_values(MAP {'a': i})",
)

_QUERIES = (
    "SELECT i, count(*) FROM x WHERE j > 1 GROUP BY i ORDER BY i LIMIT 3",
    "SELECT a.i FROM x a JOIN x b ON a.i = b.j UNION ALL SELECT j FROM x",
    "SELECT i, row_number() OVER (PARTITION BY j ORDER BY i) FROM x",
    "SELECT i, array_agg(j ORDER BY f) FROM x GROUP BY i",
    "SELECT i FROM x LIMIT 3",
    "SELECT unnest(string_split(s, 'a')) FROM x",
    "SELECT a.i FROM x AS a ASOF JOIN x AS b ON a.i >= b.j",
)


def _functions_of(root: LogicalNode) -> set[str]:
    """Return the names of the functions in a plan, wherever expressions lie in its operators."""
    found: set[str] = set()
    waiting: list[object] = [node.operator for node in reachable([root])]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Call):
            found.add(value.function)
        if isinstance(value, tuple):
            waiting += value
        elif hasattr(value, "__struct_fields__"):
            waiting += [getattr(value, name) for name in value.__struct_fields__]
    return found


def test_each_function_is_planned_from_a_query_or_has_a_reason():
    written = [row[1] for rows in GUIDE.values() for row in rows]
    with Environment(config={"parallelism.default": 1}) as env:
        env.register("x", env.from_arrow(TABLE))
        reached = set()
        for text in (*written, *VALUES, *AGGREGATES, *WINDOWS, *_OPERATORS):
            reached |= _functions_of(env.sql(f"SELECT {text} AS value FROM x")._node)
    public = {name for name, row in FUNCTION_TABLE.items() if not row.is_internal}
    assert sorted(public - reached - NOT_IN_SQL.keys()) == [], (
        "no query of the guide reaches these: add one, or a reason"
    )
    assert sorted(NOT_IN_SQL.keys() & reached) == [], "SQL has these: take the reason away"
    assert sorted(NOT_IN_SQL.keys() - public) == []


def test_the_reference_shows_the_reasons():
    page = function_page()
    assert all(reason in page for reason in NOT_IN_SQL.values())


def test_spark_refuses_no_function():
    """What is refused on Spark are operators; an expression that Spark lacks is computed by the engine."""
    for path in Path(inspect.getfile(engine.dataframes)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and "NotYetSupported" in ast.unparse(node):
                assert path.name in {"translator.py", "partitionings.py"}, f"{path}:{node.lineno}"


def test_each_operator_has_a_form_on_spark_and_in_sql_or_a_reason():
    operators = {kind.__name__ for kind in get_args(Operator) if kind not in SAID}
    on_spark = {name for name in operators if f"{name}(" in inspect.getsource(translator)}
    assert operators - on_spark == NOT_ON_SPARK.keys()
    with Environment(config={"parallelism.default": 1}) as env:
        env.register("x", env.from_arrow(TABLE))
        nodes = [node for query in _QUERIES for node in reachable([env.sql(query)._node])]
    assert operators - {type(node.operator).__name__ for node in nodes} == OPERATORS_NOT_IN_SQL.keys()
