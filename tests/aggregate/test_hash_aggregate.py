"""HashAggregate against plain Python, pyarrow and DuckDB."""

import datetime
import decimal
import math
import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.aggregate import hash_aggregate
from engine.aggregate.functions import argument_column, result_schema, state_schema
from engine.aggregate.hash_aggregate import HashAggregate
from engine.errors import CorruptBlockError, DataError, SchemaError
from engine.graph.expression import AggregateCall, ColumnRef
from engine.memory.segment import MemorySegment
from engine.records.row_codec import RowCodec

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
            step = decimal.Decimal(1).scaleb(-data_type.scale)
            return (total / len(present)).quantize(step, rounding=decimal.ROUND_HALF_UP)
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
    operator = HashAggregate(phase, table.schema, keys, calls, output, pool, space, **options)
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


# --------------------------------------------------------------------------------------------------- types and memory


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("value_type", VALUE_TYPES)
def test_every_argument_type_aggregates_like_the_oracle(workshop, value_type, memory):
    table, calls = make_table("int64", value_type, 4000, 6000)
    result, operator = single(workshop, MEMORIES[memory], table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert (operator.spilled_bytes > 0) == (memory != "fits")


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("key_type", VALUE_TYPES)
def test_every_key_type_groups_like_the_oracle(workshop, key_type, memory):
    table, calls = make_table(key_type, "int64", 800, 500)
    result, _ = single(workshop, MEMORIES[memory], table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)


@pytest.mark.parametrize("value_type", ["int64", "decimal", "double", "string", "bool"])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("force_spill", [False, True])
def test_partial_and_final_give_what_single_gives(workshop, value_type, memory, force_spill):
    table, calls = make_table("string", value_type, 1000, 600)
    result, operator, _ = two_phases(workshop, MEMORIES[memory], table, ("key",), calls, force_spill=force_spill)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0 or not force_spill or len(result) <= 16


@pytest.mark.parametrize("batch_rows", [1, 2, 7, 49, 3000])
@pytest.mark.parametrize("distinct", [1, 20, 400])
@pytest.mark.parametrize("force_spill", [False, True])
def test_batch_sizes_and_duplicates_do_not_matter(workshop, batch_rows, distinct, force_spill):
    table, calls = make_table("int64", "int64", 400, distinct)
    result, operator = single(workshop, 30, table, ("key",), calls, batch_rows, force_spill=force_spill)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert (operator.spilled_bytes > 0) == (force_spill and distinct > 1)


@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-2, 2),
            st.none() | st.text("ab", max_size=3),
            st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan]),
            st.none() | st.integers(-(2**31), 2**31 - 1),
            st.none() | st.text("xy", max_size=30),
        ),
        max_size=90,
    ),
    keys=st.sampled_from([("a",), ("b",), ("c",), ("a", "b"), ("b", "c", "a"), ()]),
    force_spill=st.booleans(),
    level_max=st.sampled_from([-1, 0, 6]),
    split=st.booleans(),
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows_and_any_keys_group_like_the_oracle(workshop, rows, keys, force_spill, level_max, split):
    calls = (
        *make_calls(ALL),
        *(AggregateCall(function, ColumnRef("t"), function) for function in ("max", "first", "last")),
    )
    columns = dict(zip("abcde", zip(*rows, strict=True) if rows else [[]] * 5, strict=True))
    key_types = {"a": pa.int16(), "b": pa.string(), "c": pa.float64()}
    argument_types = [None if call.argument is None else pa.int32() for call in calls[:-3]] + [pa.string()] * 3
    data = [columns[key] for key in keys] + [columns["d"]] * 7 + [columns["e"]] * 3
    table = input_table(keys, [key_types[key] for key in keys], calls, argument_types, [list(c) for c in data])
    options = {"force_spill": force_spill, "level_max": level_max}
    if split:
        result, _, _ = two_phases(workshop, 6, table, keys, calls, 7, **options)
    else:
        result, _ = single(workshop, 6, table, keys, calls, 7, **options)
    assert rows_of(result) == oracle(table, keys, calls)


