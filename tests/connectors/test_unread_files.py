"""Of very many Parquet files in folders of values, the footers are read that a filter leaves, and kept."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, count, sum_
from engine.errors import PlanError, SchemaError
from engine.parquet import unread_files
from engine.parquet.source import parquet_source, source_of_files

DAYS = 80


def day_of(index):
    return datetime.date(2024, 1, 1) + datetime.timedelta(index)


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


@pytest.fixture
def folder(tmp_path):
    for index in range(DAYS):
        write(tmp_path, index, pa.table({"n": [index, index + 1000], "s": [f"t{index}", None]}))
    return tmp_path


@pytest.fixture
def read(monkeypatch):
    """The files whose footers a source reads."""
    paths = []

    def counting(read_files):
        return lambda files, *args: paths.extend(files) or read_files(files, *args)

    monkeypatch.setattr(unread_files, "parquet_source", counting(parquet_source))
    monkeypatch.setattr(unread_files, "source_of_files", counting(source_of_files))
    return paths


def write(folder, index, table):
    place = folder / f"day={day_of(index)}"
    place.mkdir(exist_ok=True)
    pq.write_table(table, place / "a.parquet", row_group_size=1)


def test_footers_are_read_of_folders_that_a_filter_leaves(env, folder, read):
    data = env.read_parquet(folder)
    assert len(read) == 1
    assert data.schema == pa.schema([("n", pa.int64()), ("s", pa.string()), ("day", pa.date32())])
    few = data.filter((col("day") >= "2024-02-01") & (col("day") < "2024-02-04") & (col("n") < 1000))
    text = few.explain()
    assert "parquet metadata, 3 of 80 files, 3 of 6 row groups" in text
    assert [str(path).split("day=")[1][:10] for path in read[1:]] == ["2024-02-01", "2024-02-02", "2024-02-03"]
    assert [(row.n, row.s, row.day) for row in few.sort("n").collect()] == [
        (index, f"t{index}", day_of(index)) for index in (31, 32, 33)
    ]
    assert len(read) == 4  # they are kept
    assert data.filter(col("day") == "1999-01-01").collect() == []
    assert len(read) == 4


def test_all_files_are_read_where_no_filter_leaves_some_out(env, folder):
    data = env.read_parquet(folder)
    assert data.agg(rows=count(), total=sum_("n")).collect() == [(2 * DAYS, sum(range(DAYS)) * 2 + 1000 * DAYS)]
    both = data.filter(col("day") == day_of(3)).union(data.filter(col("day") == day_of(5)))
    assert sorted(row.n for row in both.collect()) == [3, 5, 1003, 1005]
    assert data.filter(col("n") == 7).select("day").collect() == [(day_of(7),)]


def test_row_groups_of_very_many_files_are_left_out_by_their_bounds(env, folder, read):
    data = env.read_parquet(folder)
    one = data.filter(col("n") == 1007)
    assert "80 files" not in one.explain()
    assert "parquet metadata, 1 of 160 row groups" in one.explain()
    assert one.collect() == [(1007, None, day_of(7))]
    assert len(read) == 1 + DAYS
    both = data.filter((col("n") < 1005) & (col("day") < day_of(10)) & ((col("n") > 2) | (col("day") == day_of(0))))
    assert sorted(row.n for row in both.collect()) == [0, 3, 4, 5, 6, 7, 8, 9, *range(1000, 1005)]
    assert data.filter(col("n") > 5000).collect() == []
    # what its footer says of another type is not compared with the others
    write(folder, 3, pa.table({"n": pa.array([1007], pa.int16()), "s": ["x"]}))
    assert sorted(row.day for row in one.collect()) == [day_of(3), day_of(7)]


def test_a_file_that_has_changed_is_read_again(env, folder):
    data = env.read_parquet(folder).filter(col("day") == day_of(2))
    assert data.count() == 2
    write(folder, 2, pa.table({"n": range(9), "s": ["x"] * 9}))
    assert data.count() == 9


def test_files_with_other_columns_end_the_plan_and_a_union_reads_them(env, folder):
    write(folder, 70, pa.table({"n": [1], "t": ["x"]}))
    write(folder, 71, pa.table({"n": pa.array([2.5]), "s": ["y"]}))
    write(folder, 72, pa.table({"n": pa.array([7], pa.int8()), "s": ["z"]}))
    data = env.read_parquet(folder)
    assert data.filter(col("day") < day_of(70)).count() == 140
    assert data.filter(col("day") == day_of(72)).collect() == [(7, "z", day_of(72))]
    with pytest.raises(SchemaError, match=r"column 's' is not in all files: .*a.parquet has n, s; schema_mode='union'"):
        data.filter(col("day") == day_of(70)).collect()
    with pytest.raises(SchemaError, match=r"column 'n' is double in some of the files, and int64 in .*a.parquet"):
        data.filter(col("day") == day_of(71)).collect()
    (folder / f"day={day_of(71)}" / "a.parquet").unlink()
    with pytest.raises(PlanError, match=r"read_parquet: .*a.parquet cannot be read: No such file"):
        data.filter(col("day") == day_of(71)).collect()
    whole = env.read_parquet(folder, schema_mode="union")
    assert whole.filter(col("day") == day_of(70)).select("n", "s", "t").collect() == [(1, None, "x")]


def test_a_column_of_the_files_gives_way_to_that_of_the_path(env, tmp_path):
    for index in range(DAYS):
        write(tmp_path, index, pa.table({"n": [index], "day": ["other"]}))
    data = env.read_parquet(tmp_path, file_name_column="file")
    found = data.filter(col("day") == day_of(4)).collect()
    assert [(row.n, row.day, row.file) for row in found] == [
        (4, day_of(4), str(tmp_path / f"day={day_of(4)}" / "a.parquet"))
    ]
