"""Tables that are written here are read by others, value by value; a commit is made whole and once."""

import datetime
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.commit.decision import Decision
from engine.commit.publish import publish
from engine.commit.targets import target_named
from engine.delta_tables.table_commit import opened
from engine.delta_tables.table_write import TableWrite, encoded
from engine.dispatcher.orphans import find_orphans, remove_orphan
from engine.errors import ConfigurationError, DataError, EngineError, NotYetSupportedError, PlanError, SchemaError
from engine.ids import JobId
from tests.delta_tables.test_read_delta import MOMENT, PARTITIONS, UGLY, all_types, sorted_rows

deltalake = pytest.importorskip("deltalake")
polars = pytest.importorskip("polars")


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def written(env, table, place, **options):
    env.from_arrow(table).write_delta(place, **options)
    return env.execute()


def rows_of(place, by):
    return sorted_rows(deltalake.DeltaTable(place).to_pyarrow_table(), by)


def test_every_type_is_read_by_others(env, tmp_path):
    table = all_types(50).append_column("n", [pa.array(range(150), pa.int64())])
    result = written(env, table, tmp_path / "t")
    assert result.outputs[0].facts["version"] == 0
    assert result.outputs[0].facts["rows"] == 150
    assert rows_of(tmp_path / "t", ["n"]) == table.to_pylist()
    found = polars.read_delta(str(tmp_path / "t")).sort("n").drop("pairs").to_arrow()
    assert found.to_pylist() == table.drop_columns("pairs").to_pylist()
    assert sorted_rows(env.read_delta(tmp_path / "t").to_arrow(), ["n"]) == table.to_pylist()


@pytest.mark.parametrize("name", [name for name in PARTITIONS if name != "f"])
def test_types_of_partitions(env, tmp_path, name):
    kind, values = PARTITIONS[name]
    table = pa.table({"p": pa.array([*values, values[0]], kind), "q": pa.array([0, 1, 2], pa.int64())})
    written(env, table, tmp_path / "t", partition_by="p")
    assert rows_of(tmp_path / "t", ["q"]) == table.select(["p", "q"]).to_pylist()
    assert polars.read_delta(str(tmp_path / "t")).sort("q")["p"].to_list() == table["p"].to_pylist()
    assert env.read_delta(tmp_path / "t").sort("q").to_arrow().to_pylist() == table.to_pylist()
    more = pa.table({"p": pa.array([values[0]], kind), "q": [9]})
    written(env, more, tmp_path / "t", mode="overwrite_partitions")
    assert sorted(row["q"] for row in rows_of(tmp_path / "t", ["q"])) == [1, 9]


def test_decimals_below_zero_as_partitions(env, tmp_path):
    # deltalake's own reader through pyarrow fails at them
    values = [Decimal("-1.250"), Decimal("-0.001"), None]
    written(
        env, pa.table({"p": pa.array(values, pa.decimal128(10, 3)), "q": [0, 1, 2]}), tmp_path / "t", partition_by="p"
    )
    assert polars.read_delta(str(tmp_path / "t")).sort("q")["p"].to_list() == values
    data = env.read_delta(tmp_path / "t")
    assert data.sort("q").to_arrow()["p"].to_pylist() == values
    assert data.filter(col("p") == values[1]).to_arrow()["q"].to_pylist() == [1]


def test_ugly_values_of_partitions(env, tmp_path):
    table = pa.table({"p": pa.array(UGLY), "q": pa.array(range(len(UGLY)), pa.int64())})
    written(env, table, tmp_path / "t", partition_by="p")
    expected = [value or None for value in UGLY]  # an empty text is null there, as the protocol has it
    assert [row["p"] for row in rows_of(tmp_path / "t", ["q"])] == expected
    assert polars.read_delta(str(tmp_path / "t")).sort("q")["p"].to_list() == expected
    written(env, table.slice(0, 3), tmp_path / "t", mode="overwrite_partitions")
    assert [row["p"] for row in rows_of(tmp_path / "t", ["q"])] == expected


