"""An optimized table has the same rows in fewer files, and writers beside it lose nothing."""

import pyarrow.parquet as pq
import pytest

from engine import Environment, delta
from engine.errors import ConfigurationError
from tests.delta_tables.test_merge import rows_of, table_at

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def test_small_files_become_one_of_each_partition(env, tmp_path):
    rows = {"id": [1, 2, 3], "p": ["a", "a", None]}
    place = table_at(tmp_path / "t", rows, {"id": [4], "p": ["a"]}, {"id": [5], "p": ["b"]}, partition_by=["p"])
    before = rows_of(place)
    assert env.optimize(delta(place)) == (2, 1, 3)
    assert rows_of(place) == before
    assert env.optimize(delta(place)) == (0, 0, 3)
    assert deltalake.DeltaTable(place).count() == 5
    assert deltalake.DeltaTable(place, version=2).count() == 5


def test_files_are_sorted(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [5, 1]}, {"id": [4, 2]}, {"id": [3]})
    assert env.optimize(delta(place), sort_by="id")[:2] == (3, 1)
    (path,) = deltalake.DeltaTable(place).file_uris()
    assert pq.read_table(path).column("id").to_pylist() == [1, 2, 3, 4, 5]


def test_rows_that_are_added_meanwhile_stay(env, tmp_path, monkeypatch):
    from engine.delta_tables import table_commit

    place = table_at(tmp_path / "t", {"id": [1]}, {"id": [2]})
    committed, calls = table_commit._committed, []

    def late(*args):
        if not calls:
            calls.append(1)
            table_at(place, {"id": [3]})
        return committed(*args)

    monkeypatch.setattr(table_commit, "_committed", late)
    assert env.optimize(delta(place)) == (2, 1, 3)
    assert [row["id"] for row in rows_of(place)] == [1, 2, 3]


def test_no_size_of_files_is_told(env, tmp_path):
    place = table_at(tmp_path / "t", {"id": [1]}, {"id": [2]})
    with pytest.raises(ConfigurationError, match="optimize: target_file_size='0': give a size"):
        env.optimize(delta(place), target_file_size="0")
