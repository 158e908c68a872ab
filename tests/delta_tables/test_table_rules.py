"""What tables ask of their writers is done, or refused by name before the job runs."""

import json

import pyarrow as pa
import pytest

from engine import Environment, delta
from engine.errors import ConfigurationError, JobExecutionError, NotYetSupportedError, PlanError, SchemaError

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def written(env, place, columns, **options):
    env.from_arrow(pa.table(columns)).write_delta(place, **options)
    env.execute()
    return place


def rows_of(place):
    return deltalake.DeltaTable(place).to_pyarrow_table().sort_by("id").to_pylist()


@pytest.mark.parametrize(
    ("name", "value", "kind", "words"),
    [
        ("delta.columnMapping.mode", "name", ConfigurationError, "'delta.columnMapping.mode' is 'name'"),
        ("delta.columnMapping.mode", "id", ConfigurationError, "here it may be none"),
        ("delta.checkpointPolicy", "v2", ConfigurationError, "here it may be classic"),
        ("delta.constraints.positive", "id > 0", NotYetSupportedError, "'delta.constraints.positive' is not supported"),
        ("delta.enableRowTracking", "true", NotYetSupportedError, "enableRowTracking"),
        ("delta.enableTypeWidening", "true", NotYetSupportedError, "enableTypeWidening"),
        ("delta.enableInCommitTimestamps", "true", NotYetSupportedError, "enableInCommitTimestamps"),
        ("delta.enableIcebergCompatV2", "true", NotYetSupportedError, "enableIcebergCompatV2"),
        ("delta.feature.rowTracking", "supported", NotYetSupportedError, "feature.rowTracking"),
        ("delta.minReaderVersion", "3", NotYetSupportedError, "minReaderVersion"),
        ("delta.nonsense", "1", NotYetSupportedError, "delta.nonsense"),
        ("mine", "1", NotYetSupportedError, "'mine'"),
        ("delta.appendOnly", "maybe", ConfigurationError, "is 'maybe'; here it may be true or false"),
        ("delta.checkpointInterval", "0", ConfigurationError, "a number from 1 on"),
        ("delta.logRetentionDuration", "30 days", ConfigurationError, "such as 'interval 30 days'"),
        ("delta.isolationLevel", "None", ConfigurationError, "Serializable or WriteSerializable"),
    ],
)
def test_properties_that_are_not_honoured_are_refused_before_the_job(env, tmp_path, name, value, kind, words):
    with pytest.raises(kind, match=words):
        env.from_arrow(pa.table({"id": [1]})).write_delta(tmp_path / "t", properties={name: value})
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.columnMapping.mode", "none"),
        ("delta.checkpointPolicy", "classic"),
        ("delta.isolationLevel", "Serializable"),
        ("delta.logRetentionDuration", "interval 30 days"),
        ("delta.dataSkippingNumIndexedCols", "-1"),
        ("delta.checkpoint.writeStatsAsJson", "false"),
        ("delta.enableChangeDataFeed", "true"),
        ("delta.enableDeletionVectors", "true"),
        ("delta.checkpointInterval", "5"),
        ("delta.targetFileSize", "128mb"),
    ],
)
def test_a_table_is_made_with_other_properties(env, tmp_path, name, value):
    place = written(env, tmp_path / "t", {"id": [1]}, properties={name: value})
    assert deltalake.DeltaTable(place).metadata().configuration == {name: value}
    assert env.read_delta(place).to_arrow().to_pylist() == [{"id": 1}]


def test_rows_of_a_table_that_is_appended_to_alone_stay(env, tmp_path):
    place = written(
        env, tmp_path / "t", {"id": [1], "p": [1]}, partition_by="p", properties={"delta.appendOnly": "true"}
    )
    rows = env.from_arrow(pa.table({"id": [1], "p": [1]}))
    words = "delta.appendOnly, by which rows are added"
    for mode in ("overwrite", "overwrite_partitions"):
        with pytest.raises(PlanError, match=words):
            rows.write_delta(place, mode=mode)
    for matched, alone in (("update", "ignore"), ("delete", "ignore"), ("ignore", "delete")):
        with pytest.raises(PlanError, match=words):
            rows.merge_into(delta(place), "id", matched, "insert", alone)
    for statement in (f'UPDATE delta."{place}" SET id = 2', f'DELETE FROM delta."{place}"'):
        with pytest.raises(PlanError, match=words):
            env.sql(statement)
    written(env, place, {"id": [2], "p": [1]}, mode="append")
    assert env.from_arrow(pa.table({"id": [1, 3], "p": [1, 1]})).merge_into(delta(place), "id", "ignore")[0] == 1
    assert env.optimize(delta(place)).files_removed == 3
    assert [row["id"] for row in rows_of(place)] == [1, 2, 3]


def test_a_commit_that_is_refused_is_not_tried_as_if_others_were_first(env, tmp_path, monkeypatch):
    from engine.delta_tables import planned_write, table_commit

    place = written(env, tmp_path / "t", {"id": [1]}, properties={"delta.appendOnly": "true"})
    for module in (planned_write, table_commit):
        monkeypatch.setattr(module, "check_removal", lambda *_: None)
    with pytest.raises(JobExecutionError, match=r"the table refuses the change: .*[Aa]ppend"):
        written(env, place, {"id": [2]}, mode="overwrite")


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"id": [1], "ID": [2]}, {}, "'id' and 'ID' differ in case alone"),
        (
            {"id": [1], "_change_type": ["a"]},
            {"properties": {"delta.enableChangeDataFeed": "true"}},
            "'_change_type' has a name of the change data feed",
        ),
    ],
)
def test_names_that_no_table_may_have(env, tmp_path, columns, options, words):
    with pytest.raises(SchemaError, match=words):
        env.from_arrow(pa.table(columns)).write_delta(tmp_path / "t", **options)


