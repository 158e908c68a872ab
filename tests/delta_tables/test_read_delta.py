"""Delta tables that others wrote are read value by value, and files without a wanted row are not opened."""

import datetime
import json
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, count
from engine.errors import ConfigurationError, DataError, NotYetSupportedError, PlanError, ResourceError
from tests.delta_tables.handmade import HandmadeTable, field

deltalake = pytest.importorskip("deltalake")
polars = pytest.importorskip("polars")

UTC = datetime.UTC
UGLY = ["a b", "50%", "x/y", "k=v", "é漢", "", "a%20b", "+", None]
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 1, 234567)


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def all_types(count=4):
    """Return a table of every type that the writer has, with nulls."""
    struct = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
    last = {
        "i8": (pa.int8(), [-128, 127]),
        "i16": (pa.int16(), [-32768, 32767]),
        "i32": (pa.int32(), [-(2**31), 2**31 - 1]),
        "i64": (pa.int64(), [-(2**63), 2**63 - 1]),
        "f32": (pa.float32(), [1.5, float("inf")]),
        "f64": (pa.float64(), [-0.0, 1e308]),
        "text": (pa.string(), ["", "漢" * 40]),
        "bytes": (pa.binary(), [b"\x00\xff", b""]),
        "yes": (pa.bool_(), [True, False]),
        "day": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
        "at": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC), datetime.datetime(1, 1, 1, tzinfo=UTC)]),
        "local": (pa.timestamp("us"), [MOMENT, datetime.datetime(9999, 1, 1)]),
        "money": (pa.decimal128(38, 9), [Decimal("12345678901234567890123456789.123456789"), Decimal("-0.000000001")]),
        "small": (pa.decimal128(5, 2), [Decimal("999.99"), Decimal("-999.99")]),
        "nested": (struct, [{"x": 1, "y": ["a", None]}, {"x": None, "y": None}]),
        "many": (pa.list_(pa.int32()), [[1, None, 3], []]),
        "pairs": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], []]),
    }
    return pa.table({name: pa.array([*values, None] * count, kind) for name, (kind, values) in last.items()})


def sorted_rows(table, by):
    return table.sort_by([(name, "ascending") for name in by]).to_pylist()


def test_reads_every_type_as_it_was_written(env, tmp_path):
    table = all_types().append_column("n", [pa.array(range(12), pa.int64())])
    deltalake.write_deltalake(tmp_path / "t", table)
    found = env.read_delta(tmp_path / "t")
    assert found.schema.equals(table.schema)
    assert sorted_rows(found.to_arrow(), ["n"]) == table.to_pylist()


def test_tables_of_polars_are_read(env, tmp_path):
    frame = polars.DataFrame({"k": [1, 2, 3], "text": ["a", None, "ü"], "at": [MOMENT] * 3})
    frame.write_delta(tmp_path / "t")
    frame.write_delta(tmp_path / "t", mode="append")
    found = polars.from_arrow(env.read_delta(tmp_path / "t").to_arrow())
    assert found.sort("k").equals(polars.concat([frame, frame]).sort("k"))


def test_ugly_values_of_partitions(env, tmp_path):
    table = pa.table({"p": pa.array(UGLY), "q": pa.array(range(len(UGLY)), pa.int64())})
    deltalake.write_deltalake(tmp_path / "t", table, partition_by=["p"])
    expected = deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table()
    data = env.read_delta(tmp_path / "t")
    assert sorted_rows(data.to_arrow().select(["q", "p"]), ["q"]) == sorted_rows(expected.select(["q", "p"]), ["q"])
    for value in UGLY:
        if value:
            assert data.filter(col("p") == value).select("q").to_arrow().column("q").to_pylist() == [UGLY.index(value)]
    assert set(data.filter(col("p").is_null()).to_arrow().column("q").to_pylist()) >= {UGLY.index(None)}


