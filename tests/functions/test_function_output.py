"""Batches of what functions return: bounded by rows and by weight."""

import pyarrow as pa
import pytest

from engine.functions.batch_formats import from_format
from engine.functions.function_body import FunctionBody
from engine.functions.function_output import FIRST_ROWS, LONG_S, ROWS_MAX
from engine.functions.group_rows import GROUP_START, NEW_KEY, SIDE
from engine.graph.operator_descriptor import PythonOperator
from engine.records.batch_limits import BATCH_BYTES_MAX

IN = pa.schema([("n", pa.int64())])
OUT = pa.schema([("t", pa.string())])
CALLS = {
    "map": lambda size: lambda row: ("x" * size,),
    "flat_map": lambda size: lambda row: [("x" * size,)] * 2,
    "map_partition": lambda size: lambda rows: (("x" * size,) for _ in rows),
}


def sizes(kind, size, batches=3, rows=8192):
    """Return the rows of each batch that a function makes of rows that weigh ``size`` bytes."""
    body = FunctionBody(PythonOperator(kind, b"", "function", __file__, 1), CALLS[kind](size), IN, OUT)
    batch = pa.record_batch([pa.array(range(rows), pa.int64())], schema=IN)
    return [result.num_rows for result in body.run(iter([batch] * batches))]


@pytest.mark.parametrize("kind", CALLS)
def test_light_rows_come_in_batches_that_grow_to_the_largest(kind):
    found = sizes(kind, 3, rows=ROWS_MAX)
    assert found[0] == FIRST_ROWS
    assert max(found) == ROWS_MAX
    assert len(found) <= 14
    assert sum(found) == 3 * ROWS_MAX * (2 if kind == "flat_map" else 1)


@pytest.mark.parametrize("kind", CALLS)
def test_heavy_rows_come_few_at_a_time(kind):
    found = sizes(kind, 10_000, batches=1)
    assert found[0] == FIRST_ROWS
    assert max(found[1:]) * 10_000 <= BATCH_BYTES_MAX
    # after one, eight and sixty-four
    assert min(found[3:-1]) * 10_000 > BATCH_BYTES_MAX / 2


def test_rows_of_a_slow_function_do_not_wait_for_many_others(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("engine.functions.function_output.time.monotonic", lambda: now[0])

    def slow(rows):
        for _ in rows:
            now[0] += LONG_S / 100
            yield ("x",)

    operator = PythonOperator("map_partition", b"", "function", __file__, 1)
    body = FunctionBody(operator, slow, IN, OUT)
    batch = pa.record_batch([pa.array(range(1000), pa.int64())], schema=IN)
    found = [result.num_rows for result in body.run(iter([batch]))]
    assert sum(found) == 1000
    assert 90 <= max(found) <= 101


def test_a_batch_without_rows_makes_none():
    body = FunctionBody(PythonOperator("map", b"", "function", __file__, 1), lambda row: ("",), IN, OUT)
    assert list(body.apply(pa.record_batch([pa.array([], pa.int64())], schema=IN))) == []


@pytest.mark.parametrize("kind", ["map_partition", "reduce", "co_group"])
def test_a_stream_hands_wide_rows_on_one_by_one_also_behind_many_narrow_ones(kind):
    wide = 9 * BATCH_BYTES_MAX
    schema = pa.schema([("n", pa.int64()), ("t", pa.string()), (SIDE, pa.int8()), (GROUP_START, pa.int8())])

    def batch(texts, start):
        columns = [range(len(texts)), texts, [0] * len(texts), [start] + [0] * (len(texts) - 1)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.record_batch(arrays, schema=schema)

    def same(*sides):
        return (row for rows in sides for row in rows)

    views = ((("n", "n"), ("t", "t")),) * 2 if kind == "co_group" else ()
    operator = PythonOperator(kind, b"", "function", __file__, 1, keys=("n",), views=views)
    out = schema if kind != "co_group" else pa.schema(list(schema)[:2])
    narrow, large = batch(["x"] * 5000, NEW_KEY), ["x" * wide]
    inputs = iter([narrow, batch(large, 0), batch(large, 0), batch(large, 0)])
    found = [result for result in FunctionBody(operator, same, schema, out).run(inputs) if result.nbytes > wide]
    assert len(found) == 3
    assert max(result.nbytes for result in found) < 2 * wide


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        (pa.record_batch({"a": ["x"], "b": [1]}), "arrow", "it is string"),
        (pa.table({"a": [1.0, float("nan")], "b": [1, 1]}), "arrow", "was truncated .*, in row 1 of it"),
        ({"a": ["x"], "b": [1]}, "numpy", "Could not convert 'x' .*, in row 0 of it"),
        ({"a": [1, 1.5], "b": [1, 1]}, "numpy", r"1.5 \(float\): a fraction is no integer, in row 1 of it"),
    ],
)
def test_a_batch_that_does_not_fit_is_said_with_its_column(value, kind, reason):
    schema = pa.schema([("b", pa.int64()), ("a", pa.int64())])
    with pytest.raises(TypeError, match=rf"a column 'a' that is not int64: .*{reason}"):
        from_format(value, kind, schema)
