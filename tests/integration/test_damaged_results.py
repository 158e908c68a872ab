"""A stored result that is damaged on disk is produced again, by its own producer alone, and the rows come out right."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, JobExecutionError, col, count, sum_
from engine.exchange.blocking_partition import BlockingPartition
from engine.exchange.sorted_partition import SortedPartition
from engine.optimizer import sort_planning
from engine.records.outside_values import set_outside_bytes
from tests.folders import files_below

ROWS = 3000


class Damage:
    """Flips one bit in a file of the first result of a kind that is stored, before anybody reads it."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        kind: Any,
        is_lasting: bool,
    ):
        self.flips = 0
        #: attempts that have stored a result, by vertex and subtask
        self.attempts: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.victim: tuple[str, int] | None = None
        self._folder = folder
        self._lock = threading.Lock()
        finish = kind.finish

        def finish_and_damage(partition: Any) -> None:
            producer = partition.id.producer
            subtask = str(producer.vertex), producer.subtask_index
            with self._lock:
                self.attempts[subtask].append(producer.attempt_number)
                self.victim = self.victim or subtask
                is_victim = self.victim == subtask and (is_lasting or not self.flips)
            if not is_victim:
                finish(partition)
                return
            if isinstance(partition, BlockingPartition):
                partition.data.spill()
            finish(partition)
            self._flip(f"v{producer.vertex.index}-{producer.subtask_index}-{producer.attempt_number}")

        monkeypatch.setattr(kind, "finish", finish_and_damage)

    def _flip(self, attempt: str) -> None:
        """Flip a bit in the middle of the largest file of an attempt."""
        paths = [
            path for path in files_below(self._folder) if attempt in path.name and path.suffix in (".spill", ".data")
        ]
        path = max(paths, key=lambda each: each.stat().st_size)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x20
        path.write_bytes(content)
        self.flips += 1


@pytest.fixture
def make_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)
    made = []

    def make(attempts: int) -> Environment:
        made.append(
            Environment(
                config={
                    "parallelism.default": 2,
                    "execution.mode": "BATCH",
                    "debug.force-spill": True,
                    "io.tmp.dirs": str(tmp_path / "spill"),
                    "restart-strategy.type": "fixed-delay",
                    "restart-strategy.fixed-delay.attempts": attempts,
                    "restart-strategy.fixed-delay.delay": "10 ms",
                }
            )
        )
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def rows(tmp_path: Path) -> pa.Table:
    (tmp_path / "spill").mkdir()
    (tmp_path / "in").mkdir()
    chance = random.Random(3)
    table = pa.table({"x": [chance.randrange(10_000) for _ in range(ROWS)], "n": list(range(ROWS))})
    for part in range(2):
        pq.write_table(table.slice(part * ROWS // 2, ROWS // 2), tmp_path / "in" / f"{part}.parquet")
    return table


KINDS = {"sorted runs": SortedPartition, "buffers": BlockingPartition}


def run(env: Environment, folder: Path, kind: str) -> list[dict]:
    data = env.read_parquet(str(folder / "in"))
    if kind == "sorted runs":
        return data.sort(["x", "n"]).collect()
    return sorted(data.group_by("n").agg(x=sum_(col("x")), rows=count()).collect())


def expected(rows: pa.Table, kind: str) -> list[tuple]:
    if kind == "sorted runs":
        return sorted((row["x"], row["n"]) for row in rows.to_pylist())
    return [(row["n"], row["x"], 1) for row in rows.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
def test_the_producer_of_a_damaged_file_runs_again_and_nobody_elses(
    make_environment, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    damage = Damage(tmp_path / "spill", monkeypatch, KINDS[kind], is_lasting=False)
    found = run(make_environment(3), tmp_path, kind)
    assert [tuple(row) for row in found] == expected(rows, kind)
    assert damage.flips == 1
    assert damage.attempts.pop(damage.victim) == [0, 1]
    assert len(damage.attempts) >= 1
    assert set(map(tuple, damage.attempts.values())) == {(0,)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_damages_every_time_is_given_up_with_file_and_offset(
    make_environment, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    damage = Damage(tmp_path / "spill", monkeypatch, KINDS[kind], is_lasting=True)
    with pytest.raises(JobExecutionError, match=r"^CorruptBlockError: .*offset.*") as caught:
        run(make_environment(2), tmp_path, kind)
    assert damage.flips == 3
    assert len(str(caught.value).splitlines()) <= 15


def test_the_producer_of_damaged_values_outside_of_its_rows_runs_again(
    make_environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("spill", "in"):
        (tmp_path / name).mkdir()
    table = pa.table({"key": [b"begin" * 30 + n.to_bytes(2, "big") for n in range(400)][::-1], "n": range(400)})
    for part in range(2):
        pq.write_table(table.slice(part * 200, 200), tmp_path / "in" / f"{part}.parquet")
    set_outside_bytes(100)
    try:
        damage = Damage(tmp_path / "spill", monkeypatch, SortedPartition, is_lasting=False)
        data = make_environment(3).read_parquet(str(tmp_path / "in"))
        found = data.sort("key").to_arrow()
    finally:
        set_outside_bytes()
    assert found.equals(table.sort_by("key").cast(found.schema))
    assert damage.flips == 1
    assert damage.attempts.pop(damage.victim) == [0, 1]
    assert set(map(tuple, damage.attempts.values())) == {(0,)}
