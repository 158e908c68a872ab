"""Which columns a function uses: found where it leaves no doubt, and never too few."""

import functools

import pyarrow as pa
import pytest

from engine.functions.function_body import FunctionBody
from engine.functions.function_error import UserFunctionError
from engine.functions.used_columns import used_columns
from engine.graph.operator_descriptor import PythonOperator

NAMES = ("a", "b", "c", "two words", "asdict", "count")


def several_lines(row):
    total = row.a
    for n in range(3):
        if row["b"] > n and row.a is not None:
            total += row.a * n
    return {"x": total, "y": f"{row.b}"}


def with_default(row, other="c"):
    return row.a, other


class Rich:
    def map(self, row):
        return self.helper(row.c)

    def helper(self, value):
        return value


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        (lambda row: row.a, {"a"}),
        (lambda row: (row.a + 1, row["two words"].upper(), row.b.strip()), {"a", "b", "two words"}),
        (lambda row: 1, set()),
        (lambda row: row.count + len(row["asdict"]), {"count", "asdict"}),
        (lambda row: row.a if row.b else row.c, {"a", "b", "c"}),
        (several_lines, {"a", "b"}),
        (with_default, {"a"}),
        (Rich().map, {"c"}),
    ],
)
def test_columns_that_are_named_are_found(function, columns):
    assert used_columns(function, NAMES) == columns


def passes_on(row):
    return with_default(row)


def unpacks(row):
    first, *_ = row
    return first


def binds_anew(row):
    row = row.a or row.b
    return row, 1


def looks_around(row):
    return locals()["row"].b, row.a


def from_a_position(row):
    return row.a, row[1]


def by_a_variable(row, name="b"):
    return row.a, row[name]


def captures(row):
    return [row.a + n for n in range(3)], row.b


def uses_a_method(row):
    return row.a, row.asdict()


def looks_like_a_column(row):
    return row.asdict(), row.a


def takes_many(*rows):
    return rows[0].a


def deletes(row):
    value = row.a
    del row
    return value


def keeps(row, kept=[]):  # noqa: B006
    kept.append(row)
    return kept[-1].b, row.a


@pytest.mark.parametrize(
    "function",
    [
        passes_on,
        unpacks,
        binds_anew,
        looks_around,
        from_a_position,
        by_a_variable,
        captures,
        uses_a_method,
        looks_like_a_column,
        takes_many,
        deletes,
        keeps,
        functools.partial(several_lines),
        len,
        str.upper,
        Rich,
        lambda row: row.nothing,
        lambda row: (row or 1).a,
        lambda row: row == 1,
        lambda row: row,
        lambda: 1,
    ],
)
def test_where_there_is_a_doubt_all_columns_are_used(function):
    assert used_columns(function, NAMES) is None


BATCH = pa.record_batch([[1, 2, 3], ["x", "y", "z"], [True, False, None]], names=["a", "b", "c"])


def body(kind, function, schema):
    return FunctionBody(PythonOperator(kind, b"", "function", __file__, 1), function, BATCH.schema, schema)


@pytest.mark.parametrize("kind", ["map", "flat_map", "filter"])
def test_an_error_shows_the_whole_row_also_where_one_column_is_used(kind):
    def failing(row):
        value = (1 // (row.a - 2),)
        return [value] if kind == "flat_map" else value

    with pytest.raises(UserFunctionError) as caught:
        list(body(kind, failing, pa.schema([("n", pa.int64())])).apply(BATCH))
    assert caught.value.row == "Row(a=2, b='y', c=False)"


@pytest.mark.parametrize("kind", ["map", "flat_map"])
def test_a_result_that_does_not_fit_shows_the_whole_row(kind):
    def wrong(row):
        value = ("text" if row.a == 3 else 1,)
        return value if kind == "map" else [value]

    kind_body = body(kind, wrong, pa.schema([("n", pa.int64())]))
    with pytest.raises(UserFunctionError) as caught:
        list(kind_body.apply(BATCH))
    assert caught.value.row == "Row(a=3, b='z', c=None)"


def test_a_function_that_uses_no_column_is_called_for_each_row():
    results = list(body("map", lambda row: (7,), pa.schema([("n", pa.int64())])).apply(BATCH))
    assert pa.Table.from_batches(results)["n"].to_pylist() == [7, 7, 7]
    assert next(body("filter", lambda row: True, BATCH.schema).apply(BATCH)).equals(BATCH)
