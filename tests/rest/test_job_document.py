"""Documents of a job against Flink's field names."""

from __future__ import annotations

import pytest

from engine.gateways.insight import TaskPressure
from engine.ids import ExecutionAttemptId, JobVertexId
from engine.rest.job_document import (
    EXECUTION_STATES,
    JOB_STATES,
    exceptions_document,
    job_document,
    metrics,
    plan_document,
    result_document,
)
from engine.rest.vertex_document import (
    metric_values,
    pressure_document,
    pressure_level,
    subtask_document,
    taskmanagers_document,
    times_document,
    vertex_document,
)
from tests.rest.details import JOB_ID, TASK_MANAGER, job

NOW = 11_000
METRICS = {
    "read-bytes",
    "read-bytes-complete",
    "write-bytes",
    "write-bytes-complete",
    "read-records",
    "read-records-complete",
    "write-records",
    "write-records-complete",
    "accumulated-backpressured-time",
    "accumulated-idle-time",
    "accumulated-busy-time",
}


def test_a_job_has_all_of_flinks_fields():
    document = job_document(job(), NOW)
    assert set(document) >= {
        "jid",
        "name",
        "isStoppable",
        "state",
        "job-type",
        "schedulerType",
        "start-time",
        "end-time",
        "duration",
        "maxParallelism",
        "now",
        "timestamps",
        "vertices",
        "status-counts",
        "plan",
        "pending-operators",
    }
    assert (document["jid"], document["state"], document["job-type"]) == (JOB_ID.value, "RUNNING", "BATCH")
    assert (document["start-time"], document["end-time"], document["duration"]) == (900, -1, NOW - 900)
    assert len(JOB_STATES) == 11 and set(document["timestamps"]) == set(JOB_STATES)
    assert document["timestamps"]["RUNNING"] == 1000 and document["timestamps"]["FAILED"] == 0
    assert set(document["status-counts"]) == set(EXECUTION_STATES) and document["status-counts"]["RUNNING"] == 1


def test_vertices_have_sums_over_their_subtasks():
    scan, join = job_document(job(), NOW)["vertices"]
    assert set(join) >= {"id", "name", "parallelism", "maxParallelism", "status", "start-time", "end-time", "duration"}
    assert set(join["metrics"]) >= METRICS and set(join["tasks"]) == set(EXECUTION_STATES)
    assert (join["metrics"]["read-records"], join["metrics"]["read-bytes"]) == (7, 70)
    assert not join["metrics"]["read-records-complete"] and scan["metrics"]["read-records-complete"]
    assert join["tasks"]["RUNNING"] == 2 and (join["end-time"], join["duration"]) == (-1, NOW - 1100)
    # it ran from 1500 to 5000, waited 1000 for room and 500 for input
    assert (scan["metrics"]["accumulated-busy-time"], scan["metrics"]["accumulated-idle-time"]) == (2000.0, 500)


def test_a_vertex_shows_the_largest_of_its_subtasks_peaks():
    join = job().vertices[1]
    peaks = {name: value for name, value in metrics(join.subtasks).items() if name.endswith("-peak")}
    assert peaks == {
        "managed-bytes-peak": 3 << 20,
        "network-buffers-peak": 0,
        "arrow-bytes-peak": 9 << 20,
        "worker-bytes-peak": 70 << 20,
    }
    values = metric_values(join)
    assert (values["0.arrowMemoryPeak"], values["1.arrowMemoryPeak"]) == (5 << 20, 9 << 20)
    assert (values["0.pythonWorkerMemoryPeak"], values["1.pythonWorkerMemoryPeak"]) == (0, 70 << 20)


def test_the_plan_names_what_each_vertex_reads_and_how():
    scan, join = plan_document(job())["nodes"]
    assert set(join) == {
        "id",
        "parallelism",
        "operator",
        "operator_strategy",
        "description",
        "inputs",
        "optimizer_properties",
    }
    assert scan["inputs"] == []
    assert join["inputs"] == [{"num": 0, "id": scan["id"], "ship_strategy": "HASH", "exchange": "blocking"}]