def test_two_hundred_thousand_rows_group_like_duckdb_and_pyarrow(workshop):
    import duckdb

    rng = random.Random(5)
    calls = make_calls(ALL[:6])
    values = [None if i % 11 == 0 else rng.randrange(-(10**6), 10**6) for i in range(200_000)]
    keys = [int(rng.paretovariate(0.4)) % 60_000 for _ in range(200_000)]
    types = [None if call.argument is None else pa.int64() for call in calls]
    table = input_table(("key",), [pa.int64()], calls, types, [keys, *[values] * 5])
    result, operator = single(workshop, 100, table, ("key",), calls, 8192)
    assert operator.spilled_bytes > 0
    connection = duckdb.connect()
    connection.register("t", table)
    wanted = connection.execute(
        "select key, sum(__arg0)::bigint, count(__arg0), count(*), min(__arg0), max(__arg0), avg(__arg0) "
        "from t group by 1"
    ).fetchall()
    assert rows_of(result) == sorted(map(repr, wanted))
    grouped = table.group_by("key").aggregate([("__arg0", "sum")])
    assert sorted(grouped.to_pydict()["__arg0_sum"], key=repr) == sorted(result.to_pydict()["sum_0"], key=repr)


# ------------------------------------------------------------------------------------------------- keys and the global


def test_zeros_are_one_group_nans_are_one_group_and_nulls_are_one_group(workshop):
    calls = make_calls(["count_all"])
    keys = [0.0, -0.0, math.nan, -math.nan, None, None, 1.0]
    table = input_table(("key",), [pa.float64()], calls, [None], [keys])
    for pages, force_spill in ((100, False), (6, True)):
        result, _ = single(workshop, pages, table, ("key",), calls, 1, force_spill=force_spill)
        assert rows_of(result) == ["('nan', 2)", "(0.0, 2)", "(1.0, 1)", "(None, 2)"]


def test_without_calls_the_keys_are_made_distinct(workshop):
    table = input_table(("key",), [pa.string()], (), [], [["a", "b", None, "a", None]])
    result, _, _ = two_phases(workshop, 6, table, ("key",), ())
    assert rows_of(result) == ["('a',)", "('b',)", "(None,)"]


@pytest.mark.parametrize("phase", ["single", "final"])
def test_without_keys_nothing_gives_one_row(workshop, phase):
    calls = (*make_calls(ALL), AggregateCall("max", ColumnRef("s"), "top"))
    types = [None if call.argument is None else pa.int64() for call in calls[:-1]] + [pa.string()]
    output = result_schema([], calls, types)
    table = input_table((), [], calls, types, [[]] * 8)
    if phase == "final":
        table = state_schema([], calls, types).empty_table()
    with workshop.operator(6) as (pool, space):
        result, _ = aggregate(phase, table, (), calls, output, pool, space)
    assert result.to_pylist() == [dict(zip(output.names, [None, 0, 0, *[None] * 6], strict=True))]


def test_a_partial_of_nothing_gives_nothing_and_so_does_any_phase_with_keys(workshop):
    calls = make_calls(ALL)
    types = [None if call.argument is None else pa.int64() for call in calls]
    for keys, key_types in (((), []), (("key",), [pa.int8()])):
        table = input_table(keys, key_types, calls, types, [[]] * (len(keys) + 7))
        result, _, partial = two_phases(workshop, 6, table, keys, calls)
        assert partial.num_rows == 0
        assert result.num_rows == (0 if keys else 1)


def test_rows_without_columns_are_counted(workshop):
    rows = pa.record_batch({"a": [1, 2, 3]}).select([])
    output = pa.schema([("rows", pa.int64())])
    with workshop.operator(6) as (pool, space):
        operator = HashAggregate("single", rows.schema, (), make_calls(["count_all"]), output, pool, space)
        for _ in range(2):
            operator.add_batch(rows)
        assert [batch.to_pylist() for batch in operator.finish()] == [[{"rows": 6}]]
        operator.close()


def test_a_global_maximum_that_outgrows_the_memory_is_found(workshop):
    calls = make_calls(["max", "count"])
    values = ["a" * size for size in (10, 3000, 9000, 15_000, 21_000, 60_000, 5, 60_001)]
    table = input_table((), [], calls, [pa.string()] * 2, [values] * 2)
    for run in (single, two_phases):
        result = run(workshop, 6, table, (), calls, 3)[0]
        assert result.to_pylist() == [{"max_0": "a" * 60_001, "count_1": 8}]


