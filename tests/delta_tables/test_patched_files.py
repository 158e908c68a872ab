"""Merges write files anew with the rows alone that change, and leave what a plain merge does, whichever the way is."""

import datetime
import math
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, delta, lit
from engine.delta_tables.delta_reader import DeltaReader
from engine.errors import DataError
from engine.outputs.row_changes import changed
from engine.parquet import patched_file

deltalake = pytest.importorskip("deltalake")

SMALL_GROUPS = deltalake.WriterProperties(max_row_group_size=100, data_page_row_count_limit=20)


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


@pytest.fixture(autouse=True)
def patched_at_any_size(monkeypatch):
    monkeypatch.setattr(patched_file, "_FILE_BYTES_MIN", 0)


@pytest.fixture(params=["columns", "rows"])
def way(request, monkeypatch):
    """How files are written; a column that does not fit in memory has all rows written."""
    taken = []
    rows, columns = patched_file._Rows, patched_file._Columns
    if request.param == "rows":
        monkeypatch.setattr(columns, "_bytes_of", lambda *_: 1 << 61)
    monkeypatch.setattr(patched_file._Rows, "step", _noted(rows.step, taken, "rows"))
    monkeypatch.setattr(patched_file._Columns, "step", _noted(columns.step, taken, "columns"))
    yield request.param
    assert set(taken) <= {request.param}


def _noted(step, taken, word):
    def noted(self, changes):
        taken.append(word)
        return step(self, changes)

    return noted


def values(count, seed=0):
    chance = random.Random(seed)
    return {
        "x": [None if chance.random() < 0.1 else chance.random() for _ in range(count)],
        "s": [chance.choice([None, "", "a", "b" * 40, f"{number}"]) for number in range(count)],
        "t": [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=chance.randrange(999)) for _ in range(count)],
        "l": [chance.choice([None, [], [1, None], [number]]) for number in range(count)],
        "b": [chance.choice([None, True, False]) for _ in range(count)],
    }


TYPES = {"x": pa.float64(), "s": pa.string(), "t": pa.timestamp("us"), "l": pa.list_(pa.int32()), "b": pa.bool_()}
SCHEMA = pa.schema({"id": pa.int64(), **TYPES})


def table_at(place, *keys):
    """A table with a file for each list of keys."""
    for number, each in enumerate(keys):
        rows = pa.table({"id": each, **values(len(each), number)}, schema=SCHEMA)
        deltalake.write_deltalake(place, rows, mode="append", writer_properties=SMALL_GROUPS)
    return place


def rows_of(place):
    found = deltalake.DeltaTable(place).to_pyarrow_table().sort_by("id").to_pylist()
    return {row["id"]: row for row in found}


def changes_of(keys):
    return pa.table({"id": keys, **values(len(keys), 99)}, schema=SCHEMA)


def test_updates_and_inserts(env, tmp_path, way):
    place = table_at(tmp_path / "t", range(0, 1000, 2), range(1000, 2000, 2), range(5000, 5100))
    changes = changes_of([*range(100, 400, 7), 1500, 1998])
    expected = rows_of(place) | {row["id"]: row for row in changes.to_pylist()}
    result = env.from_arrow(changes).merge_into(delta(place), "id")
    assert rows_of(place) == expected
    assert result[1:4] == (24, 0, 2)
    with Environment() as other:
        assert other.read_delta(place).sort("id").to_arrow().to_pylist() == sorted(
            expected.values(), key=lambda row: row["id"]
        )


def test_row_groups_and_columns_without_a_change_keep_their_bytes(env, tmp_path):
    place = table_at(tmp_path / "t", range(1000))
    (old,) = deltalake.DeltaTable(place).file_uris()
    before = pq.read_metadata(old)
    changes = pa.table({"id": [250, 251], "x": [1.5, 2.5]})
    env.from_arrow(changes).merge_into(delta(place), "id", "update", "ignore")
    (new,) = deltalake.DeltaTable(place).file_uris()
    after = pq.read_metadata(new)
    changed = set()
    with open(old, "rb") as one, open(new, "rb") as other:  # noqa: PTH123 - names of the library
        for group in range(10):
            for leaf in range(before.num_columns):
                chunks = [footer.row_group(group).column(leaf) for footer in (before, after)]
                found = []
                for file, chunk in zip((one, other), chunks, strict=True):
                    file.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
                    found.append(file.read(chunk.total_compressed_size))
                if found[0] != found[1]:
                    changed.add((group, chunks[0].path_in_schema))
    assert changed == {(2, "x")}


def test_rows_that_go(env, tmp_path, way):
    place = table_at(tmp_path / "t", range(500), range(500, 700), range(700, 900))
    expected = rows_of(place)
    gone = [*range(40, 140), 333, *range(500, 700)]
    result = env.from_arrow(pa.table({"id": gone})).merge_into(delta(place), "id", "delete", "ignore")
    assert result[:4] == (0, 0, 301, 2)
    assert rows_of(place) == {key: row for key, row in expected.items() if key not in set(gone)}
    assert len(deltalake.DeltaTable(place).file_uris()) == 2


