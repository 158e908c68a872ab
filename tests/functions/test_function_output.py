"""Batches of what functions return: bounded by rows and by weight."""

import pyarrow as pa
import pytest

from engine.functions.function_body import FunctionBody
from engine.functions.function_output import FIRST_ROWS
from engine.graph.operator_descriptor import PythonOperator
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX

IN = pa.schema([("n", pa.int64())])
OUT = pa.schema([("t", pa.string())])
CALLS = {
    "map": lambda size: lambda row: ("x" * size,),
    "flat_map": lambda size: lambda row: [("x" * size,)] * 2,
    "map_partition": lambda size: lambda rows: (("x" * size,) for _ in rows),
}


def sizes(kind, size, batches=3):
    """Return the rows of each batch that a function makes of rows that weigh ``size`` bytes."""
    body = FunctionBody(PythonOperator(kind, b"", "function", __file__, 1), CALLS[kind](size), IN, OUT)
    batch = pa.record_batch([pa.array(range(8192), pa.int64())], schema=IN)
    return [result.num_rows for result in body.run(iter([batch] * batches))]


@pytest.mark.parametrize("kind", CALLS)
def test_light_rows_come_in_batches_that_grow_to_the_largest(kind):
    found = sizes(kind, 3)
    assert found[0] == FIRST_ROWS
    assert max(found) == BATCH_ROWS_MAX
    assert len(found) <= 12
    assert sum(found) == 3 * 8192 * (2 if kind == "flat_map" else 1)


@pytest.mark.parametrize("kind", CALLS)
def test_heavy_rows_come_few_at_a_time(kind):
    found = sizes(kind, 10_000, batches=1)
    assert found[0] == FIRST_ROWS
    assert max(found[1:]) * 10_000 <= BATCH_BYTES_MAX
    assert min(found[1:-1]) * 10_000 > BATCH_BYTES_MAX / 2


def test_a_batch_without_rows_makes_none():
    body = FunctionBody(PythonOperator("map", b"", "function", __file__, 1), lambda row: ("",), IN, OUT)
    assert list(body.apply(pa.record_batch([pa.array([], pa.int64())], schema=IN))) == []
