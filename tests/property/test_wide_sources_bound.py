"""Very wide rows from every source through every kind of program: right, and within the bound of resident memory.

    resident over idle <= managed + network + 64 MB + 16 MB a slot + 4 x the largest record a slot

However many slots there are. What is allowed for managed memory and network buffers is left out of the bound here,
since these jobs hardly use it. A page that holds many of these records is read whole: it is an error that says so.
"""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.property.matrix import IS_TORTURE
from tests.property.test_memory_bound import IS_BOUNDED, MEGABYTE, ROOT
from tests.property.wide_job import BINARY, PROGRAMS

RECORD_BYTES = (64 if IS_TORTURE else 16) * MEGABYTE
ROWS = 10 if IS_TORTURE else 6
TEXTS = {"csv", "text"}
#: program, file, slots
CASES = (
    [(program, "pages", slots) for program in PROGRAMS for slots in (2, 8)]
    + [("passes", kind, slots) for kind in ("text", "csv") for slots in (1, 2, 8)]
    + [(program, "csv", 4) for program in ("sort", "sent_probe", "sent_build", "max")]
    if IS_TORTURE
    else [("sent_build", "pages", 4), ("passes", "csv", 4)]
)


def bytes_of_row(chosen, kind):
    if kind not in TEXTS:
        return chosen.bytes(RECORD_BYTES)
    letters = chosen.integers(97, 123, RECORD_BYTES, dtype=np.uint8)
    if kind == "csv":
        letters[chosen.integers(0, RECORD_BYTES, 1000)] = chosen.choice(np.frombuffer(b'",\n', np.uint8), 1000)
    return letters.tobytes()


def write_rows(folder, kind):
    """Write the rows as a file of a kind; return their digests by id."""
    chosen = np.random.default_rng(ROWS)
    ids = list(range(ROWS))
    pq.write_table(pa.table({"id": ids, "name": [f"n{index}" for index in ids]}), folder / "small.parquet")
    blobs = [bytes_of_row(chosen, kind) for _ in ids]
    if kind == "text":
        (folder / "wide.txt").write_bytes(b"".join(blob + b"\n" for blob in blobs))
    elif kind == "csv":
        quoted = [b'%d,"%s"\n' % (index, blob.replace(b'"', b'""')) for index, blob in zip(ids, blobs, strict=True)]
        (folder / "wide.csv").write_bytes(b"".join(quoted))
    elif kind == "pages":
        with pq.ParquetWriter(folder / "wide.parquet", BINARY, compression="none", use_dictionary=False) as writer:
            for index, blob in zip(ids, blobs, strict=True):
                writer.write_table(pa.table({"id": [index], "blob": [blob]}, BINARY))
    else:
        table = pa.table({"id": ids, "blob": blobs}, BINARY)
        # As they are written when nobody thinks of it: all values in one dictionary page.
        pq.write_table(table, folder / "wide.parquet")
    return sorted(hashlib.blake2b(blob).hexdigest() for blob in blobs)


def digests_of(folder, kind):
    """Return the digests of the rows that a job has written."""
    found = []
    for path in sorted(folder.glob("*.*")):
        if kind == "csv":
            options = pacsv.ParseOptions(newlines_in_values=True)
            names = pacsv.ReadOptions(column_names=BINARY.names, block_size=1 << 30)
            found += pacsv.read_csv(path, names, options).column("blob").to_pylist() if path.stat().st_size else []
        elif kind == "text":
            found += path.read_bytes().split(b"\n")[:-1]
        else:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(1, columns=["blob"]):
                    found += batch.column(0).to_pylist()
    encoded = [value.encode() if isinstance(value, str) else value for value in found if value is not None]
    return sorted(hashlib.blake2b(value).hexdigest() for value in encoded)


def run_job(program, kind, slots, folder):
    source = kind if kind in TEXTS else "parquet"
    arguments = [program, source, folder, folder, "4mb", slots]
    return subprocess.run(
        [sys.executable, "-m", "tests.property.wide_job", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("program", "kind", "slots"), CASES)
def test_very_wide_rows_stay_within_the_bound_whatever_their_source(program, kind, slots, tmp_path):
    expected = write_rows(tmp_path, kind)
    ended = run_job(program, kind, slots, tmp_path)
    assert ended.returncode == 0, ended.stderr[-2000:]
    allowed = (64 + 16 * slots) * MEGABYTE + 4 * slots * RECORD_BYTES
    assert not IS_BOUNDED or json.loads(ended.stdout.splitlines()[-1])["growth"] <= allowed
    found = digests_of(tmp_path / "out", kind)
    assert found == {"union": sorted(expected * 2), "top": found}.get(program, expected)
    assert len(found) == {"union": 2 * ROWS, "top": 3}.get(program, ROWS)
    for path in [*tmp_path.glob("wide.*"), *(tmp_path / "out").glob("*")]:
        path.unlink()


def test_a_page_of_many_very_wide_rows_ends_the_job_with_what_to_do(tmp_path):
    write_rows(tmp_path, "dictionary")
    path = tmp_path / "wide.parquet"
    ended = run_job("passes", "dictionary", 2, tmp_path)
    path.unlink()
    assert ended.returncode == 1
    assert f"MemoryBudgetError: file {path}, row group 0, column 'blob': reading it takes" in ended.stderr
    assert "raise taskmanager.memory.process.size, or write the file with smaller pages" in ended.stderr