PARTITIONS = {
    "day": (pa.date32(), [datetime.date(2024, 2, 29), None]),
    "at": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC), datetime.datetime(1960, 1, 1, tzinfo=UTC)]),
    "local": (pa.timestamp("us"), [MOMENT, datetime.datetime(2024, 1, 1)]),
    "money": (pa.decimal128(10, 3), [Decimal("1.250"), Decimal("7")]),
    "yes": (pa.bool_(), [True, None]),
    "f": (pa.float64(), [1.5, -1e10]),
    "i8": (pa.int8(), [-5, 5]),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_types_of_partitions(env, tmp_path, name):
    kind, values = PARTITIONS[name]
    table = pa.table({"p": pa.array(values, kind), "q": pa.array([0, 1], pa.int64())})
    deltalake.write_deltalake(tmp_path / "t", table, partition_by=["p"])
    data = env.read_delta(tmp_path / "t")
    assert data.schema.field("p").type == kind
    assert data.sort("q").to_arrow().select(["p", "q"]).to_pylist() == table.to_pylist()
    assert data.filter(col("p") == values[0]).to_arrow().column("q").to_pylist() == [0]


def test_versions(env, tmp_path):
    place = tmp_path / "t"
    for number in range(3):
        deltalake.write_deltalake(place, pa.table({"v": [number]}), mode="append")
    assert env.read_delta(place).count() == 3
    assert env.read_delta(place, version=0).to_arrow().to_pylist() == [{"v": 0}]
    assert env.read_delta(place, timestamp=datetime.datetime.now(UTC) + datetime.timedelta(days=1)).count() == 3
    first = place / "_delta_log" / f"{0:020d}.json"
    os.utime(first, (10**9, 10**9))
    assert env.read_delta(place, timestamp="2001-09-09T01:46:40").to_arrow().to_pylist() == [{"v": 0}]
    with pytest.raises(PlanError, match=r"had no version at 2001-09-09T01:46:39.*version 0, is of 2001-09-09T01:46:40"):
        env.read_delta(place, timestamp="2001-09-09T01:46:39")
    with pytest.raises(PlanError, match="there is no version 7; the last one is 2"):
        env.read_delta(place, version=7)
    with pytest.raises(ConfigurationError, match="not both"):
        env.read_delta(place, version=1, timestamp="2024-01-01")
    with pytest.raises(ConfigurationError, match="ISO 8601"):
        env.read_delta(place, timestamp="yesterday")
    with pytest.raises(PlanError, match="_delta_log"):
        env.read_delta(tmp_path / "nothing")


def test_a_table_made_anew_is_another_one(env, tmp_path):
    import shutil

    place = tmp_path / "t"
    deltalake.write_deltalake(place, pa.table({"v": [1]}))
    data = env.read_delta(place)
    assert data.to_arrow().to_pylist() == [{"v": 1}]
    shutil.rmtree(place)
    deltalake.write_deltalake(place, pa.table({"w": [2]}))
    with pytest.raises(DataError, match="the file is missing"):
        data.filter(col("v") == 1).collect()
    assert env.read_delta(place).to_arrow().to_pylist() == [{"w": 2}]


def test_files_that_the_log_rules_out_are_not_opened(env, tmp_path):
    place = tmp_path / "t"
    for number in range(6):
        rows = pa.table({"k": pa.array(range(10 * number, 10 * number + 10), pa.int64()), "text": [f"t{number}"] * 10})
        deltalake.write_deltalake(place, rows, mode="append")
    data = env.read_delta(place)
    wanted = data.filter((col("k") >= 20) & (col("k") < 25))
    assert "reads 1 of 6 files" in wanted.explain()
    for path in map(Path, deltalake.DeltaTable(place).file_uris()):
        if "t2" not in pq.read_table(path).column("text").to_pylist():
            path.write_bytes(b"")  # one that is opened would fail
    assert wanted.sort("k").to_arrow().column("k").to_pylist() == [20, 21, 22, 23, 24]
    assert data.filter(col("text") == "t2").count() == 10
    with pytest.raises(DataError):
        data.collect()


