"""Functions are given the columns that they use; what they are told of, and what a filter keeps, are whole rows."""

import pyarrow as pa
import pytest

from engine.functions.function_body import FunctionBody
from engine.functions.waiting_rows import WaitingRows
from engine.graph.operator_descriptor import PythonOperator

BATCH = pa.record_batch({"id": [1, 2, 3], "text": ["a", "b", "c"], "price": [10.0, 0.0, 30.0]})
SCHEMA = pa.schema([("x", pa.float64())])


def body_of(kind, function, schema=BATCH.schema, **fields):
    return FunctionBody(PythonOperator(kind, b"", "function", __file__, 1, **fields), function, schema, SCHEMA)


@pytest.mark.parametrize(
    ("function", "fields", "columns"),
    [
        (lambda row: (row.price,), {}, ("price",)),
        (lambda row: (row.price * row["id"],), {}, ("id", "price")),
        (lambda row: (len(row),), {}, ()),
        (lambda row: (1.0,), {}, ("id",)),
        (lambda price, number: (price * number,), {"arguments": ("price", "id")}, ("id", "price")),
        (lambda price, again: (price * again,), {"arguments": ("price", "price")}, ("price",)),
    ],
)
def test_a_function_is_given_the_columns_that_it_uses(function, fields, columns):
    whole = body_of("map", function, **fields)
    narrow = body_of("map", function, **fields)
    assert narrow.narrow() == columns
    (expected,) = pa.Table.from_batches(whole.run(iter([BATCH]))).columns
    given = BATCH.select(columns) if columns else BATCH
    assert pa.Table.from_batches(narrow.run(iter([given]))).column(0) == expected


def test_of_columns_with_one_name_all_are_given():
    twice = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("y", pa.int64())])
    assert body_of("map", lambda row: (row.x,), twice).narrow() == ()


def test_a_filter_gives_one_truth_for_each_row():
    body = body_of("filter", lambda row: row.price)
    assert body.narrow() == ("price",)
    (truths,) = body.run(iter([BATCH.select(["price"])]))
    assert truths.column(0).to_pylist() == [True, False, True]


def test_the_rows_of_a_filter_wait_until_their_truths_come():
    rows = WaitingRows(("price",), is_filter=True)
    assert rows.given(BATCH).schema.names == ["price"]
    assert rows.row_at(1) == (2, "b", 0.0)
    (kept,) = rows.results(pa.record_batch({"is_kept": [True, False, True]}))
    assert kept.to_pydict() == {"id": [1, 3], "text": ["a", "c"], "price": [10.0, 30.0]}
    assert rows.row_at(1) is None
    rows.done()


def test_the_row_at_hand_is_of_the_first_batch_that_is_not_done():
    rows = WaitingRows(("price",))
    rows.given(BATCH)
    rows.given(BATCH.slice(1))
    assert rows.row_at(0) == (1, "a", 10.0)
    rows.done()
    assert rows.row_at(0) == (2, "b", 0.0)
    assert rows.row_at(-1) is None


def test_rows_do_not_wait_where_the_function_has_all_of_them():
    rows = WaitingRows()
    assert rows.given(BATCH) is BATCH
    assert rows.row_at(0) is None
    assert [*rows.results(BATCH)] == [BATCH]
