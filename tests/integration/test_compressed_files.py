"""Whole jobs that write compressed files and read them again, with other readers too."""

import gzip

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, count
from engine.errors import ConfigurationError, JobExecutionError
from engine.files.compression import CODECS, ENDING_OF

ROWS = pa.table({"id": range(5000), "name": [f'n"{index % 9}"' for index in range(5000)]})


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


@pytest.mark.parametrize("codec", CODECS)
def test_rows_come_back_from_compressed_csv_and_text(env, tmp_path, codec):
    data = env.from_arrow(ROWS)
    data.write_csv(tmp_path / "csv", header=True, compression=codec)
    data.select("name").write_text(tmp_path / "text", compression=codec)
    env.execute()
    parts = [path.name for path in sorted((tmp_path / "csv").iterdir())]
    assert parts == [f"part-{index:05d}.csv{ENDING_OF[codec]}" for index in range(len(parts))]
    back = env.read_csv(tmp_path / "csv", ROWS.schema, header=True).sort("id").to_arrow()
    assert back == ROWS
    assert env.read_text(tmp_path / "text").sort("line").to_arrow().column(0).to_pylist() == sorted(
        ROWS.column("name").to_pylist()
    )
    if codec in ("gzip", "zstd"):
        found = duckdb.sql(f"SELECT * FROM read_csv('{tmp_path}/csv/*', header=true) ORDER BY id").fetchall()
        assert found == [tuple(row.values()) for row in ROWS.to_pylist()]


@pytest.mark.parametrize(("codec", "level"), [("zstd", 9), ("gzip", None), ("none", None), ("lz4", 2)])
def test_parquet_has_the_codec_that_is_chosen(env, tmp_path, codec, level):
    env.from_arrow(ROWS).write_parquet(tmp_path / "out", compression=codec, compression_level=level)
    env.execute()
    chunk = pq.ParquetFile(next((tmp_path / "out").iterdir())).metadata.row_group(0).column(0)
    assert chunk.compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    assert env.read_parquet(tmp_path / "out").sort("id").to_arrow() == ROWS


def test_codecs_that_are_none_are_refused_when_they_are_named(env, tmp_path):
    data = env.from_arrow(ROWS)
    with pytest.raises(ConfigurationError, match=r"compression='zip': choose one of snappy"):
        data.write_parquet(tmp_path / "a", compression="zip")
    with pytest.raises(ConfigurationError, match=r"compression_level=40: zstd has 1 to 22"):
        data.write_parquet(tmp_path / "a", compression="zstd", compression_level=40)
    with pytest.raises(ConfigurationError, match=r"compression_level=1: snappy has no levels"):
        data.write_parquet(tmp_path / "a", compression_level=1)
    with pytest.raises(ConfigurationError, match=r"write_csv: compression='snappy': choose one of gzip"):
        data.write_csv(tmp_path / "a", compression="snappy")


def test_a_file_that_is_cut_short_fails_the_job_with_its_name(env, tmp_path):
    whole = gzip.compress(b"".join(b"%d\n" % index for index in range(600_000)))
    (tmp_path / "a.csv.gz").write_bytes(whole[:-1000])
    counted = env.read_csv(tmp_path / "a.csv.gz", pa.schema([("n", pa.int64())])).group_by().agg(n=count(col("n")))
    with pytest.raises(JobExecutionError, match=r"a\.csv\.gz: no whole gzip file: .*, behind \d{7} bytes of its text"):
        counted.collect()