def test_some_go_and_some_change(env, tmp_path, way):
    place = table_at(tmp_path / "t", range(400))
    expected = rows_of(place)
    clause = {"set": {"x": col("target.x") + col("source.n")}, "delete": col("source.n") % 2 == 0}
    source = pa.table({"id": range(150, 350, 3), "n": range(150, 350, 3)})
    result = env.from_arrow(source).merge_into(delta(place), "id", clause, "ignore")
    for key in range(150, 350, 3):
        if key % 2 == 0:
            del expected[key]
        elif expected[key]["x"] is not None:
            expected[key]["x"] += key
    assert result[:3] == (0, 33, 34)
    assert rows_of(place) == expected


def test_clauses_that_set_different_columns(env, tmp_path, way):
    place = table_at(tmp_path / "t", range(300))
    expected = rows_of(place)
    source = pa.table({"id": [5, 6, 700], "word": ["five", "six", "seven"]})
    env.from_arrow(source).merge_into(
        delta(place),
        "id",
        {"set": {"s": col("word")}, "where": col("source.id") != 6},
        {"values": {"id": col("id"), "x": 0.5}},
    )
    expected[5]["s"] = "five"
    expected[700] = {"id": 700, "x": 0.5, "s": None, "t": None, "l": None, "b": None}
    assert rows_of(place) == expected


def test_partitions(env, tmp_path, way):
    place = tmp_path / "t"
    rows = pa.table({"id": range(90), "p": [None, "a b", "x/y"] * 30, "v": range(90)})
    deltalake.write_deltalake(place, rows, partition_by=["p"], writer_properties=SMALL_GROUPS)
    source = pa.table({"id": [0, 1, 2, 91, 92], "v": [-1] * 5, "new": [None, None, None, "x/y", "z"]})
    result = env.from_arrow(source).merge_into(
        delta(place), "id", {"set": {"v": col("source.v")}}, {"values": {"id": col("id"), "p": col("new")}}
    )
    assert result[:4] == (2, 3, 0, 3)
    expected = {row["id"]: row for row in rows.to_pylist()}
    expected |= {91: {"id": 91, "p": "x/y", "v": None}, 92: {"id": 92, "p": "z", "v": None}}
    for key in (0, 1, 2):
        expected[key]["v"] = -1
    assert rows_of(place) == expected
    # rows whose partition is another one then
    moved = pa.table({"id": [5], "p": ["a b"], "v": [0]})
    assert env.from_arrow(moved).merge_into(delta(place), "id")[:4] == (0, 1, 0, 1)
    assert rows_of(place)[5] == {"id": 5, "p": "a b", "v": 0}


def test_two_rows_of_the_source_for_one(env, tmp_path, way):
    place = table_at(tmp_path / "t", range(300))
    before = rows_of(place)
    with pytest.raises(DataError, match="2 rows of the source have the key id=7"):
        env.from_arrow(changes_of([5, 7, 7, 8])).merge_into(delta(place), "id")
    assert rows_of(place) == before
    assert not list(place.glob("drey-*"))


