"""Deletion vectors that merges write: the protocol's bytes, what other readers find, other writers, checkpoints."""

import json

import pyarrow as pa
import pytest

from engine import Environment, col, delta
from engine.delta_tables import table_commit
from engine.delta_tables.deletion_vectors import NewVectors, encoded, rows_of
from engine.errors import DataError, EngineError
from engine.ids import JobId
from tests.delta_tables.second_checkpoint import replace_log

deltalake = pytest.importorskip("deltalake")
pyroaring = pytest.importorskip("pyroaring")

VECTORS = {"delta.enableDeletionVectors": "true"}
JOB = JobId("00112233445566778899aabbccddeeff")


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def table_at(place, *parts, **options):
    for part in parts:
        deltalake.write_deltalake(place, pa.table(part), mode="append", configuration=VECTORS, **options)
    return place


def rows_in(place, env):
    """Return the rows as deltalake, Polars and this engine read them, who must agree."""
    import polars as pl

    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(place)).execute("SELECT * FROM t")
    found = sorted(pa.table(query).to_pylist(), key=str)
    assert sorted(pl.read_delta(str(place)).to_dicts(), key=str) == found
    assert sorted(env.read_delta(place).to_arrow().to_pylist(), key=str) == found
    return found


def source(env, **columns):
    return env.from_arrow(pa.table(columns))


def actions(place, version, kind):
    lines = (place / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [action for line in lines for word, action in json.loads(line).items() if word == kind]


@pytest.mark.parametrize("kind", ["json", "parquet", "classic"])
def test_rows_change_behind_a_checkpoint_of_the_second_kind(env, tmp_path, kind):
    place = table_at(tmp_path / "t", {"k": [1, 2, 3]}, {"k": [11, 12, 13]}, {"k": [21, 22, 23]})
    # a vector that the checkpoint has
    env.sql(f'DELETE FROM delta."{place}" WHERE k = 3')
    content = place / "_delta_log" / f"{3:020d}.json"
    lines = [json.loads(line) for line in content.read_text().splitlines()]
    (gone,) = [line["remove"]["path"] for line in lines if "remove" in line]
    content.write_text("".join(json.dumps(line) + "\n" for line in lines if "remove" not in line))
    first = place / "_delta_log" / f"{0:020d}.json"
    kept = [line for line in first.read_text().splitlines() if json.loads(line).get("add", {}).get("path") != gone]
    first.write_text("\n".join(kept))
    replace_log(place, kind)
    env.sql(f'DELETE FROM delta."{place}" WHERE k IN (1, 12)')
    source(env, k=[22, 30]).merge_into(delta(str(place)), "k")
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(place)).execute("SELECT k FROM t ORDER BY k")
    assert pa.table(found)["k"].to_pylist() == [2, 11, 13, 21, 22, 23, 30]
    assert env.read_delta(place).sort("k").to_arrow()["k"].to_pylist() == [2, 11, 13, 21, 22, 23, 30]


def test_the_bytes_of_a_vector(tmp_path):
    rows = pyroaring.BitMap64([3, 4, 7, 11, 18, 29])
    vectors = NewVectors(str(tmp_path), JOB)
    # the example of the protocol
    assert vectors.add(rows) == {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 44,
        "cardinality": 6,
    }
    vectors.write()
    assert not list(tmp_path.iterdir())
    large = pyroaring.BitMap64(range(0, 1000, 3))
    inside = vectors.add(large)
    assert inside == {
        "storageType": "u",
        "pathOrInlineDv": "drey-00112233445566778899aabbccddeeff01*zhl@^&yH)+oP+?.Z!",
        "offset": 1,
        "sizeInBytes": 700,
        "cardinality": 334,
    }
    second = vectors.add(large | rows)
    assert second["offset"] == 1 + 4 + 700 + 4
    (tmp_path / f"drey-{JOB}").mkdir()
    vectors.write()
    (file,) = (tmp_path / f"drey-{JOB}").iterdir()
    assert file.name == "deletion_vector_00112233-4455-6677-8899-aabbccddeeff.bin"
    content = file.read_bytes()
    assert content[:5].hex() == "01000002bc"
    assert content[5:705] == encoded(large)
    assert rows_of(str(tmp_path), inside) == large
    assert rows_of(str(tmp_path), second) == large | rows
    file.write_bytes(content[:300] + b"?" + content[301:])
    with pytest.raises(DataError, match="the deletion vector at byte 1 is damaged"):
        rows_of(str(tmp_path), inside)


