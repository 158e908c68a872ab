"""Folders of Delta, Iceberg and Hudi tables are refused by name, to read and to write; plain ones beside are not."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import PlanError

ROWS = pa.table({"n": [1, 2], "y": [3, 4]})


def place(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            pq.write_table(ROWS.select(["n"]), path)
        else:
            path.write_text('{"a": 1}\n')


@pytest.fixture
def tables(tmp_path):
    place(tmp_path / "delta", "_delta_log/00000000000000000000.json", "a.parquet", "removed.parquet")
    place(tmp_path / "parted", "_delta_log/00000000000000000000.json", "y=3/a.parquet", "y=4/b.parquet")
    place(tmp_path / "ice", "metadata/v1.metadata.json", "metadata/snap-1.avro", "data/a.parquet")
    place(tmp_path / "iceparted", "metadata/00001-5ab1.metadata.json", "data/y=3/a.parquet")
    place(tmp_path / "hudi", ".hoodie/hoodie.properties", "a.parquet")
    place(tmp_path / "house", "region=eu/sales/_delta_log/00000000000000000000.json", "region=eu/sales/a.parquet")
    place(tmp_path / "plain", "metadata/readme.txt", "data/a.parquet")
    return tmp_path


PLACES = {
    "delta": ["delta", "delta/", "delta/*", "delta/*.parquet", "del*", "parted", "parted/y=3", "parted/*/*", "**"],
    "iceberg": ["ice", "ice/data", "ice/*", "ice/**", "ice/data/*.parquet", "iceparted/data", "iceparted/data/y=3"],
    "hudi": ["hudi", "hudi/*.parquet"],
    "warehouse": ["house", "house/**", "house/region=eu/sales"],
}


@pytest.mark.parametrize("path", [path for paths in PLACES.values() for path in paths])
def test_a_table_is_refused_by_name_wherever_a_path_enters_it(environment, tables, path):
    with pytest.raises(PlanError, match=r"read_parquet: /\S+ is an? (Delta|Iceberg|Hudi) table, whose log \(\S+/\)"):
        environment.read_parquet(f"{tables}/{path}")


def test_every_reader_and_sql_say_so_with_what_to_do(environment, tables):
    reads = (
        environment.read_csv,
        environment.read_json,
        environment.read_text,
        environment.read_ipc,
        environment.read_orc,
    )
    for read in reads:
        with pytest.raises(PlanError, match=r"is a Delta table.*env\.read_delta\('/.*/delta'\)"):
            read(tables / "delta")
    with pytest.raises(PlanError, match=r"is an Iceberg table.*read_iceberg"):
        environment.read_avro(tables / "ice" / "data")
    with pytest.raises(PlanError, match="is a Delta table"):
        environment.read_parquet([tables / "plain" / "data", tables / "delta"])
    with pytest.raises(PlanError, match="is a Delta table"):
        environment.sql(f"SELECT * FROM '{tables}/delta'")


def test_files_that_are_named_the_log_and_other_folders_are_read(environment, tables):
    files = [tables / "delta" / "a.parquet", tables / "ice" / "data" / "a.parquet"]
    assert environment.read_parquet(files).count() == 4
    assert environment.read_json(f"{tables}/delta/_delta_log/*.json").count() == 1
    assert environment.read_json(tables / "delta" / "_delta_log").count() == 1
    assert environment.read_json(f"{tables}/ice/metadata/*.json").count() == 1
    assert environment.read_parquet(tables / "plain" / "data").count() == 2


WRITES = [
    ("delta", "append", ()),
    ("parted", "append", "y"),
    ("parted", "overwrite_partitions", "y"),
    ("parted/y=3", "append", ()),
    ("parted/y=3", "overwrite", ()),
    ("ice", "append", ()),
    ("ice/data", "append", ()),
    ("iceparted/data", "overwrite_partitions", "y"),
    ("hudi", "append", ()),
]


@pytest.mark.parametrize(("path", "mode", "keys"), WRITES)
def test_no_file_is_added_to_a_table_or_taken_from_it(environment, tables, path, mode, keys):
    before = sorted(tables.rglob("*"))
    for kind in ("parquet", "csv", "json"):
        with pytest.raises(
            PlanError, match=rf"write_{kind}.*mode='{mode}': /\S+ is an? \w+ table, whose log .* another"
        ):
            getattr(environment.from_arrow(ROWS), f"write_{kind}")(tables / path, mode=mode, partition_by=keys)
    assert sorted(tables.rglob("*")) == before


def test_a_whole_table_may_be_replaced(environment, tables):
    environment.from_arrow(ROWS).write_parquet(tables / "delta", mode="overwrite")
    environment.execute()
    assert environment.read_parquet(tables / "delta").sort("n").to_arrow() == ROWS


def test_records_are_read_as_files_only_where_the_manifest_lists_all(environment, tmp_path):
    data = environment.from_arrow(ROWS)
    data.write_records(tmp_path / "records")
    environment.execute()
    assert environment.read_parquet(tmp_path / "records").count() == 2
    place(tmp_path / "records", "part-00007.parquet")
    for path in (tmp_path / "records", tmp_path / "records" / "*.parquet"):
        with pytest.raises(
            PlanError, match=r"records is a record data set, .* not list part-00007\.parquet.*read_records"
        ):
            environment.read_parquet(path)
    assert environment.read_records(tmp_path / "records").count() == 2
    with pytest.raises(PlanError, match="mode='append': this is a record data set, whose manifest would not list"):
        data.write_parquet(tmp_path / "records", mode="append")
