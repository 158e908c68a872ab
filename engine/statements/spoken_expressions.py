"""Expressions that are written in SQL, over the columns of a data set: ``select(expr("upper(name)"))``.

    expr("a + 1") over rows with a     SELECT (a + 1) AS value FROM rows     ──►     col("a") + 1

What is no expression over the rows alone, such as a query within it, is refused.

Held by: tests/sql/test_spoken_expressions.py
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlglot import exp

from engine.api.data_set import DataSet
from engine.dialects.excerpts import with_excerpts
from engine.dialects.parser import check_names, parsed
from engine.errors import PlanError
from engine.graph.expression import ColumnRef, Expression
from engine.graph.plan import Project
from engine.sql.expression_binder import Expressions
from engine.sql.frames import Context, Session
from engine.sql.query_binder import bind_query
from engine.statements.macros import expanded

_ROWS: Final = "rows"
_VALUE: Final = "value"


def expression_over(text: str, data: DataSet) -> Expression:
    """Return the expression that a text of SQL is over a data set. Raises: PlanError, SchemaError."""
    query = f"SELECT ({text}) AS {_VALUE} FROM {_ROWS}"  # noqa: S608 - it is read as a query, and nothing runs
    environment: Any = data._environment
    with with_excerpts(query):
        statement = expanded(parsed(query), environment.macros, query)
        check_names(statement, query)
        if len(list(statement.find_all(exp.Alias))) > 1:
            raise PlanError(f"expr({text!r}): a name is given with .alias(name)")
        session = Session(
            text=query,
            table=lambda node: data if node.name == _ROWS else None,
            table_names=[_ROWS],
            from_arrow=environment.from_arrow,
            bind_query=bind_query,
            expressions=Expressions,
            moment=datetime.now(UTC),
            functions=environment.functions,
        )
        bound = bind_query(statement, Context(session), is_whole=True)
    (column,) = bound.columns
    node = bound.data._node
    if node is data._node:
        return ColumnRef(column)
    operator = node.operator if node.said is None else node.said.operator
    inputs = node.inputs if node.said is None else node.said.inputs
    if not isinstance(operator, Project) or len(inputs) != 1 or inputs[0] is not data._node:
        raise PlanError(f"expr({text!r}): it is more than an expression over columns; write it with env.sql(query)")
    return next(one.expression for one in operator.expressions if one.name == column)
