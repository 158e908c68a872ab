"""What is known of an operator's output."""

import pyarrow as pa

from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.source_spec import ColumnStatistics
from engine.records.row_codec import RowCodec
from engine.statistics.estimates import UNKNOWN, Estimates, stored


def test_a_combination_of_keys_is_no_heavier_than_its_lightest():
    data = Estimates(1, 1, "", {"a": ColumnStatistics(heavy_keys=(("x", 0.5),)), "b": ColumnStatistics()})
    assert data.heaviest_share(("a",)) == 0.5
    assert data.heaviest_share(("a", "b")) == 0
    assert data.heaviest_share(("a", "unknown")) == 0
    assert data.heaviest_share(()) == 0


def test_stored_bytes_are_those_of_rows_as_they_lie_in_pages():
    batch = pa.record_batch(
        {
            "key": pa.array(range(100), pa.int64()),
            "day": pa.array(range(100), pa.int32()),
            "flag": pa.array([True] * 100),
            "text": pa.array(["thirteen char"] * 100),
        }
    )
    columns = {"text": ColumnStatistics(average_width_bytes=13.0)}
    estimates = Estimates(100.0, 100.0 * (8 + 4 + 1 + 13), "sample", columns)
    rows = RowCodec(batch.schema).to_rows(batch)
    assert stored(estimates, to_plan_schema(batch.schema)).size_bytes == len(rows)


def test_an_unknown_size_is_unknown_as_stored_rows():
    estimates = Estimates(100.0, UNKNOWN, "nothing")
    assert stored(estimates, to_plan_schema(pa.schema([("k", pa.int64())]))) == estimates
