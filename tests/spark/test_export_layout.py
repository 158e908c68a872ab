"""How exported rows lie, what the manifest promises of it, and two exports to one place."""

import threading

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine import Environment, col, row_number, sum_
from engine.connectors.records_manifest import read_manifest
from engine.errors import PlanError
from engine.spark import export as spark_export
from engine.spark.data_source import register
from engine.spark.export import export_data

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def visits(spark):
    """1,000 visits of 40 customers, in no order."""
    return spark.range(1000).select(
        (F.col("id") * 7919 % 40).alias("customer"),
        (F.col("id") * 31 % 1000).alias("at"),
        (F.col("id") % 13 * 1.5).alias("price"),
        F.concat(F.lit("n"), F.col("id") % 40).alias("name"),
    )


def parts_of(folder):
    return [pq.read_table(folder / file.name) for file in read_manifest(folder).files if file.rows]


def explained(folder, program):
    with Environment(config={"parallelism.default": 2}) as env:
        return program(env.read_records(folder)).explain()


def test_equal_values_go_to_one_part_and_are_grouped_without_an_exchange(visits, tmp_path):
    folder = tmp_path / "out"
    export_data(visits, str(folder), partitions=(3, "name"))
    assert read_manifest(folder).partitioned_by == ("name",)
    seen = [set(part["name"].to_pylist()) for part in parts_of(folder)]
    assert len(seen) > 1
    assert sum(map(len, seen)) == 40

    def program(data):
        return data.group_by("name").agg(total=sum_("price"))

    text = explained(folder, program)
    assert "WHOLE_FILES" in text
    assert "PARTITION_HASH" not in text
    with Environment(config={"parallelism.default": 2}) as env:
        found = program(env.read_records(folder)).sort("name").collect()
    assert [(row.name, row.total) for row in found] == [
        (row["name"], row["total"])
        for row in visits.groupBy("name").agg(F.sum("price").alias("total")).sort("name").collect()
    ]


def test_parts_are_ranges_where_the_order_begins_with_the_partition(visits, tmp_path):
    folder = tmp_path / "out"
    export_data(visits, str(folder), partitions=(3, "customer"), sort_by=["customer", "at"])
    manifest = read_manifest(folder)
    assert (manifest.sorted_by, manifest.partitioned_by) == (("customer", "at"), ("customer",))
    keys = [(row["customer"], row["at"]) for part in parts_of(folder) for row in part.to_pylist()]
    assert keys == sorted(keys)
    assert "rows lie in order of customer, at" in explained(folder, lambda data: data.sort(["customer", "at"]))
    with Environment(config={"parallelism.default": 2}) as env:
        data = env.read_records(folder)
        first = data.with_columns(n=row_number().over(partition_by="customer", order_by="at")).filter(col("n") == 1)
        assert first.to_arrow().num_rows == 40
        assert data.sort(["customer", "at"]).select("customer", "at").to_arrow().to_pylist() == [
            {"customer": customer, "at": at} for customer, at in keys
        ]


@pytest.mark.parametrize("column", ["price", "wide"])
def test_nothing_is_promised_where_spark_and_drey_compare_otherwise(visits, tmp_path, column):
    data = visits.withColumn("wide", F.expr("collate(name, 'UTF8_LCASE')")) if column == "wide" else visits
    folder = tmp_path / "out"
    try:
        export_data(data, str(folder), partitions=column, sort_by=[column])
    except spark_export.PlanError:
        pytest.skip("a column that is not exported at all")
    manifest = read_manifest(folder)
    assert (manifest.sorted_by, manifest.partitioned_by) == ((), ())