def test_a_vertex_has_its_subtasks_with_times_and_places():
    document = vertex_document(job().vertices[1], NOW)
    assert [line["attempt"] for line in document["subtasks"]] == [0, 1]
    line = document["subtasks"][0]
    assert set(line) >= {
        "subtask",
        "status",
        "attempt",
        "endpoint",
        "start-time",
        "end-time",
        "duration",
        "metrics",
        "taskmanager-id",
        "status-duration",
    }
    assert (line["endpoint"], line["host"], line["taskmanager-id"]) == ("127.0.0.1:4711", "127.0.0.1", TASK_MANAGER)
    assert line["status-duration"]["DEPLOYING"] == 400 and line["status-duration"]["RUNNING"] == NOW - 1500
    assert document["aggregated"]["metrics"]["read-records"] == {"min": 3, "max": 4, "avg": 3.5, "sum": 7}
    ended = subtask_document(job().vertices[0].subtasks[0], NOW)
    assert (ended["duration"], ended["status-duration"]["RUNNING"]) == (3900, 3500)


def test_subtask_times_and_taskmanagers_of_a_vertex():
    vertex = job().vertices[1]
    times = times_document(vertex, NOW)["subtasks"]
    assert len(EXECUTION_STATES) == 10 and set(times[0]["timestamps"]) == set(EXECUTION_STATES)
    (line,) = taskmanagers_document(vertex, NOW)["taskmanagers"]
    assert (line["taskmanager-id"], line["status"], line["end-time"]) == (TASK_MANAGER, "RUNNING", -1)
    assert line["metrics"]["read-records"] == 7 and line["status-counts"]["RUNNING"] == 2


def test_exceptions_come_latest_first_and_bounded():
    failures = job().failures * 3
    document = exceptions_document(failures, is_truncated=False, limit=2)
    history = document["exceptionHistory"]
    assert len(history["entries"]) == 2 and history["truncated"] and document["truncated"]
    assert history["entries"][0]["taskName"] == "join (2/2)" and history["entries"][0]["exceptionName"] == "ValueError"
    assert document["root-exception"].startswith("ValueError: ")
    nothing = exceptions_document((), is_truncated=False, limit=2)
    assert nothing["root-exception"] is None and nothing["exceptionHistory"]["entries"] == []


@pytest.mark.parametrize(
    ("status", "name"), [("FINISHED", "SUCCEEDED"), ("FAILED", "FAILED"), ("CANCELED", "CANCELED")]
)
def test_the_execution_result_says_how_a_job_ended(status, name):
    assert result_document(job()) == {"status": {"id": "IN_PROGRESS"}}
    document = result_document(job(status=status))
    assert document["status"] == {"id": "COMPLETED"}
    result = document["job-execution-result"]
    assert (result["application-status"], result["net-runtime"]) == (name, 8100)
    assert ("failure-cause" in result) == (status == "FAILED")


def test_back_pressure_has_three_levels_and_the_worst_subtask_counts():
    assert [pressure_level(ratio) for ratio in (0.0, 0.1, 0.11, 0.5, 0.51, 1.0)] == [
        "ok",
        "ok",
        "low",
        "low",
        "high",
        "high",
    ]
    attempts = [ExecutionAttemptId.create(JobVertexId(1), index, 0) for index in (1, 0)]
    sampled = [TaskPressure(attempts[0], 0.6, 0.3, 0.1), TaskPressure(attempts[1], 0.0, 0.5, 0.5)]
    document = pressure_document(job().vertices[1], sampled, NOW)
    assert set(document) >= {"status", "backpressureLevel", "end-timestamp", "subtasks"}
    assert (document["status"], document["backpressureLevel"], document["end-timestamp"]) == ("ok", "high", NOW)
    assert [line["subtask"] for line in document["subtasks"]] == [0, 1]
    assert document["subtasks"][1]["backpressureLevel"] == "high" and document["subtasks"][1]["busyRatio"] == 0.3
    assert pressure_document(job().vertices[1], [], NOW)["subtasks"] == []