# -------------------------------------------------------------------------------------------------------- large groups


@pytest.mark.parametrize("size", [4000, 5000, 30_000])
@pytest.mark.parametrize("level_max", [-1, 6])
def test_keys_and_values_larger_than_a_page_or_the_memory_are_grouped(workshop, size, level_max):
    rng = random.Random(1)
    calls = make_calls(["min", "max", "count_all"])
    keys = [f"{rng.randrange(12)}" + "k" * rng.choice([3, size]) for _ in range(120)]
    values = [f"{rng.randrange(100)}" + "v" * rng.choice([0, size]) for _ in range(120)]
    table = input_table(("key",), [pa.string()], calls, [pa.string(), pa.string(), None], [keys, values, values])
    result, operator = single(workshop, 6, table, ("key",), calls, 10, level_max=level_max)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0


@pytest.mark.parametrize("level_max", [-1, 0, 1])
def test_a_frozen_table_ends_with_every_group_once(workshop, level_max):
    table, calls = make_table("int64", "string", 1500, 900)
    result, operator = single(workshop, 6, table, ("key",), calls, level_max=level_max)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0


@pytest.mark.parametrize("seed", [12, 16, 26, 44])
def test_a_frozen_table_takes_no_group_again_that_it_has_refused(workshop, seed):
    # Few groups have values of several pages that grow: what they give back makes room in the middle of a pass.
    rng = random.Random(seed)
    calls = make_calls(["max", "count_all"])
    keys = [rng.randrange(250) for _ in range(900)]
    sizes = [rng.choice([0, 0, 0, 0, 600, 5000, 9000, 17_000] if key < 6 else [0, 0, 20]) for key in keys]
    values = [f"{index:05d}" + "v" * size for index, size in enumerate(sizes)]
    table = input_table(("key",), [pa.int64()], calls, [pa.string(), None], [keys, values])
    result, operator = single(workshop, 6, table, ("key",), calls, 30, level_max=-1)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0


def test_only_some_partitions_are_spilled_when_the_memory_nearly_suffices(workshop):
    table, calls = make_table("int64", "int64", 6000, 3000, null_share=0)
    result, operator = single(workshop, 90, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)
    _, everything = single(workshop, 6, table, ("key",), calls)
    assert 0 < operator.spilled_bytes < everything.spilled_bytes / 2


# ------------------------------------------------------------------------------------------------------------- partial


def test_a_partial_that_does_not_reduce_passes_rows_through(workshop, monkeypatch):
    monkeypatch.setattr(hash_aggregate, "PASS_ROWS", 200)
    for value_type in ("int8", "uint64", "float", "decimal", "string"):
        table, calls = make_table(value_type, value_type, 50, 40)
        rng = random.Random(2)
        unique = [f"{i}-{rng.random()}" for i in range(1000)]
        values = [None if i % 7 == 0 else VALUE_TYPES[value_type][1](rng) for i in range(1000)]
        types = [None if call.argument is None else VALUE_TYPES[value_type][0] for call in calls]
        columns = [unique, *[values for call in calls if call.argument is not None]]
        table = input_table(("key",), [pa.string()], calls, types, columns)
        for force_spill in (False, True):
            result, _, partial = two_phases(workshop, 100, table, ("key",), calls, 100, force_spill=force_spill)
            assert partial.num_rows == 1000
            assert rows_of(result) == oracle(table, ("key",), calls)


def test_a_partial_that_reduces_keeps_on_grouping(workshop, monkeypatch):
    monkeypatch.setattr(hash_aggregate, "PASS_ROWS", 200)
    table, calls = make_table("int64", "int64", 3000, 30)
    _, _, partial = two_phases(workshop, 100, table, ("key",), calls)
    assert partial.num_rows == 31


def test_a_full_partial_gives_out_states_and_writes_no_file(workshop):
    table, calls = make_table("int64", "string", 3000, 700)
    states = state_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    with workshop.operator(6) as (pool, space):
        operator = HashAggregate("partial", table.schema, ("key",), calls, states, pool, space)
        early = sum(batch.num_rows for part in table.to_batches(500) for batch in operator.add_batch(part))
        late = sum(batch.num_rows for batch in operator.finish())
        operator.close()
        assert operator.spilled_bytes == 0
    assert early > 0
    assert 700 < early + late <= 3000


