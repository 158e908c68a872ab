"""W2: records of 100 bytes sorted by a random binary key of 10 bytes, Parquet to Parquet.

A record is that of the sort benchmark (gensort): key, 2 fixed bytes, the record's number in 32 hexadecimal digits,
56 bytes of filler that compress a little. Input is written in files of 2.5 million records.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.workload import Job

TITLE = "sort of 100-byte records by 10 bytes, Parquet to Parquet"
ROWS = 10_000_000

_KEY_BYTES = 10
_VALUE_BYTES = 90
_FILE_ROWS = 2_500_000
_GROUP_ROWS = 125_000
_HEX = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)


def _values(rng: np.random.Generator, first: int, count: int) -> np.ndarray:
    values = np.empty((count, _VALUE_BYTES), dtype=np.uint8)
    values[:, :2] = (0x00, 0x11)
    numbers = np.arange(first, first + count, dtype=np.uint64)
    for digit in range(32):
        shift = np.uint64(4 * (31 - digit))
        values[:, 2 + digit] = _HEX[(numbers >> shift) & np.uint64(15)] if digit >= 16 else _HEX[0]
    values[:, 34:86] = np.repeat(_HEX[rng.integers(0, 16, (count, 13))], 4, axis=1)
    values[:, 86:] = (0xCC, 0xDD, 0xEE, 0xFF)
    return values


def _binary(table: np.ndarray) -> pa.Array:
    count, width = table.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(table.tobytes())])


def prepare(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    schema = pa.schema([("key", pa.binary()), ("value", pa.binary())])
    for part, first in enumerate(range(0, rows, _FILE_ROWS)):
        with pq.ParquetWriter(folder / f"part-{part:02}.parquet", schema, use_dictionary=False) as writer:
            for start in range(first, min(first + _FILE_ROWS, rows), _GROUP_ROWS):
                count = min(_GROUP_ROWS, rows - start)
                keys = rng.integers(0, 256, (count, _KEY_BYTES), dtype=np.uint8)
                writer.write_table(pa.table([_binary(keys), _binary(_values(rng, start, count))], schema=schema))


def output_query(output: Path) -> str:
    return f"SELECT key, value FROM read_parquet('{output}/*.parquet')"


def check(output: Path) -> None:
    """Raise unless the files, by name, are in order."""
    last = b""
    for path in sorted(output.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(65536, columns=["key"]):
            keys = batch.column(0)
            if len(keys) == 0:
                continue
            is_ascending = len(keys) == 1 or pc.all(pc.less_equal(keys[:-1], keys[1:])).as_py()
            if keys[0].as_py() < last or not is_ascending:
                raise SystemExit(f"sort: {path} is not in order")
            last = keys[-1].as_py()


def run_drey(job: Job) -> None:
    from engine import Environment

    with Environment(config=job.drey_config()) as env:
        env.read_parquet(str(job.source)).sort("key").write_parquet(str(job.output))
        env.execute("sort")


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    job.output.mkdir()
    connection.execute(
        f"COPY (SELECT * FROM read_parquet('{job.source}/*.parquet') ORDER BY key)"
        f" TO '{job.output}/part-0.parquet' (FORMAT parquet)"
    )


def run_polars(job: Job) -> None:
    import polars as pl

    job.output.mkdir()
    records = pl.scan_parquet(job.source / "*.parquet")
    records.sort("key").sink_parquet(job.output / "part-0.parquet", compression="snappy", engine="streaming")
