"""ParquetReader: what a damaged file is told as."""

import contextlib

import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import DataError
from engine.parquet.pages import first_page
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source


def test_no_flipped_bit_of_a_page_header_loses_rows(tmp_path):
    path = tmp_path / "t.parquet"
    rows = 1000
    pq.write_table(pa.table({"n": range(rows)}), path, use_dictionary=False, data_page_size=1000, write_batch_size=50)
    data = path.read_bytes()
    begin = first_page(pq.read_metadata(path).row_group(0).column(0))
    spec, _, _ = parquet_source(path)
    silent, refused = [], 0
    for position in range(begin, begin + 20):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            with pq.ParquetFile(path) as file, contextlib.suppress(pa.ArrowInvalid, OSError):
                silent.append(sum(batch.num_rows for batch in file.iter_batches(100)))
            reader = ParquetReader(spec, spec.splits)
            try:
                assert sum(batch.num_rows for batch in reader) == rows
            except DataError:
                refused += 1
            finally:
                reader.close()
    assert min(silent) < rows  # which Arrow alone would have said nothing of
    assert refused > 50
