"""Merges leave what a merge of the protocol's own terms leaves; files without a match stay; conflicts are told."""

import random

import pyarrow as pa
import pytest

from engine import Environment, col, delta
from engine.errors import ConfigurationError, DataError, EngineError, NotYetSupportedError, PlanError, SchemaError

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def table_at(place, *parts, **options):
    for part in parts:
        deltalake.write_deltalake(place, pa.table(part), mode="append", **options)
    return place


def rows_of(place):
    return deltalake.DeltaTable(place).to_pyarrow_table().sort_by("id").to_pylist()


def source(env, **columns):
    return env.from_arrow(pa.table(columns))


def test_rows_are_updated_and_inserted(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1, 2], "v": ["a", "b"]}, {"id": [10, 11], "v": ["x", "y"]})
    result = source(env, id=[2, 3, None], v=["B", "C", "N"]).merge_into(delta(place), on="id")
    assert result == (2, 1, 0, 1, 2)
    assert sorted(rows_of(place), key=lambda row: row["id"] or 99) == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": "B"},
        {"id": 3, "v": "C"},
        {"id": 10, "v": "x"},
        {"id": 11, "v": "y"},
        {"id": None, "v": "N"},
    ]
    # the file that has no matching row is still there
    assert len([path for path in deltalake.DeltaTable(place).file_uris() if "drey-" not in path]) == 1


def test_clauses_with_conditions_and_expressions(env, tmp_path):
    rows = {"id": [1, 2, 3, 4], "n": [10, 20, 30, 40], "keep": [True, True, False, None]}
    place = table_at(tmp_path / "t", rows)
    changes = source(env, id=[1, 2, 5, 6], n=[5, 50, 500, 5])
    result = changes.merge_into(
        delta(place),
        on=["id"],
        when_matched={"set": {"n": col("target.n") + col("source.n")}, "where": col("source.n") > 10},
        when_not_matched={"values": {"id": col("id"), "n": col("n") * 2}, "where": col("n") > 100},
        when_not_matched_by_source={"delete": True, "where": ~col("keep")},
    )
    assert result[:3] == (1, 1, 1)
    assert rows_of(place) == [
        {"id": 1, "n": 10, "keep": True},
        {"id": 2, "n": 70, "keep": True},
        {"id": 4, "n": 40, "keep": None},
        {"id": 5, "n": 1000, "keep": None},
    ]


def test_a_row_that_matches_and_does_not_change_is_not_inserted(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1], "v": [1]}, {"id": [2], "v": [2]})
    result = source(env, id=[1, 2, 3], v=[10, 20, 30]).merge_into(
        delta(place), "id", {"set": {"v": col("source.v")}, "where": col("source.v") < 15}
    )
    assert result[:3] == (1, 1, 0)
    assert rows_of(place) == [{"id": 1, "v": 10}, {"id": 2, "v": 2}, {"id": 3, "v": 30}]


def test_more_keys_than_are_looked_up_first(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": list(range(9000))}, {"id": [9001]}, {"id": [9999]})
    rows = source(env, id=[*range(9000), 9001])
    assert rows.merge_into(delta(place), "id", "update", "ignore") == (0, 9001, 0, 2, 3)


def test_matched_rows_are_deleted(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1, 2, 3]}, {"id": [7]})
    assert source(env, id=[1, 7, 9]).merge_into(delta(place), "id", "delete", "ignore") == (0, 0, 2, 2, 2)
    assert rows_of(place) == [{"id": 2}, {"id": 3}]


def test_inserts_alone_touch_no_file(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1, 2], "v": [1, 2]})
    twice = source(env, id=[1, 1, 8, 8], v=[0, 0, 8, 9])
    assert twice.merge_into(delta(place), "id", when_matched="ignore") == (2, 0, 0, 0, 1)
    assert [row["v"] for row in rows_of(place)] == [1, 2, 8, 9]


def test_nothing_to_do_makes_no_version(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1]})
    assert source(env, id=[2]).merge_into(delta(place), "id", "update", "ignore") == (0, 0, 0, 0, 0)
    assert source(env, id=[1]).merge_into(delta(place), "id", "ignore", "ignore") == (0, 0, 0, 0, 0)


def test_rows_of_the_table_alone(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1, 2], "v": [1, 2]}, {"id": [5], "v": [5]})
    result = source(env, id=[2], v=[9]).merge_into(
        delta(place), "id", when_not_matched_by_source={"set": {"v": -col("target.v")}}
    )
    assert result[:4] == (0, 3, 0, 2)
    assert rows_of(place) == [{"id": 1, "v": -1}, {"id": 2, "v": 9}, {"id": 5, "v": -5}]


