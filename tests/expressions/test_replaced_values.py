"""Values replaced by a mapping are those of a dict: nulls, NaN, other types, defaults, and what is no key."""

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, SchemaError, col
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import compute, same, values

X = col("x")
KEYS = st.none() | st.integers(-3, 3)


@given(some=st.lists(KEYS, min_size=1, max_size=8), mapping=st.dictionaries(KEYS, KEYS, min_size=1))
def test_replaced_values_are_those_of_a_dict(some, mapping):
    column = pa.array([1, *some], pa.int32()).slice(1)
    assert values(X.replace(mapping), x=column) == [mapping.get(one, one) for one in some]
    assert values(X.replace_strict(mapping, 9), x=column) == [mapping.get(one, 9) for one in some]
    assert values(X.replace_strict(mapping, X * 2), x=column) == [
        mapping.get(one, None if one is None else one * 2) for one in some
    ]
    if all(one is None or one in mapping for one in some):
        assert values(X.replace_strict(mapping), x=column) == [mapping.get(one) for one in some]
    else:
        with pytest.raises(DataError, match="has no such key, and no default"):
            values(X.replace_strict(mapping), x=column)


@pytest.mark.parametrize(
    ("column", "mapping", "expected"),
    [
        (["a", "b", None], {"a": "x"}, ["x", "b", None]),
        ([1.5, math.nan, -0.0], {math.nan: 0.5, 0.0: 7.0}, [1.5, 0.5, 7.0]),
        ([True, False], {True: False}, [False, False]),
        ([datetime.date(2024, 1, 1)], {datetime.date(2024, 1, 1): None}, [None]),
        ([Decimal("1.50")], {Decimal("1.5"): Decimal("2.25")}, [Decimal("2.25")]),
        ([1, 2], {1: 0.5}, [0.5, 2.0]),
    ],
)
def test_every_type_has_keys(column, mapping, expected):
    same(values(X.replace(mapping), x=column), expected)


def test_the_type_is_that_of_the_new_values():
    assert compute(X.replace_strict({1: "a", 2: None}), x=pa.array([1, 2], pa.int8())).type == pa.string()
    assert values(X.replace_strict({1: "a"}, None), x=[1, 2]) == ["a", None]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (X.replace({"a": "b"}), "the keys are string"),
        (X.replace({1: "b"}), "the new values are string, and what they stand beside is int"),
    ],
)
def test_what_fits_not_is_said_before_anything_runs(expression, message):
    with pytest.raises(SchemaError, match=message):
        infer_type(expression.expression, pa.schema({"x": pa.int64()}))
    with pytest.raises(SchemaError, match="give it keys and values"):
        X.replace({})


def test_nan_is_filled_and_null_is_not():
    same(values(X.fill_nan(col("y")), x=[math.nan, None, 1.0], y=[5.0, 6.0, 7.0]), [5.0, None, 1.0])