def test_a_layout_by_a_column_that_is_not_there_says_so(visits, tmp_path):
    with pytest.raises(PlanError, match=r"partitions: no column 'nam'. There are: customer, at, price, name"):
        export_data(visits, str(tmp_path / "out"), partitions=["nam"])
    with pytest.raises(PlanError, match="a number and then names"):
        export_data(visits, str(tmp_path / "out"), partitions=["name", 3])
    with pytest.raises(PlanError, match="sort_by: no column 'x'"):
        export_data(visits, str(tmp_path / "out"), sort_by=["x"])
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_added_keep_the_order_and_no_more(visits, tmp_path):
    folder = tmp_path / "out"
    layout = {"partitions": "at", "sort_by": ["at"], "since": "at"}
    export_data(visits.where("at < 600"), str(folder), **layout)
    assert export_data(visits, str(folder), **layout).row_count == 400
    manifest = read_manifest(folder)
    assert (manifest.sorted_by, manifest.partitioned_by) == (("at",), ())
    assert "rows lie in order of at" in explained(folder, lambda data: data.sort("at"))
    with Environment(config={"parallelism.default": 2}) as env:
        assert env.read_records(folder).sort("at").to_arrow()["at"].to_pylist() == list(range(1000))


def test_a_write_of_the_data_source_keeps_its_promise_or_fails(spark, visits, tmp_path):
    register(spark)
    folder = tmp_path / "set"
    ordered = visits.repartitionByRange(3, "at").sortWithinPartitions("at", "customer")
    ordered.write.format("drey").option("sortBy", "at, customer").mode("append").save(str(folder))
    assert read_manifest(folder).sorted_by == ("at", "customer")
    assert "rows lie in order of at, customer" in explained(folder, lambda data: data.sort("at"))
    with pytest.raises(Exception, match="sortBy: rows of a task are not sorted by at"):
        visits.write.format("drey").option("sortBy", "at").mode("append").save(str(folder))
    assert read_manifest(folder).row_count == 1000
    with pytest.raises(Exception, match="sortBy: column 'price' is double"):
        ordered.write.format("drey").option("sortBy", "price").mode("append").save(str(folder))


def both(work):
    """Run something in two threads; return what each raised, or None."""
    found = [None, None]

    def run(index):
        try:
            work(index)
        except Exception as error:
            found[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_two_exports_at_once_add_no_row_twice(visits, tmp_path):
    folder = tmp_path / "out"
    export_data(visits.where("at < 600"), str(folder), since="at")
    errors = both(lambda _: export_data(visits, str(folder), since="at"))
    assert read_manifest(folder).row_count == 1000
    assert all(error is None or "changed by another export meanwhile" in str(error) for error in errors)
    assert None in errors
    # Who is refused runs again, and finds nothing new.
    assert export_data(visits, str(folder), since="at").row_count == 0


@pytest.mark.parametrize("exists", [False, True])
def test_of_two_exports_at_once_a_reader_sees_one_whole(visits, tmp_path, exists):
    folder = tmp_path / "out"
    if exists:
        export_data(visits.where("at < 10"), str(folder))
    sizes = []
    stop = threading.Event()

    def read():
        while not stop.is_set():
            if exists or folder.exists():
                sizes.append(sum(pq.read_table(folder / file.name).num_rows for file in read_manifest(folder).files))

    reader = threading.Thread(target=read)
    reader.start()
    errors = both(lambda index: export_data(visits.where(f"at < {300 + 100 * index}"), str(folder), overwrite=True))
    stop.set()
    reader.join()
    assert set(sizes) <= {10, 300, 400}
    assert read_manifest(folder).row_count in (300, 400)
    assert all(error is None or "created by another writer" in str(error) for error in errors)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


def test_a_session_that_cuts_files_short_leaves_equal_values_in_one_part(spark, visits, tmp_path):
    spark.conf.set("spark.sql.files.maxRecordsPerFile", "3")
    try:
        export_data(visits, str(tmp_path / "out"), partitions=(3, "name"))
    finally:
        spark.conf.unset("spark.sql.files.maxRecordsPerFile")
    assert sum(len(set(part["name"].to_pylist())) for part in parts_of(tmp_path / "out")) == 40
