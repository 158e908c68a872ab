"""Sets of lists, reversed lists and positions of values agree with plain Python, over nulls and slices."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import SchemaError, col
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import same, values

X, Y = col("x"), col("y")
LISTS = st.none() | st.lists(st.none() | st.integers(-3, 3), max_size=5)
ROWS = st.lists(st.tuples(LISTS, LISTS), min_size=1, max_size=6)


def once(one):
    return list(dict.fromkeys(one))


AS_PYTHON = {
    "union": lambda one, other: once(one + other),
    "intersection": lambda one, other: [each for each in once(one) if each in other],
    "difference": lambda one, other: [each for each in once(one) if each not in other],
    "symmetric_difference": lambda one, other: [each for each in once(one + other) if (each in one) != (each in other)],
}


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
@given(rows=ROWS)
def test_sets_of_lists_are_those_of_python(kind, rows):
    left, right = zip(*[([9], [9]), *rows], strict=True)
    columns = {"x": pa.array(left, kind(pa.int32())).slice(1), "y": pa.array(right, pa.list_(pa.int64())).slice(1)}
    for name, expected in AS_PYTHON.items():
        found = values(getattr(X.list, name)(Y), **columns)
        assert found == [None if None in row else expected(*row) for row in rows], name


@given(rows=st.lists(st.tuples(LISTS, st.none() | st.integers(-3, 3)), min_size=1, max_size=6))
def test_positions_and_reversed_lists_are_those_of_python(rows):
    lists, wanted = zip(*rows, strict=True)
    columns = {"x": pa.array([[1], *lists], pa.list_(pa.int64())).slice(1), "y": pa.array(wanted, pa.int64())}
    places = [None if one is None or each not in one else one.index(each) for one, each in rows]
    assert values(X.list.position(Y), **columns) == places
    assert values(X.list.reverse(), **columns) == [None if one is None else one[::-1] for one in lists]
    dropped = [None if one is None else [each for each in one if each is not None] for one in lists]
    assert values(X.list.drop_nulls(), **columns) == dropped


def test_floats_texts_and_lists_of_nulls_are_elements():
    nan = math.nan
    same(values(X.list.union(Y), x=[[nan, 0.0]], y=[[-0.0, nan, 1.0]])[0], [nan, 0.0, 1.0])
    assert values(X.list.position(nan), x=[[1.0, nan]]) == [1]
    assert values(X.list.intersection(["b", None]), x=[["a", "b", None, "b"]]) == [["b", None]]
    assert values(X.list.union(Y), x=pa.array([[None], None]), y=pa.array([[None], [None]])) == [[None], None]
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array([1, 2, 3]), mask=pa.array([True, False])
    )
    assert values(X.list.reverse(), x=hidden) == [None, [3]]
    assert values(X.list.union([3, 4]), x=hidden) == [None, [3, 4]]


def test_lists_of_lists_are_no_sets():
    schema = pa.schema({"x": pa.list_(pa.list_(pa.int64())), "t": pa.list_(pa.string()), "i": pa.list_(pa.int64())})
    for name in AS_PYTHON:
        with pytest.raises(SchemaError, match="is of lists of plain values"):
            infer_type(getattr(X.list, name)(X).expression, schema)
        with pytest.raises(SchemaError, match="no common type"):
            infer_type(getattr(col("t").list, name)(col("i")).expression, schema)
    with pytest.raises(SchemaError, match="position is of plain values"):
        infer_type(X.list.position([1]).expression, schema)
