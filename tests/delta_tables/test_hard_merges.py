"""Merges that are hard for their memory or their files: many, of large sources, into one partition, beside others."""

import random
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine import Environment, delta, iceberg
from engine.errors import EngineError
from engine.parquet import patched_file

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

SMALL = {"parallelism.default": "2", "taskmanager.memory.managed.size": "4mb"}


class Table:
    """A table of either kind."""

    def __init__(self, kind, folder, partition_by=()):
        self.kind, self.place, self.partition_by = kind, folder / "t", list(partition_by)
        self.catalog = None
        if kind == "iceberg":
            from pyiceberg.catalog.sql import SqlCatalog

            self.catalog = SqlCatalog("b", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
            self.catalog.create_namespace("db")
        self.target = delta(self.place) if kind == "delta" else iceberg("db.t", self.catalog)

    def make(self, env, rows):
        data = env.from_arrow(rows)
        if self.kind == "delta":
            data.write_delta(self.place, partition_by=self.partition_by)
        else:
            data.write_iceberg("db.t", self.catalog, partition_by=self.partition_by)
        env.execute()

    def rows(self, env):
        return env.read_delta(self.place) if self.kind == "delta" else env.read_iceberg("db.t", self.catalog)


@pytest.fixture(params=["delta", "patched delta", "iceberg", "patched iceberg"])
def kind(request, monkeypatch):
    """A kind of table; of one that is patched small files are written anew by their changes, too."""
    if request.param.startswith("patched "):
        monkeypatch.setattr(patched_file, "_FILE_BYTES_MIN", 0)
    return request.param.removeprefix("patched ")


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.thorough
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("kind", "count"), [("delta", 200), ("iceberg", 60)])
def test_many_merges_keep_their_memory_and_their_files(kind, count, tmp_path):
    chance = random.Random(1)
    table, expected, sizes = Table(kind, tmp_path), dict.fromkeys(range(20_000), -1), []
    with Environment({"parallelism.default": "2"}) as env:
        table.make(env, pa.table({"id": range(20_000), "v": [-1] * 20_000}))
        for trial in range(count):
            keys = chance.sample(range(20_000 + trial * 100), 1000)
            env.from_arrow(pa.table({"id": keys, "v": [trial] * 1000})).merge_into(table.target, "id")
            expected |= dict.fromkeys(keys, trial)
            sizes.append(resident_mb())
        found = table.rows(env).to_arrow()
        assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected
    if kind == "delta":
        assert len(deltalake.DeltaTable(table.place).file_uris()) < 30
    # the log of a table grows, and what reads it
    assert sum(sizes[-20:]) / 20 < sum(sizes[20:40]) / 20 + 96


@pytest.mark.thorough
def test_a_source_larger_than_the_memory_of_operators(kind, tmp_path):
    table, count = Table(kind, tmp_path), 300_000
    with Environment(SMALL) as env:
        table.make(env, pa.table({"id": range(0, count, 10), "v": ["old"] * (count // 10)}))
        source = env.from_arrow(
            pa.table({"id": range(count), "v": [f"new {number} ".ljust(60) for number in range(count)]})
        )
        result = source.merge_into(table.target, "id")
        assert result[:3] == (count - count // 10, count // 10, 0)
        found = table.rows(env).to_arrow()
    assert found.num_rows == count
    assert pc.sum(found["id"]).as_py() == count * (count - 1) // 2
    assert pc.all(
        pc.equal(
            pc.utf8_rtrim_whitespace(found["v"]),
            pc.binary_join_element_wise(pa.array(["new"] * count), found["id"].cast(pa.string()), " "),
        )
    ).as_py()


def test_a_partition_with_nearly_all_rows(kind, tmp_path):
    table, count = Table(kind, tmp_path, ["p"]), 10_000
    rows = pa.table({"id": range(count), "p": ["all"] * (count - 3) + ["a", "b", "c"], "v": [0] * count})
    with Environment(SMALL) as env:
        table.make(env, rows)
        changed = (
            rows.slice(0, count)
            .filter(pc.equal(pc.bit_wise_and(rows["id"], 1), 0))
            .set_column(2, "v", pa.array([1] * (count // 2)))
        )
        new = pa.table({"id": range(count, count + 1000), "p": ["all"] * 1000, "v": [2] * 1000})
        result = env.from_arrow(pa.concat_tables([changed, new])).merge_into(table.target, "id")
        assert result[:3] == (1000, count // 2, 0)
        found = table.rows(env).to_arrow().sort_by("id")
    assert found["id"].to_pylist() == list(range(count + 1000))
    assert found["v"].to_pylist() == [1 - number % 2 for number in range(count)] + [2] * 1000


@pytest.mark.thorough
def test_two_writers_at_once_leave_what_each_was_told(kind, tmp_path):
    table = Table(kind, tmp_path)
    with Environment({"parallelism.default": "1"}) as env:
        table.make(env, pa.table({"id": range(100), "v": [0] * 100}))
    done, failed = [], []

    def merge(writer):
        with Environment({"parallelism.default": "1"}) as env:
            for trial in range(3):
                # Each writer adds to the rows that it has made before.
                keys = [1000 * writer + number for number in range(5 * (trial + 1))]
                try:
                    env.from_arrow(pa.table({"id": keys, "v": [trial] * len(keys)})).merge_into(table.target, "id")
                    done.append((writer, trial))
                except EngineError as error:
                    failed.append(str(error))

    threads = [threading.Thread(target=merge, args=(writer,)) for writer in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = dict.fromkeys(range(100), 0)
    for writer in (1, 2):
        for trial in range(3):
            if (writer, trial) in done:
                expected |= {1000 * writer + number: trial for number in range(5 * (trial + 1))}
    with Environment({"parallelism.default": "1"}) as env:
        found = table.rows(env).to_arrow()
    assert found.num_rows == len(expected)
    assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected
    assert len(done) + len(failed) == 6
    assert done, failed
    assert all("another writer" in error or "other writers" in error for error in failed), failed
