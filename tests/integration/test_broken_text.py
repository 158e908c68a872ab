"""Columns of strings whose bytes are not UTF-8, as other writers leave them in Parquet."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import DataError, col, count

BROKEN = pa.table({"s": pa.array([b"ok", b"\xff\xfe"] * 20, pa.binary()).view(pa.string()), "n": range(40)})


@pytest.fixture
def broken(environment, tmp_path):
    pq.write_table(BROKEN, tmp_path / "broken.parquet")
    return environment.read_parquet(tmp_path / "broken.parquet")


@pytest.mark.quick
def test_they_are_read_grouped_and_sorted_by_their_bytes(broken):
    groups = broken.group_by("s").agg(n=count()).select(col("s").cast(pa.binary()).alias("b"), "n").sort("b")
    assert [tuple(row) for row in groups.collect()] == [(b"ok", 20), (b"\xff\xfe", 20)]
    assert broken.filter(col("s") == "ok").count() == 20


def test_records_keep_them(environment, broken, tmp_path):
    broken.write_records(tmp_path / "records")
    environment.execute()
    found = environment.read_records(tmp_path / "records").sort("n").to_arrow()
    assert found["s"].cast(pa.binary()).to_pylist() == BROKEN["s"].cast(pa.binary()).to_pylist()


@pytest.mark.parametrize("call", ["collect", "show"])
def test_what_is_no_python_string_is_an_error_that_names_the_column(broken, call):
    with pytest.raises(DataError, match=r"column 's': b'\\xff\\xfe' is not UTF-8.*cast it to binary"):
        getattr(broken, call)()
