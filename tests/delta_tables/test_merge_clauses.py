"""Clauses and keys of a merge: what has no value is told before the job, and what is alike in two types matches."""

from decimal import Decimal

import pyarrow as pa
import pytest

from engine import Environment, col, delta
from engine.errors import ConfigurationError, SchemaError

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def table_of(place, rows, **options):
    deltalake.write_deltalake(place, pa.table(rows), **options)
    return place


def rows_of(place):
    return deltalake.DeltaTable(place).to_pyarrow_table().sort_by("id").to_pylist()


@pytest.mark.parametrize(
    ("clauses", "words"),
    [
        ({"when_not_matched_by_source": {"set": {"v": col("source.v")}}}, "source.v has no value there"),
        ({"when_not_matched_by_source": {"delete": True, "where": col("source.v") > 1}}, "source.v has no value"),
        ({"when_not_matched": {"values": {"id": col("id"), "v": col("target.v")}}}, "target.v has no value there"),
        ({"when_not_matched": {"values": {"id": col("id")}, "where": col("target.v") > 1}}, "target.v has no value"),
        ({"when_matched": {"set": {"v": "abc"}}}, "is no value of the column 'v', which is int64"),
        ({"when_matched": {"set": {"v": 1.5}}}, "1.5 is no value of the column 'v', which is int64"),
        ({"when_not_matched": {"values": {"id": 1, "v": [1]}}}, "is no value of the column 'v', which is int64"),
        ({"when_matched": {"set": {"V": 1}}}, "the table has no column 'V'"),
    ],
)
def test_what_has_no_value_is_told_before_the_job(env, tmp_path, clauses, words):
    place = table_of(tmp_path / "t", {"id": [1, 2], "v": [1, 2]})
    with pytest.raises(SchemaError, match=words):
        env.from_arrow(pa.table({"id": [2, 3], "v": [9, 9]})).merge_into(delta(place), "id", **clauses)
    assert deltalake.DeltaTable(place).version() == 0


def test_words_that_are_wrong(env, tmp_path):
    place = table_of(tmp_path / "t", {"id": [1, 2], "v": [1, 2]})
    rows = env.from_arrow(pa.table({"id": [2, 3], "v": [9, 9]}))
    with pytest.raises(ConfigurationError, match=r"on=\['id', 'id'\]: 'id' is there twice"):
        rows.merge_into(delta(place), ["id", "id"])
    with pytest.raises(ConfigurationError, match="'set' is a dict of columns and their values"):
        rows.merge_into(delta(place), "id", {"set": [("v", 1), ("v", 2)]})


def decimals(*texts, digits=10, scale=2):
    return pa.array([Decimal(text) for text in texts], pa.decimal128(digits, scale))


@pytest.mark.parametrize(
    ("there", "source", "matched"),
    [
        (pa.array([1, 2]), pa.array([2, 3], pa.int8()), 1),
        (pa.array([1, 2]), pa.array([2, 2**63 + 5], pa.uint64()), 1),
        (decimals("1.00", "2.50"), decimals("2.500", "2.505", digits=12, scale=3), 1),
        (decimals("1.00", "2.50"), pa.array([1, 10**15]), 1),
        (pa.array([1, 2], pa.int32()), pa.array([2.0, 2.5]), 1),
        (pa.array([0, 1], pa.date32()), pa.array([86_400_000_000, 5], pa.timestamp("us")), 1),
        (pa.array([1, 2], pa.timestamp("us")), pa.array([2000, 2001], pa.timestamp("ns")), 1),
        (pa.array([1, 2]), pa.nulls(2), 0),
    ],
)
def test_keys_of_two_types_match_where_they_are_the_same_value(env, tmp_path, there, source, matched):
    place = table_of(tmp_path / "t", {"id": there, "v": [1, 2]})
    changes = env.from_arrow(pa.table({"id": source, "v": [7, 8]}))
    result = changes.merge_into(delta(place), "id", {"set": {"v": col("source.v")}}, "ignore")
    assert result.rows_updated == matched
    assert sum(row["v"] == 7 for row in rows_of(place)) == matched


