"""The groups of a query: one ``group_by`` for each grouping set.

    GROUP BY ROLLUP(a, b)      sets (a, b), (a), (): three aggregates, and their union
                               columns a, b (null where they are not in the set), the number of the set, the aggregates

DISTINCT ON comes as first values of groups, all in one order: the first row of each group is what is meant.
Substrait writes the key of each set anew; the planner counts equal ones as one column.

Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from engine.api.aggregates import Aggregate, count
from engine.api.data_set import DataSet
from engine.api.expressions import col
from engine.api.grouping_sets import GroupingSets
from engine.api.windows import row_number
from engine.sql.aggregates import AggregateCall, aggregate
from engine.sql.column_names import ColumnNames, Relation
from engine.sql.expressions import ExpressionReader
from engine.sql.joins import keyed

if TYPE_CHECKING:
    from substrait.algebra_pb2 import AggregateRel, Expression

_DISTINCT: Final = 2


def grouped(
    names: ColumnNames,
    data: DataSet,
    message: AggregateRel,
    reader: ExpressionReader,
    functions: Mapping[int, str],
) -> Relation:
    """Return the groups of a data set: keys, the number of the set where there are several, aggregates."""
    different: dict[bytes, Expression] = {}
    places: list[int] = []
    for key in message.grouping_expressions:
        written = key.SerializeToString(deterministic=True)
        different.setdefault(written, key)
        places.append(list(different).index(written))
    data, keys = keyed(names, data, [reader.read(key) for key in different.values()])
    if keys and len(message.groupings) <= 1 and _are_of_first_rows(message, functions):
        return _first_rows(names, data, keys, message, reader)
    aggregates = {names.unique("aggregate"): _aggregate(measure, reader, functions) for measure in message.measures}
    columns = tuple(aggregates)
    if not aggregates and not all(grouping.expression_references for grouping in message.groupings):
        # a set of no keys is one row, also where there are none: an aggregate makes it
        aggregates = {names.unique("aggregate"): count()}
    if len(message.groupings) <= 1:
        groups = data.group_by(keys).agg(**aggregates) if aggregates else data.select(keys).distinct()
        return Relation(groups, (*keys, *columns))
    number = names.unique("grouping_id")
    sets = [frozenset(places[index] for index in grouping.expression_references) for grouping in message.groupings]
    return Relation(GroupingSets(data, keys, sets, number).agg(**aggregates), (*keys, number, *columns))


def _are_of_first_rows(message: AggregateRel, functions: Mapping[int, str]) -> bool:
    """Return whether all that is asked for are values of the same row of each group."""
    calls = [measure.measure for measure in message.measures]
    orders = {tuple(field.SerializeToString(deterministic=True) for field in call.sorts) for call in calls}
    is_plain = all(
        functions[call.function_reference] == "first_value" and call.invocation != _DISTINCT for call in calls
    )
    return len(orders) == 1 and is_plain and not any(measure.HasField("filter") for measure in message.measures)


def _first_rows(
    names: ColumnNames, data: DataSet, keys: list[str], message: AggregateRel, reader: ExpressionReader
) -> Relation:
    """Return keys and values of the first row of each group: DISTINCT ON."""
    sorts = message.measures[0].measure.sorts
    directions = [field.SortDirection.Name(field.direction) for field in sorts]
    number = names.unique("number")
    first = row_number().over(
        partition_by=keys,
        order_by=[reader.read(field.expr) for field in sorts] or [col(keys[0])],
        descending=["DESC" in direction for direction in directions] or [False],
        nulls_last=["NULLS_LAST" in direction for direction in directions] or [False],
    )
    values = {names.unique("first"): reader.read(measure.measure.arguments[0].value) for measure in message.measures}
    kept = data.with_columns(**{number: first}).filter(col(number) == 1)
    found = kept.select([*(col(key) for key in keys), *(value.alias(name) for name, value in values.items())])
    return Relation(found, (*keys, *values))


def _aggregate(measure: AggregateRel.Measure, reader: ExpressionReader, functions: Mapping[int, str]) -> Aggregate:
    call = measure.measure
    directions = [field.SortDirection.Name(field.direction) for field in call.sorts]
    return aggregate(
        AggregateCall(
            functions[call.function_reference],
            [reader.read(argument.value) for argument in call.arguments],
            is_of_rows=not call.arguments or is_value(call.arguments[0].value),
            filter=reader.read(measure.filter) if measure.HasField("filter") else None,
            is_distinct=call.invocation == _DISTINCT,
            order_by=[reader.read(field.expr) for field in call.sorts],
            descending=["DESC" in direction for direction in directions],
            nulls_last=["NULLS_LAST" in direction for direction in directions],
        )
    )


def is_value(message: Expression) -> bool:
    """Return whether an expression is a constant that is not null: count(1) counts rows."""
    return bool(message.WhichOneof("rex_type") == "literal") and message.literal.WhichOneof("literal_type") != "null"
