"""Names of pandas, Polars and Spark say what to write instead, and everything that they advise is there."""

import copy
import datetime
import math
import re

import numpy
import pandas as pd
import pyarrow as pa
import pytest

import engine
from engine import Environment, col, row_number
from engine.column_expressions import other_names
from engine.errors import SchemaError


@pytest.fixture
def rows(env):
    return env.from_rows([(1, "x")], pa.schema([("a", pa.int64()), ("b", pa.string())]))


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda d: d.groupby("a"), "a data set has no 'groupby': write ds.group_by('k').agg(n=count())"),
        (lambda d: d.a, "a data set has no 'a': write col('a') or data['a']"),
        (lambda d: d.nothing, "a data set has no 'nothing'; its columns are a, b"),
        (lambda d: d.group_by("a").count(), "group_by() has no 'count': write ds.group_by('k').agg(n=count())"),
        (lambda d: col("a").isin([1]), "an expression has no 'isin': write x.is_in([1, 2])"),
        (lambda d: col("a").nothing, "an expression has no 'nothing'"),
        (lambda d: col("b").str.len(), ".str has no 'len': write x.str.length()"),
        (lambda d: col("b").dt.floor("1d"), ".dt has no 'floor': write x.dt.truncate('hour')"),
        (lambda d: col("b").list.len(), ".list has no 'len': write x.list.length()"),
        (lambda d: col("b").list.lenght(), ".list has no 'lenght': did you mean 'length'?"),
        (lambda d: col("b").str.start_with("x"), ".str has no 'start_with': did you mean 'starts_with'?"),
        (lambda d: col("b").dt.minutes(), ".dt has no 'minutes': did you mean 'minute'?"),
        (lambda d: col("b").map.items(), ".map has no 'items': write entries()"),
        (
            lambda d: col("b").map.wrong(),
            ".map has no 'wrong'; there are concat, contains, entries, filter, get, keys, length, transform_keys,"
            " transform_values, values",
        ),
        (lambda d: col("b").upper(), "an expression has no 'upper': it is behind .str: .str.upper(...)"),
        (lambda d: col("b").millisecnd(), "an expression has no 'millisecnd': did you mean .dt.millisecond(...)?"),
        (lambda d: col("b").is_nul(), "an expression has no 'is_nul': did you mean 'is_null'?"),
        (lambda d: d.select("a").rename({"a": "price"}).prize, "a data set has no 'prize': did you mean col('price')?"),
        (lambda d: d.fliter(col("a") > 1), "a data set has no 'fliter': did you mean 'filter'?"),
        (lambda d: d._environment.scan_parquet("x"), "an environment has no 'scan_parquet': write read_parquet(path)"),
        (
            lambda d: col("b").dt.days,
            ".dt has no 'days': write x // datetime.timedelta(days=1) of a duration, day() of a date",
        ),
        (
            lambda d: col("a").n_unique(),
            "an expression has no 'n_unique': write count_distinct(x) in group_by(...).agg(name=...),"
            " or count_distinct(x).over(...) a window",
        ),
        (lambda d: d._environment.range(3), "an environment has no 'range': write sequence(0, 10)"),
        (lambda d: d._environment.readStream, "an environment has no 'readStream': streams are out of scope"),
        (
            lambda d: engine.Int64,
            "module 'drey' has no attribute 'Int64': write col('x').cast('int64'): types are those of pyarrow,"
            " or their names",
        ),
        (lambda d: engine.List, "module 'drey' has no attribute 'List': write col('x').cast(pa.list_(pa.int64()))"),
        (lambda d: d._environment.read_cvs("x"), "an environment has no 'read_cvs': did you mean 'read_csv'?"),
    ],
)
def test_what_is_not_there_says_what_to_write(rows, mistake, message):
    with pytest.raises(AttributeError) as error:
        mistake(rows)
    assert str(error.value) == message


def test_types_that_are_advised_are_there(rows):
    for names, text in other_names._TYPES:
        assert names.split()
        assert rows.select(v=engine.lit(None, text)).schema.names == ["v"]