def test_the_last_thousandth_of_a_second_is_not_pruned(env, tmp_path):
    deltalake.write_deltalake(tmp_path / "t", pa.table({"at": [MOMENT]}))
    data = env.read_delta(tmp_path / "t")
    assert data.filter(col("at") > MOMENT.replace(microsecond=234500)).count() == 1
    assert data.filter(col("at") == MOMENT).count() == 1


def test_a_file_without_statistics_is_read(env, tmp_path):
    table = HandmadeTable(tmp_path / "t", [field("k", "long")])
    table.add(pa.table({"k": [1, 2]}), "a.parquet", stats={})
    table.commit()
    data = env.read_delta(tmp_path / "t")
    assert data.filter(col("k") == 2).to_arrow().to_pylist() == [{"k": 2}]
    assert data.count() == 2


def test_columns_that_were_added_later_are_null(env, tmp_path):
    place = tmp_path / "t"
    deltalake.write_deltalake(place, pa.table({"a": [1]}))
    deltalake.write_deltalake(place, pa.table({"a": [2], "b": ["x"]}), mode="append", schema_mode="merge")
    data = env.read_delta(place)
    assert data.sort("a").to_arrow().to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert data.filter(col("b").is_null()).to_arrow().column("a").to_pylist() == [1]
    assert data.filter(col("b") == "x").to_arrow().column("a").to_pylist() == [2]


def test_types_that_became_wider(env, tmp_path):
    place = tmp_path / "t"
    table = HandmadeTable(place, [field("a", "integer"), field("d", "date")], features=["typeWidening", "timestampNtz"])
    days = [datetime.date(2024, 1, 1), None]
    table.add(pa.table({"a": pa.array([1, -5], pa.int32()), "d": pa.array(days, pa.date32())}), "a.parquet")
    table.change([field("a", "long"), field("d", "timestamp_ntz")])
    rows = pa.table({"a": [2**40], "d": pa.array([MOMENT], pa.timestamp("us"))})
    table.add(rows, "b.parquet")
    table._actions.pop(1)
    table.commit()
    found = env.read_delta(place)
    assert found.schema.types == [pa.int64(), pa.timestamp("us")]
    assert found.sort("a").to_arrow().to_pylist() == [
        {"a": -5, "d": None},
        {"a": 1, "d": datetime.datetime(2024, 1, 1)},
        {"a": 2**40, "d": MOMENT},
    ]
    assert found.filter(col("a") > 5).count() == 1


def mapped_table(place, mode):
    """Return a table whose columns have other names in files; ``a`` is the file's name of another column."""
    inside = {"type": "struct", "fields": [field("x", "long", "in-1", 4), field("y", "string", "in-2", 5)]}
    fields = [field("a", "long", "b", 1), field("b", "string", "a", 2), field("s", inside, "c", 3)]
    configuration = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "6"}
    table = HandmadeTable(
        place,
        [*fields, field("p", "string", "col-p", 6)],
        features=["columnMapping"],
        partition_by=["p"],
        configuration=configuration,
    )

    def numbered(name, kind, number):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    kind = pa.struct([numbered("in-2", pa.string(), 5), numbered("in-1", pa.int64(), 4)])
    schema = pa.schema([numbered("b", pa.int64(), 1), numbered("a", pa.string(), 2), numbered("c", kind, 3)])
    rows = {"b": [1, 2, 3], "a": ["x", "y", None], "c": [{"in-1": 7, "in-2": "q"}, None, {"in-1": None, "in-2": "r"}]}
    stats = {"numRecords": 3, "minValues": {"b": 1, "a": "x"}, "maxValues": {"b": 3, "a": "y"}}
    stats["nullCount"] = {"b": 0, "a": 1}
    table.add(pa.table(rows, schema), "one.parquet", values={"col-p": "north"}, stats=stats)
    table.commit()


