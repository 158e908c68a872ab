"""Row groups that a filter leaves: no row is lost, whatever types, nulls and bounds there are, and groups do go."""

import datetime
import math
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.column_expressions.expressions import col, lit
from engine.connectors.records_manifest import read_manifest
from engine.expressions.evaluate import evaluate
from engine.parquet.row_group_bounds import bounds_of, possible_groups
from engine.parquet.source import plain_file_schema

DAY = datetime.date(1995, 1, 1)
MOMENT = datetime.datetime(1995, 1, 1)


def _days(number):
    return DAY + datetime.timedelta(days=number)


def _moments(number):
    return MOMENT + datetime.timedelta(hours=number)


#: type -> value of a whole number from -9 to 9
TYPES = {
    pa.int8(): int,
    pa.int64(): lambda number: number * (2**59),
    pa.uint32(): lambda number: number % (2**32),
    pa.uint64(): lambda number: number % (2**64),
    pa.float32(): lambda number: math.nan if number == 9 else float(number),
    pa.float64(): lambda number: -0.0 if number == 0 else math.nan if number == 9 else number / 2,
    pa.decimal128(15, 2): lambda number: Decimal(number) / 4,
    pa.decimal128(38, 3): lambda number: Decimal(number) * 10**20,
    pa.date32(): _days,
    pa.timestamp("us"): _moments,
    pa.timestamp("ns"): _moments,
    pa.timestamp("ms", "UTC"): lambda number: _moments(number).replace(tzinfo=datetime.UTC),
    pa.timestamp("s"): _moments,
    pa.string(): lambda number: "é" * (number % 4) + "abcxyz€"[number % 7] * (1 + number % 3),
    pa.large_string(): lambda number: chr(97 + number % 20) * 200,
    pa.binary(): lambda number: bytes([number % 256]) * 3,
    pa.bool_(): lambda number: number > 0,
    pa.dictionary(pa.int32(), pa.string()): lambda number: f"{number % 5}" * 2,
    pa.string_view(): lambda number: f"text {number}",
}
COMPARISONS = ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]


def _predicate(chance, value_of, depth=0):
    """A predicate over x and y, and a constant of their type here and there."""

    def constant():
        return value_of(chance.randint(-9, 9))

    kind = chance.randint(0, 9 if depth < 3 else 5)
    name, other = chance.sample(["x", "y"], 2)
    if kind <= 2:
        return getattr(col(name), chance.choice(COMPARISONS))(lit(constant()))
    if kind == 3:
        return getattr(col(name), chance.choice(COMPARISONS))(col(other))
    if kind == 4:
        return col(name).is_in([constant() for _ in range(chance.randint(1, 4))])
    if kind == 5:
        return col(name).is_null() if chance.random() < 0.5 else col(name).is_not_null()
    if kind == 6:
        return col(name).between(constant(), constant())
    if kind == 7:
        return ~_predicate(chance, value_of, depth + 1)
    left, right = (_predicate(chance, value_of, depth + 1) for _ in range(2))
    return left & right if kind == 8 else left | right


def _column(chance, data_type, value_of):
    """Six row groups of four values: of one small range each, some of them or all of them null."""
    values = []
    for _ in range(6):
        begin, nulls = chance.randint(-9, 6), chance.choice([0.0, 0.0, 0.3, 1.0])
        values += [None if chance.random() < nulls else value_of(begin + chance.randint(0, 3)) for _ in range(4)]
    return pa.array(values, data_type)


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_no_row_that_a_filter_keeps_is_in_a_group_that_goes(tmp_path, data_type):
    chance = random.Random(str(data_type))
    value_of = TYPES[data_type]
    gone = 0
    for trial in range(3):
        path = tmp_path / f"{trial}.parquet"
        table = pa.table({name: _column(chance, data_type, value_of) for name in "xy"})
        pq.write_table(table, path, row_group_size=4)
        file = pq.ParquetFile(path)
        schema = plain_file_schema(file.schema_arrow)
        groups = [file.read_row_group(group).cast(schema).combine_chunks().to_batches()[0] for group in range(6)]
        for _ in range(20):
            predicate = _predicate(chance, value_of).expression
            possible = possible_groups(file.metadata, range(6), predicate, schema)
            for group in set(range(6)).difference(possible):
                assert not evaluate(predicate, groups[group]).true_count, (predicate, groups[group])
            gone += 6 - len(possible)
    assert gone > 10


def _groups(tmp_path, column, predicate, rows=4, **options):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": column}), path, row_group_size=rows, **options)
    file = pq.ParquetFile(path)
    schema = plain_file_schema(file.schema_arrow)
    return possible_groups(file.metadata, range(file.metadata.num_row_groups), predicate.expression, schema)