def test_rows_are_deleted_by_their_places(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": range(3000), "v": [0] * 3000}, {"id": [5000, 5001], "v": [0, 0]})
    files = {*deltalake.DeltaTable(place).file_uris()}
    result = source(env, id=[1, 2, 5000, 9], v=[1, 1, 1, 1]).merge_into(delta(place), "id", "update", "ignore")
    assert result == (0, 4, 0, 0, 2)
    assert files < {*deltalake.DeltaTable(place).file_uris()}
    result = source(env, id=range(0, 3001, 3), v=[2] * 1001).merge_into(delta(place), "id")
    assert result[:4] == (1, 1000, 0, 0)
    expected = dict.fromkeys([*range(3000), 5001], 0) | dict.fromkeys((1, 2, 5000), 1)
    expected |= dict.fromkeys(range(0, 3001, 3), 2)
    assert {row["id"]: row["v"] for row in rows_in(place, env)} == expected
    # a small vector is in the log, a large one in a file
    assert {each["deletionVector"]["storageType"] for each in actions(place, 3, "add") if "deletionVector" in each} == {
        "i",
        "u",
    }
    # a file of which all rows are deleted is not of the table any more
    assert source(env, id=[5001]).merge_into(delta(place), "id", "delete", "ignore")[:3] == (0, 0, 1)
    assert not actions(place, 4, "add")
    assert source(env, id=[5001]).merge_into(delta(place), "id", "delete", "ignore") == (0, 0, 0, 0, 4)


def test_clauses(env, tmp_path):
    rows = {"id": [1, 2, 3, 4], "n": [10, 20, 30, 40], "keep": [True, True, False, None]}
    place = table_at(tmp_path / "t", rows)
    result = source(env, id=[1, 2, 5, 6], n=[5, 50, 500, 5]).merge_into(
        delta(place),
        on=["id"],
        when_matched={"set": {"n": col("target.n") + col("source.n")}, "where": col("source.n") > 10},
        when_not_matched={"values": {"id": col("id"), "n": col("n") * 2}, "where": col("n") > 100},
        when_not_matched_by_source={"delete": True, "where": ~col("keep")},
    )
    assert result[:4] == (1, 1, 1, 0)
    assert rows_in(place, env) == [
        {"id": 1, "n": 10, "keep": True},
        {"id": 2, "n": 70, "keep": True},
        {"id": 4, "n": 40, "keep": None},
        {"id": 5, "n": 1000, "keep": None},
    ]


def test_two_rows_of_the_source_for_one_are_an_error(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1, 2], "v": [1, 2]})
    with pytest.raises(DataError, match="2 rows of the source have the key id=2"):
        source(env, id=[2, 2], v=[5, 6]).merge_into(delta(place), "id")
    assert deltalake.DeltaTable(place).version() == 0
    assert not list(place.glob("drey-*"))


def test_partitions_with_values_that_need_an_escape(env, tmp_path):
    keys = ["a b", "x/y", None, "ü%=", "é\n"]
    place = table_at(tmp_path / "t", {"id": range(5), "p": keys, "v": [0] * 5}, partition_by=["p"])
    for turn in (1, 2):
        assert source(env, id=range(5), p=keys, v=[turn] * 5).merge_into(delta(place), "id")[:4] == (0, 5, 0, 0)
        assert [(row["id"], row["p"], row["v"]) for row in rows_in(place, env)] == [
            (key, keys[key], turn) for key in range(5)
        ]


def test_files_with_vectors_are_rewritten(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": range(10), "p": [0] * 10}, {"id": [20], "p": [0]}, partition_by=["p"])
    source(env, id=[3, 4]).merge_into(delta(place), "id", "delete", "ignore")
    assert env.optimize(delta(place)).files_removed == 2
    assert [row["id"] for row in rows_in(place, env)] == [0, 1, 2, 20, 5, 6, 7, 8, 9]
    source(env, id=[20]).merge_into(delta(place), "id", "delete", "ignore")
    source(env, id=[50], p=[0]).write_delta(place, mode="overwrite_partitions")
    env.execute()
    assert rows_in(place, env) == [{"id": 50, "p": 0}]


def test_another_writer_is_told(env, tmp_path, monkeypatch):
    place = table_at(tmp_path / "t", {"id": range(100), "v": [0] * 100})
    committed, calls = table_commit._committed, []

    def late(*args):
        if not calls:
            calls.append(1)
            with Environment() as other:
                source(other, id=[7]).merge_into(delta(place), "id", "delete", "ignore")
        return committed(*args)

    monkeypatch.setattr(table_commit, "_committed", late)
    with pytest.raises(EngineError, match="another writer has changed rows since version 0"):
        source(env, id=[1, 2], v=[5, 5]).merge_into(delta(place), "id")
    assert len(rows_in(place, env)) == 99


def test_a_version_that_another_writer_makes_first(env, tmp_path, monkeypatch):
    from engine.delta_tables import table_change

    place = table_at(tmp_path / "t", {"id": [1, 2], "v": [0, 0]})
    put, calls = table_change.put_version, []

    def late(*args):
        calls.append(1)
        if len(calls) == 1:
            deltalake.DeltaTable(place).alter.set_table_description("another writer")
        return put(*args)

    monkeypatch.setattr(table_change, "put_version", late)
    with pytest.raises(EngineError, match="another writer has changed rows since version 0"):
        source(env, id=[1], v=[5]).merge_into(delta(place), "id")
    assert rows_in(place, env) == [{"id": 1, "v": 0}, {"id": 2, "v": 0}]


@pytest.mark.thorough
def test_vectors_outlive_checkpoints(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": range(40), "v": [0] * 40})
    deltalake.DeltaTable(place).alter.set_table_properties({"delta.checkpointInterval": "5"})
    for turn in range(12):
        source(env, id=[turn, 39], v=[1, turn]).merge_into(delta(place), "id")
    assert len(list((place / "_delta_log").glob("*.checkpoint*.parquet"))) >= 2
    assert {row["id"]: row["v"] for row in rows_in(place, env)} == {
        key: 11 if key == 39 else int(key < 12) for key in range(40)
    }
