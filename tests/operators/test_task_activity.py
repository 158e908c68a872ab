"""What a task says of itself while it runs: it works, waits for input, or waits for room for its output."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from engine.errors import TaskCancelledError
from engine.gateways.insight import TaskActivity
from engine.graph.operator_descriptor import IdentityOperator
from tests.operators.task_world import TaskWorld, described, gate, in_thread, partition

END_S = 60.0
SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
TABLE = pa.table({"k": range(20_000), "s": ["text"] * 20_000}, schema=SCHEMA)


@pytest.fixture
def world(tmp_path):
    made = TaskWorld(tmp_path)
    yield made
    made.close()


def until(condition):
    deadline = time.monotonic() + END_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("kind", ["FORWARD", "HASH"])
def test_a_producer_nobody_reads_from_is_back_pressured_until_somebody_does(world, kind):
    produced, attempt = partition(SCHEMA, kind=kind)
    head, splits = world.source(pa.concat_tables([TABLE] * 20))
    producer = world.task((head,), splits, partitions=(produced,), attempt=attempt)
    thread, errors = in_thread(producer.run)
    until(lambda: producer.activity() is TaskActivity.BACK_PRESSURED)
    time.sleep(0.05)  # so that there is something to count
    until(lambda: producer.activity() is TaskActivity.BACK_PRESSURED)
    consumer = world.task((described(IdentityOperator(), SCHEMA), world.sink(SCHEMA)), gates=(gate(produced),))
    consumer.run()
    thread.join(END_S)
    assert errors == [] and producer.activity() is TaskActivity.BUSY
    assert producer.counters().back_pressured_ms >= 40
    assert consumer.counters().rows_in == 400_000


def test_a_consumer_of_nothing_is_idle(world):
    produced, _ = partition(SCHEMA)
    task = world.task((described(IdentityOperator(), SCHEMA), world.sink(SCHEMA)), gates=(gate(produced),))
    assert task.activity() is TaskActivity.BUSY
    thread, errors = in_thread(task.run)
    until(lambda: task.activity() is TaskActivity.IDLE)
    time.sleep(0.05)  # so that there is something to count
    task.cancel()
    thread.join(END_S)
    assert [type(error) for error in errors] == [TaskCancelledError]
    assert task.counters().idle_ms >= 40 and task.counters().back_pressured_ms == 0
