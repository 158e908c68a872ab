"""Joins by merge, sorts and ranges by very wide keys: right, and within the bound of resident memory.

    resident over idle <= managed + network + 64 MB + 16 MB a slot + 4 x the largest record a slot

Ten keys on either side, alike but for the last byte or not at all, some of them several times.
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
from tests.property.wide_key_job import PROGRAMS

MANAGED = "4mb"
LEFT, RIGHT = [0, 1, 2, 3, 4, 5, 6, 7, 1, 4], [1, 2, 3, 5, 8, 9, 1, 3, 4, 10]
#: keys that differ in their last byte
ALIKE = 5
#: program, bytes of a key, mode
CASES = (
    [(program, 64 * MEGABYTE, mode) for program in PROGRAMS for mode in ("PIPELINED", "BATCH")]
    if IS_TORTURE
    else [("inner", 24 * MEGABYTE, "PIPELINED")]
)


def key(index, size):
    if index < ALIKE:
        return np.random.default_rng(99).bytes(size - 1) + bytes([index])
    return np.random.default_rng(index).bytes(size)


def write_side(path, name, keys, size):
    schema = pa.schema([(name, pa.int64()), ("blob", pa.binary())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for row, index in enumerate(keys):
            writer.write_table(pa.table({name: [row], "blob": [key(index, size)]}, schema))


def expected_rows(program):
    """Return (id, other, number of the key) of every row; a column that is not there counts as null."""
    pairs = [(row, other, one) for row, one in enumerate(LEFT) for other, two in enumerate(RIGHT) if one == two]
    lefts = [(row, None, one) for row, one in enumerate(LEFT) if one not in RIGHT]
    rights = [(None, other, two) for other, two in enumerate(RIGHT) if two not in LEFT]
    wholes = [(row, None, one) for row, one in enumerate(LEFT)]
    return {
        "inner": pairs,
        "chosen": pairs,
        "inner_ids": [(row, other, None) for row, other, _ in pairs],
        "left": pairs + lefts,
        "right": pairs + rights,
        "full": pairs + lefts + rights,
        "semi": [whole for whole in wholes if whole[2] in RIGHT],
        "anti": lefts,
        "condition": [pair for pair in pairs if pair[0] <= pair[1]],
        "sort": wholes,
        "range": wholes,
    }[program]


def found_rows(folder, numbers):
    found = []
    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1):
                (row,) = batch.to_pylist()
                blob = row.get("blob", row.get("key"))
                number = None if blob is None else numbers[hashlib.blake2b(blob).digest()]
                found.append((row.get("id"), row.get("other"), number))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("program", "key_bytes", "mode"), CASES)
def test_very_wide_keys_stay_within_the_bound(program, key_bytes, mode, tmp_path):
    write_side(tmp_path / "left.parquet", "id", LEFT, key_bytes)
    write_side(tmp_path / "right.parquet", "other", RIGHT, key_bytes)
    numbers = {hashlib.blake2b(key(index, key_bytes)).digest(): index for index in {*LEFT, *RIGHT}}
    command = [sys.executable, "-m", "tests.property.wide_key_job", program, str(tmp_path), MANAGED, str(SLOTS), mode]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=900,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert not IS_BOUNDED or json.loads(ended.stdout.splitlines()[-1])["growth"] <= allowed_bytes(MANAGED, key_bytes)
    assert_right(program, found_rows(tmp_path / "out", numbers), key_bytes)
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()


def assert_right(program, found, key_bytes):
    assert sorted(found, key=repr) == sorted(expected_rows(program), key=repr)
    if program in ("sort", "range", "chosen"):
        keys = [key(number, key_bytes) for _, _, number in found]
        assert keys == sorted(keys, reverse=program == "sort")
