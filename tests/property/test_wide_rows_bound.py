"""Jobs over very wide rows that never leave Arrow, and by very wide keys: right, within the bound of resident memory,
however many rows, and with one copy of each value on disk, however many operators.

    resident over idle <= managed + network + 64 MB + 16 MB a slot + 4 x the largest record a slot

The environment is loaded before pyarrow, so that it chooses Arrow's allocator.
"""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.property.matrix import IS_TORTURE
from tests.property.test_memory_bound import IS_BOUNDED, MEGABYTE, ROOT, SLOTS, allowed_bytes

MANAGED = "4mb"
JOBS = ("wide_passes", "wide_probe", "wide_mapped")
KEY_JOBS = ("wide_keys", "wide_key_sort", "wide_key_distinct")
#: job, bytes of a record, records, rows of a row group. A probe of a group of many rows is not among them: the reader
#: keeps a page while the join works, which is one record too many.
CASES = (
    [(job, 64 * MEGABYTE, rows, 1) for job in JOBS for rows in (5, 10, 20)]
    + [(job, 64 * MEGABYTE, 10, 10) for job in ("wide_passes", "wide_mapped")]
    + [(job, 64 * MEGABYTE, 10, 1) for job in KEY_JOBS]
    if IS_TORTURE
    else [("wide_passes", 24 * MEGABYTE, 6, 1), ("wide_keys", 24 * MEGABYTE, 6, 1)]
)
COMMAND = "from engine import col; import runpy; runpy.run_module('tests.property.budget_job', run_name='__main__')"
SCHEMA = pa.schema([("id", pa.int64()), ("blob", pa.binary())])


def write_rows(path, record_bytes, rows, group_rows):
    """Write random rows; return the digest of each by its id."""
    chosen = np.random.default_rng(rows)
    digests = {}
    with pq.ParquetWriter(path, SCHEMA, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, group_rows):
            blobs = [chosen.bytes(record_bytes) for _ in range(group_rows)]
            ids = list(range(start, start + group_rows))
            digests |= {index: hashlib.blake2b(blob).digest() for index, blob in zip(ids, blobs, strict=True)}
            # A page for each row: a page is read whole, whatever is in it.
            pieces = [pa.record_batch([[index], [blob]], SCHEMA) for index, blob in zip(ids, blobs, strict=True)]
            writer.write_table(pa.Table.from_batches(pieces))
    return digests


def digests_of(folder):
    found = {}
    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1, columns=["id", "blob"]):
                found[batch.column(0)[0].as_py()] = hashlib.blake2b(batch.column(1)[0].as_buffer()).digest()
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("job", "record_bytes", "rows", "group_rows"), CASES)
def test_very_wide_rows_stay_within_the_bound(job, record_bytes, rows, group_rows, tmp_path):
    expected = write_rows(tmp_path / "wide.parquet", record_bytes, rows, group_rows)
    command = [sys.executable, "-c", COMMAND, job, str(tmp_path), str(tmp_path), MANAGED, str(SLOTS)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr[-2000:]
    report = json.loads(ended.stdout.splitlines()[-1])
    assert not IS_BOUNDED or report["peak"] - report["idle"] <= allowed_bytes(MANAGED, record_bytes)
    assert report["spilled"] <= rows * record_bytes
    assert digests_of(tmp_path / job) == expected
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