def test_two_rows_of_the_source_for_one_are_an_error(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1, 2], "k": ["a", "b"]})
    rows = source(env, id=[2, 2, 3, 3], k=["b", "b", "c", "c"])
    with pytest.raises(DataError, match="2 rows of the source have the key id=2, k='b'"):
        rows.merge_into(delta(place), ["id", "k"])
    assert deltalake.DeltaTable(place).version() == 0
    # the key 3 is twice there, too, and matches nothing
    assert rows.filter(col("id") == 3).merge_into(delta(place), ["id", "k"])[:3] == (2, 0, 0)


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_an_error_of_a_clause_shows_the_clause_alone(env, tmp_path, vectors):
    place, properties = str(tmp_path / "t"), {"delta.enableDeletionVectors": vectors}
    env.from_arrow(pa.table({"id": [1, 2], "v": [1, 2], "s": ["1", "a"]})).write_delta(place, properties=properties)
    env.execute()
    changes = source(env, id=[2, 3], v=[0, 0], s=["x", "y"])
    for clause, words in (
        (
            col("target.v") // col("source.v"),
            "col('target.v') // col('source.v'): divide by zero; in a row with target.v=2",
        ),
        (col("source.s"), "cast(col('source.s') as int64): Failed to parse string: 'x'"),
    ):
        with pytest.raises(DataError) as caught:
            changes.merge_into(delta(place), on="id", when_matched={"set": {"v": clause}}, when_not_matched="ignore")
        said = str(caught.value).splitlines()[0]
        assert said.startswith(words)
        assert "merge action" not in said and "in source" not in said
    with pytest.raises(SchemaError, match=r"the source has no column 'nope'; it has \['id', 'v', 's'\]"):
        changes.merge_into(delta(place), on="id", when_matched={"set": {"v": col("source.nope")}})


def test_partitions_and_new_partitions(env, tmp_path):
    rows = {"id": [1, 2, 3], "p": ["a b", "x/y", None], "v": [1, 2, 3]}
    place = table_at(tmp_path / "t", rows, partition_by=["p"])
    changes = source(env, id=[1, 3, 4], p=["a b", "new", "x/y"], v=[10, 30, 40])
    assert changes.merge_into(delta(place), "id")[:4] == (1, 2, 0, 2)
    assert rows_of(place) == [
        {"id": 1, "p": "a b", "v": 10},
        {"id": 2, "p": "x/y", "v": 2},
        {"id": 3, "p": "new", "v": 30},
        {"id": 4, "p": "x/y", "v": 40},
    ]


@pytest.mark.thorough
def test_random_merges_agree_with_a_plain_one(env, tmp_path):
    chance = random.Random(7)
    for trial in range(6):
        there = {key: chance.randrange(100) for key in chance.sample(range(60), 30)}
        new = {key: chance.randrange(100) for key in chance.sample(range(60), 25)}
        keys = list(there)
        parts = [{"id": part, "v": [there[key] for key in part]} for part in (keys[:9], keys[9:20], keys[20:])]
        place = table_at(tmp_path / str(trial), *parts)
        matched, unmatched, alone = (
            chance.choice(["update", "delete", "ignore"]),
            chance.choice(["insert", "ignore"]),
            chance.choice(["ignore", "delete", "ignore"]),
        )
        result = source(env, id=list(new), v=list(new.values())).merge_into(
            delta(place), "id", matched, unmatched, alone
        )
        expected = {}
        for key in {*there, *new}:
            if key in there and key in new and matched != "delete":
                expected[key] = new[key] if matched == "update" else there[key]
            elif key in there and key not in new and alone == "ignore":
                expected[key] = there[key]
            elif key not in there and unmatched == "insert":
                expected[key] = new[key]
        assert {row["id"]: row["v"] for row in rows_of(place)} == expected, (matched, unmatched, alone)
        assert result.rows_inserted == (len(new.keys() - there.keys()) if unmatched == "insert" else 0)
        assert result.rows_updated == (len(new.keys() & there.keys()) if matched == "update" else 0)


def test_a_change_of_another_writer_is_told(env, tmp_path, monkeypatch):
    from engine.delta_tables import table_commit

    place = table_at(tmp_path / "t", {"id": [1], "v": [1]})
    committed, calls = table_commit._committed, []

    def late(*args):
        if not calls:
            calls.append(1)
            table_at(place, {"id": [2], "v": [2]})
        return committed(*args)

    monkeypatch.setattr(table_commit, "_committed", late)
    with pytest.raises(EngineError, match="another writer has changed rows since version 0"):
        source(env, id=[1, 2], v=[5, 5]).merge_into(delta(place), "id")
    assert rows_of(place) == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]
    assert not list(place.glob("drey-*"))


def test_words(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1], "v": [1]})
    rows = source(env, id=[1], v=[1], w=[1])
    for arguments, error, match in [
        ({"on": "w"}, SchemaError, "the table has no such column"),
        ({"on": []}, ConfigurationError, "name the columns"),
        ({"on": "id", "when_matched": "insert"}, ConfigurationError, "choose update, delete, ignore"),
        ({"on": "id", "when_matched": {"set": {}, "when": 1}}, ConfigurationError, "a dict has"),
        ({"on": "id", "when_matched": {"set": {"w": 1}}}, SchemaError, "the table has no column 'w'"),
        ({"on": "id", "when_matched": {"set": {"v": col("v")}}}, SchemaError, "both sides have a column 'v'"),
        ({"on": "id", "when_not_matched": {"values": {"v": col("target.x")}}}, SchemaError, "table has no column 'x'"),
        ({"on": "id", "when_not_matched": {"values": {"v": col("x")}}}, SchemaError, "no side has"),
    ]:
        with pytest.raises(error, match=match):
            rows.merge_into(delta(place), **arguments)
    with pytest.raises(PlanError, match="no Delta table"):
        rows.merge_into(delta(tmp_path / "nothing"), "id")


def test_spark_does_not_merge(tmp_path):
    place = table_at(tmp_path / "t", {"id": [1]})
    with Environment(target="spark") as env:
        for call in (lambda: source(env, id=[1]).merge_into(delta(place), "id"), lambda: env.optimize(delta(place))):
            with pytest.raises(NotYetSupportedError, match="target spark"):
                call()
