"""Threads of scans: which sources several threads of one subtask read, and the rows come as they are in the files."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, lit, sum_
from engine.errors import DataError
from engine.optimizer import scan_planning

ROWS, GROUP_ROWS = 600_000, 50_000
FREE = {"debug.small-part-size": "1gb"}
FOUR = {"parallelism.default": 4, "parallelism.max-per-processor": 4}


@pytest.fixture(scope="module")
def rows():
    numbers = random.Random(7)
    return pa.table({"k": [numbers.randrange(10**9) for _ in range(ROWS)], "v": range(ROWS)})


@pytest.fixture(scope="module")
def path(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("scans") / "t.parquet"
    pq.write_table(rows, path, row_group_size=GROUP_ROWS)
    return path


@pytest.fixture
def env(monkeypatch):
    monkeypatch.setattr(scan_planning, "THREAD_BYTES", 1e6)
    with Environment(config={**FOUR, **FREE}) as env:
        yield env


def test_explain_says_how_many_threads_read(env, path):
    assert "read by 4 threads" in env.read_parquet(str(path)).explain()
    assert "threads" not in env.read_parquet(str(path)).sort("k").limit(5).explain()  # a threshold is one thread's
    with Environment(config=FOUR) as divided:
        assert "threads" not in divided.read_parquet(str(path)).explain()


def test_small_sources_have_no_threads(env, path, tmp_path):
    pq.write_table(pa.table({"k": range(1000)}), tmp_path / "few.parquet", row_group_size=10)
    assert "threads" not in env.read_parquet(str(tmp_path / "few.parquet")).explain()


def test_a_thread_has_sixteen_megabytes_to_read(path, tmp_path):
    columns = {name: range(ROWS) for name in "abcdefgh"}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet", row_group_size=GROUP_ROWS)  # of 38 MB
    with Environment(config={**FOUR, **FREE}) as env:
        assert "threads" not in env.read_parquet(str(path)).explain()
        assert "read by 2 threads" in env.read_parquet(str(tmp_path / "wide.parquet")).explain()


@pytest.mark.parametrize("share", [1.0, 0.5, 0.001])
def test_rows_come_in_the_order_of_the_file(env, path, rows, share):
    limit = int(10**9 * share)
    kept = env.read_parquet(str(path)).filter(col("k") < lit(limit)).to_arrow()
    wanted = rows.filter(pa.compute.less(rows["k"], limit))
    assert kept.column("v").to_pylist() == wanted.column("v").to_pylist()


def test_a_join_and_groups_are_the_same_with_threads(env, path, rows):
    data = env.read_parquet(str(path))
    few = env.from_arrow(pa.table({"k": rows["k"].slice(0, 100)}))
    joined = data.join(few, on="k", how="semi").to_arrow()
    assert sorted(joined.column("v").to_pylist())[:100] == list(range(100))
    groups = data.group_by(g=col("v") % 10).agg(s=sum_("v")).sort("g").to_arrow()
    assert groups.column("s").to_pylist() == [sum(range(number, ROWS, 10)) for number in range(10)]


def test_a_limit_ends_the_threads(env, path):
    for _ in range(20):
        assert env.read_parquet(str(path)).limit(3).count() == 3


def test_a_broken_row_group_is_told_with_its_place(env, path, tmp_path):
    broken = tmp_path / "broken.parquet"
    data = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(7).column(0).data_page_offset
    data[start + 8 : start + 4000] = bytes(3992)
    broken.write_bytes(data)
    with pytest.raises(DataError, match=r"broken\.parquet.*row groups 7 to 8"):
        env.read_parquet(str(broken)).to_arrow()
