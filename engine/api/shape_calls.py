"""The calls of DataSet that make rows of lists and columns; ``pivot``, the other way, is in pivot_calls.py.

    explode     a row for each element of a list            an operator of the plan
    unnest      the fields of a struct as columns           a projection
    unpivot     a row for each of some columns              explode of a list of (name, value)

Held by: tests/integration/test_shapes.py
"""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa

from engine.api.group_calls import GroupCalls
from engine.api.other_options import with_other_options
from engine.api.projections import column_name, column_names
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.graph.plan import Explode
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import check_columns, free_name


def element_field(field: pa.Field) -> pa.Field:
    """Return the field that exploding a column of lists or maps gives; SchemaError for other types."""
    data_type = field.type
    if pa.types.is_map(data_type):
        entry = [pa.field("key", data_type.key_type, nullable=False), data_type.item_field]
        return pa.field(field.name, pa.struct(entry))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return pa.field(field.name, data_type.value_type)
    raise SchemaError(f"explode: column {field.name!r} is {data_type}, no list and no map")


@with_other_options
class ShapeCalls(GroupCalls):
    """Base of DataSet with the calls that change the shape of a table."""

    def explode(self, column: Any, position: str | None = None, keep_empty: bool = True) -> Self:
        """Return a row for each element of a list, in place of the list; of a map, for each entry (key, value).

        A null or empty list is one row with null, ``keep_empty=False`` leaves it out. ``position``: a column of that
        name, behind the others, has the place of the element in its list, from 0. Elements come in their order.

        >>> rows({"k": ["a", "b"], "x": [[1, 2], []]}).explode("x", position="i").to_arrow().to_pylist()
        [{'k': 'a', 'x': 1, 'i': 0}, {'k': 'a', 'x': 2, 'i': 1}, {'k': 'b', 'x': None, 'i': None}]
        """
        name = column_name(column, "explode")
        check_columns([name], self.schema)
        fields = [element_field(field) if field.name == name else field for field in self.schema]
        if position is not None:
            if check_column_name(position, "explode") in self.schema.names:
                raise SchemaError(f"explode(position={position!r}): there is a column of that name")
            fields.append(pa.field(position, pa.int64()))
        operator = Explode(name, position or "", bool(keep_empty))
        return self._with(LogicalNode(operator, (self._node,), pa.schema(fields)))

    def unnest(self, *columns: Any) -> Self:
        """Return the fields of structs as columns, in place of the structs; null where a struct is null.

        >>> rows({"k": [1], "s": [{"a": 2, "b": "c"}]}).unnest("s").to_arrow().to_pylist()
        [{'k': 1, 'a': 2, 'b': 'c'}]
        """
        from engine.api.expressions import col

        names = column_names(list(columns), "unnest")
        check_columns(names, self.schema)
        if not names:
            raise SchemaError("unnest: no column; name the structs whose fields are wanted")
        chosen: list[Any] = []
        for field in self.schema:
            if field.name not in names:
                chosen.append(field.name)
            elif pa.types.is_struct(field.type):
                chosen += [col(field.name).field(inner.name).alias(inner.name) for inner in field.type]
            else:
                raise SchemaError(f"unnest: column {field.name!r} is {field.type}, no struct")
        return self.select(*chosen)

    def unpivot(
        self, on: Any = None, index: Any = None, variable_name: str = "variable", value_name: str = "value"
    ) -> Self:
        """Return a row for each of the columns ``on``: those of ``index``, the column's name, and its value.

        Without ``on`` these are all others than ``index``, without ``index`` it is all others than ``on``. The values
        are of the columns' common type. Nulls are rows too.

        >>> rows({"id": [1], "a": [2], "b": [3.5]}).unpivot(index="id").to_arrow().to_pylist()
        [{'id': 1, 'variable': 'a', 'value': 2.0}, {'id': 1, 'variable': 'b', 'value': 3.5}]
        """
        from engine.api.expressions import col, lit
        from engine.api.row_functions import array, struct
        from engine.expressions.common_type import result_type_of

        names = self.schema.names
        given_on = None if on is None else column_names(on, "unpivot")
        given_index = None if index is None else column_names(index, "unpivot")
        check_columns([*(given_on or ()), *(given_index or ())], self.schema)
        kept = [name for name in names if name not in (given_on or ())] if given_index is None else given_index
        wanted = [name for name in names if name not in kept] if given_on is None else given_on
        if given_on is None and given_index is None:
            kept, wanted = [], names
        if not wanted:
            raise SchemaError("unpivot: no column is left to make rows of")
        types = [self.schema.field(name).type for name in wanted]
        shared = result_type_of(types)
        if shared is None:
            shown = ", ".join(f"{name} {data_type}" for name, data_type in zip(wanted, types, strict=True))
            raise SchemaError(f"unpivot: {shown}: no common type; cast them, or name fewer columns in on=")
        pairs = array(*(struct(**{variable_name: lit(name), value_name: col(name).cast(shared)}) for name in wanted))
        held = free_name("__unpivot", self.schema)
        return self.select(*kept, pairs.alias(held)).explode(held).unnest(held)
