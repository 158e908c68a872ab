"""Groups in plain Python, and one phase or two of a HashAggregate over the same rows."""

import datetime
import decimal
import math
import random
from fractions import Fraction

import pyarrow as pa

from engine.accumulators.aggregate_functions import argument_column, result_schema, state_schema
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.graph.expression import AggregateCall, ColumnRef

MEMORIES = {"fits": 600, "half": 66, "minimum": 6}
ALL = ("sum", "count", "count_all", "min", "max", "avg", "first", "last")
VALUE_TYPES = {
    "bool": (pa.bool_(), lambda r: r.random() < 0.5),
    "int8": (pa.int8(), lambda r: r.randrange(-128, 128)),
    "int64": (pa.int64(), lambda r: r.randrange(-(2**40), 2**40)),
    "uint8": (pa.uint8(), lambda r: r.randrange(256)),
    "uint64": (pa.uint64(), lambda r: r.randrange(2**40)),
    "float": (pa.float32(), lambda r: r.choice([float(r.randrange(-8, 8)), math.nan])),
    "double": (pa.float64(), lambda r: float(r.randrange(-1000, 1000))),
    "decimal": (pa.decimal128(12, 2), lambda r: decimal.Decimal(r.randrange(-(10**9), 10**9)) / 100),
    "decimal256": (pa.decimal256(50, 2), lambda r: decimal.Decimal(r.randrange(-(10**30), 10**30)) / 100),
    "date": (pa.date32(), lambda r: datetime.date(2020, 1, 1) + datetime.timedelta(r.randrange(999))),
    "timestamp": (pa.timestamp("us"), lambda r: datetime.datetime(2020, 1, 1) + datetime.timedelta(r.randrange(999))),
    "string": (pa.string(), lambda r: "äz"[r.randrange(2)] * r.choice([0, 1, 3, 20, 200])),
    "large": (pa.large_string(), lambda r: str(r.randrange(10**6))),
    "binary": (pa.binary(), lambda r: r.randbytes(r.randrange(9))),
    "fixed": (pa.binary(3), lambda r: r.randbytes(3)),
}
NUMBERS = ("int8", "int64", "uint8", "uint64", "float", "double", "decimal", "decimal256")


def canonical(value):
    """One value for what is equal as a key."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def order_of(value):
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def evaluate(function, values, data_type):
    """The aggregate of a group's values, nulls included."""
    present = [value for value in values if value is not None]
    if function == "count_all":
        return len(values)
    if function == "count":
        return len(present)
    if function in ("first", "last"):
        return values[0 if function == "first" else -1] if values else None
    if not present:
        return None
    if function == "min":
        return min(present, key=order_of)
    if function == "max":
        return max(present, key=order_of)
    with decimal.localcontext(prec=120):
        total = sum(present)
        if function == "sum":
            return total
        if pa.types.is_decimal(data_type):
            return float(Fraction(total) / len(present))
    return total / len(present)


def oracle(table, keys, calls):
    """Rows of the result as a sorted list of texts."""
    groups = {}
    for row in table.to_pylist():
        groups.setdefault(tuple(canonical(row[key]) for key in keys), []).append(row)
    if not keys and not groups:
        groups[()] = []
    result = []
    for key, rows in groups.items():
        cells = list(key)
        for index, call in enumerate(calls):
            name = argument_column(index)
            data_type = None if call.argument is None else table.schema.field(name).type
            cells.append(canonical(evaluate(call.function, [row.get(name) for row in rows], data_type)))
        result.append(repr(tuple(cells)))
    return sorted(result)


def rows_of(table):
    return sorted(repr(tuple(canonical(value) for value in row.values())) for row in table.to_pylist())


def make_calls(functions):
    return tuple(
        AggregateCall(function, None if function == "count_all" else ColumnRef("x"), f"{function}_{index}")
        for index, function in enumerate(functions)
    )


def functions_for(type_name):
    return ALL if type_name in NUMBERS else ("count", "count_all", "min", "max", "first", "last")


def input_table(keys, key_types, calls, argument_types, columns):
    """Key columns, then the arguments by their names in the contract."""
    fields = list(zip(keys, key_types, strict=True))
    for index, call in enumerate(calls):
        if call.argument is not None:
            fields.append((argument_column(index), argument_types[index]))
    schema = pa.schema(fields)
    return pa.table([pa.array(column, t) for column, t in zip(columns, schema.types, strict=True)], schema=schema)


def argument_types_of(table, calls):
    return [
        None if call.argument is None else table.schema.field(argument_column(index)).type
        for index, call in enumerate(calls)
    ]


def aggregate(phase, table, keys, calls, output, pool, space, batch_rows=100, **options):
    """Run one phase; returns (output table, the closed aggregate)."""
    operator = HashAggregate(AggregateSpec(phase, table.schema, keys, calls, output, **options), pool, space)
    try:
        batches = []
        for batch in table.to_batches(max_chunksize=batch_rows):
            batches.extend(operator.add_batch(batch))
        batches.extend(operator.finish())
        assert operator.rows_in == table.num_rows
        result = pa.Table.from_batches(batches, output)
        assert operator.group_count == result.num_rows
        return result, operator
    finally:
        operator.close()


def single(workshop, pages, table, keys, calls, batch_rows=100, **options):
    output = result_schema([table.schema.field(key) for key in keys], calls, argument_types_of(table, calls))
    with workshop.operator(pages) as (pool, space):
        return aggregate("single", table, keys, calls, output, pool, space, batch_rows, **options)


def two_phases(workshop, pages, table, keys, calls, batch_rows=100, **options):
    fields = [table.schema.field(key) for key in keys]
    types = argument_types_of(table, calls)
    states = state_schema(fields, calls, types)
    with workshop.operator(pages) as (pool, space):
        partial, _ = aggregate("partial", table, keys, calls, states, pool, space, batch_rows, **options)
    output = result_schema(fields, calls, types)
    with workshop.operator(pages) as (pool, space):
        final, operator = aggregate("final", partial, keys, calls, output, pool, space, batch_rows, **options)
    return final, operator, partial


def make_table(key_type, value_type, count, distinct, null_share=0.1, seed=0):
    rng = random.Random(seed)
    key_data_type, make_key = VALUE_TYPES[key_type]
    value_data_type, make_value = VALUE_TYPES[value_type]
    calls = make_calls(functions_for(value_type))
    pool = [make_key(rng) for _ in range(distinct)]

    def some(make):
        return [None if rng.random() < null_share else make() for _ in range(count)]

    values = some(lambda: make_value(rng))
    columns = [some(lambda: rng.choice(pool)), *[values for call in calls if call.argument is not None]]
    types = [None if call.argument is None else value_data_type for call in calls]
    return input_table(("key",), [key_data_type], calls, types, columns), calls