def test_bounds_of_a_column_are_not_those_of_its_name_in_files(env, tmp_path):
    fields = [field("a", "binary", "b", 1), field("c", "long", "a", 2)]
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    table = HandmadeTable(tmp_path / "t", fields, features=["columnMapping"], configuration=configuration)
    stats = {"numRecords": 1, "minValues": {"a": 5}, "maxValues": {"a": 5}, "nullCount": {"a": 1}}
    table.add(pa.table({"b": [b"x"], "a": [5]}), "one.parquet", stats=stats)
    table.commit()
    data = env.read_delta(tmp_path / "t")
    assert data.filter(col("a").is_not_null()).count() == 1
    assert data.filter(col("a") == b"x").to_arrow().to_pylist() == [{"a": b"x", "c": 5}]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_with_other_names_in_files(env, tmp_path, mode):
    mapped_table(tmp_path / "t", mode)
    data = env.read_delta(tmp_path / "t")
    assert data.to_arrow().to_pylist() == [
        {"a": 1, "b": "x", "s": {"x": 7, "y": "q"}, "p": "north"},
        {"a": 2, "b": "y", "s": None, "p": "north"},
        {"a": 3, "b": None, "s": {"x": None, "y": "r"}, "p": "north"},
    ]
    assert data.filter(col("a") == 2).select("b").to_arrow().to_pylist() == [{"b": "y"}]
    assert data.filter((col("b") == "x") & (col("p") == "north")).select("a").to_arrow().to_pylist() == [{"a": 1}]
    assert "reads 0 of 1 files" in data.filter(col("a") == 9).explain()
    assert data.filter(col("p") == "south").count() == 0


def deleted_table(place, rows, deleted):
    """Return a table of numbers of which some are deleted, in files of several row groups."""
    table = HandmadeTable(place, [field("k", "long"), field("t", "string")], features=["deletionVectors"])
    stats = {"numRecords": rows, "minValues": {"k": 0}, "maxValues": {"k": rows - 1}, "nullCount": {"k": 0}}
    texts = [f"text {k}" for k in range(rows)]
    table.add(pa.table({"k": range(rows), "t": texts}), "one.parquet", stats=stats, vector=deleted)
    table.add(pa.table({"k": [-1, -2], "t": ["x", "y"]}), "two.parquet")
    table.commit()


DELETED = {"some": [0, 99, 100, 555, 999], "most": [*range(1, 998)], "last": [998]}


@pytest.mark.parametrize("name", DELETED)
def test_deleted_rows_are_left_out(env, tmp_path, name):
    deleted = DELETED[name]
    deleted_table(tmp_path / "t", 1000, deleted)
    data = env.read_delta(tmp_path / "t")
    expected = [k for k in range(-2, 1000) if k not in deleted]
    assert data.sort("k").to_arrow().column("k").to_pylist() == expected
    assert data.count() == len(expected)
    assert deltalake.DeltaTable(tmp_path / "t").count() in (len(expected), 1002)
    wanted = data.filter((col("k") > 90) & (col("k") < 600)).select("t").to_arrow().column("t").to_pylist()
    assert sorted(wanted) == sorted(f"text {k}" for k in expected if 90 < k < 600)


def test_deleted_rows_of_a_version_before(env, tmp_path):
    deleted_table(tmp_path / "t", 300, [5])
    place = tmp_path / "t"
    log = place / "_delta_log" / f"{1:020d}.json"
    log.write_text(json.dumps({"remove": {"path": "two.parquet", "dataChange": True, "deletionTimestamp": 1}}))
    assert env.read_delta(place).count() == 299
    assert env.read_delta(place, version=0).count() == 301


def test_joins_leave_out_rows_where_they_are_read(env, tmp_path):
    place = tmp_path / "t"
    rows = pa.table({"k": range(20000), "p": [k % 3 for k in range(20000)]})
    deltalake.write_deltalake(place, rows, partition_by=["p"])
    few = env.from_arrow(pa.table({"k": [5, 7, 19999]}))
    found = env.read_delta(place).join(few, on="k").sort("k").to_arrow()
    assert found.column("k").to_pylist() == [5, 7, 19999]
    assert found.column("p").to_pylist() == [2, 1, 1]


