"""The change data feed of tables that merges change: each row that is another one then, as it was and as it is."""

import pyarrow as pa
import pytest

from engine import Environment, col, delta
from engine.errors import NotYetSupportedError, PlanError

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyroaring")

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def changes_of(env, place, since):
    rows = env.read_changes(place, since=since).to_arrow().to_pylist()
    return sorted([(each["_commit_version"], each["_change_type"], each["id"], each["v"], each["p"]) for each in rows])


@pytest.mark.parametrize("properties", [FEED, FEED | VECTORS], ids=["files", "vectors"])
@pytest.mark.parametrize("keys", [[], ["p"]], ids=["whole", "partitioned"])
def test_changes_of_merges(env, tmp_path, properties, keys):
    place = tmp_path / "t"
    rows = pa.table({"id": range(6), "v": [0] * 6, "p": ["a/b", "c d"] * 3})
    deltalake.write_deltalake(place, rows, configuration=properties, partition_by=keys)
    source = env.from_arrow(pa.table({"id": [1, 2, 7], "v": [9, 9, 9], "p": ["a/b", "a/b", "a/b"]}))
    result = source.merge_into(
        delta(place),
        "id",
        when_matched={"set": {"v": col("source.v"), "p": col("source.p")}},
        when_not_matched_by_source={"delete": True, "where": col("target.id") == 5},
    )
    assert result[:3] == (1, 2, 1)
    assert changes_of(env, place, 1) == [
        (1, "delete", 5, 0, "c d"),
        (1, "insert", 7, 9, "a/b"),
        (1, "update_postimage", 1, 9, "a/b"),
        (1, "update_postimage", 2, 9, "a/b"),
        (1, "update_preimage", 1, 0, "c d"),
        (1, "update_preimage", 2, 0, "a/b"),
    ]
    assert env.from_arrow(pa.table({"id": [0, 3]})).merge_into(delta(place), "id", "delete", "ignore")[2] == 2
    assert changes_of(env, place, 2) == [(2, "delete", 0, 0, "a/b"), (2, "delete", 3, 0, "c d")]
    assert env.from_arrow(pa.table({"id": [8], "v": [8], "p": [None]})).merge_into(delta(place), "id")[0] == 1
    assert changes_of(env, place, 3) == [(3, "insert", 8, 8, None)]
    expected = [(1, 9, "a/b"), (2, 9, "a/b"), (4, 0, "a/b"), (7, 9, "a/b"), (8, 8, None)]
    found = env.read_delta(place).to_arrow().to_pylist()
    assert sorted((row["id"], row["v"], row["p"]) for row in found) == expected
    # rows of the same values in other files are no change
    env.optimize(delta(place), sort_by="id")
    assert changes_of(env, place, 4) == []
    left = [path.name for path in place.rglob("drey-*/**/*") if path.is_file()]
    assert [name for name in left if name.endswith(".deleted") or name == "owner.json"] == []
    assert len([name for name in left if name.endswith(".changes.parquet")]) >= 3


def test_a_version_that_removes_files_with_vectors_is_refused(env, tmp_path):
    place = tmp_path / "t"
    deltalake.write_deltalake(place, pa.table({"id": [1, 2, 3]}), configuration=FEED | VECTORS)
    env.from_arrow(pa.table({"id": [1]})).merge_into(delta(place), "id", "delete", "ignore")
    assert env.read_changes(place, since=1).select("id", "_change_type").to_arrow().to_pylist() == [
        {"id": 1, "_change_type": "delete"}
    ]
    env.from_arrow(pa.table({"id": [7]})).write_delta(place, mode="overwrite")
    env.execute()
    with pytest.raises(NotYetSupportedError, match="version 2 changes files with deletion vectors"):
        env.read_changes(place, since=1)


@pytest.mark.parametrize("value", ["é", "a=b/c%", "a~b", "a b"])
def test_versions_with_escaped_partitions_are_refused_or_read(env, tmp_path, value):
    rows = pa.table({"id": [1], "v": [1], "p": [value]})
    env.from_arrow(rows).write_delta(tmp_path / "own", partition_by="p", properties=FEED)
    env.execute()
    deltalake.write_deltalake(tmp_path / "other", rows, partition_by=["p"], configuration=FEED)
    for name in ("own", "other"):
        if (name, value) == ("own", "a b"):  # a space is not escaped there
            assert changes_of(env, tmp_path / name, 0) == [(0, "insert", 1, 1, value)]
            continue
        with pytest.raises(NotYetSupportedError, match=r"version 0 changes the file '.*p=.*is not supported.*since=1"):
            env.read_changes(tmp_path / name)
        result = env.from_arrow(rows.set_column(1, "v", pa.array([2]))).merge_into(delta(tmp_path / name), "id")
        assert result.rows_updated == 1
        assert changes_of(env, tmp_path / name, 1) == [
            (1, "update_postimage", 1, 2, value),
            (1, "update_preimage", 1, 1, value),
        ]


def test_versions_that_are_not_there(env, tmp_path):
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}), configuration=FEED)
    with pytest.raises(PlanError, match="there is no version 99; the last one is 0"):
        env.read_changes(tmp_path / "t", since=99)
