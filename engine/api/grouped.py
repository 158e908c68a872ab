"""GroupedDataSet: groups of rows, to which aggregates or a function are applied.

    orders.group_by("customer", col("day").dt.year().alias("year")).agg(total=sum_("price"), orders=count())

Keys that are expressions become columns first. Without keys there is one group of all rows, and one row of result
even when there are none.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from engine.api.calls import Calls
from engine.api.expression import Expr
from engine.api.functional import reduce_node
from engine.api.other_names import ON_GROUPS, HasOtherNames
from engine.api.projections import flattened, to_named
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.graph.expression import NamedExpression, has_aggregate
from engine.graph.plan import GroupBy
from engine.lowering.groups import keyed_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.said_nodes import lowered

#: type of the data set
D = TypeVar("D", bound=Calls)


def group_keys(keys: Sequence[Any]) -> tuple[NamedExpression, ...]:
    """Return keys of groups, names and expressions; SchemaError for one that is given twice."""
    named = tuple(to_named(key) for key in flattened(keys))
    names = [one.name for one in named]
    if len(set(names)) < len(names):
        raise SchemaError(f"group_by: a key is given twice: {', '.join(names)}")
    return named


def group_outputs(keys: Sequence[str], aggregates: Sequence[Any], named: Mapping[str, Any]) -> list[NamedExpression]:
    """Return the arguments of ``agg`` as named expressions of aggregates; SchemaError for what is none."""
    outputs = []
    for value in flattened(aggregates):
        _check_aggregate(value)
        if not value.has_name:
            raise SchemaError(f"agg({value!r}): give it a name, agg(name=...)")
        outputs.append(value.named())
    for name, value in named.items():
        _check_aggregate(value)
        outputs.append(NamedExpression(name, value.expression))
    names = [*keys, *(check_column_name(one.name, "agg") for one in outputs)]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise SchemaError(f"agg: column {', '.join(map(repr, twice))} would be there twice")
    return outputs


class GroupedDataSet(HasOtherNames, Generic[D]):
    """Groups of equal keys; nulls are one group."""

    _kind = "group_by()"
    _other_names = ON_GROUPS

    def __init__(self, source: LogicalNode, keys: Sequence[Any], make: Callable[[LogicalNode], D]) -> None:
        self._said_source, self._said_keys = source, group_keys(keys)
        self._source = keyed_node(source, self._said_keys)
        self._keys = tuple(one.name for one in self._said_keys)
        self._make = make

    def agg(self, *aggregates: Any, **named: Any) -> D:
        """Return one row for each group: its keys, then the aggregates by their names.

        ``agg(total=sum_(col("x")))`` or ``agg(sum_(col("x")).alias("total"))``; also expressions of aggregates and
        keys: ``agg(mean=sum_("x") / count())``. Raises: SchemaError, NotYetSupportedError for an aggregate that does
        not exist yet.
        """
        outputs = group_outputs(self._keys, aggregates, named)
        if not outputs:
            raise SchemaError("agg: no aggregates; for the different keys alone use select(...).distinct()")
        return self._make(lowered(GroupBy(self._said_keys, tuple(outputs)), (self._said_source,)))

    def reduce(self, fn: Any, schema: pa.Schema | None = None) -> D:
        """Return the rows that a Python function returns (an iterable) for an iterator over the rows of each group.

        The rows have all columns and come on demand: a group may be larger than memory. The function need not read
        them all. Without keys it is called once, with all rows, also when there are none. After a sort, rows of a
        group come in its order. Without a schema and a return type it is first called with the groups of the first
        rows.
        """
        first_results = self._make(self._source)._first_results
        return self._make(reduce_node(self._source, self._keys, fn, schema, first_results))


def _check_aggregate(value: Any) -> None:
    if not isinstance(value, Expr) or not has_aggregate(value.expression):
        raise SchemaError(f"agg: {value!r} is no aggregate; use sum_, count, min_, max_, avg and the like")
