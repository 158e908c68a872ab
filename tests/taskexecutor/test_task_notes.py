"""Spilling and long waits of an attempt are told in the log, with numbers."""

import logging

import pyarrow as pa

from engine import Environment
from engine.graph.deployment import OperatorCounters, TaskCounters
from engine.taskexecutor.task_notes import notable


def test_spilling_and_waits_of_more_than_a_second_are_told_and_nothing_else():
    assert notable(TaskCounters(rows_in=5, idle_ms=1000, back_pressured_ms=999)) == ""
    sort = OperatorCounters("sort by k", 4096, 2048)
    told = notable(TaskCounters(spilled_bytes=3072, idle_ms=2500, back_pressured_ms=1001, operators=(sort,)))
    assert told.startswith("spilled 3")
    assert "by sort by k)" in told
    assert told.endswith("waited 2.5 s for input, waited 1.0 s for room for its output")
    assert "(" not in notable(TaskCounters(spilled_bytes=3072))


def test_a_task_that_spilled_says_so_in_the_log(caplog, tmp_path):
    caplog.set_level(logging.INFO)
    rows = pa.table({"t": [f"{number * 7919 % 40_000:08d}" + "x" * 80 for number in range(40_000)]})
    config = {"parallelism.default": 1, "taskmanager.memory.managed.size": "400kb", "io.tmp.dirs": str(tmp_path)}
    with Environment(config=config) as env:
        env.from_arrow(rows).sort("t").to_arrow()
    lines = [record.getMessage() for record in caplog.records]
    assert any(": spilled " in line and "by sort by t" in line for line in lines), lines
