"""JSON texts of values are those of Python's json, nested ones too; null is null."""

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import SchemaError, col
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import values

X = col("x")
LEAVES = st.none() | st.text(max_size=5)
ROWS = st.lists(
    st.none()
    | st.fixed_dictionaries({"a": st.none() | st.integers(-5, 5), "b": st.none() | st.lists(LEAVES, max_size=3)}),
    min_size=1,
    max_size=4,
)


@given(rows=ROWS)
def test_values_are_written_as_python_writes_them(rows):
    column = pa.array([None, *rows], pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())})).slice(1)
    found = values(X.to_json(), x=column)
    assert [None if one is None else json.loads(one) for one in found] == rows


def test_floats_that_json_has_not_are_null():
    assert values(X.to_json(), x=[[1.5, math.nan, math.inf, None], None]) == ["[1.5,null,null,null]", None]
    assert values(X.to_json(), x=pa.array([[("k", True)], None], pa.map_(pa.string(), pa.bool_()))) == [
        '{"k":true}',
        None,
    ]
    assert values(X.to_json(), x=['a"\\\n\x01é']) == ['"a\\"\\\\\\n\\u0001é"']


def test_maps_with_keys_of_no_text_have_no_form():
    with pytest.raises(SchemaError, match="has no form in JSON: cast it"):
        infer_type(X.to_json().expression, pa.schema({"x": pa.map_(pa.int64(), pa.int64())}))
