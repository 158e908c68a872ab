"""WITH RECURSIVE: a query whose second part looks at the rows that its last round has made.

    WITH RECURSIVE reach (a, b) AS (
        SELECT a, b FROM edges                                            once
        UNION SELECT reach.a, edges.b FROM reach JOIN edges ON ...        until it has no new rows
    )

The name means the rows of the last round within the second part, and all rows elsewhere. Both parts have the same
types: where they differ, those that both fit. The rounds are jobs (``engine/api/recursion.py``).

Held by: tests/sql/test_recursive_queries.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.recursion import repeated, working_rows
from engine.column_expressions.expressions import col
from engine.dialects.parser import sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.common_type import common_type
from engine.sql.frames import Bound, Context
from engine.sql_values.casts import cast

#: times that both parts may change the types of the other
_MOST_TYPES: Final = 3
_FORM: Final = "its form is: a query without its own rows, UNION [ALL], and a query with them"


def is_recursive(node: exp.CTE) -> bool:
    """Return whether a query of WITH looks at its own rows, as RECURSIVE allows."""
    clause = node.parent
    return isinstance(clause, exp.With) and bool(clause.args.get("recursive")) and _looks_at(node.this, node.alias)


def _looks_at(node: exp.Expr, name: str) -> bool:
    return any(table.name.lower() == name.lower() and not table.db for table in node.find_all(exp.Table))


def recursive_rows(node: exp.CTE, context: Context) -> Bound:
    """Return the rows of a query that looks at its own. Raises: PlanError, NotYetSupportedError."""
    name, query, session = node.alias, node.this, context.session

    def refused(said: str) -> PlanError:
        return PlanError(sentence(node, f"WITH RECURSIVE {name}: {said}", session.text))

    if not isinstance(query, exp.Union) or query.args.get("by_name") or _looks_at(query.this, name):
        raise refused(_FORM)
    if any(query.args.get(one) for one in ("order", "limit", "offset")):
        raise refused("ORDER BY and LIMIT stand in the query that uses it")
    context = context.within(query)
    first = session.bind_query(query.this, context)
    alias = [one.name for one in node.args["alias"].columns]
    names = (*alias, *first.names[len(alias) :])
    schema = _schema([first.data.schema.field(column).type for column in first.columns])
    for _ in range(_MOST_TYPES):
        last = working_rows(first.data, schema)
        working = Bound(last, tuple(schema.names), names)
        step = session.bind_query(query.expression, replace(context, ctes={**context.ctes, name.lower(): working}))
        if first.carried or step.carried:
            said = f"WITH RECURSIVE {name}, which looks at columns outside"
            raise NotYetSupportedError(sentence(node, said, session.text))
        if len(step.columns) != len(first.columns):
            raise refused(f"its parts have {len(first.columns)} and {len(step.columns)} columns")
        wanted = _common([schema, *(_of(part) for part in (first, step))])
        if wanted is not None and wanted.equals(schema):
            parts = [_cast(part, schema) for part in (first, step)]
            is_distinct = bool(query.args.get("distinct"))
            data = repeated(parts[0], last, parts[1], name, is_distinct=is_distinct)
            return Bound(data, tuple(schema.names), first.names)
        if wanted is None:
            break
        schema = wanted
    place, (one, other) = next(
        (place, pair)
        for place, pair in enumerate(zip(_of(first).types, _of(step).types, strict=True))
        if pair[0] != pair[1]
    )
    raise refused(f"column {names[place]} is {one} in the first part and {other} in the second; cast one of them")


def _schema(types: Sequence[pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(f"column{place}", one) for place, one in enumerate(types)])


def _of(part: Bound) -> pa.Schema:
    return _schema([part.data.schema.field(column).type for column in part.columns])


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema | None:
    """Return the columns that all parts fit, None where there are none; decimals keep the scale of the first part."""
    types: list[pa.DataType] = list(schemas[0].types)
    for schema in schemas[1:]:
        for place, other in enumerate(schema.types):
            found = common_type(types[place], other)
            if pa.types.is_decimal(types[place]) and found is not None and found != types[place]:
                # the result of a calculation is longer than its input, in each round again
                found = pa.decimal128(38, types[place].scale) if pa.types.is_decimal(found) else None
            if found is None:
                return None
            types[place] = found
    return _schema(types)


def _cast(part: Bound, schema: pa.Schema) -> DataSet:
    return part.data.select(
        [
            cast(col(column), part.data.schema.field(column).type, field.type).alias(field.name)
            for column, field in zip(part.columns, schema, strict=True)
        ]
    )