def test_modes(env, tmp_path):
    place = tmp_path / "t"
    written(env, pa.table({"v": [1, 2]}), place)
    with pytest.raises(PlanError, match="mode='append' or mode='overwrite'"):
        written(env, pa.table({"v": [1]}), place)
    env._sinks.clear()
    assert written(env, pa.table({"v": [3]}), place, mode="append").outputs[0].facts["version"] == 1
    assert [row["v"] for row in rows_of(place, ["v"])] == [1, 2, 3]
    facts = written(env, pa.table({"w": ["x"]}), place, mode="overwrite").outputs[0].facts
    assert facts == {"version": 2, "rows": 1, "files_added": 1, "files_removed": 2}
    assert rows_of(place, ["w"]) == [{"w": "x"}]
    assert env.read_delta(place, version=1).count() == 3
    written(env, pa.table({"w": pa.array([], pa.string())}), place, mode="overwrite")
    assert env.read_delta(place).count() == 0


def test_a_table_without_rows(env, tmp_path):
    written(env, pa.table({"v": pa.array([], pa.int32())}), tmp_path / "t")
    assert env.read_delta(tmp_path / "t").schema == pa.schema([("v", pa.int32())])
    assert env.read_delta(tmp_path / "t").collect() == []


def test_columns_of_added_rows(env, tmp_path):
    place = tmp_path / "t"
    written(env, pa.table({"a": pa.array([1], pa.int64()), "b": ["x"]}), place)
    written(env, pa.table({"b": ["y"], "a": pa.array([2], pa.int8())}), place, mode="append")
    with pytest.raises(SchemaError, match="other columns than the table: b, c"):
        env.from_arrow(pa.table({"a": [1], "c": [1.5]})).write_delta(place, mode="append")
    with pytest.raises(SchemaError, match="column 'a' is string, and int64 in the table"):
        env.from_arrow(pa.table({"a": ["1"], "b": ["x"]})).write_delta(place, mode="append")
    written(env, pa.table({"a": [3], "c": [1.5]}), place, mode="append", schema_mode="union")
    assert env.read_delta(place).sort("a").to_arrow().to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2, "b": "y", "c": None},
        {"a": 3, "b": None, "c": 1.5},
    ]
    assert polars.read_delta(str(place)).sort("a")["c"].to_list() == [None, None, 1.5]


def test_types_that_delta_has_not(env, tmp_path):
    with pytest.raises(SchemaError, match="column 't' is time64"):
        env.from_arrow(pa.table({"t": pa.array([1], pa.time64("us"))})).write_delta(tmp_path / "t")
    nanoseconds = pa.table(
        {"t": pa.array([1_000, 2_000], pa.timestamp("ns")), "u": pa.array([2**32 - 1, 0], pa.uint32())}
    )
    written(env, nanoseconds, tmp_path / "t")
    assert env.read_delta(tmp_path / "t").schema.types == [pa.timestamp("us"), pa.int64()]
    assert sorted(row["u"] for row in rows_of(tmp_path / "t", ["u"])) == [0, 2**32 - 1]


def test_what_a_writer_must_do_is_not_left_out(env, tmp_path):
    place = tmp_path / "t"
    schema = deltalake.Schema.from_arrow(pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.int64())]))
    deltalake.DeltaTable.create(place, schema)
    with pytest.raises(EngineError, match="column 'a' has nulls"):
        written(env, pa.table({"a": pa.array([1, None], pa.int64()), "b": [1, 2]}), place, mode="append")
    written(env, pa.table({"a": [1], "b": [2]}), place, mode="append")
    deltalake.DeltaTable(place).alter.add_constraint({"positive": "b > 0"})
    with pytest.raises(NotYetSupportedError, match=r"delta\.constraints\.positive"):
        env.from_arrow(pa.table({"a": [1], "b": [-2]})).write_delta(place, mode="append")


def test_no_null_gets_into_a_column_that_has_none(env, tmp_path):
    """It may be one of many, of which the log has no statistics, or one of partitions."""
    place = tmp_path / "t"
    names = [f"c{number}" for number in range(40)]
    fields = [pa.field(name, pa.int64(), nullable=name not in ("c1", "c39")) for name in names]
    rows = pa.table({name: [7] for name in names}, schema=pa.schema(fields))
    deltalake.write_deltalake(place, rows, partition_by=["c1"])
    for name in ("c1", "c39"):
        lacking = pa.table({each: pa.array([None if each == name else 7], pa.int64()) for each in names})
        with pytest.raises(EngineError, match=f"column '{name}' has nulls, and none may be in it"):
            written(env, lacking, place, mode="append")
        for where in ("", " WHERE c2 = 7"):
            with pytest.raises(EngineError, match=f"column '{name}' has nulls, and none may be in it"):
                env.sql(f'UPDATE delta."{place}" SET {name} = nullif(c0, 7){where}')
    assert rows_of(place, names) == rows.to_pylist()


