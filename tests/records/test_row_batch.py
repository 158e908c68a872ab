"""Rows handed on without being decoded: the same as a batch of them, and of one schema."""

import pyarrow as pa
import pytest

from engine.errors import SchemaError
from engine.records.row_batch import batch_of_rows


def test_rows_of_a_batch_are_the_batch():
    batch = pa.record_batch({"k": [1, None, 3], "text": ["a", "b" * 300, None]})
    rows = batch_of_rows(batch)
    assert rows.num_rows == 3
    assert rows.decoded().equals(batch)
    assert rows.codec.schema.names == ["k", "text"]


def test_no_rows_are_a_batch_too():
    rows = batch_of_rows(pa.record_batch({"k": pa.array([], pa.int64())}))
    assert rows.num_rows == rows.decoded().num_rows == 0


def test_a_null_where_none_is_declared_is_refused():
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    with pytest.raises(SchemaError, match="null"):
        batch_of_rows(pa.record_batch([pa.array([1, None])], schema=schema))
