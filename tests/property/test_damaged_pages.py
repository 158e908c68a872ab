"""Damaged pages of rows and damaged parts of record data sets: an error that names the place, or the very same rows.

More examples with ``TORTURE=1``.
"""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Environment
from engine.errors import CorruptBlockError, DataError, EngineError
from engine.exchange.buffer_pool import unpooled_buffer
from engine.exchange.page_reader import PageReader
from engine.records.row_codec import RowCodec
from tests.property.damage import damaged
from tests.property.test_damaged_bytes import FLAT, NESTED, examples


@pytest.mark.parametrize("table", [FLAT, NESTED], ids=["flat", "nested"])
@given(data=st.data())
@examples(200)
def test_a_damaged_page_is_an_error_or_other_values_and_is_recycled(table, data):
    rows = RowCodec(table.schema).to_rows(table.combine_chunks().to_batches()[0])
    page = unpooled_buffer(data.draw(damaged(rows)) or bytes(8))
    reader = PageReader(table.schema, 2)
    try:
        reader.add(page)
        batches = reader.take_batches()
    except (CorruptBlockError, DataError):
        return
    assert page.is_recycled
    for batch in batches:
        batch.validate()


HEADER_BYTES = 200


@pytest.fixture(scope="module")
def records(tmp_path_factory, nothing_is_left_by_the_module):
    """Return an environment, a folder with one part of records, and its rows."""
    folder = tmp_path_factory.mktemp("records") / "good"
    table = pa.table({"n": [number * 0x9E3779B97F4A7C15 % 2**61 for number in range(400)]})
    with Environment(config={"parallelism.default": 1, "taskmanager.memory.process.size": "512mb"}) as environment:
        environment.from_arrow(table).write_records(folder)
        environment.execute()
        yield environment, folder, environment.read_records(folder).to_arrow()


@given(data=st.data())
@examples(40)
def test_a_damaged_part_of_records_is_an_error_that_names_it_or_the_same_rows(records, data):
    environment, folder, rows = records
    part = folder / "part-00000.parquet"
    good = part.read_bytes()
    try:
        # Behind the header of the only page, which nothing guards.
        part.write_bytes(good[:HEADER_BYTES] + data.draw(damaged(good[HEADER_BYTES:])))
        found = environment.read_records(folder).to_arrow()
    except EngineError as error:
        assert str(part) in str(error)
    else:
        assert found.equals(rows)
    finally:
        part.write_bytes(good)