# -------------------------------------------------------------------------------------------------------------- errors


def test_an_integer_sum_that_overflows_is_an_error_that_names_it(workshop):
    calls = make_calls(["sum"])
    for values, data_type in (
        ([2**62, 2**62], pa.int64()),
        ([-(2**63), -1], pa.int64()),
        ([2**63], pa.uint64()),
    ):
        table = input_table(("key",), [pa.int8()], calls, [data_type], [[1] * len(values), values])
        with pytest.raises(DataError, match=r"^sum\(x\) overflows int64$"):
            single(workshop, 6, table, ("key",), calls)
        table = input_table((), [], calls, [data_type], [values])
        with pytest.raises(DataError, match=r"sum\(x\) overflows int64"):
            single(workshop, 6, table, (), calls)


def test_the_largest_sums_and_averages_do_not_overflow(workshop):
    calls = make_calls(["sum", "avg"])
    values = [2**63 - 1, 0, None]
    table = input_table((), [], calls, [pa.int64()] * 2, [values, [2**63 - 1, 2**63 - 1, 2**63 - 2]])
    result, _, _ = two_phases(workshop, 6, table, (), calls)
    assert result.to_pylist() == [{"sum_0": 2**63 - 1, "avg_1": float(2**63)}]


def test_a_decimal_sum_beyond_38_digits_is_an_error(workshop):
    calls = make_calls(["sum"])
    most = decimal.Decimal("9" * 36 + ".99")
    table = input_table((), [], calls, [pa.decimal128(38, 2)], [[most]])
    assert single(workshop, 6, table, (), calls)[0].to_pylist() == [{"sum_0": most}]
    table = input_table((), [], calls, [pa.decimal128(38, 2)], [[most, decimal.Decimal("0.01")]])
    with pytest.raises(DataError, match=r"sum\(x\) overflows decimal128\(38, 2\)"):
        single(workshop, 6, table, (), calls)


def test_decimal_averages_are_rounded_half_away_from_zero(workshop):
    calls = make_calls(["avg"])
    for values, mean in ((["0.01", "0.02"], "0.02"), (["-0.01", "-0.02"], "-0.02"), (["1.00", "0", "0"], "0.33")):
        column = [decimal.Decimal(value) for value in values]
        table = input_table((), [], calls, [pa.decimal128(5, 2)], [column])
        assert single(workshop, 6, table, (), calls)[0].to_pylist() == [{"avg_0": decimal.Decimal(mean)}]


@pytest.mark.parametrize("phases", [single, two_phases])
def test_wide_decimals_add_up_to_76_digits_and_not_beyond(workshop, phases):
    calls = make_calls(["sum", "avg"])
    most = decimal.Decimal(10**76 - 1).scaleb(-2, decimal.Context(prec=80))
    for sign in (1, -1):
        with decimal.localcontext(prec=120):
            values = [sign * most, -sign * decimal.Decimal("0.02"), None, sign * decimal.Decimal("0.02")]
            mean = (sign * most / 3).quantize(decimal.Decimal("0.01"), rounding=decimal.ROUND_HALF_UP)
        table = input_table((), [], calls, [pa.decimal256(76, 2)] * 2, [values] * 2)
        assert phases(workshop, 6, table, (), calls)[0].to_pylist() == [{"sum_0": values[0], "avg_1": mean}]
        over = input_table((), [], calls, [pa.decimal256(76, 2)] * 2, [[values[0], values[3]]] * 2)
        with pytest.raises(DataError, match=r"x\) overflows decimal256\(76, 2\)"):
            phases(workshop, 6, over, (), calls)


@pytest.mark.parametrize(
    ("values", "mean"),
    [(["0.01", "0.02"], "0.02"), (["-0.01", "-0.02"], "-0.02"), (["1.00", "0", "0"], "0.33"), (["0"], "0.00")],
)
def test_averages_of_wide_decimals_are_rounded_half_away_from_zero(workshop, values, mean):
    calls = make_calls(["avg"])
    table = input_table((), [], calls, [pa.decimal256(50, 2)], [[decimal.Decimal(value) for value in values]])
    assert single(workshop, 6, table, (), calls)[0].to_pylist() == [{"avg_0": decimal.Decimal(mean)}]


