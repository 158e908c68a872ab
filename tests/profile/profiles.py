"""Jobs made by hand, for pages and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.api.executor import executor_of
from engine.gateways.job_details import AttemptDetails, InputDetails, JobDetails, VertexDetails
from engine.graph.deployment import OperatorCounters, TaskCounters
from engine.graph.planned_step import PlannedStep
from engine.ids import JobId

if TYPE_CHECKING:
    from engine import DataSet
    from engine.profile.job_profile import JobProfile

_NAMES = ("parquet scan of lineitem", "filter l_shipdate <= 1998-09-02", "project", "partial aggregate by l_orderkey")


def large_job(vertices: int, subtasks: int) -> JobDetails:
    """Return a job of a chain of vertices, each with four operators, that ran on ten TaskManagers."""
    planned = tuple(PlannedStep(4 * place + at, name, "filter", rows=1e6) for place in range(vertices)
                    for at, name in enumerate(_NAMES))  # fmt: skip
    made = []
    for place in range(vertices):
        attempts = tuple(_attempt(place, index) for index in range(subtasks))
        inputs = (InputDetails(f"{place - 1:032x}", "PARTITION_HASH", "BLOCKING"),) if place else ()
        name = " -> ".join(_NAMES)
        begin_ms = 1000 + 1000 * place
        made.append(
            VertexDetails(
                f"{place:032x}", name, subtasks, 4096, "FINISHED", begin_ms, begin_ms + 2900, attempts, inputs
            )
        )
    times = {"CREATED": 1000, "RUNNING": 1001, "FINISHED": 110_000}
    return JobDetails(JobId("ef" * 16), "large", "FINISHED", 1000, 110_000, times, tuple(made), planned=planned)


def _attempt(place: int, index: int) -> AttemptDetails:
    begin_ms = 1000 + 1000 * place
    times = {"CREATED": 1000, "SCHEDULED": begin_ms, "DEPLOYING": begin_ms + 3, "RUNNING": begin_ms + 17}
    end_ms = times["FINISHED"] = begin_ms + 900 + 2 * index
    rows = 123_456 + 7 * index
    operators = tuple(
        OperatorCounters(name, rows * 80, 0, 4 * place + at, rows, rows, rows * 80, 200_000, 0, 1 << 25, 1 << 24)
        for at, name in enumerate(_NAMES)
    )
    counters = TaskCounters(
        rows, rows, rows * 80, rows * 80, 12_345_678, managed_bytes_peak=1 << 25, arrow_bytes_peak=99_999_999,
        back_pressured_ms=41, idle_ms=73, operators=operators, cpu_us=600_000, runnable_us=50_000,
    )  # fmt: skip
    manager = f"{index % 10:032x}"
    address = f"127.0.0.1:4711/taskexecutor-{manager}"
    return AttemptDetails(index, 0, "FINISHED", manager, address, begin_ms + 3, end_ms, times, counters)


def profile_of_run(data: DataSet) -> JobProfile:
    """Run what a data set needs on the embedded cluster and return the profile of that job."""
    found: list[JobProfile] = []
    executor = executor_of("local")
    known = executor.job_profile

    def job_profile(job_id, configuration):
        found.append(known(job_id, configuration))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "job_profile", job_profile)
        data.explain(analyze=True, format="html")
    return found[0]
