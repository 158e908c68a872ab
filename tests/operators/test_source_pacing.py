"""Pacing against a clock of the test's own."""

import msgspec
import pyarrow as pa
import pytest

from engine.errors import TaskCancelledError
from engine.graph.operator_descriptor import SourceOperator
from engine.graph.source_spec import SourceSplit
from engine.operators import drivers
from engine.operators.source_pacing import paced, share_of
from tests.operators.task_world import TaskWorld


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        assert 0 < seconds <= 0.05
        self.now += seconds


def batches(*sizes):
    return [pa.record_batch({"a": list(range(size))}) for size in sizes]


def run(source, rate, clock, check=lambda: None):
    return [(clock.now, batch.num_rows) for batch in paced(source, rate, check, clock, clock.sleep)]


@pytest.mark.parametrize("rate", [0.5, 3.0, 100.0, 1e4, 1e7])
def test_rows_take_as_long_as_the_rate_says(rate):
    clock = Clock()
    given = run(batches(100, 1, 0, 49), rate, clock)
    assert sum(rows for _, rows in given) == 150
    assert clock.now == pytest.approx(150 / rate, rel=0.001)


def test_rows_come_smoothly():
    clock = Clock()
    seen = 0
    for now, rows in run(batches(8192, 8192), 1000, clock):
        seen += rows
        assert seen / 1000 == pytest.approx(now, abs=0.06)


def test_slices_hold_the_rows_in_order():
    clock = Clock()
    (batch,) = batches(1000)
    given = pa.Table.from_batches(paced([batch], 5000, lambda: None, clock, clock.sleep))
    assert given.column("a").to_pylist() == list(range(1000))


def test_what_was_late_is_caught_up_with_but_not_all_at_once():
    clock = Clock()

    def late():
        yield from batches(10)
        clock.now += 100
        yield from batches(1000)

    given = run(late(), 100, clock)
    assert clock.now == pytest.approx(100.1 + 10 - 0.5, abs=0.2)
    assert len(given) > 100


def test_waiting_ends_when_the_task_is_cancelled():
    clock = Clock()

    def check():
        if clock.now > 1:
            raise TaskCancelledError("enough")

    with pytest.raises(TaskCancelledError):
        run(batches(10), 0.001, clock, check)
    assert clock.now < 1.2


def test_shares_are_by_rows_or_else_by_bytes_and_sum_to_one():
    known = [SourceSplit("x", 0, 1, 10, 30), SourceSplit("x", 1, 2, 10, 10)]
    assert [share_of(known, [split]) for split in known] == [0.75, 0.25]
    unknown = [SourceSplit("x", 0, 1, 10), SourceSplit("x", 1, 2, 30)]
    assert [share_of(unknown, [split]) for split in unknown] == [0.25, 0.75]
    assert share_of(known, []) == 1.0


@pytest.mark.parametrize(("splits", "subtasks"), [(1, 1), (3, 3), (6, 3)])
@pytest.mark.parametrize("is_replicated", [False, True])
def test_the_rates_of_all_subtasks_are_the_limit_together(tmp_path, monkeypatch, splits, subtasks, is_replicated):
    rates = []

    def noted(batches, rows_per_second, check_cancelled):
        rates.append(rows_per_second)
        return batches

    monkeypatch.setattr(drivers, "paced", noted)
    world = TaskWorld(tmp_path)
    try:
        tables = [pa.table({"k": range(100 * (index + 1))}) for index in range(splits)]
        specs = [world.source(table) for table in tables]
        head, _ = specs[0]
        all_splits = tuple(split for _, own in specs for split in own)
        spec = msgspec.structs.replace(head.operator.spec, splits=all_splits)
        operator = SourceOperator(spec, rate_limit=600.0, is_replicated=is_replicated)
        head = msgspec.structs.replace(head, operator=operator)
        for subtask in range(subtasks):
            own = all_splits if is_replicated else all_splits[subtask::subtasks]
            fields = {"parallelism": subtasks, "subtask_index": subtask}
            world.task([head, world.sink(tables[0].schema)], own, fields=fields).run()
    finally:
        world.close()
    assert len(rates) == subtasks and sum(rates) == pytest.approx(600.0)
    assert is_replicated or subtasks == 1 or len(set(rates)) == subtasks, "each has the part that it reads"