def test_columns_that_files_have_otherwise(env, tmp_path):
    place = tmp_path / "t"
    deltalake.write_deltalake(place, pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
    new = pa.table({"id": [3], "n": pa.array([3], pa.int32()), "more": ["x"]})
    deltalake.write_deltalake(place, new, mode="append", schema_mode="merge")
    source = pa.table({"id": [1, 3], "n": [10, 30], "more": ["y", None]})
    env.from_arrow(source).merge_into(delta(place), "id")
    expected = [{"id": 1, "n": 10, "more": "y"}, {"id": 2, "n": 2, "more": None}, {"id": 3, "n": 30, "more": None}]
    assert list(rows_of(place).values()) == expected


def statistics_of(place):
    found = pa.table(deltalake.DeltaTable(place).get_add_actions(flatten=True))
    return found.select(["num_records", "min.x", "max.x", "null_count.x"]).to_pylist()


def test_bounds_of_numbers_stay_unless_there_is_nan(env, tmp_path, way):
    place = tmp_path / "t"
    rows = pa.table({"id": range(300), "x": [number / 4 for number in range(300)], "y": [1] * 300})
    deltalake.write_deltalake(place, rows, writer_properties=SMALL_GROUPS)
    env.from_arrow(pa.table({"id": [3], "y": [7]})).merge_into(delta(place), "id", "update", "ignore")
    assert statistics_of(place) == [{"num_records": 300, "min.x": 0.0, "max.x": 74.75, "null_count.x": 0}]
    env.from_arrow(pa.table({"id": [3], "x": [99.5]})).merge_into(delta(place), "id", "update", "ignore")
    assert statistics_of(place) == [{"num_records": 300, "min.x": 0.0, "max.x": 99.5, "null_count.x": 0}]
    env.from_arrow(pa.table({"id": [3], "x": [math.nan]})).merge_into(delta(place), "id", "update", "ignore")
    env.from_arrow(pa.table({"id": [250], "y": [8]})).merge_into(delta(place), "id", "update", "ignore")
    assert statistics_of(place) == [{"num_records": 300, "min.x": None, "max.x": None, "null_count.x": 0}]


def test_merges_put_small_files_together(env, tmp_path, monkeypatch):
    monkeypatch.undo()
    place = table_at(tmp_path / "t", *([start] for start in range(12)))
    assert env.from_arrow(changes_of(range(15))).merge_into(delta(place), "id")[:4] == (3, 12, 0, 12)
    assert len(deltalake.DeltaTable(place).file_uris()) <= 2


def test_no_other_column_is_read_than_a_clause_needs(env, tmp_path, monkeypatch):
    read = []
    init = DeltaReader.__init__

    def noted(self, spec, *arguments):
        read.append({*spec.columns} - {"target file", "target position"})
        init(self, spec, *arguments)

    monkeypatch.setattr(DeltaReader, "__init__", noted)
    rows = pa.table({"id": range(50), "x": range(50), "y": range(50)})
    for number, properties in enumerate([{}, {"delta.enableDeletionVectors": "true"}]):
        place = tmp_path / str(number)
        env.from_arrow(rows).write_delta(place, properties=properties)
        env.execute()
        env.from_arrow(rows.slice(3, 4)).merge_into(delta(place), "id")
        assert {*map(frozenset, read)} == {frozenset({"id"})}, read
        read.clear()
        changes = {"set": {"x": col("target.x") * 2}}
        env.from_arrow(rows.slice(3, 1).select(["id"])).merge_into(delta(place), "id", changes, "ignore")
        assert {*map(frozenset, read)} == [{frozenset({"id", "x"})}, {frozenset({"id", "x", "y"})}][number], read
        read.clear()
        found = env.read_delta(place).sort("id").to_arrow().to_pylist()
        assert found == [*rows.slice(0, 3).to_pylist(), {"id": 3, "x": 6, "y": 3}, *rows.slice(4).to_pylist()]
        read.clear()


def test_update_and_delete(env, tmp_path, way):
    place = table_at(tmp_path / "t", range(300), range(300, 600), range(9000, 9100))
    expected = rows_of(place)
    meet = {key for key in expected if key % 50 == 7 and key < 600}
    where = (col("id") % 50 == 7) & (col("id") < 600)
    assert changed(env, delta(place), where, {"x": lit(0.5)}, "UPDATE")[:4] == (0, len(meet), 0, 2)
    assert rows_of(place) == {key: {**row, "x": 0.5} if key in meet else row for key, row in expected.items()}
    expected = rows_of(place)
    assert changed(env, delta(place), where, None, "DELETE")[:4] == (0, 0, len(meet), 2)
    assert rows_of(place) == {key: row for key, row in expected.items() if key not in meet}
    version = deltalake.DeltaTable(place).version()
    assert changed(env, delta(place), where, None, "DELETE")[:5] == (0, 0, 0, 0, version)


def test_update_of_a_table_with_partitions(env, tmp_path, way):
    place = tmp_path / "t"
    rows = pa.table({"id": range(90), "p": [None, "a b", "x/y"] * 30, "v": range(90)})
    deltalake.write_deltalake(place, rows, partition_by=["p"], writer_properties=SMALL_GROUPS)
    assert changed(env, delta(place), col("id") < 9, {"v": col("v") * 2}, "UPDATE")[:4] == (0, 9, 0, 3)
    assert changed(env, delta(place), col("id") == 10, None, "DELETE")[:4] == (0, 0, 1, 1)
    expected = {row["id"]: row for row in rows.to_pylist() if row["id"] != 10}
    for key in range(9):
        expected[key]["v"] *= 2
    assert rows_of(place) == expected


@pytest.mark.thorough
def test_random_merges_agree_with_plain_ones(env, tmp_path, way):
    chance = random.Random(5)
    for trial in range(5):
        keys = chance.sample(range(3000), 900)
        place = table_at(tmp_path / str(trial), keys[:500], keys[500:880], keys[880:])
        source = changes_of(chance.sample(range(3000), 400))
        matched, unmatched = chance.choice(["update", "delete"]), chance.choice(["insert", "ignore"])
        expected = rows_of(place)
        for row in source.to_pylist():
            if row["id"] in expected and matched == "delete":
                del expected[row["id"]]
            elif row["id"] in expected or unmatched == "insert":
                expected[row["id"]] = row
        env.from_arrow(source).merge_into(delta(place), "id", matched, unmatched)
        assert rows_of(place) == expected, (trial, matched, unmatched)
        told = pa.table(deltalake.DeltaTable(place).get_add_actions(flatten=True))
        assert pc.sum(told.column("num_records")).as_py() == len(expected)
        low, high = pc.min(told.column("min.id")).as_py(), pc.max(told.column("max.id")).as_py()
        assert (low, high) == (min(expected), max(expected))
