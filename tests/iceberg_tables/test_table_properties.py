"""Properties and names of tables: what means nothing is told before the job, and those that are given hold."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, iceberg
from engine.errors import ConfigurationError, NotYetSupportedError
from engine.iceberg_tables.folder_catalog import FolderCatalog

METRICS = "write.metadata.metrics"
MEASURED = f"{METRICS}.max-inferred-column-defaults"


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Return a folder's catalog with the namespace db."""
    FolderCatalog(str(tmp_path)).create_namespace("db")
    return str(tmp_path)


def write(env: Environment, lake: Any, mode: str = "append", table: str = "db.t", **options: Any) -> Any:
    """Write a row; return the table's metadata."""
    rows = pa.table({"k": [1], "v": [2], "k_bucket": [3]})
    env.from_arrow(rows).write_iceberg(table, lake, mode=mode, **options)
    env.execute()
    return FolderCatalog(lake).load_table(table).metadata


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_table_of_the_third_version_is_made_by_its_first_write_and_added_to(
    env: Environment, lake: str, mode: str
) -> None:
    for _ in range(3):
        metadata = write(env, lake, mode, properties={"format-version": "3"})
        assert metadata.format_version == 3
    assert [each.first_row_id for each in metadata.snapshots] == [0, 1, 2]
    assert env.read_iceberg("db.t", lake).count() == (3 if mode == "append" else 1)


