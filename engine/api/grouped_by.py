"""GroupedBy: what group_by returns, groups of rows to which aggregates or a function are applied.

    orders.group_by("customer", col("day").dt.year().alias("year")).agg(total=sum_("price"), orders=count())

    agg reduce                      a row for each group; the rows of a function
    head                            the first rows of each group, a filter on row_number()
    rollup cube grouping_sets       several group_by over the same rows, and their union:
      group_by("a", "b").rollup()   sets (a, b), (a), ()           totals of the first keys, and of all
      group_by("a", "b").cube()     sets (a, b), (a), (b), ()      of each choice of keys

Keys that are expressions become columns first. Without keys there is one group of all rows, and one row of result
even when there are none.

Held by: tests/api/test_data_set.py
Held by: tests/integration/test_shapes.py
Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import pyarrow as pa
from msgspec.structs import replace

from engine.api.calls import Calls, row_count
from engine.column_expressions.data_types import output_schema
from engine.column_expressions.expression import Expr
from engine.column_expressions.named_columns import column_names, columns_given, to_named
from engine.column_expressions.other_names import ON_GROUPS, HasOtherNames
from engine.column_expressions.python_habits import check_own
from engine.column_expressions.windows import order_keys, over_keys, row_number
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.graph.expression import ROW_PLACE, NamedExpression, OrderedBy, has_aggregate
from engine.graph.plan import GroupReduce
from engine.graph.said_operators import GroupBy
from engine.lowering.groups import keyed_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.said_nodes import lowered

if TYPE_CHECKING:
    from engine.choices import GroupFormat

#: type of the data set
D = TypeVar("D", bound=Calls)

#: largest number of sets in a cube, all computed by one job
_SETS_MAX: Final = 64


def group_keys(keys: Sequence[Any], schema: pa.Schema) -> tuple[NamedExpression, ...]:
    """Return keys of groups, names and expressions; SchemaError for one that is given twice."""
    named = tuple(to_named(key) for key in columns_given(keys, schema))
    names = [one.name for one in named]
    if len(set(names)) < len(names):
        raise SchemaError(f"group_by: a key is given twice: {', '.join(names)}")
    return named


def group_outputs(
    keys: Sequence[str], aggregates: Sequence[Any], named: Mapping[str, Any], schema: pa.Schema
) -> list[NamedExpression]:
    """Return the arguments of ``agg`` as named expressions of aggregates; SchemaError for what is none.

    A selector stands for columns of the schema that are no keys.
    """
    others = pa.schema([field for field in schema if field.name not in keys])
    outputs = []
    for value in columns_given(aggregates, others):
        _check_aggregate(value)
        if not value.has_name:
            raise SchemaError(f"agg({value!r}): give it a name, agg(name=...)")
        outputs.append(value.named())
    for name, value in named.items():
        _check_aggregate(value)
        (one,) = columns_given([value.alias(check_column_name(name, "agg"))], others)
        outputs.append(NamedExpression(name, one.expression))
    names = [*keys, *(check_column_name(one.name, "agg") for one in outputs)]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise SchemaError(f"agg: column {', '.join(map(repr, twice))} would be there twice")
    return outputs


class GroupedBy(HasOtherNames, Generic[D]):
    """Groups of rows with equal keys; nulls are one group."""

    _kind = "group_by()"
    _other_names = ON_GROUPS

    def __init__(self, data: D, keys: Sequence[Any]) -> None:
        self._data, self._said_keys = data, group_keys(keys, data.schema)
        self._with_keys = data._with(keyed_node(data._node, self._said_keys))
        self._keys = tuple(one.name for one in self._said_keys)

    def agg(self, *aggregates: Any, **named: Any) -> D:
        """Return one row for each group: its keys, then the aggregates by their names.

        ``agg(total=sum_(col("x")))`` or ``agg(sum_(col("x")).alias("total"))``; also expressions of aggregates and
        keys: ``agg(mean=sum_("x") / count())``. Raises: SchemaError, NotYetSupportedError for an aggregate that does
        not exist yet.
        """
        outputs = group_outputs(self._keys, aggregates, named, self._data.schema)
        if not outputs:
            raise SchemaError("agg: no aggregates; for the different keys alone use select(...).distinct()")
        return self._data._with(lowered(GroupBy(self._said_keys, tuple(outputs)), (self._data._node,)))

    def reduce(self, fn: Any, schema: pa.Schema | None = None, format: GroupFormat = "rows") -> D:  # noqa: A002
        """Return the rows that a Python function returns (an iterable) for an iterator over the rows of each group.

        The rows have all columns and come on demand: a group may be larger than memory. The function need not read
        them all. Without keys it is called once, with all rows, also when there are none. After a sort, rows of a
        group come in its order. Without a schema and a return type it is first called with the groups of the first
        rows.

        format: "rows", or "pandas", "polars", "arrow" (pyarrow.RecordBatch) or "numpy" (dict of arrays): the function
        is called with each group as one frame, which must fit in the memory of its process, and returns a frame, or an
        iterable of them. It needs ``schema``.
        """
        from engine.functions.batch_formats import FORMATS
        from engine.functions.python_functions import python_function
        from engine.functions.schema_inference import function_schema

        if format not in ("rows", *FORMATS):
            raise SchemaError(f"reduce: format {format!r} is none of rows, {', '.join(FORMATS)}")
        if format != "rows" and schema is None:
            raise SchemaError(f"reduce: format={format!r} needs schema=, the pyarrow.Schema of the frames it returns")
        kind = "reduce" if format == "rows" else f"reduce:{format}"
        first_results = self._with_keys._first_results
        found = function_schema("reduce", fn, schema, first_results, self._keys)
        plain, not_null = output_schema(found, "reduce")
        function = replace(python_function(kind, fn), not_null=not_null)
        node = LogicalNode(GroupReduce(self._keys, function), (self._with_keys._node,), plain)
        return self._data._with(node)

    def rollup(self, grouping_id: str | None = None) -> GroupingSets[D]:
        """Return the groups by all keys, by all but the last, and so on to one of all rows: subtotals and a total.

        A key is null in rows of groups that do not have it. ``grouping_id``: a column of that name has a bit for each
        key, the first the highest, 1 where the row's group does not have it.

        >>> sales = rows({"shop": ["a", "a", "b"], "sold": [1, 2, 3]})
        >>> sales.group_by("shop").rollup().agg(sold=sum_("sold")).sort("shop", nulls_last=True).collect()
        [Row(shop='a', sold=3), Row(shop='b', sold=3), Row(shop=None, sold=6)]
        """
        return GroupingSets(self._data, self._said_keys, rollup_sets(self._keys), grouping_id)

    def cube(self, grouping_id: str | None = None) -> GroupingSets[D]:
        """Return the groups by each choice of keys, none included; nulls and ``grouping_id`` as of ``rollup``.

        >>> sales = rows({"shop": ["a", "b"], "day": [1, 1], "sold": [2, 3]})
        >>> sales.group_by("shop", "day").cube().agg(sold=sum_("sold")).count()
        6
        """
        return GroupingSets(self._data, self._said_keys, cube_sets(self._keys), grouping_id)

    def grouping_sets(self, *sets: Any, grouping_id: str | None = None) -> GroupingSets[D]:
        """Return the groups by several sets of keys, each a list of names; nulls and ``grouping_id`` as of ``rollup``.

        >>> sales = rows({"shop": ["a", "b"], "day": [1, 1], "sold": [2, 3]})
        >>> sales.group_by("shop", "day").grouping_sets(["shop"], []).agg(sold=sum_("sold")).count()
        3
        """
        return GroupingSets(self._data, self._said_keys, named_sets(self._keys, sets), grouping_id)

    def head(
        self, count: int, by: Any = None, descending: bool | list[bool] = False, nulls_last: bool | list[bool] = False
    ) -> D:
        """Return the first rows of each group in the order of ``by``, names or expressions; without it, any rows.

        Rows that are equal in ``by`` are in the order of the data set: that of its files, or of a sort.

        >>> rows({"k": [1, 1, 2], "x": [3, 4, 5]}).group_by("k").head(1, "x", descending=True).sort("k").collect()
        [Row(k=1, x=4), Row(k=2, x=5)]
        """
        kept = row_count(count, "head")
        data: Any = self._with_keys
        found: D
        if not self._keys:
            found = data.limit(kept) if by is None else data.sort(by, descending, nulls_last).limit(kept)
            return found
        order = order_keys(by, descending, nulls_last)
        if order:
            order = (*order, OrderedBy(ROW_PLACE))
        found = data.filter(row_number().over(list(self._keys), *over_keys(order)) <= kept)
        return found


class GroupingSets(Generic[D]):
    """Sets of keys, of each of which there are to be groups."""

    def __init__(
        self, data: D, keys: tuple[NamedExpression, ...], sets: Sequence[frozenset[int]], number: str | None
    ) -> None:
        self._data = data
        self._keys = keys
        self._sets = sets
        self._number = number
        if len(sets) > _SETS_MAX:
            raise SchemaError(f"{len(sets)} grouping sets, an aggregate each; at most {_SETS_MAX}")

    def agg(self, *aggregates: Any, **named: Any) -> D:
        """Return a row for each group of each set: the keys, null where the set has them not, and the aggregates."""
        names = [one.name for one in self._keys]
        outputs = group_outputs(names, aggregates, named, self._data.schema)
        sets = tuple(tuple(name for place, name in enumerate(names) if place in wanted) for wanted in self._sets)
        said = GroupBy(self._keys, tuple(outputs), sets, self._number or "")
        return self._data._with(lowered(said, (self._data._node,)))


def rollup_sets(keys: Sequence[str]) -> list[frozenset[int]]:
    """Return the sets of a rollup: all keys, then one less each time."""
    return [frozenset(range(count)) for count in range(len(keys), -1, -1)]


def cube_sets(keys: Sequence[str]) -> list[frozenset[int]]:
    """Return the sets of a cube: each choice of keys, larger ones first."""
    if len(keys) > _SETS_MAX.bit_length():
        raise SchemaError(f"cube: {len(keys)} keys make {2 ** len(keys)} sets; name those that are wanted")
    return [frozenset(chosen) for count in range(len(keys), -1, -1) for chosen in combinations(range(len(keys)), count)]


def named_sets(keys: Sequence[str], sets: Sequence[Any]) -> list[frozenset[int]]:
    """Return sets that are given by names of keys."""
    return list(_named_sets(list(keys), sets))


def _named_sets(keys: list[str], sets: Sequence[Any]) -> Iterator[frozenset[int]]:
    if not sets:
        raise SchemaError("grouping_sets: name at least one set of keys, as in grouping_sets(['a', 'b'], ['a'], [])")
    for one in sets:
        names = column_names(one, "grouping_sets")
        for name in names:
            if name not in keys:
                raise SchemaError(f"grouping_sets: {name!r} is no key of group_by({', '.join(keys)})")
        yield frozenset(map(keys.index, names))


def _check_aggregate(value: Any) -> None:
    if not isinstance(value, Expr) or not has_aggregate(value.expression):
        check_own(value, "agg: ")
        raise SchemaError(f"agg: {value!r} is no aggregate; use sum_, count, min_, max_, avg and the like")
