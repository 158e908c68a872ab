"""The groups of a query: one ``group_by`` for each grouping set.

    GROUP BY ROLLUP(a, b)      sets (a, b), (a), (): three aggregates, and their union
                               columns a, b (null where they are not in the set), the number of the set, the aggregates

Substrait writes the key of each set anew; the planner counts equal ones as one column.

Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from engine.api.aggregates import Aggregate, avg, count, count_distinct, max_, min_, stddev, sum_, variance
from engine.api.data_set import DataSet
from engine.api.expression import Expr
from engine.api.expressions import lit, when
from engine.api.grouping_sets import GroupingSets
from engine.errors import NotYetSupportedError
from engine.sql.column_names import ColumnNames, Relation
from engine.sql.expressions import ExpressionReader
from engine.sql.joins import keyed

if TYPE_CHECKING:
    from substrait.algebra_pb2 import AggregateRel, Expression

_DISTINCT: Final = 2
_AGGREGATES: Final[dict[str, Callable[[Expr], Aggregate]]] = {
    "sum": sum_,
    "avg": avg,
    "min": min_,
    "max": max_,
    "stddev": stddev,
    "var": variance,
}


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
    aggregates = {names.unique("aggregate"): _aggregate(measure, reader, functions) for measure in message.measures}
    if len(message.groupings) <= 1:
        return Relation(_groups(data, keys, aggregates), (*keys, *aggregates))
    number = names.unique("grouping_id")
    sets = [frozenset(places[index] for index in grouping.expression_references) for grouping in message.groupings]
    return Relation(GroupingSets(data, keys, sets, number).agg(**aggregates), (*keys, number, *aggregates))


def _groups(data: DataSet, keys: list[str], aggregates: dict[str, Aggregate]) -> DataSet:
    return data.group_by(keys).agg(**aggregates) if aggregates else data.select(keys).distinct()


def _aggregate(measure: AggregateRel.Measure, reader: ExpressionReader, functions: Mapping[int, str]) -> Aggregate:
    call = measure.measure
    name = functions[call.function_reference]
    arguments = [reader.read(argument.value) for argument in call.arguments]
    is_of_rows = not call.arguments or _is_value(call.arguments[0].value)
    if measure.HasField("filter"):
        kept = reader.read(measure.filter)
        arguments = [when(kept).then(one) for one in arguments or [lit(1)]]
        is_of_rows = False
    is_distinct = call.invocation == _DISTINCT
    match name, is_distinct:
        case "count", True if len(arguments) == 1:
            return count_distinct(arguments[0])
        case "count", False if len(arguments) <= 1:
            return count() if is_of_rows else count(arguments[0])
        case (("min" | "max"), _):
            return _AGGREGATES[name](arguments[0])
        case _, False if name in _AGGREGATES:
            return _AGGREGATES[name](arguments[0])
    raise NotYetSupportedError(f"the SQL aggregate {name}({'DISTINCT ' if is_distinct else ''}...)")


def _is_value(message: Expression) -> bool:
    """Return whether an expression is a constant that is not null: count(1) counts rows."""
    return bool(message.WhichOneof("rex_type") == "literal") and message.literal.WhichOneof("literal_type") != "null"
