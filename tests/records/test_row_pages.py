"""RowPages: rows of a page, found again and again. Those of several pages: tests/aggregate/test_state_partitions.py."""

import pyarrow as pa
import pytest

from engine.records.row_pages import pages_of_rows

ROWS = pa.record_batch({"n": list(range(3000)), "t": ["x" * (n % 70) for n in range(3000)]})


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_rows_of_a_batch_are_found_again_and_again(count):
    pages = pages_of_rows(ROWS.slice(0, count))
    assert pages.row_count == count
    for _ in range(2):
        assert pages.decoded().to_pylist() == ROWS.slice(0, count).to_pylist()