@pytest.mark.parametrize(
    ("predicate", "left"),
    [
        (col("x") < 4, [0]),
        (col("x") >= 8, [2]),
        (lit(4) > col("x"), [0]),
        (col("x") == 5, [1]),
        (col("x").is_in([1, 11]), [0, 2]),
        (col("x").is_in([]), []),
        (col("x").between(3, 4), [0, 1]),
        (~(col("x") > 3), [0]),
        ((col("x") < 2) | (col("x") > 9), [0, 2]),
        ((col("x") > 3) & (col("x") < 8), [1]),
        (col("x").is_null(), []),
        (col("x") < 4.5, [0, 1]),
        ((col("x") + 1 < 0) & (col("x") < 4), [0]),
        (col("x") + 1 < 0, [0, 1, 2]),
        (lit(False), []),
    ],
    ids=str,
)
def test_groups_beside_the_range_go(tmp_path, predicate, left):
    assert _groups(tmp_path, pa.array(range(12)), predicate) == left


def test_begins_of_texts_and_years_of_times_have_bounds_too(tmp_path):
    texts = pa.array(["apple", "apricot", "banana", "berry", "cherry", "citron"])
    assert _groups(tmp_path, texts, col("x").str.starts_with("b"), rows=2) == [1]
    assert _groups(tmp_path, texts, col("x").str.starts_with("ap"), rows=2) == [0]
    days = pa.array([datetime.date(year, 6, 1) for year in (1992, 1993, 1994, 1995)])
    assert _groups(tmp_path, days, col("x").dt.year() == 1994, rows=1) == [2]


def test_a_nan_is_in_no_bound_but_among_the_rows(tmp_path):
    column = pa.array([1.0, math.nan, 2.0, 3.0])
    assert _groups(tmp_path, column, col("x") > 5.0, rows=2) == [0, 1]
    assert _groups(tmp_path, column, col("x") == lit(math.nan), rows=2) == [0, 1]
    assert _groups(tmp_path, column, ~(col("x") <= 5.0), rows=2) == [0, 1]
    assert _groups(tmp_path, column, col("x") == 1.0, rows=2) == [0]
    assert _groups(tmp_path, column, col("x") < 2.0, rows=2) == [0]


def test_nothing_is_concluded_from_what_is_not_in_the_footer(tmp_path):
    everything = col("x") == 5
    assert _groups(tmp_path, pa.array(range(12)), everything, write_statistics=False) == [0, 1, 2]
    moments = pa.array([MOMENT] * 4)
    later = col("x") > datetime.datetime(2000, 1, 1)
    assert _groups(tmp_path, moments, later) == []
    assert _groups(tmp_path, moments, later, use_deprecated_int96_timestamps=True) == [0]


def test_whole_numbers_compared_as_floats_are_rounded_as_rows_are(tmp_path):
    column = pa.array([2**53 + 1] * 4)
    assert _groups(tmp_path, column, col("x").is_in([2**53, 0.5])) == [0]
    assert _groups(tmp_path, column, col("x").is_in([2**53, 1])) == []


def test_bounds_have_nanoseconds_and_years_beyond_those_of_python(tmp_path):
    path = tmp_path / "t.parquet"
    moments = pa.array([1, 1_700_000_000_123_456_789]).cast(pa.timestamp("ns"))
    days = pa.array([-10_000_000, 10_000_000], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"moment": moments, "day": days}), path)
    file = pq.ParquetFile(path)
    bounds = bounds_of(file.metadata, [0], ["moment", "day"], file.schema_arrow)
    assert bounds.column("lowest moment")[0] == moments[0]
    assert bounds.column("highest moment")[0] == moments[1]
    assert bounds.column("lowest day")[0] == days[0]


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a"), ("l", "l.list.element"), ("l.list.element", "l")])
def test_a_column_that_is_called_as_a_nested_one_lies_has_bounds_of_its_own(tmp_path, names):
    nested = {"a": pa.array([{"b": 1}] * 4), "l": pa.array([[1]] * 4)}
    flat = pa.array([10, 11, 12, 13])
    table = pa.table({name: nested.get(name, flat) for name in names})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2, write_page_index=True)
    name = max(names, key=len)
    with Environment() as env:
        rows = env.read_parquet(str(tmp_path / "t.parquet"))
        assert rows.filter(col(name) > 10).count() == 3
        rows.write_records(tmp_path / "records")
        env.execute()
        assert env.read_records(tmp_path / "records").filter(col(name) == 12).count() == 1
    manifest = read_manifest(tmp_path / "records")
    assert (manifest.columns[name].min, manifest.columns[name].max) == (10, 13)
