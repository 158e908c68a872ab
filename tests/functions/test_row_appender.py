"""Rows taken apart into columns: what pyarrow makes of the values, from every shape of row."""

import dataclasses
import datetime
import decimal
import random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from engine.functions.function_error import BadOutputError, FunctionPlace, UserFunctionError
from engine.functions.function_output import FunctionOutput
from engine.functions.row import row_class
from engine.functions.row_appender import RowAppender
from engine.functions.row_loop import RowLoop
from engine.functions.row_reader import RowReader
from engine.graph.operator_descriptor import PythonOperator
from engine.records.value_writer import array_of

_ZONE = datetime.timezone(datetime.timedelta(hours=2))
_MOMENT = datetime.datetime(2000, 1, 1)
_NOON = datetime.datetime(2000, 1, 1, 12)
#: values that fit, those of Python's own class first, and values that do not
_VALUES = {
    pa.bool_(): ([True, False, np.True_], [1, "x"]),
    pa.int8(): ([-128, 127, np.int8(3), 4.0], [128, True, 1.5, "1"]),
    pa.int16(): ([-(2**15), 2**15 - 1], [2**15]),
    pa.int32(): ([-(2**31), 2**31 - 1], [2**31]),
    pa.int64(): ([-(2**63), 2**63 - 1, np.int32(7)], [2**63, 2**200, 0.5]),
    pa.uint8(): ([0, 255], [-1, 256]),
    pa.uint64(): ([0, 2**63 - 1, 2**63, 2**64 - 1], [-1, 2**64]),
    pa.float16(): ([0.5, np.float16(2)], ["x", 65520.0]),
    pa.float32(): ([0.1, 3, -(2**24), float("inf"), 3.4e38], [2**24 + 1, "x", 1e300, np.float64(-1e39), True]),
    pa.float64(): ([0.1, 3, 2**53, np.float32(0.5)], [2**53 + 1, 2**80, decimal.Decimal, True]),
    pa.string(): (["", "a", "ä€\U0001f600", "x" * 9999, b"bytes", np.str_("n")], ["\ud800", 5, b"\xff"]),
    pa.large_string(): (["", "ä"], [5]),
    pa.binary(): ([b"", b"\xff", bytearray(b"b"), "text"], [5]),
    pa.large_binary(): ([b"", b"\xff"], [5]),
    pa.binary(2): ([b"ab"], [b"a", 5]),
    pa.date32(): ([datetime.date.min, datetime.date(2000, 2, 29), datetime.date.max, _MOMENT], ["x", _NOON]),
    pa.date64(): ([datetime.date(2000, 2, 29)], ["x", _NOON]),
    pa.timestamp("us"): ([datetime.datetime.min, datetime.datetime.max], [[], _MOMENT.replace(tzinfo=_ZONE)]),
    pa.timestamp("s"): ([datetime.datetime(1969, 1, 1, 5)], ["x", datetime.datetime(2000, 1, 1, 0, 0, 0, 5)]),
    pa.timestamp("ns"): ([datetime.datetime(2000, 1, 1, 0, 0, 0, 5)], [datetime.datetime.max]),
    pa.timestamp("us", "UTC"): ([datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 1, tzinfo=_ZONE)], ["x"]),
    pa.timestamp("us", "Asia/Tokyo"): ([datetime.datetime(2000, 1, 1, tzinfo=_ZONE)], ["x", _MOMENT]),
    pa.time32("s"): ([datetime.time(23, 59, 59)], ["x", datetime.time(1, 2, 3, 4)]),
    pa.time64("us"): ([datetime.time.max], ["x", datetime.time(1, tzinfo=_ZONE)]),
    pa.time64("ns"): ([datetime.time.max], ["x"]),
    pa.duration("us"): ([datetime.timedelta(days=-1, microseconds=1)], ["x"]),
    pa.duration("s"): ([datetime.timedelta(days=3)], ["x", datetime.timedelta(microseconds=5)]),
    pa.decimal128(9, 2): ([decimal.Decimal("1.50"), 3], [decimal.Decimal("1.555"), "x", decimal.Decimal("1e-41")]),
    pa.list_(pa.int64()): ([[], [1, None], np.array([1, 2])], [5, ["x"], [1.5], np.array([0.5])]),
    pa.list_(pa.string()): ([[], ["ab"]], [5, "ab"]),
    pa.struct([("a", pa.int64())]): ([{"a": 1}, {"a": None}, {}], [5, {"a": 1, "b": 2}, {"a": 1.5}, (1, 2)]),
    pa.map_(pa.string(), pa.int8()): ([{"a": 1}, [("a", 1)]], [5, {"a": 1.5}, {"a": 300}]),
    pa.dictionary(pa.int32(), pa.int64()): ([1, 2], [1.5]),
}  # fmt: skip


def made(schema, rows, limit=1000):
    """Return the batch of rows that a function returns."""
    output = FunctionOutput(schema, FunctionPlace(PythonOperator("map", b"", "function", __file__, 1)))
    output.appender.limit = limit
    place = pa.record_batch({"at": pa.array(range(len(rows)), pa.int64())})
    assert RowLoop(lambda row: rows[row.at], output.appender, "map").map(RowReader([place])) is False
    return output.take()


