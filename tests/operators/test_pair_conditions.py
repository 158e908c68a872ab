"""Conditions of joins: which columns of which side they are given, and what they say of pairs."""

import pyarrow as pa
import pytest

from engine.column_expressions.expressions import col, lit
from engine.errors import TaskCancelledError
from engine.operators.pair_conditions import pair_condition

LEFT = pa.schema([("k", pa.int64()), ("a", pa.int64()), ("t", pa.dictionary(pa.int8(), pa.string()))])
RIGHT = pa.schema([("b", pa.int64()), ("k", pa.int64())])


def test_columns_come_from_the_side_that_has_them_and_a_common_one_from_the_left():
    condition = pair_condition(((col("b") > col("a")) & (col("k") > col("a"))).expression, LEFT, RIGHT, lambda: None)
    assert condition.columns == ((1, 0), (0, 1), (0, 0))
    assert condition.schema.names == ["b", "a", "k"]
    pairs = pa.RecordBatch.from_arrays(
        [pa.array([2, 2, None]), pa.array([1, 3, 1]), pa.array([5, 5, 5])], schema=condition.schema
    )
    assert condition.predicate(pairs).array().to_pylist() == [True, False, False]  # null is not true


def test_dictionaries_arrive_as_plain_values():
    condition = pair_condition((col("t") == "x").expression, LEFT, RIGHT, lambda: None)
    assert condition.schema == pa.schema([("t", pa.string())])


def test_a_constant_is_given_a_column_to_count_rows_by():
    condition = pair_condition((lit(1) > 2).expression, LEFT, RIGHT, lambda: None)
    assert condition.columns == ((0, 0),)
    pairs = pa.RecordBatch.from_arrays([pa.array([1, 2])], schema=condition.schema)
    assert condition.predicate(pairs).array().to_pylist() == [False, False]


def test_no_condition_is_none():
    assert pair_condition(None, LEFT, RIGHT, lambda: None) is None


def test_a_cancelled_task_is_noticed_by_a_join_that_returns_nothing():
    def check():
        raise TaskCancelledError("cancelled")

    condition = pair_condition((col("a") > 0).expression, LEFT, RIGHT, check)
    with pytest.raises(TaskCancelledError):
        condition.predicate(pa.RecordBatch.from_arrays([pa.array([1])], schema=condition.schema))