def test_words(env, tmp_path):
    data = env.from_arrow(pa.table({"p": [1], "q": [2]}))
    with pytest.raises(ConfigurationError, match=r"write_delta\(path\)"):
        data.write("delta", tmp_path / "t")
    for options, match in [
        ({"mode": "replace"}, "choose one of"),
        ({"schema_mode": "merge"}, "strict or union"),
        ({"mode": "overwrite_partitions"}, "needs partition_by"),
        ({"properties": {"delta.appendOnly": True}}, "texts"),
    ]:
        with pytest.raises(ConfigurationError, match=match):
            data.write_delta(tmp_path / "t", **options)
    written(
        env, pa.table({"p": [1], "q": [2]}), tmp_path / "t", partition_by="p", properties={"delta.appendOnly": "true"}
    )
    assert deltalake.DeltaTable(tmp_path / "t").metadata().configuration == {"delta.appendOnly": "true"}
    with pytest.raises(ConfigurationError, match="partitioned by p"):
        data.write_delta(tmp_path / "t", mode="append", partition_by="q")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("a")
    data.write_delta(tmp_path / "folder", mode="append")
    with pytest.raises(PlanError, match="no Delta table"):
        env.execute()


def test_statistics_of_the_log(env, tmp_path):
    rows = {
        "i": [1, 5, None],
        "text": ["a" * 40, "b" * 40, None],
        "at": pa.array([MOMENT, MOMENT, None], pa.timestamp("us")),
        "day": [datetime.date(2024, 1, 2), datetime.date(2023, 1, 1), None],
        "money": pa.array([Decimal("12345678901234567890.123456789"), Decimal("-1"), None], pa.decimal128(38, 9)),
        "nan": [1.0, float("nan"), None],
        "f": [1.5, -2.0, None],
        "none": pa.array([None] * 3, pa.int64()),
    }
    written(env, pa.table(rows), tmp_path / "t", mode="append")
    log = (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    (text,) = [each["add"]["stats"] for each in map(json.loads, log) if "add" in each]
    assert '"money":12345678901234567890.123456789' in text
    stats = json.loads(text, parse_float=Decimal)
    assert stats["numRecords"] == 3
    assert stats["nullCount"] == dict.fromkeys(rows, 1) | {"none": 3}
    assert stats["minValues"] == {
        "i": 1,
        "text": "a" * 32,
        "at": "2024-02-29 12:30:01.234",
        "day": "2023-01-01",
        "money": Decimal("-1.000000000"),
        "f": Decimal("-2.0"),
    }
    assert stats["maxValues"]["at"] == "2024-02-29 12:30:01.235"
    assert stats["maxValues"]["text"] == "b" * 32 + "\U0010ffff"
    data = env.read_delta(tmp_path / "t")
    assert data.filter(col("text") == "b" * 40).count() == 1
    assert data.filter(col("money") == rows["money"][0].as_py()).count() == 1
    assert polars.scan_delta(str(tmp_path / "t")).filter(polars.col("text") == "b" * 40).collect().height == 1


def test_the_same_job_commits_once(env, tmp_path):
    place = tmp_path / "t"
    written(env, pa.table({"v": [1]}), place)
    job = JobId("00000000000000000000000000000007")
    decision, facts = decided(place, job, "append"), {}
    for _ in range(3):
        facts[json.dumps(publish(decision)[0].facts)] = None
    assert list(map(json.loads, facts)) == [{"version": 1, "rows": 2, "files_added": 1, "files_removed": 0}]
    assert [row["v"] for row in rows_of(place, ["v"])] == [1, 7, 8]
    target = target_named("delta")
    target.abort(target.staging(str(place), job), job)  # the log has named its files
    assert [row["v"] for row in rows_of(place, ["v"])] == [1, 7, 8]
    assert opened(str(place)).version() == 1


def decided(place, job, mode):
    """Return the decision of a job that has written a file."""
    import pyarrow.parquet as pq

    from engine.graph.deployment import StagedFile
    from engine.graph.source_spec import SinkSpec

    target = target_named("delta")
    schema = {"type": "struct", "fields": [{"name": "v", "type": "long", "nullable": True, "metadata": {}}]}
    spec = SinkSpec("delta", str(place), mode=mode, options=encoded(TableWrite(mode, schema)))
    staging = target.staging(str(place), job)
    target.prepare(spec, staging, job, "")
    pq.write_table(pa.table({"v": [7, 8]}), Path(staging.path) / "a.parquet")
    written = json.dumps({"statistics": json.dumps({"numRecords": 2})})
    size = (Path(staging.path) / "a.parquet").stat().st_size
    files = [StagedFile(0, 0, "a.parquet", 2, size, written)]
    return Decision(job, 1, (target.decided(spec, 0, staging, files, job),))


def test_an_overwrite_takes_what_came_while_it_ran(env, tmp_path):
    place = tmp_path / "t"
    written(env, pa.table({"v": [1]}), place)
    decision = decided(place, JobId("00000000000000000000000000000008"), "overwrite")
    written(env, pa.table({"v": [2]}), place, mode="append")
    publish(decision)
    assert [row["v"] for row in rows_of(place, ["v"])] == [7, 8]


def test_a_table_that_another_made_while_the_job_ran_stays(env, tmp_path):
    place = tmp_path / "t"
    decision = decided(place, JobId("00000000000000000000000000000009"), "error")
    deltalake.write_deltalake(place, pa.table({"v": [1]}))
    with pytest.raises(EngineError, match="another program made the table"):
        publish(decision)
    assert [row["v"] for row in rows_of(place, ["v"])] == [1]


def test_what_a_dead_job_left_goes(env, tmp_path):
    place = tmp_path / "t"
    written(env, pa.table({"v": [1]}), place)
    left = place / "drey-0000000000000000000000000000000a"
    decided(place, JobId("0000000000000000000000000000000a"), "append")
    owner = json.loads((left / "owner.json").read_text())
    (left / "owner.json").write_text(json.dumps(owner | {"pid": 2**22 + 1}))
    written(env, pa.table({"v": [2]}), place, mode="append")
    assert not left.exists()
    assert [row["v"] for row in rows_of(place, ["v"])] == [1, 2]


def test_gc_finds_what_a_job_left(env, tmp_path):
    from tests.dispatcher.stored import World

    place = tmp_path / "outputs" / "t"
    written(env, pa.table({"v": [1]}), place)
    job = JobId("0000000000000000000000000000000b")
    decided(place, job, "append")
    world = World(tmp_path / "world")
    world.leader()
    outputs = [str(tmp_path / "outputs")]
    assert [each for each in find_orphans(str(world.folder), world.handles, outputs) if each.kind == "staging"] == []
    owner = place / f"drey-{job}" / "owner.json"
    owner.write_text(json.dumps(json.loads(owner.read_text()) | {"pid": 2**22 + 1}))
    (orphan,) = [each for each in find_orphans(str(world.folder), world.handles, outputs) if each.kind == "staging"]
    assert (orphan.job_id, orphan.path) == (job.value, str(owner.parent))
    assert orphan.size_bytes > 0
    assert remove_orphan(orphan, world.handles)
    assert not owner.parent.exists()
    assert [row["v"] for row in rows_of(place, ["v"])] == [1]


def test_a_job_that_fails_leaves_nothing(env, tmp_path):
    data = env.from_arrow(pa.table({"v": [1, 0]}))
    data.select((col("v") / 0).alias("w"), (1 // col("v")).alias("x")).write_delta(tmp_path / "t")
    with pytest.raises(EngineError):
        env.execute()
    assert not (tmp_path / "t").exists()


def test_writers_at_once_lose_nothing(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    place = str(tmp_path / "t")
    deltalake.write_deltalake(place, pa.table({"v": pa.array([], pa.int64())}))
    jobs = [JobId(f"{number:032x}") for number in range(16, 28)]
    decisions = [decided(place, job, "append") for job in jobs]
    with ThreadPoolExecutor(6) as threads:
        facts = list(threads.map(lambda decision: publish(decision)[0].facts, decisions))
    assert sorted(each["version"] for each in facts) == list(range(1, 13))
    assert deltalake.DeltaTable(place).count() == 24


def test_nanoseconds_are_told_and_may_be_dropped(env, tmp_path):
    rows = env.from_arrow(pa.table({"t": pa.array([1_001], pa.timestamp("ns"))}))
    rows.write_delta(tmp_path / "t")
    with pytest.raises(DataError, match=r'would lose data.* write \.dt\.truncate\("microsecond"\).* t=Timestamp'):
        env.execute()
    rows.select(t=col("t").dt.truncate("microsecond")).write_delta(tmp_path / "t")
    env.execute()
    assert deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table()["t"].cast("int64").to_pylist() == [1]