@pytest.mark.parametrize("data_type", _VALUES, ids=str)
def test_columns_are_what_pyarrow_makes_of_the_values(data_type):
    field = pa.field("x", data_type)
    drawn = random.Random(str(data_type))
    fitting = _VALUES[data_type][0]
    own = [fitting[0]] * 5
    for values in (own, [None] * 3, [None, *own, None], [drawn.choice([*fitting, None]) for _ in range(70)]):
        batch = made(pa.schema([field]), [(value,) for value in values])
        batch.validate(full=True)
        assert batch.column(0).equals(array_of(values, field))
        # in front of a column that nothing waits in, and behind one
        many = pa.schema([("a", pa.int64()), field, ("b", pa.string())])
        batch = made(many, [(row, value, str(row)) for row, value in enumerate(values)])
        assert batch.column(1).equals(array_of(values, field))
        assert batch.column(0).to_pylist() == list(range(len(values)))
        assert batch.column(2).to_pylist() == [*map(str, range(len(values)))]


@pytest.mark.parametrize("data_type", _VALUES, ids=str)
def test_a_value_that_does_not_fit_is_named_with_its_row_and_column(data_type):
    fitting, unfit = _VALUES[data_type]
    schema = pa.schema([("a", pa.int64()), ("x", data_type)])
    for bad in unfit:
        for rows in ([(0, bad)], [(0, fitting[0]), (1, None), (2, fitting[-1]), (3, bad), (4, fitting[0]), (5, bad)]):
            with pytest.raises(UserFunctionError, match=r"function returned .* for column 'x' of type") as caught:
                made(schema, rows)
            first = next(row for row, value in rows if value is bad)
            assert caught.value.row == f"Row(at={first})"


def test_of_several_bad_values_that_of_the_first_row_is_named():
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    with pytest.raises(UserFunctionError, match=r"'x' .* for column 'b'") as caught:
        made(schema, [(1, 2), (1, "x"), ("y", 3)])
    assert caught.value.row == "Row(at=1)"


class Named(NamedTuple):
    n: int
    t: str


@dataclasses.dataclass
class Plain:
    t: str
    n: int


@dataclasses.dataclass(slots=True, frozen=True)
class Slotted:
    n: int
    t: str


TWO = pa.schema([("n", pa.int64()), ("t", pa.string())])


def test_a_row_has_any_of_many_shapes():
    shapes = [
        (1, "a"), [1, "a"], {"t": "a", "n": 1}, Named(1, "a"), Plain("a", 1), Slotted(1, "a"),
        row_class(("x", "y"))((1, "a")),
    ]  # fmt: skip
    drawn = random.Random(1)
    rows = [drawn.choice(shapes) for _ in range(100)]
    assert made(TWO, rows).to_pylist() == [{"n": 1, "t": "a"}] * 100


@dataclasses.dataclass
class Other:
    n: int
    u: str


def test_an_object_of_other_fields_is_refused_also_behind_one_that_fits():
    with pytest.raises(BadOutputError, match=r"returned Other with \['n', 'u'\], the schema has \['n', 't'\]"):
        made(TWO, [Plain("a", 1), Plain("b", 2), Other(1, "a")])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1,), "returned 1 values, the schema has 2: n, t"),
        ([1, "a", 2], "returned 3 values, the schema has 2: n, t"),
        ({"n": 1}, r"returned keys \['n'\], the schema has \['n', 't'\]"),
        ({"n": 1, "t": "a", "u": 2}, r"returned keys \['n', 't', 'u'\]"),
        ({"n": 1, 2: "a"}, r"returned keys \['2', 'n'\]"),
        (None, "returned NoneType; expected a tuple, a dict or a row"),
        ("ab", "returned str; expected a tuple, a dict or a row"),
        ((value for value in (1, "a")), "returned generator; expected a tuple, a dict or a row"),
        (Plain, "returned type; expected a tuple, a dict or a row"),
    ],
)
def test_another_shape_is_refused(value, text):
    with pytest.raises(BadOutputError, match=text):
        made(TWO, [value])


def test_an_object_with_other_fields_is_refused():
    with pytest.raises(BadOutputError, match=r"returned Plain with \['n', 't'\], the schema has \['n'\]"):
        made(pa.schema([("n", pa.int64())]), [Plain("a", 1)])


def test_the_only_column_takes_values_as_they_are():
    one = pa.schema([("x", pa.string())])
    assert made(one, ["a", ("b",), {"x": "c"}, ["d"], "e", (None,)]).column(0).to_pylist() == [*"abcde", None]
    with pytest.raises(BadOutputError, match="returned NoneType"):
        made(one, ["a", None])
    appender = RowAppender(one, 10, values_only=True)
    RowLoop(lambda row: None, appender, "map").map(RowReader([pa.record_batch({"n": [1]})]))
    assert appender.finish().column(0).to_pylist() == [None]
    lists = pa.schema([("x", pa.list_(pa.int64()))])
    assert made(lists, [([1, 2],), [[3]], np.array([4])]).column(0).to_pylist() == [[1, 2], [3], [4]]
    with pytest.raises(UserFunctionError, match=r"returned \(x for x.*|returned <generator.* for column 'x'"):
        made(one, [(letter for letter in "ab")])


def test_an_appender_is_used_again_and_again():
    appender = RowAppender(TWO, 4)
    values = [(None, None), (1, "a"), ("x", "b")] * 9
    values = [(n if n != "x" else np.int64(5), t) for n, t in values]
    loop = RowLoop(lambda row: values[row.at], appender, "map")
    reader = RowReader([pa.record_batch({"at": pa.array(range(27), pa.int64())})])
    found = []
    while True:
        more = loop.map(reader)
        found += appender.finish().to_pylist()
        if not more:
            break
    assert found == [{"n": n, "t": t} for n, t in values]
