"""``format("drey")``: all types there and back, tasks that die, what is refused."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import LessThan
from pyspark.sql.types import LongType, StructField, StructType

from engine import Environment, col, count
from engine.connectors.records_manifest import read_manifest
from engine.errors import SchemaError
from engine.spark import data_source
from engine.spark.arrow_types import sparks_arrow_schema, sparks_schema
from engine.spark.data_source import DreyReader, FilteringReader, register
from tests.spark.test_exported_types import REFUSED, TYPES

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def session(spark):
    register(spark)
    return spark


def frame_of_all_types(session):
    def select(position):
        return ", ".join(f"{values[position]} AS `{name}`" for name, (values, _, _) in TYPES.items())

    nulls = ", ".join("NULL" for _ in TYPES)
    return session.sql(f"SELECT 0 AS id, {select(0)} UNION ALL SELECT 1, {select(1)} UNION ALL SELECT 2, {nulls}")


def written(frame, folder, mode="append"):
    frame.write.format("drey").mode(mode).save(str(folder))
    return folder


def test_every_type_is_written_as_the_export_writes_it(session, tmp_path):
    folder = written(frame_of_all_types(session), tmp_path / "set")
    with Environment() as env:
        table = env.read_records(folder).sort("id").to_arrow()
    for name, (_, data_type, values) in TYPES.items():
        assert table.schema.field(name).type == data_type, name
        assert table.column(name).to_pylist() == [*values, None], name


def test_every_type_comes_back_as_it_was(session, tmp_path):
    # Spark itself does not count rows with a TIME that Python made
    frame = frame_of_all_types(session)
    folder = written(frame, tmp_path / "set")
    back = session.read.format("drey").load(str(folder))
    assert back.dtypes == [(name, kind.removesuffix(" collate UTF8_LCASE")) for name, kind in frame.dtypes]
    assert sorted(map(str, back.collect())) == sorted(map(str, frame.collect()))


# Spark itself writes no calendar intervals anywhere
@pytest.mark.parametrize("value", [value for value in REFUSED if not value.startswith("make_interval")])
def test_other_types_are_refused_before_anything_is_written(session, tmp_path, value):
    with pytest.raises(Exception, match=r"column 'odd' has the type .* which a record data set\s+cannot hold"):
        written(session.sql(f"SELECT {value} AS odd"), tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_rows_are_appended_and_replaced(session, tmp_path):
    folder = tmp_path / "set"
    written(session.range(10), folder)
    written(session.range(10, 15), folder)
    assert session.read.format("drey").load(str(folder)).count() == 15
    written(session.range(3), folder, "overwrite")
    assert sorted(row.id for row in session.read.format("drey").load(str(folder)).collect()) == [0, 1, 2]


def test_partitions_without_rows_are_no_files(session, tmp_path):
    folder = written(session.range(2).repartition(8), tmp_path / "set")
    assert len(read_manifest(folder).files) <= 2
    empty = written(session.range(2).where("id > 5"), tmp_path / "empty")
    back = session.read.format("drey").load(str(empty))
    assert (back.count(), back.columns) == (0, ["id"])


def test_columns_are_chosen_by_an_option(session, tmp_path):
    folder = written(session.range(5).selectExpr("id", "id * 2 AS twice", "'x' AS t"), tmp_path / "set")
    reader = session.read.format("drey")
    assert reader.option("columns", "t, twice").load(str(folder)).where("twice = 4").collect() == [("x", 4)]
    with pytest.raises(Exception, match="has no column 'none'; it has id, twice, t"):
        reader.option("columns", "none").load(str(folder))
    with pytest.raises(Exception, match="has no option 'colums'"):
        session.read.format("drey").option("colums", "id").load(str(folder))


def test_columns_may_have_any_name(session, tmp_path):
    names = ["a.b", "c,d", "e`f", " g ", "größe", "名 字", "_metadata", "A.B"]
    frame = session.range(2).selectExpr(*(["id"] * len(names))).toDF(*names)
    folder = written(frame, tmp_path / "set")
    reader = session.read.format("drey")
    assert reader.load(str(folder)).columns == names
    chosen = reader.option("columns", "名 字, `c,d`, `e``f`, ` g `, a.b").load(str(folder))
    assert chosen.columns == ["名 字", "c,d", "e`f", " g ", "a.b"]
    assert sorted(chosen.collect()) == [(0,) * 5, (1,) * 5]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": "id,id"}, "PlanError: columns: column 'id' is listed twice"),
        ({"columns": "none"}, "PlanError: {0} has no column 'none'; it has id, t"),
        ({"colums": "id"}, "PlanError: format('drey') has no option 'colums'"),
    ],
)
def test_refusals_are_a_line_or_two(session, tmp_path, options, said):
    folder = written(session.range(2).selectExpr("id", "'x' AS t"), tmp_path / "set")
    with pytest.raises(Exception, match="PlanError") as error:
        session.read.format("drey").options(**options).load(str(folder)).collect()
    assert said.format(folder) in str(error.value)
    assert len(str(error.value).splitlines()) <= 2
    with pytest.raises(Exception, match=r"SchemaError: .*the rows have no column 't'") as error:
        written(session.range(2), folder)
    assert len(str(error.value).splitlines()) <= 2
    with pytest.raises(Exception, match="DataError: sortBy: rows of a task are not sorted by id") as error:
        rows = session.range(5).selectExpr("-id AS id", "'x' AS t").coalesce(1)
        rows.write.format("drey").option("sortBy", "id").mode("append").save(str(folder))
    assert "Traceback" not in str(error.value)


NO_TABLE = r"Spark's catalog does not tell a data source in Python where its table\s+lies.*CREATE TEMPORARY VIEW"


def test_in_sql_it_is_a_view_and_no_table_of_the_catalog(session, tmp_path):
    folder = written(session.range(2), tmp_path / "set")
    with pytest.raises(Exception, match=r"is no table of Spark's catalog.*CREATE TEMPORARY VIEW"):
        session.sql(f"CREATE TABLE not_of_drey USING drey OPTIONS (path '{folder}')")
    # Spark asks nothing of a data source whose columns it is told
    session.sql(f"CREATE TABLE no_use (id BIGINT) USING drey OPTIONS (path '{folder}')")
    try:
        for query in ("SELECT * FROM no_use", "INSERT INTO no_use VALUES (1)"):
            with pytest.raises(Exception, match=NO_TABLE):
                session.sql(query).collect()
    finally:
        session.sql("DROP TABLE no_use")
    with pytest.raises(Exception, match=NO_TABLE):
        session.range(2).write.format("drey").mode("append").saveAsTable("no_use")
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW of_drey USING drey OPTIONS (path '{folder}')")
    assert [row.n for row in session.sql("SELECT sum(id) AS n FROM of_drey").collect()] == [1]
    with pytest.raises(Exception, match=r"is no table of Spark's catalog.*CREATE TEMPORARY VIEW"):
        session.sql(f"CREATE TABLE not_of_drey USING drey LOCATION '{folder}'")
    with pytest.raises(Exception, match="loads one folder at a time"):
        session.read.format("drey").load([str(folder), str(folder)])


@pytest.mark.parametrize("mode", [None, "error", "errorifexists", "ignore"])
def test_spark_itself_refuses_other_modes_than_append_and_overwrite(session, tmp_path, mode):
    writer = session.range(2).write.format("drey")
    with pytest.raises(Exception, match=r'use either the "Append" or "Overwrite" mode'):
        (writer.mode(mode) if mode else writer).save(str(tmp_path / "set"))
    assert not (tmp_path / "set").exists()


def test_streams_are_refused_and_their_batches_are_written(session, tmp_path):
    folder = written(session.range(2), tmp_path / "set")
    rates = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().select("value")
    written_stream = rates.writeStream.format("drey").option("path", str(folder))
    read_stream = session.readStream.format("drey").load(str(folder)).writeStream.format("console")
    for stream, said in ((written_stream, "is no sink of streams: .*foreachBatch"), (read_stream, "is no source of")):
        query = stream.option("checkpointLocation", str(tmp_path / said[:8])).start()
        with pytest.raises(Exception, match=said):
            query.processAllAvailable()

    def append(rows, number):
        rows.write.format("drey").mode("append").save(str(tmp_path / "batches"))

    query = rates.writeStream.foreachBatch(append).trigger(once=True)
    query.option("checkpointLocation", str(tmp_path / "batches.checkpoint")).start().awaitTermination()
    assert session.read.format("drey").load(str(tmp_path / "batches")).count() == 10


def test_a_schema_that_the_data_set_has_not_is_refused(session, tmp_path):
    folder = written(session.range(2).selectExpr("id", "'x' AS t"), tmp_path / "set")
    reader = session.read.format("drey")
    assert sorted(reader.schema("id BIGINT").load(str(folder)).collect()) == [(0,), (1,)]
    with pytest.raises(Exception, match="column 'id' is bigint, not int"):
        reader.schema("id INT, t STRING").load(str(folder)).collect()


def test_filters_leave_out_row_groups_and_no_row(session, tmp_path):
    rows = session.range(0, 1000, 1, 4).selectExpr("id", "if(id = 3, double('NaN'), double(id)) AS d", "'x' AS t")
    folder = written(rows, tmp_path / "set")
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        back = session.read.format("drey").option("pushFilters", "true").load(str(folder))
        assert back.where("id > 990 AND t = 'x'").count() == 9
        assert back.where("id IN (1, 500)").count() == 2
        assert back.where("d > 5000").count() == 1
        assert back.where("id < -1").count() == 0
    finally:
        session.conf.unset("spark.sql.python.filterPushdown.enabled")
    reader = FilteringReader(folder, StructType([StructField("id", LongType())]))
    whole = len(pieces_of(reader))
    assert list(reader.pushFilters([LessThan(("id",), 251)])) == [LessThan(("id",), 251)]
    assert 0 < len(pieces_of(reader)) < whole


def pieces_of(reader):
    return [piece for partition in reader.partitions() for piece in partition.pieces]


def test_a_task_reads_small_parts_together_and_row_groups_of_large_ones(session, tmp_path, monkeypatch):
    folder = written(session.range(400).repartition(80), tmp_path / "set")
    assert len(read_manifest(folder).files) == 80
    back = session.read.format("drey").load(str(folder))
    assert back.rdd.getNumPartitions() == 3
    assert sorted(row.id for row in back.collect()) == list(range(400))

    with Environment(config={"parallelism.default": 1}) as env:
        env.from_arrow(pa.table({"id": pa.array(range(1 << 20)), "t": ["x" * 40] * (1 << 20)})).write_records(
            folder, overwrite=True
        )
        env.execute()
    reader = DreyReader(folder, StructType([StructField("id", LongType())]))
    sizes = {(path, index): size for path in reader._paths for index, size in reader._wanted_groups(path)}
    assert len(sizes) > 3
    for most_bytes in (1, max(sizes.values()) * 2, 1 << 40):
        monkeypatch.setattr(data_source, "_PARTITION_BYTES", most_bytes)
        monkeypatch.setattr(data_source, "_OPENING_BYTES", 0)
        tasks = [
            [(piece.path, at) for piece in task.pieces for at in range(piece.first, piece.end)]
            for task in reader.partitions()
        ]
        assert [group for task in tasks for group in task] == list(sizes)
        assert all(sum(sizes[group] for group in task) <= most_bytes or len(task) == 1 for task in tasks)
        rows = sum(batch.num_rows for task in reader.partitions() for batch in reader.read(task))
        assert rows == 1 << 20


def test_a_task_that_fails_leaves_the_data_set_as_it_was(session, tmp_path):
    folder = written(session.range(5), tmp_path / "set")
    before = sorted(path.name for path in folder.iterdir())
    bad = session.range(0, 100, 1, 4).selectExpr("if(id = 77, raise_error('no'), id) AS id")
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match="no"):
            written(bad, folder, mode)
    assert sorted(path.name for path in folder.iterdir()) == before
    with pytest.raises(Exception, match="no"):
        written(bad, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_damaged_part_is_an_error_with_its_name(session, tmp_path):
    folder = written(session.range(1000), tmp_path / "set")
    part = folder / read_manifest(folder).files[0].name
    data = bytearray(part.read_bytes())
    data[len(data) // 4] ^= 0xFF
    part.write_bytes(data)
    with pytest.raises(Exception, match=part.name):
        session.read.format("drey").load(str(folder)).collect()


def test_what_drey_has_written_is_read_by_spark(session, tmp_path):
    moments = [dt.datetime(2024, 1, 1, 10, 0, 0), None]
    table = pa.table(
        {
            "u8": pa.array([255, None], pa.uint8()),
            "u64": pa.array([2**64 - 1, None], pa.uint64()),
            "half": pa.array([1.5, None], pa.float32()),
            "seconds": pa.array(moments, pa.timestamp("s")),
            "nanos": pa.array(moments, pa.timestamp("ns", "Europe/Berlin")),
            "large": pa.array(["a", None], pa.large_string()),
            "code": pa.array(["a", None]).dictionary_encode(),
            "fixed": pa.array([b"ab", None], pa.binary(2)),
            "lists": pa.array([[1, None], None], pa.large_list(pa.uint16())),
        }
    )
    with Environment() as env:
        env.from_arrow(table).write_records(tmp_path / "set")
        env.execute()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    first, second = session.read.format("drey").load(str(tmp_path / "set")).collect()
    assert (first.u8, first.u64, first.half, first.seconds) == (255, Decimal(2**64 - 1), 1.5, moments[0])
    assert (first.large, first.code, first.fixed, first["lists"]) == ("a", "a", b"ab", [1, None])
    assert all(value is None for value in second)


def test_types_that_spark_has_not_are_named():
    with pytest.raises(SchemaError, match=r"column 'd' has the type decimal256\(50, 2\), which Spark has not"):
        sparks_schema(pa.schema({"d": pa.list_(pa.decimal256(50, 2))}))
    widened = sparks_arrow_schema(pa.schema({"s": pa.struct([("u", pa.uint32())]), "d": pa.duration("s")}))
    assert widened.types == [pa.struct([("u", pa.int64())]), pa.duration("us")]


def test_spark_finds_the_format_by_the_name_of_a_package():
    from engine.spark import found_by_name
    from engine.spark.data_source import DreyDataSource

    assert found_by_name.DefaultSource is DreyDataSource


def test_a_thread_of_the_driver_writes_once_it_has_registered(session, tmp_path):
    def write():
        register(session)
        session.range(5).write.format("drey").mode("append").save(str(tmp_path / "rows"))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write).result()
    assert session.read.format("drey").load(str(tmp_path / "rows")).count() == 5


def test_a_data_set_of_spark_is_planned_by_its_manifest(session, tmp_path):
    folder = written(session.range(100).selectExpr("id % 7 AS k"), tmp_path / "set")
    with Environment() as env:
        groups = env.read_records(folder).group_by("k").agg(n=count()).filter(col("k") < 3)
        assert "manifest" in groups.explain()
        assert sorted(row.k for row in groups.collect()) == [0, 1, 2]
