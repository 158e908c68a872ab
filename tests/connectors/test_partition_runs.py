"""Runs of equal values, held against plain Python."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.partition_runs import PartitionRuns, check_partition_by
from engine.errors import SchemaError
from engine.files.hive import folder_name

SCHEMA = pa.schema([("a", pa.int64()), ("n", pa.int64()), ("b", pa.string())])
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from(["", "x", "y/z"])), min_size=1)


@given(ROWS)
def test_each_row_comes_under_its_folder_and_in_its_order(pairs):
    rows = [{"a": a, "n": index, "b": b} for index, (a, b) in enumerate(pairs)]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    runs = list(PartitionRuns(SCHEMA, ["b", "a"]).of(batch))
    found = [(folder, row["n"]) for folder, part in runs for row in part.to_pylist()]
    names = [
        f"{folder_name('b', row['b'])}/{folder_name('a', None if row['a'] is None else str(row['a']))}" for row in rows
    ]
    assert found == [(name, index) for index, name in enumerate(names)]
    assert all(part.schema.names == ["n"] for _, part in runs)
    changes = sum(before != after for before, after in pairwise(pairs))
    assert len(runs) == changes + 1


def test_large_texts_name_folders_as_texts_do():
    batch = pa.record_batch({"a": pa.array(["x", "x", None], pa.large_string()), "n": [1, 2, 3]})
    check_partition_by(batch.schema, ["a"], "write_csv")
    found = [(folder, part.num_rows) for folder, part in PartitionRuns(batch.schema, ["a"]).of(batch)]
    assert found == [(folder_name("a", "x"), 2), (folder_name("a", None), 1)]


def test_columns_that_no_folder_can_be_named_after_are_refused():
    with pytest.raises(SchemaError, match="partition_by='x': there is no such column"):
        check_partition_by(SCHEMA, ["x"], "write_csv")
    with pytest.raises(SchemaError, match="partition_by='f' is double; a folder is named after text"):
        check_partition_by(pa.schema([("f", pa.float64()), ("n", pa.int64())]), ["f"], "write_csv")
    with pytest.raises(SchemaError, match=r"partition_by='d' is decimal128\(5, -2\); a folder"):
        check_partition_by(pa.schema([("d", pa.decimal128(5, -2)), ("n", pa.int64())]), ["d"], "write_csv")
    with pytest.raises(SchemaError, match="has all columns"):
        check_partition_by(SCHEMA, SCHEMA.names, "write_csv")
    with pytest.raises(SchemaError, match="has a column twice"):
        check_partition_by(SCHEMA, ["a", "a"], "write_csv")