@pytest.mark.parametrize(
    ("there", "source", "words"),
    [
        (pa.array([1, 2]), pa.array(["2", "3"]), "it is int64 in the table and string in the data set"),
        (pa.array([1, 2]), pa.array([2.0, 3.0]), "int64 in the table and double"),
        (decimals("1.00", "2.50"), pa.array([1.0, 2.5]), r"decimal128\(10, 2\) in the table and double"),
        (pa.array([1, 2], pa.timestamp("us", "UTC")), pa.array([1, 2], pa.timestamp("us")), "have|cannot be compared"),
    ],
)
def test_keys_that_cannot_be_compared_exactly_are_refused_with_both_types(env, tmp_path, there, source, words):
    place = table_of(tmp_path / "t", {"id": there, "v": [1, 2]})
    with pytest.raises(SchemaError, match=words):
        env.from_arrow(pa.table({"id": source, "v": [7, 8]})).merge_into(delta(place), "id")


def test_the_change_feed_has_a_deleted_row_as_it_was(env, tmp_path):
    feed = {"delta.enableChangeDataFeed": "true"}
    place = table_of(tmp_path / "t", {"id": [1, 2, 3], "v": [1, 2, 3]}, configuration=feed)
    env.from_arrow(pa.table({"id": [2, 3, 4], "v": [-2, 30, 40]})).merge_into(
        delta(place), "id", {"set": {"id": col("source.id"), "v": col("source.v")}, "delete": col("source.v") < 0}
    )
    found = env.read_changes(str(place), 1).select("_change_type", "id", "v").to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        ("delete", 2, 2),
        ("insert", 4, 40),
        ("update_postimage", 3, 30),
        ("update_preimage", 3, 3),
    ]


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_the_change_feed_has_nothing_of_a_merge_that_changes_no_row(env, tmp_path, vectors):
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
    place = str(tmp_path / "t")
    env.from_arrow(pa.table({"id": [1, 2], "v": [1, 2]})).write_delta(place, properties=properties)
    env.execute()
    changes = env.from_arrow(pa.table({"id": [1, 9], "v": [7, 7]}))
    alone = {"set": {"v": 0}, "where": col("target.v") > 5}
    never = {"set": {"v": 0}, "where": col("source.v") > 7}
    assert changes.merge_into(delta(place), "id", never, "ignore", alone)[:3] == (0, 0, 0)
    changes.filter(col("id") == 1).merge_into(delta(place), "id")
    found = env.read_changes(place, 1).select("_change_type", "v").to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [("update_postimage", 7), ("update_preimage", 1)]


def test_a_log_without_statistics_is_merged_into(env, tmp_path):
    place = table_of(tmp_path / "t", {"id": [1, 2], "v": [1, 2]})
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace('"stats"', '"tags_of_others"'))
    env.from_arrow(pa.table({"id": [2, 3], "v": [20, 30]})).merge_into(delta(place), "id")
    assert rows_of(place) == [{"id": 1, "v": 1}, {"id": 2, "v": 20}, {"id": 3, "v": 30}]
    env.sql(f'UPDATE delta."{place}" SET v = 5 WHERE id = 1')
    env.sql(f'DELETE FROM delta."{place}" WHERE id = 2')
    assert rows_of(place) == [{"id": 1, "v": 5}, {"id": 3, "v": 30}]


@pytest.mark.parametrize("schema_mode", ["union", "merge"])
def test_a_column_with_a_default_of_the_table_is_not_made_null(env, tmp_path, schema_mode):
    place = table_of(tmp_path / "t", {"id": [1], "v": [1]})
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    old = '\\"name\\":\\"v\\",\\"type\\":\\"long\\",\\"nullable\\":true,\\"metadata\\":{'
    assert old in log.read_text()
    log.write_text(log.read_text().replace(old, old + '\\"CURRENT_DEFAULT\\":\\"7\\"'))
    rows = env.from_arrow(pa.table({"id": [2]}))
    with pytest.raises(SchemaError, match="column 'v' is 7 by default, and the rows lack it"):
        if schema_mode == "union":
            rows.write_delta(place, mode="append", schema_mode="union")
        else:
            rows.merge_into(delta(place), "id")
    rows.merge_into(delta(place), "id", "ignore", {"values": {"id": col("id"), "v": 8}})
    assert rows_of(place) == [{"id": 1, "v": 1}, {"id": 2, "v": 8}]