def test_wrong_schemas_phases_and_functions_are_refused_before_memory_is_taken(workshop):
    calls = make_calls(["sum"])
    schema = pa.schema([("key", pa.int64()), ("__arg0", pa.int64())])
    good = result_schema([schema.field(0)], calls, [pa.int64()])
    with workshop.operator(6) as (pool, space):
        with pytest.raises(ValueError, match="no phase 'whole'"):
            HashAggregate("whole", schema, ("key",), calls, good, pool, space)
        with pytest.raises(SchemaError, match="no column 'other'"):
            HashAggregate("single", schema, ("other",), calls, good, pool, space)
        with pytest.raises(SchemaError, match="__arg0"):
            HashAggregate("single", pa.schema([("key", pa.int64())]), ("key",), calls, good, pool, space)
        with pytest.raises(SchemaError, match="__state0_0"):
            HashAggregate("final", schema, ("key",), calls, good, pool, space)
        with pytest.raises(SchemaError, match="gives columns of types"):
            HashAggregate("single", schema, ("key",), calls, pa.schema([("key", pa.int64())]), pool, space)
        with pytest.raises(SchemaError, match="median"):
            HashAggregate("single", schema, ("key",), make_calls(["median"]), good, pool, space)
        nested = pa.schema([("key", pa.list_(pa.int64())), ("__arg0", pa.int64())])
        with pytest.raises(SchemaError):
            HashAggregate(
                "single", nested, ("key",), calls, result_schema([nested.field(0)], calls, [pa.int64()]), pool, space
            )
        operator = HashAggregate("single", schema, ("key",), calls, good, pool, space)
        with pytest.raises(SchemaError, match="got a batch of"):
            operator.add_batch(pa.record_batch({"key": [1]}))
        operator.close()


def test_pages_of_rows_and_batches_mix(workshop):
    table, calls = make_table("string", "int64", 300, 100)
    output = result_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    codec = RowCodec(table.schema)
    with workshop.operator(6) as (pool, space):
        operator = HashAggregate("single", table.schema, ("key",), calls, output, pool, space)
        for index, batch in enumerate(table.to_batches(max_chunksize=20)):
            rows = codec.to_rows(batch)
            segment = MemorySegment(len(rows) + 8)
            segment.put_bytes(0, rows)
            if index % 3 == 0:
                operator.add_page(segment, len(rows))
            elif index % 3 == 1:
                operator.add_rows(rows)
            else:
                operator.add_batch(batch)
        with pytest.raises(CorruptBlockError):
            operator.add_rows(rows[:-8])
        result = pa.Table.from_batches(operator.finish(), output)
        operator.close()
    assert rows_of(result) == oracle(table, ("key",), calls)


def test_dictionaries_are_taken_as_their_values(workshop):
    calls = make_calls(["max"])
    schema = pa.schema(
        [("key", pa.dictionary(pa.int32(), pa.string())), ("__arg0", pa.dictionary(pa.int8(), pa.string()))]
    )
    columns = [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["x", "y", "z"]).dictionary_encode().cast(schema.types[1]),
    ]
    output = result_schema([pa.field("key", pa.string())], calls, [pa.string()])
    with workshop.operator(6) as (pool, space):
        table = pa.Table.from_arrays(columns, schema=schema)
        result, _ = aggregate("single", table, ("key",), calls, output, pool, space)
    assert rows_of(result) == ["('a', 'z')", "('b', 'y')"]


def test_closing_early_returns_pages_and_files(workshop):
    table, calls = make_table("int64", "string", 3000, 2500)
    output = result_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    for steps in range(3):
        with workshop.operator(8) as (pool, space):
            operator = HashAggregate("single", table.schema, ("key",), calls, output, pool, space)
            if steps > 0:
                for batch in table.to_batches(max_chunksize=100):
                    operator.add_batch(batch)
                assert operator.spilled_bytes > 0
            if steps > 1:
                results = operator.finish()
                next(results)
                results.close()
            operator.close()
            operator.close()
            assert pool.pages_used == 0
            assert workshop.files() == []
