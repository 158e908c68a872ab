"""Python functions over very wide rows: right, and within the bound of resident memory, whatever the rows come from.

    resident over idle <= managed + network + 64 MB + 16 MB a slot + 4 x the largest record a slot

What is allowed for managed memory and network buffers is left out of the bound here. The workers are counted apart: a
job whose workers need more than their share says what size of the process would do, and that one does.
"""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.property.function_job import FEEDS, FUNCTIONS
from tests.property.matrix import IS_TORTURE
from tests.property.test_memory_bound import IS_BOUNDED, MEGABYTE, ROOT
from tests.property.test_wide_rows_bound import digests_of, write_rows

RECORD_BYTES = (64 if IS_TORTURE else 24) * MEGABYTE
#: function, where its rows come from, rows, slots
CASES = (
    [(function, feed, 10, 2) for function in FUNCTIONS for feed in FEEDS]
    + [(function, "source", rows, 4) for function in FUNCTIONS for rows in (6, 20)]
    if IS_TORTURE
    else [("co_group", "source", 6, 2), ("map", "exchange", 6, 2)]
)


def run_job(function, feed, folder, slots, process_size):
    arguments = [function, feed, folder / "wide.parquet", folder, "4mb", slots, process_size]
    return subprocess.run(
        [sys.executable, "-m", "tests.property.function_job", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("function", "feed", "rows", "slots"), CASES)
def test_functions_over_very_wide_rows_stay_within_the_bound(function, feed, rows, slots, tmp_path):
    expected = write_rows(tmp_path / "wide.parquet", RECORD_BYTES, rows, 1)
    process_size = f"{slots * 512}mb"
    ended = run_job(function, feed, tmp_path, slots, process_size)
    assert ended.returncode == 0, ended.stderr[-2000:]
    allowed = (64 + 16 * slots) * MEGABYTE + 4 * slots * RECORD_BYTES
    assert not IS_BOUNDED or json.loads(ended.stdout.splitlines()[-1])["growth"] <= allowed
    assert digests_of(tmp_path / "out") == expected
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()


@pytest.mark.thorough
@pytest.mark.skipif(not IS_BOUNDED, reason="what the address sanitizer adds is no part of any size")
@pytest.mark.parametrize("function", sorted(FUNCTIONS) if IS_TORTURE else ["co_group"])
def test_workers_that_need_more_say_what_size_of_the_process_does(function, tmp_path):
    expected = write_rows(tmp_path / "wide.parquet", RECORD_BYTES, 6, 1)
    ended = run_job(function, "source", tmp_path, 2, "384mb" if IS_TORTURE else "192mb")
    if IS_TORTURE and ended.returncode == 0:
        pytest.skip("its workers have enough")
    assert "WorkerMemoryError" in ended.stderr, ended.stderr[-2000:]
    (advised,) = set(re.findall(r"raise taskmanager\.memory\.process\.size to (\d+mb)", ended.stderr))
    ended = run_job(function, "source", tmp_path, 2, advised)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert digests_of(tmp_path / "out") == expected
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
