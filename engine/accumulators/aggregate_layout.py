"""AggregateLayout: an aggregate's calls turned into states, operations, columns and schemas for the group table.

    calls ──► states (functions.py) ──► for each state: operation on input, input column, operation when merging
          └─► results: for each call the state that it is, (sum, count) of an average, or what is made of moments

    state_schema    key columns, then states              what is spilled, what partial gives out
    result columns  (state, -1), (sum state, count state), or what is made of (moments, VARIANCE)

Nothing here touches data.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from engine.accumulators.aggregate_functions import (
    StateSpec,
    argument_column,
    call_text,
    specs_of_states,
    state_column,
    state_specs,
)
from engine.errors import SchemaError
from engine.graph.expression import AggregateCall, ColumnRef
from engine.records.plain_scalars import array_of, no_values
from engine.records.plain_types import plain_type

# as enum Operation of state_kernels.pxd
_ADD_INT64, _ADD_INT128, _ADD_DOUBLE, _COUNT_VALID, _COUNT_ROWS, _MIN, _MAX = range(7)
_ADD_MOMENTS, _MERGE_MOMENTS, _FIRST, _LAST, _ADD_INT256 = range(7, 12)
_MULTIPLY, _BIT_AND, _BIT_OR, _BIT_XOR = range(12, 16)
_ADD_HIGHER_MOMENTS, _MERGE_HIGHER_MOMENTS, _ADD_COMOMENTS, _MERGE_COMOMENTS = range(16, 20)
_OPERATIONS = {
    "count": _COUNT_VALID,
    "count_rows": _COUNT_ROWS,
    "min": _MIN,
    "max": _MAX,
    "first": _FIRST,
    "last": _LAST,
    "product": _MULTIPLY,
    "bit_and": _BIT_AND,
    "bit_or": _BIT_OR,
    "bit_xor": _BIT_XOR,
    "moments": _ADD_MOMENTS,
    "higher_moments": _ADD_HIGHER_MOMENTS,
    "comoments": _ADD_COMOMENTS,
}
#: functions that merge states of moments, which are no single values
_MERGING = {
    "moments": _MERGE_MOMENTS,
    "higher_moments": _MERGE_HIGHER_MOMENTS,
    "comoments": _MERGE_COMOMENTS,
}

# what stands for the count state of a result that is made of moments, as in moment_kernels.pxd
VARIANCE = -2
STDDEV = -3
_MADE_OF_MOMENTS = {
    "variance": VARIANCE,
    "stddev": STDDEV,
    "covar_samp": -4,
    "covar_pop": -5,
    "corr": -6,
    "skewness": -7,
    "kurtosis": -8,
}

#: states that are made of float64
_OF_DOUBLES = frozenset({"moments", "higher_moments", "product"})
#: states that one table keeps once for several calls: numbers, whatever comes in
_SHARED_OPERATIONS = frozenset({"sum", "count"})


class AggregateLayout(msgspec.Struct, frozen=True):
    """The layout of a HashAggregate. Lists of states are parallel: one entry for each state, in order of calls."""

    #: input columns of the keys
    key_columns: list[int]
    key_schema: pa.Schema
    specs: list[StateSpec]
    #: input column that each state reads, -1: none
    columns: list[int]
    operations: list[int]
    #: input columns when merging, over state_schema
    merge_columns: list[int]
    merge_operations: list[int]
    overflow_texts: list[str]
    state_schema: pa.Schema
    #: results of calls: (state, -1), (sum state, count state) of an average, or (moments, VARIANCE) and the like
    results: list[tuple[int, int]]
    #: input columns that are read as float64 and are of other types
    columns_as_double: list[int]
    #: input columns of two floats that are read as 16 bytes
    columns_as_pairs: list[int]
    #: index, for each state, of the first one with the same operation on the same input column
    twins: list[int]

    @property
    def summed_columns(self) -> set[int]:
        """Input columns that are added up in 128 bits or more, or counted, and nothing else."""
        summed: set[int] = set()
        others = {*self.key_columns}
        for column, operation in zip(self.columns, self.operations, strict=True):
            (summed if operation in (_ADD_INT128, _ADD_INT256, _COUNT_VALID) else others).add(column)
        return summed - others

    @property
    def states(self) -> list[tuple[int, int]]:
        """The states as they are, in the form of `results`."""
        return [(index, -1) for index in range(len(self.specs))]

    @property
    def without_twins(self) -> AggregateLayout:
        """The layout of a table that keeps each state once, for input as it comes in."""
        kept = [index for index, twin in enumerate(self.twins) if twin == index]
        key_count = len(self.key_columns)
        fields = list(self.state_schema)
        return msgspec.structs.replace(
            self,
            specs=[self.specs[index] for index in kept],
            columns=[self.columns[index] for index in kept],
            operations=[self.operations[index] for index in kept],
            merge_columns=list(range(key_count, key_count + len(kept))),
            merge_operations=[self.merge_operations[index] for index in kept],
            overflow_texts=[self.overflow_texts[index] for index in kept],
            state_schema=pa.schema([*fields[:key_count], *(fields[key_count + index] for index in kept)]),
            results=[(place, -1) for place in range(len(kept))],
            twins=list(range(len(kept))),
        )

    @property
    def places_without_twins(self) -> list[tuple[int, int]]:
        """All states, in the form of `results`, by their places in a table of the layout that has equal states once."""
        kept = [index for index, twin in enumerate(self.twins) if twin == index]
        return [(kept.index(twin), -1) for twin in self.twins]

    @property
    def empty_states(self) -> pa.RecordBatch:
        """A batch without rows of the state columns only."""
        fields = list(self.state_schema)[len(self.key_columns) :]
        return pa.RecordBatch.from_arrays([no_values(field.type) for field in fields], schema=pa.schema(fields))


def _operation(spec: StateSpec, merging: bool) -> int:
    """Return the kernel operation of a state; merging: its argument is a state itself."""
    if spec.operation == "sum":
        if pa.types.is_decimal256(spec.type):
            return _ADD_INT256
        if pa.types.is_decimal(spec.type):
            return _ADD_INT128
        return _ADD_DOUBLE if pa.types.is_floating(spec.type) else _ADD_INT64
    if merging and spec.operation in _MERGING:
        return _MERGING[spec.operation]
    if merging and spec.operation in ("count", "count_rows"):
        return _ADD_INT64
    return _OPERATIONS[spec.operation]


def _column(schema: pa.Schema, name: str) -> int:
    index = schema.get_field_index(name)
    if index < 0:
        raise SchemaError(f"the input of an aggregate has no column {name!r}; there are: {', '.join(schema.names)}")
    return int(index)


def _twins(calls: tuple[AggregateCall, ...], results: list[tuple[int, int]], specs: list[StateSpec]) -> list[int]:
    """Return the first equal state for each state: sum(x) and avg(x) share a sum."""
    twins = list(range(len(specs)))
    first: dict[tuple[str, str, str], int] = {}
    for call, states in zip(calls, results, strict=True):
        for index in states:
            if index < 0 or specs[index].operation not in _SHARED_OPERATIONS:
                continue
            if isinstance(call.argument, ColumnRef):
                key = (call.argument.name, specs[index].operation, str(specs[index].type))
                twins[index] = first.setdefault(key, index)
    return twins


def _columns_as_double(schema: pa.Schema, specs: list[StateSpec], columns: list[int]) -> list[int]:
    """Return the columns that are read as float64, and are something else."""
    read = [column for spec, column in zip(specs, columns, strict=True) if spec.operation in _OF_DOUBLES]
    return [column for column in read if not pa.types.is_float64(schema.field(column).type)]


def _columns_as_pairs(specs: list[StateSpec], columns: list[int]) -> list[int]:
    """Return the columns that are read as pairs of float64."""
    return [column for spec, column in zip(specs, columns, strict=True) if spec.operation == "comoments"]


def aggregate_layout(
    input_schema: pa.Schema, keys: tuple[str, ...], calls: tuple[AggregateCall, ...], merging: bool
) -> AggregateLayout:
    """Return the layout of an aggregate.

    Args:
        input_schema: key columns and arguments named by `argument_column`, or, merging, states named by
            `state_column`.
        keys: names of key columns, in the order of the output; none: one global group.
        calls: in the order of the output.
        merging: the input is states.

    Raises:
        SchemaError: a column is missing, or a function does not take its argument's type.
        NotYetSupportedError: a function that is not built.
    """
    specs: list[StateSpec] = []
    columns: list[int] = []
    names: list[str] = []
    texts: list[str] = []
    results: list[tuple[int, int]] = []
    for index, call in enumerate(calls):
        if merging:
            call_specs = specs_of_states(call, index, input_schema)
            columns += [_column(input_schema, state_column(index, k)) for k in range(len(call_specs))]
        elif call.argument is None:
            call_specs = state_specs(call, None)
            columns.append(-1)
        else:
            column = _column(input_schema, argument_column(index))
            call_specs = state_specs(call, plain_type(input_schema.field(column).type))
            columns += [column] * len(call_specs)
        made = _MADE_OF_MOMENTS.get(call.function, -1)
        results.append((len(specs), len(specs) + 1 if len(call_specs) == 2 else made))
        names += [state_column(index, k) for k in range(len(call_specs))]
        texts += [f"{call_text(call)} overflows {spec.type}" for spec in call_specs]
        specs += call_specs
    key_columns = [_column(input_schema, name) for name in keys]
    key_schema = pa.schema(
        [
            pa.field(name, plain_type(input_schema.field(column).type))
            for name, column in zip(keys, key_columns, strict=True)
        ]
    )
    state_fields = [pa.field(name, spec.type) for name, spec in zip(names, specs, strict=True)]
    return AggregateLayout(
        key_columns=key_columns,
        key_schema=key_schema,
        specs=specs,
        columns=columns,
        operations=[_operation(spec, merging) for spec in specs],
        merge_columns=[len(keys) + index for index in range(len(specs))],
        merge_operations=[_operation(spec, merging=True) for spec in specs],
        overflow_texts=texts,
        state_schema=pa.schema([*key_schema, *state_fields]),
        results=results,
        columns_as_double=[] if merging else _columns_as_double(input_schema, specs, columns),
        columns_as_pairs=[] if merging else _columns_as_pairs(specs, columns),
        twins=list(range(len(specs))) if merging else _twins(calls, results, specs),
    )


def check_output(layout: AggregateLayout, schema: pa.Schema, *, gives_states: bool) -> None:
    """Raise SchemaError when an output schema is not that of states, or of results."""
    types = [*layout.key_schema.types]
    if gives_states:
        types += [spec.type for spec in layout.specs]
    else:
        for state, counted in layout.results:
            state_type = layout.specs[state].type
            types.append(state_type if counted == -1 else pa.float64())
    if types != schema.types:
        wanted = ", ".join(str(data_type) for data_type in types)
        given = ", ".join(f"{field.name}: {field.type}" for field in schema)
        raise SchemaError(f"an aggregate gives columns of types [{wanted}], not [{given}]")


def result_of_nothing(layout: AggregateLayout, schema: pa.Schema) -> pa.RecordBatch:
    """Return the one row of an aggregate without keys over no rows: counts are 0, all else is null."""
    arrays = []
    for field, (state, counted) in zip(schema, layout.results, strict=True):
        is_count = counted < 0 and layout.specs[state].operation in ("count", "count_rows")
        arrays.append(array_of([0 if is_count else None], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