def test_features_that_are_not_known_are_refused_by_name(env, tmp_path):
    for number, (features, data_type, error, match) in enumerate(
        [
            (["variantShredding-preview"], "long", NotYetSupportedError, "variantShredding-preview"),
            (["variantType"], "variant", NotYetSupportedError, "'k' has the type variant"),
            (["anUnknownFeature"], "long", ResourceError, "anUnknownFeature"),
        ]
    ):
        table = HandmadeTable(tmp_path / str(number), [field("k", data_type)], features=features)
        table.add(pa.table({"k": [1]}), "a.parquet")
        table.commit()
        with pytest.raises(error, match=match):
            env.read_delta(tmp_path / str(number))


def test_a_file_that_a_vacuum_removed_is_told(env, tmp_path):
    place = tmp_path / "t"
    deltalake.write_deltalake(place, pa.table({"v": [1]}))
    (path,) = place.glob("*.parquet")
    path.unlink()
    with pytest.raises(DataError, match="vacuum"):
        env.read_delta(place).collect()


def test_large_files_are_read_in_pieces(env, tmp_path, monkeypatch):
    from engine.delta_tables import delta_source

    monkeypatch.setattr(delta_source, "SPLIT_BYTES", 1500)
    deleted_table(tmp_path / "t", 1000, [3, 500])
    data = env.read_delta(tmp_path / "t")
    assert sorted(data.to_arrow().column("k").to_pylist()) == [k for k in range(-2, 1000) if k not in (3, 500)]


def test_an_empty_table(env, tmp_path):
    deltalake.DeltaTable.create(tmp_path / "t", deltalake.Schema.from_arrow(pa.schema([("a", pa.int64())])))
    data = env.read_delta(tmp_path / "t")
    assert data.collect() == []
    assert data.filter(col("a") > 1).count() == 0


def test_changes_of_versions(env, tmp_path):
    place = tmp_path / "t"
    feed = {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(place, pa.table({"v": [1, 2]}), configuration=feed)
    env.from_arrow(pa.table({"v": [3]})).write_delta(place, mode="append")
    env.execute()
    deltalake.DeltaTable(place).delete("v = 1")
    changes = env.read_changes(place, since=1).sort("_commit_version").to_arrow()
    assert changes.select(["v", "_change_type", "_commit_version"]).to_pylist() == [
        {"v": 3, "_change_type": "insert", "_commit_version": 1},
        {"v": 1, "_change_type": "delete", "_commit_version": 2},
    ]
    deltalake.write_deltalake(tmp_path / "u", pa.table({"v": [1]}))
    with pytest.raises(NotYetSupportedError, match="enableChangeDataFeed"):
        env.read_changes(tmp_path / "u")
    with pytest.raises(ConfigurationError, match="number of a version"):
        env.read_changes(place, since="2024")


def test_bounds_that_others_write_rule_out_no_row(env, tmp_path):
    # NaN is in no bound, and deltalake writes decimals as floats, of which the last digits are others
    exact = Decimal("1234567890.123456789")
    rows = {"f": [1.5, float("nan")], "d": pa.array([exact, exact], pa.decimal128(20, 9)), "i": [2**63 - 1, -(2**63)]}
    deltalake.write_deltalake(tmp_path / "t", pa.table(rows))
    data = env.read_delta(tmp_path / "t")
    assert data.filter(col("f") > 100).count() == 1
    assert data.filter(col("d") == exact).count() == 2
    assert data.filter(col("d") >= exact).count() == 2
    assert data.filter(col("i") == 2**63 - 1).count() == 1
    assert data.filter(col("i") == -(2**63)).count() == 1


def test_a_sample_of_files_tells_the_planner_of_columns(env, tmp_path):
    for part in range(6):
        rows = pa.table({"k": [part] * 500, "t": [f"text {n % 7}" for n in range(500)], "u": ["x" * 100] * 500})
        deltalake.write_deltalake(tmp_path / "t", rows, mode="append")
    explained = env.read_delta(tmp_path / "t").group_by("t").agg(n=count()).explain()
    assert "sample of" in explained
    groups = next(line for line in explained.splitlines() if "distinct" in line or "groups" in line)
    assert "7" in groups, explained
    assert env.read_delta(tmp_path / "t").filter(col("t") == "none").count() == 0
