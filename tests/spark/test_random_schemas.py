"""Rows of random types, names and partitions go to a record data set by format("drey") and come back the same."""

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from engine import Environment
from engine.errors import SchemaError
from engine.spark.arrow_types import sparks_schema
from engine.spark.data_source import register
from engine.spark.export import export_data

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

NAMES = [
    "plain",
    "two words",
    "dot.ted",
    "back`tick",
    "grün",
    "select",
    "comma,name",
    "_under",
    'quo"te',
    "表",
    "x" * 200,
]
_DAYS = (dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31))
_TIMES = (dt.datetime(1, 1, 2), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 10, 27, 0, 30))
_ZONED = tuple(each.replace(tzinfo=dt.UTC) for each in _TIMES)
PLAIN = [
    (pa.bool_(), (True, False)),
    (pa.int8(), (-128, 0, 127)),
    (pa.int16(), (-32768, 32767)),
    (pa.int32(), (-(2**31), 2**31 - 1)),
    (pa.int64(), (-(2**63), 2**63 - 1)),
    (pa.float32(), (0.5, -0.0, float("inf"))),
    (pa.float64(), (0.1, -0.0, float("-inf"), 5e-324)),
    (pa.string(), ("", "a\x00b", "grün", "🎈" * 50)),
    (pa.binary(), (b"", b"\x00\xff" * 9)),
    (pa.date32(), _DAYS),
    (pa.timestamp("us"), _TIMES),
    (pa.timestamp("us", "UTC"), _ZONED),
    (pa.decimal128(1, 0), (Decimal(-9), Decimal(0))),
    (pa.decimal128(18, 6), (Decimal("-123456789012.345678"), Decimal("0.000001"))),
    (pa.decimal128(38, 10), (Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001"))),
]


def a_type(chosen, depth=0):
    """Return a type and what makes a value of it."""
    kind = chosen.choice(["plain"] * 4 + ["list", "map", "struct"]) if depth < 3 else "plain"
    if kind == "plain":
        data_type, values = chosen.choice(PLAIN)
        return data_type, lambda: chosen.choice(values)
    inner, value = a_type(chosen, depth + 1)
    if kind == "list":
        return pa.list_(inner), lambda: [or_null(chosen, value) for _ in range(chosen.randrange(4))]
    if kind == "map":
        return pa.map_(pa.int32(), inner), lambda: [(n, or_null(chosen, value)) for n in range(chosen.randrange(3))]
    other, second = a_type(chosen, depth + 1)
    fields = [pa.field("a", inner), pa.field("b c", other)]
    return pa.struct(fields), lambda: {"a": or_null(chosen, value), "b c": or_null(chosen, second)}


def or_null(chosen, value):
    return None if chosen.random() < 0.25 else value()


def a_table(chosen):
    """Return a table of columns of any type; some have nulls only, and some tables no rows."""
    count = chosen.choice([0, 1, 7, 60])
    columns = {"row": pa.array(range(count), pa.int64())}
    for name in chosen.sample(NAMES, chosen.randrange(1, 6)):
        data_type, value = a_type(chosen)
        values = [None] * count if chosen.random() < 0.15 else [or_null(chosen, value) for _ in range(count)]
        columns[name] = pa.array(values, data_type)
    return pa.table(columns)


def rows_of(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.thorough] * (seed > 3)) for seed in range(30)])
def test_rows_of_any_types_go_there_and_come_back(spark, tmp_path, seed):
    register(spark)
    chosen = random.Random(seed)
    table, target, back = a_table(chosen), tmp_path / "there", tmp_path / "back"
    data = spark.createDataFrame(table, schema=sparks_schema(table.schema))
    # more tasks than rows: most have none
    data.repartition(chosen.choice([1, 3, 90])).write.format("drey").mode("overwrite").save(str(target))
    with Environment() as env:
        found = env.read_records(target)
        assert found.schema.names == table.schema.names
        assert rows_of(found.to_arrow()) == rows_of(table)
        found.write_records(str(back))
        env.execute()
    read = spark.read.format("drey").load(str(back))
    assert read.columns == table.schema.names
    assert read.schema == data.schema
    assert rows_of(read.toArrow()) == rows_of(table)


def test_rows_without_columns_are_refused(spark, tmp_path):
    register(spark)
    rows = spark.createDataFrame([(), ()], "struct<>")
    with pytest.raises(Exception, match="the rows have no columns"):
        rows.write.format("drey").mode("append").save(str(tmp_path / "none"))
    with pytest.raises(SchemaError, match="the rows have no columns"):
        export_data(rows, str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