def test_a_table_that_is_made_again_has_the_properties_that_it_is_made_with(env: Environment, lake: str) -> None:
    for version in (1, 3, 2, 3, 3):
        metadata = write(env, lake, "error", properties={"format-version": str(version), "mine": f"of {version}"})
        assert (metadata.format_version, metadata.properties) == (version, {"mine": f"of {version}"})
        shutil.rmtree(Path(lake) / "db" / "t")


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"properties": {"format-version": "4"}}, ConfigurationError, "'format-version' is '4': choose 1, 2, 3"),
        ({"properties": {"format-version": "x"}}, ConfigurationError, "'format-version' is 'x'"),
        ({"properties": {"write.target-file-size-bytes": "1mb"}}, ConfigurationError, "is '1mb': it is a number"),
        (
            {"properties": {"write.parquet.compression-codec": "lzo"}},
            ConfigurationError,
            "is 'lzo': choose one of uncom",
        ),
        ({"properties": {"write.parquet.compression-level": "x"}}, ConfigurationError, "is 'x': zstd has 1 to 22"),
        ({"compression": "lzo"}, ConfigurationError, "write_iceberg: compression='lzo': choose"),
        ({"target_file_size": "0"}, ConfigurationError, "write_iceberg: target_file_size='0': give a size"),
        ({"properties": {MEASURED: "ten"}}, ConfigurationError, "is 'ten': it is a number of columns"),
        ({"properties": {f"{METRICS}.default": "most"}}, ConfigurationError, "default' is 'most': choose none, counts"),
        ({"properties": {f"{METRICS}.column.k": "truncate(0)"}}, ConfigurationError, r"k' is 'truncate\(0\)': choose"),
        ({"properties": {"write.merge.mode": "mor"}}, ConfigurationError, "'write.merge.mode' is 'mor': choose copy"),
        ({"properties": {"write.format.default": "orc"}}, NotYetSupportedError, "write.format.default='orc'"),
        ({"partition_by": ["k", "k"]}, ConfigurationError, r"\['k', 'k'\]: two terms.* have the name 'k'"),
        ({"partition_by": ["truncate(2, k)", "truncate(3, k)"]}, ConfigurationError, "have the name 'k_trunc'"),
        ({"partition_by": ["bucket(2, k)"]}, ConfigurationError, "a term and a column, have the name 'k_bucket'"),
        ({"table": "t"}, ConfigurationError, r"write_iceberg\('t'\): a table of a catalog has its namespace before"),
    ],
)
def test_what_no_table_has_is_refused_before_the_job(
    env: Environment, lake: str, options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        write(env, lake, **options)
    assert not (Path(lake) / "db" / "t").exists()


@pytest.mark.parametrize("word", ["uncompressed", "gzip", "snappy", "ZSTD"])
def test_files_of_writes_merges_and_optimizations_are_compressed_as_the_table_says(
    env: Environment, lake: str, word: str
) -> None:
    properties = {"write.parquet.compression-codec": word}
    write(env, lake, properties=properties)
    write(env, lake)
    rows = env.from_arrow(pa.table({"k": [7, 8], "v": [8, 9], "k_bucket": [9, 9]}))
    rows.merge_into(iceberg("db.t", lake), on="k")
    one = env.from_arrow(pa.table({"k": [7], "v": [8], "k_bucket": [9]}))
    done = one.merge_into(iceberg("db.t", lake), on="k", when_matched="delete")
    assert (done.rows_deleted, done.files_rewritten) == (1, 1)
    assert env.optimize(iceberg("db.t", lake)).files_removed == 3
    assert {codec for path in Path(lake).rglob("*.parquet") for codec in codecs(path)} == {word.upper()}
    write(env, lake, compression="brotli")
    assert {codec for path in Path(lake).rglob("*.parquet") for codec in codecs(path)} == {word.upper(), "BROTLI"}


def codecs(path: Path) -> set[str]:
    """Return the codecs of a file's columns."""
    group = pq.read_metadata(path).row_group(0)
    return {group.column(number).compression for number in range(group.num_columns)}


def test_the_level_of_a_codec_is_the_tables(env: Environment, lake: str) -> None:
    rows = pa.table({"k": [f"{each * 7919 % 10007:x}" for each in range(20_000)]})
    sizes = []
    for level in ("1", "9"):
        properties = {"write.parquet.compression-codec": "gzip", "write.parquet.compression-level": level}
        env.from_arrow(rows).write_iceberg(f"db.t{level}", lake, properties=properties)
        env.execute()
        sizes.append(sum(path.stat().st_size for path in (Path(lake) / "db" / f"t{level}").rglob("*.parquet")))
    assert sizes[1] < sizes[0]


def test_properties_of_another_table_are_told(env: Environment, lake: str) -> None:
    write(env, lake, properties={"mine": "1"})
    write(env, lake, properties={"mine": "1", "format-version": "2"})
    for properties, words in (({"mine": "2"}, "'mine' as '1', not '2'"), ({"format-version": "3"}, "as '2', not '3'")):
        with pytest.raises(ConfigurationError, match=f"those of a table that is made.*{words}"):
            write(env, lake, properties=properties)


def test_a_name_without_a_namespace_is_told(env: Environment, lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake)
    with pytest.raises(ConfigurationError, match=r"read_iceberg\('t'\): there is no folder of this name, and a table"):
        env.read_iceberg("t")
    with pytest.raises(ConfigurationError, match=r"read_iceberg\('t'\): a table of a catalog has its namespace"):
        env.read_iceberg("t", lake)
    with pytest.raises(ConfigurationError, match=r"pass the name of a table: 'sales\.orders'"):
        env.optimize(iceberg("t", lake))


def test_many_columns_have_statistics_up_to_a_number(env: Environment, lake: str) -> None:
    names = [f"c{number}" for number in range(120)]
    rows = env.from_arrow(pa.table({name: [number] for number, name in enumerate(names)}))
    column = {"write.metadata.metrics.column.c110": "full"}
    metrics = "write.metadata.metrics"
    for table, properties, known in (
        ("db.hundred", column, {*range(1, 101), 111}),
        ("db.ten", {f"{metrics}.max-inferred-column-defaults": "10"}, {*range(1, 11)}),
        ("db.all", {f"{metrics}.default": "full"}, {*range(1, 121)}),
    ):
        rows.write_iceberg(table, lake, mode="error", properties=properties)
        env.execute()
        (task,) = FolderCatalog(lake).load_table(table).scan().plan_files()
        assert {*task.file.lower_bounds} == {*task.file.null_value_counts} == {*task.file.column_sizes} == known
        assert env.read_iceberg(table, lake).filter(col("c119") == 119).count() == 1


def test_a_number_of_columns_that_is_none_is_told_before_the_job(env: Environment, lake: str) -> None:
    write(env, lake)
    with FolderCatalog(lake).load_table("db.t").transaction() as change:
        change.set_properties({MEASURED: "-1"})
    rows = env.from_arrow(pa.table({"k": [1], "v": [5], "k_bucket": [3]}))
    for call in (
        lambda: rows.write_iceberg("db.t", lake, mode="append"),
        lambda: rows.merge_into(iceberg("db.t", lake), on="k"),
        lambda: env.optimize(iceberg("db.t", lake)),
    ):
        with pytest.raises(ConfigurationError, match=f"'{MEASURED}' is '-1': it is a number of columns"):
            call()
