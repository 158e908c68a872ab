"""ParquetWriter: what the first rows decide about a file."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.connectors.parquet_writer import PLAIN_WIDTH_MIN, ParquetWriter
from engine.connectors.wide_rows import WIDE_BYTES

SCHEMA = pa.schema([("id", pa.int64()), ("blob", pa.binary())])


@pytest.mark.parametrize("before", [None, b"short"])
def test_wide_values_behind_a_narrow_row_are_written_as_they_are(tmp_path, before):
    wide = bytes(max(PLAIN_WIDTH_MIN, WIDE_BYTES) + 1)
    writer = ParquetWriter(SCHEMA, tmp_path / "part.parquet")
    for row in ((0, before), (1, wide)):
        writer.write(pa.record_batch([[value] for value in row], SCHEMA))
    assert writer.finish()[0] == 2
    with pq.ParquetFile(tmp_path / "part.parquet") as file:
        column = file.metadata.row_group(0).column(1)
        assert column.compression == "UNCOMPRESSED"
        assert column.statistics is None
        assert file.read().column("blob").to_pylist() == [before, wide]
