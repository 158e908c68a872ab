"""A job in which every task waits for another one ends and says so; one that is slow runs to its end."""

import re
import time

import pyarrow as pa
import pytest

from engine import Environment, JoinHint
from engine.errors import JobExecutionError
from engine.jobmaster import graph_revision, run_time_planner

QUICK = {"parallelism.default": 2, "execution.stalled.timeout": "1 s"}
TABLE = pa.table({"a": ["x" * 40000] * 20, "b": ["y"] * 20})


def nap(row):
    if row.n == 0:
        time.sleep(3)
    return row


def naps(batches):
    for number, batch in enumerate(batches):
        yield batch
        if number == 0:
            time.sleep(3)


@pytest.mark.parametrize("how", ["cross", "inner"])
def test_a_job_whose_tasks_wait_for_each_other_ends_and_says_who_for_whom(monkeypatch, how):
    # what was wrong once: fewer readers, and the producer was not told
    monkeypatch.setattr(graph_revision, "_count_subpartitions", lambda graph: None)
    monkeypatch.setattr(run_time_planner, "check_readers", lambda graph: None)
    with Environment(config=QUICK) as env:
        data = env.from_arrow(TABLE, rate_limit=1e9)  # else each of its uses reads it, and nothing is stored
        other = data.rename(a="a2", b="b2") if how == "cross" else data.rename(a="a2")
        keys = {"how": "cross"} if how == "cross" else {"on": "b", "hint": JoinHint.BROADCAST_HASH_SECOND}
        with pytest.raises(JobExecutionError) as raised:
            data.join(other, **keys).count()
    text = str(raised.value)
    assert text.startswith("JobStalledError: nothing has moved for 1 s: each of 3 running tasks waits")
    assert re.search(r"project .*waits for room in its output: partition \S+, subpartition 1, read by nobody", text)
    assert re.search(r"join .*waits for rows of project .*\(1/1\) \(partition \S+, subpartition 0\)", text)
    assert len(text.splitlines()) <= 15


@pytest.mark.parametrize("mode", ["process", "thread"])
@pytest.mark.parametrize("kind", ["map", "map_partition"])
def test_a_function_may_take_longer_than_that(mode, kind):
    with Environment(config={**QUICK, "python.execution-mode": mode}) as env:
        data = env.from_arrow(pa.table({"n": range(40)})).rebalance()
        slow = data.map(nap, schema=data.schema) if kind == "map" else data.map_partition(naps, schema=data.schema)
        assert slow.rebalance().count() == 40


def test_a_source_may_be_held_back_for_longer_than_that():
    with Environment(config=QUICK) as env:
        data = env.from_arrow(pa.table({"n": range(4)}), rate_limit=1.0)
        assert data.rebalance().distinct().count() == 4