def test_parts_of_durations_are_those_of_pandas():
    lengths = [datetime.timedelta(days=-1, seconds=5, microseconds=7), datetime.timedelta(days=3, seconds=5)]
    with Environment(config={"parallelism.default": 1}) as env:
        data = env.from_dict({"x": lengths})
        for name in ("days", "seconds", "microseconds"):
            code = other_names.ON_TIMES[name].partition(" of a duration")[0]
            found = data.select(v=eval(code, {"x": col("x"), "datetime": datetime})).to_dict()["v"]
            assert found == getattr(pd.Series(lengths).dt, name).tolist(), name


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (
            lambda: row_number().over(order_by="a", desc=True),
            TypeError,
            "over() has no option desc=: write descending=True",
        ),
        (lambda: engine.sum_("a").over(ascending=False), TypeError, "write descending=, the other way round"),
        (
            lambda: engine.sum_("a").over(wrong=1),
            TypeError,
            "over() has no option wrong=: it has partition_by, order_by",
        ),
        (lambda: math.sqrt(col("a")), SchemaError, "col('a').sqrt()"),
        (lambda: float(col("a")), SchemaError, "col('a').cast(float)"),
        (lambda: int(col("a")), SchemaError, "col('a').trunc().cast(int)"),
        (lambda: numpy.where(col("a") > 1, 1, 2), SchemaError, "when(condition).then(1).otherwise(2)"),
        (lambda: numpy.mean(col("a")), SchemaError, "write avg(col('a'))"),
        (lambda: numpy.maximum(col("a"), 1), SchemaError, "write greatest(col('a'), col('b'))"),
        (lambda: numpy.array([1, 2]) * col("a"), SchemaError, "numpy.multiply() does not compute expressions"),
    ],
)
def test_habits_of_other_libraries_say_what_to_write(mistake, error, message):
    with pytest.raises(error, match=re.escape(message)):
        mistake()


def test_functions_of_numpy_are_the_methods_and_operators_of_their_names():
    with Environment(config={"parallelism.default": 1}) as env:
        data = env.from_dict({"a": [0.5, 2.0]})
        logarithms = data.select(v=numpy.log(col("a"))).to_dict()["v"]
        values = data.select(v=numpy.abs(-col("a")), w=numpy.float64(2) * col("a"), x=numpy.int64(1) < col("a"))
        assert logarithms == pytest.approx([math.log(0.5), math.log(2)])
        assert values.to_dict() == {"v": [0.5, 2.0], "w": [1.0, 4.0], "x": [False, True]}


def test_lists_of_several_columns_are_told_beside_a_position(rows):
    data = rows._environment.from_dict({"a": [[1]], "b": [["x"]]})
    with pytest.raises(SchemaError, match=re.escape("opened together by explode(['a', 'b'])")):
        data.explode("a", "b")


def test_what_rooms_call_is_not_completed(rows):
    held = (col("a"), rows._environment)
    assert all(any(hasattr(one, name) for one in held) for name in other_names._OF_ROOMS)
    assert not any({*dir(one)} & other_names._OF_ROOMS for one in held)
    assert {"cast", "str", "is_null"} <= {*dir(col("a"))}
    assert {"read_csv", "sql", "execute"} <= {*dir(rows._environment)}


def test_who_looks_for_a_protocol_finds_none(rows):
    for held in (rows, col("a"), col("a").str, rows.group_by("a")):
        assert not hasattr(held, "__array__")
        assert not hasattr(held, "_repr_png_")
        assert getattr(held, "isin", None) is None
    assert copy.copy(rows).columns == ["a", "b"]


def test_no_name_is_ours_and_all_calls_that_are_advised_are(rows):
    held = {
        "ON_DATA_SETS": rows,
        "ON_EXPRESSIONS": col("a"),
        "ON_TEXTS": col("b").str,
        "ON_TIMES": col("b").dt,
        "ON_LISTS": col("b").list,
        "ON_MAPS": col("b").map,
        "ON_STRUCTS": col("b").struct,
        "ON_ENVIRONMENTS": rows._environment,
        "ON_GROUPS": rows.group_by("a"),
        "ON_PACKAGE": engine,
    }
    known = {name for one in (*held.values(), rows._environment, col("a").list, col("a").map) for name in dir(one)}
    known |= set(dir(engine)) | set(dir(row_number())) | {"f", "read_excel", "timedelta", "decimal", *dir(pa)}
    for table, one in held.items():
        for name, advice in getattr(other_names, table).items():
            assert name not in dir(one), f"{table}: {name} is there"
            for call in re.findall(r"(\w+)\(", advice):
                assert call in known, f"{table}: {name}: {call}() is not there"
    assert {advice.partition("(")[0] for advice in other_names.ON_PACKAGE.values()} <= set(dir(engine))


def test_a_window_function_without_a_window_is_not_compared(rows):
    for mistake in (lambda: row_number() == 1, lambda: row_number() <= 3, lambda: row_number() + 1):
        with pytest.raises(
            SchemaError, match=r"row_number> is a window function; call .over\(partition_by, order_by\)"
        ):
            mistake()