def test_a_new_column_is_not_one_of_the_table_in_another_case(env, tmp_path):
    place = written(env, tmp_path / "t", {"id": [1], "v": [1]})
    rows = env.from_arrow(pa.table({"id": [1], "V": [1]}))
    with pytest.raises(SchemaError, match="'v' and 'V' differ in case alone"):
        rows.write_delta(place, mode="append", schema_mode="union")
    with pytest.raises(ConfigurationError, match=r"partition_by=\['id', 'id'\]: name each column once"):
        rows.write_delta(tmp_path / "u", partition_by=["id", "id"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": ["rowTracking", "domainMetadata"]}, "writing a table with rowTracking"),
        ({"features": ["inCommitTimestamp"]}, "writing a table with inCommitTimestamp"),
        ({"features": ["typeWidening"]}, "writing a table with typeWidening"),
        ({"features": ["clustering"]}, "writing a table with clustering"),
        ({"inner": {"delta.invariants": "{}"}}, "column 's.x', which has an invariant"),
        ({"inner": {"delta.generationExpression": "1"}}, "column 's.x', which is generated"),
    ],
)
def test_tables_of_others_that_ask_for_more_are_not_written(env, tmp_path, change, words):
    place = written(env, tmp_path / "t", {"id": [1], "s": [{"x": 1}]})
    log = place / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action and "features" in change:
            reader = [name for name in change["features"] if name == "typeWidening"]
            action["protocol"] = {"minReaderVersion": 3 if reader else 1, "minWriterVersion": 7}
            action["protocol"] |= {"readerFeatures": reader} if reader else {}
            action["protocol"]["writerFeatures"] = change["features"]
        if "metaData" in action and "inner" in change:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][1]["type"]["fields"][0]["metadata"] = change["inner"]
            action["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    rows = env.from_arrow(pa.table({"id": [2], "s": [{"x": 2}]}))
    with pytest.raises(NotYetSupportedError, match=words):
        rows.write_delta(place, mode="append")
    with pytest.raises(NotYetSupportedError, match=words):
        rows.merge_into(delta(place), "id")


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ({}, 32),
        ({"delta.dataSkippingNumIndexedCols": "0"}, 0),
        ({"delta.dataSkippingNumIndexedCols": "2"}, 2),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, 40),
        ({"delta.dataSkippingNumIndexedCols": "2", "delta.dataSkippingStatsColumns": "C39, `c3`"}, {"c3", "c39"}),
    ],
)
def test_files_have_statistics_of_the_columns_that_the_table_says(env, tmp_path, value, known):
    columns = {"id": [1], **{f"c{number}": [number] for number in range(1, 40)}}
    known = known if isinstance(known, set) else {*list(columns)[:known]}
    place = str(tmp_path / "t")
    if "delta.dataSkippingStatsColumns" in value:
        written(env, place, columns, properties=value)
    else:  # a table of another writer
        deltalake.write_deltalake(place, pa.table(columns).slice(0, 0), configuration=value)
        written(env, place, columns, mode="append")
    env.from_arrow(pa.table(columns)).merge_into(delta(place), "id", "update", "insert")
    written(env, place, columns, mode="overwrite")
    log = [json.loads(line) for path in (tmp_path / "t" / "_delta_log").glob("*.json") for line in path.open()]
    statistics = [json.loads(line["add"]["stats"]) for line in log if "add" in line]
    assert len(statistics) == 3
    for each in statistics:
        assert each["numRecords"] == 1
        assert {*each["nullCount"]} == {*each["minValues"]} == {*each["maxValues"]} == known


def test_columns_of_statistics_that_mean_nothing_are_told_before_the_job(env, tmp_path):
    rows = env.from_arrow(pa.table({"id": [1], "s": [{"x": 1}]}))
    for value, words in (("id,", "names of columns, such as"), ("id, s.x", "'s.x' is none of the columns id, s")):
        with pytest.raises(ConfigurationError, match=words):
            rows.write_delta(tmp_path / "t", properties={"delta.dataSkippingStatsColumns": value})
    deltalake.write_deltalake(tmp_path / "u", pa.table({"id": [1]}))
    log = tmp_path / "u" / "_delta_log" / "00000000000000000000.json"
    log.write_text(
        log.read_text().replace('"configuration":{', '"configuration":{"delta.dataSkippingNumIndexedCols":"x"')
    )
    words = "the property 'delta.dataSkippingNumIndexedCols' is 'x'; it is a number from -1 on"
    with pytest.raises(ConfigurationError, match=words):
        env.from_arrow(pa.table({"id": [1]})).write_delta(tmp_path / "u", mode="append")
    with pytest.raises(ConfigurationError, match=words):
        env.from_arrow(pa.table({"id": [1]})).merge_into(delta(tmp_path / "u"), "id")
