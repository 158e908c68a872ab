"""Headers of pages that cannot be right are told before anybody allocates what they say; all others are let pass."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import DataError
from engine.parquet.pages import first_page, pages_of
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source
from tests.parquet.page_headers import DICTIONARY, page_headers

ROWS = 30_000
TABLE = pa.table(
    {
        "n": pa.array([index * 0x9E3779B97F4A7C15 % 2**61 for index in range(ROWS)]),
        "text": [f"text {index % 700}" for index in range(ROWS)],
        "list": [[index] * (index % 4) if index % 5 else None for index in range(ROWS)],
        "zero": pa.array([None, 7] * (ROWS // 2), pa.int32()),
    }
)
HARMLESS = 1 << 20
SAID = 0x2FFFFFFF


def write(path, **options):
    pq.write_table(TABLE, path, **{"data_page_size": 16 << 10, "write_batch_size": 512, **options})
    return pq.read_metadata(path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_sound_pages_of_every_codec_are_let_pass(tmp_path, codec, version):
    for use_dictionary in (False, True):
        path = tmp_path / f"{use_dictionary}.parquet"
        metadata = write(path, compression=codec, data_page_version=version, use_dictionary=use_dictionary)
        pages_of(str(path), metadata, 0, TABLE.column_names)


def test_wide_statistics_in_a_header_are_passed_over(tmp_path):
    path = tmp_path / "t.parquet"
    rows = pa.table({"text": ["a" * 3000, "z" * 3000] * 50})
    pq.write_table(rows, path, compression="none", use_dictionary=False, data_page_size=4 << 10, write_batch_size=1)
    metadata = pq.read_metadata(path)
    assert len(list(headers(path, metadata, 0))) > 20
    pages_of(str(path), metadata, 0, ["text"])


def test_values_that_compress_a_thousandfold_are_let_pass(tmp_path):
    path = tmp_path / "t.parquet"
    rows = pa.table({"n": pa.array([0] * 4_000_000, pa.int64())})
    for codec in ("snappy", "gzip", "zstd", "lz4", "brotli"):
        pq.write_table(rows, path, compression=codec, use_dictionary=False, data_page_size=32 << 20)
        pages_of(str(path), pq.read_metadata(path), 0, ["n"])


def headers(path, metadata, column):
    chunk = metadata.row_group(0).column(column)
    return page_headers(path.read_bytes(), first_page(chunk), chunk.num_values)


def is_impossible(path, metadata, column):
    """Say of the first page, by the other parser: it is larger than its column, or has more values than bytes."""
    chunk = metadata.row_group(0).column(column)
    try:
        page = next(headers(path, metadata, column))
    except EOFError:
        return None
    end = first_page(chunk) + chunk.total_compressed_size + 100
    return (
        not 0 <= page.compressed_bytes <= end - page.position
        or page.size_bytes < 0
        or page.size_bytes > max(chunk.total_uncompressed_size, chunk.total_compressed_size, HARMLESS)
        or (page.kind == DICTIONARY and page.value_count > page.size_bytes)
    )


@pytest.mark.parametrize("column", [0, 1, 2])
def test_every_flipped_bit_of_a_header_that_makes_it_impossible_is_told(tmp_path, column):
    path = tmp_path / "t.parquet"
    metadata = write(path, compression="zstd", use_dictionary=["text"])
    name = TABLE.column_names[column]
    good = path.read_bytes()
    begin = first_page(metadata.row_group(0).column(column))
    told = passed = 0
    for position in range(begin, begin + 24):
        for bit in range(8):
            damaged = bytearray(good)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            impossible = is_impossible(path, metadata, column)
            try:
                pages_of(str(path), metadata, 0, [name])
                assert not impossible
                passed += 1
            except pa.ArrowInvalid as error:
                assert f"row group 0, column {metadata.row_group(0).column(column).path_in_schema}: " in str(error)
                told += 1
    assert told > 5
    assert passed > 10


def test_what_a_header_says_is_not_allocated_and_the_error_names_the_place(tmp_path):
    path = tmp_path / "t.parquet"
    metadata = write(path, compression="snappy", use_dictionary=False)
    spec, _, _ = parquet_source(path)
    good = path.read_bytes()
    begin = first_page(metadata.row_group(0).column(0))
    page = next(headers(path, metadata, 0))
    end = page.position + page.compressed_bytes
    # The size, a number of 3 bytes behind the kind, takes 5 and is 805 MB; the page has 2 bytes less, so nothing moves.
    path.write_bytes(good[: begin + 3] + b"\xfe\xff\xff\xff\x05" + good[begin + 6 : end - 2] + good[end:])
    assert next(headers(path, metadata, 0)).size_bytes == SAID
    held = pa.default_memory_pool().max_memory()
    reader = ParquetReader(spec, spec.splits)
    place = f"file {path}, row groups 0 to 1: row group 0, column n: the page at byte {begin} is damaged"
    try:
        with pytest.raises(DataError, match=f"{place}: it says that it has {SAID} bytes"):
            list(reader)
        with pytest.raises(DataError, match="the page at byte"):
            parquet_source(path)
    finally:
        reader.close()
    assert pa.default_memory_pool().max_memory() - held < SAID // 2
