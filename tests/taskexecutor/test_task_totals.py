"""Sums over the attempts of a TaskExecutor: they never fall."""

from engine.graph.deployment import OperatorCounters, TaskCounters, TaskReport
from engine.ids import ExecutionAttemptId, JobVertexId
from engine.taskexecutor.task_totals import TaskTotals


def counters(rows, spilled=0, function_us=0, requests=0):
    stores = {"s3://a": (requests, 10 * requests, 0)} if requests else {}
    operators = (OperatorCounters("map", function_us=function_us), OperatorCounters("sort"))
    return TaskCounters(rows_in=rows, spilled_bytes=spilled, operators=operators, stores=stores)


def report(state, of):
    return TaskReport(ExecutionAttemptId.create(JobVertexId("v0"), 0, 0), state, counters=of)


def test_an_attempt_counts_while_it_runs_and_after_its_end():
    totals = TaskTotals()
    assert totals.metrics([])["Status.Tasks.RowsIn"] == 0
    running = totals.metrics([counters(40, spilled=5)])
    assert (running["Status.Tasks.RowsIn"], running["Status.Tasks.Running"]) == (40, 1)
    totals.note(report("FINISHED", counters(50, spilled=6, function_us=1_500_000, requests=2)))
    totals.note(report("FAILED", counters(1, requests=1)))
    ended = totals.metrics([counters(3, requests=1)])
    assert ended["Status.Tasks.RowsIn"] == 54
    assert ended["Status.Tasks.SpilledBytes"] == 6
    assert ended["Status.Tasks.FunctionTime"] == 1.5
    assert ended["Status.Store.Requests.s3://a"] == 4
    assert ended["Status.Store.BytesRead.s3://a"] == 40
    assert {state: ended[f"Status.Tasks.Ended.{state}"] for state in ("FINISHED", "FAILED", "CANCELED")} == {
        "FINISHED": 1,
        "FAILED": 1,
        "CANCELED": 0,
    }
