"""Failures as exceptions: the right class, and a short text with the root cause first."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.client.failure_text import LINES_MAX, failure_text, job_error
from engine.client.job_result import JobResult, job_result
from engine.errors import (
    DataError,
    JobCancelledError,
    JobExecutionError,
    MemoryBudgetError,
    NotYetSupportedError,
    PartitionReleasedError,
    PlanError,
    ProducerFailedError,
)
from engine.gateways.failure_info import failure_info
from engine.gateways.messages import JobOutcome
from engine.graph.deployment import FailureInfo, SubtaskResult, TaskCounters, VertexResult
from engine.ids import JobId
from engine.jobmaster.failure_history import root_failure

JOB = JobId("e" * 32)


def outcome(failure=None, status="FAILED"):
    return JobOutcome(JOB, "prices", status, 5, (), failure)


class UserError(Exception):
    """As functions report it."""

    def __init__(self, **attributes) -> None:
        super().__init__("wrapped")
        self.__dict__.update(attributes)


def test_memory_that_is_short_says_what_helps_unless_the_message_does():
    short = failure_info(MemoryBudgetError("no page is left for the states of an aggregate"), "sum (1/2)", "tm-1")
    lines = failure_text(short).splitlines()
    assert lines[0] == "MemoryBudgetError: no page is left for the states of an aggregate"
    assert lines[1].startswith("  help: ") and "taskmanager.memory.managed.size" in lines[1]
    told = failure_info(MemoryBudgetError("raise taskmanager.memory.managed.size"), "sum (1/2)", "tm-1")
    assert failure_text(told).splitlines()[1] == "  task: sum (1/2) on TaskManager tm-1"


def test_the_text_begins_with_the_root_cause_then_function_row_and_task():
    failure = failure_info(
        UserError(
            type_name="ValueError",
            message="invalid literal",
            function_name="parse",
            file="clean.py",
            line=12,
            row="Row(id=7,\n price='x')",
            details="user's traceback",
        ),
        "map (2/4)",
        "tm-1",
    )
    assert failure_text(failure, "prices (e)").splitlines() == [
        "ValueError: invalid literal",
        "  in function parse (clean.py, line 12)",
        "  row: Row(id=7, price='x')",
        "  task: map (2/4) on TaskManager tm-1",
        "  job: prices (e)",
    ]
    error = job_error(outcome(failure))
    assert type(error) is JobExecutionError and error.job_id == JOB.value
    assert error.details.startswith("user's traceback\nTraceback") or "user's traceback" in error.details


@given(st.text(), st.text(), st.text(), st.text(), st.text())
def test_no_text_is_longer_than_fifteen_lines(message, function, row, task, task_manager):
    failure = FailureInfo("ValueError", message, function=function, row=row, task=task, task_manager=task_manager)
    lines = failure_text(failure, "job").split("\n")
    assert len(lines) <= LINES_MAX and lines[0].startswith("ValueError")
    assert all(len(line) <= 500 for line in lines)


def test_a_long_message_is_cut_and_where_it_happened_stays():
    failure = FailureInfo("ValueError", "\n".join(f"line {n}" for n in range(100)), task="map (1/1)", task_manager="t")
    lines = failure_text(failure, "job").splitlines()
    assert len(lines) == 15 and lines[12:] == ["  ...", "  task: map (1/1) on TaskManager t", "  job: job"]


@pytest.mark.parametrize("error_class", [DataError, MemoryBudgetError])
def test_the_class_of_an_engine_error_is_the_class_that_is_raised(error_class):
    failure = failure_info(error_class("a.csv, line 7: not a number"), "scan (1/1)", "tm")
    error = job_error(outcome(failure))
    assert type(error) is error_class
    assert str(error).splitlines()[0] == "a.csv, line 7: not a number"
    assert "".join(traceback.format_exception_only(error)).count(error_class.__name__) == 1
    assert error._render_traceback_()[0] == f"{error_class.__name__}: a.csv, line 7: not a number"


def test_a_plan_error_is_raised_as_it_is():
    error = job_error(outcome(failure_info(PlanError("output out already exists"))))
    assert type(error) is PlanError and str(error) == "output out already exists"


def test_a_cancelled_job_is_a_cancelled_error():
    error = job_error(outcome(status="CANCELED"))
    assert type(error) is JobCancelledError and str(error) == f"job prices ({JOB}) was cancelled"


def test_a_suspended_job_says_what_may_have_ended_it():
    error = job_error(outcome(status="SUSPENDED"))
    assert type(error) is JobCancelledError and "ended as SUSPENDED: its environment was closed, or" in str(error)


def raised(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_an_explicit_chain_is_followed_to_its_end_and_an_implicit_one_is_not():
    def explicit():
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("outer") from error

    def implicit():
        try:
            {}["k"]
        except KeyError:
            raise LookupError("what the user meant")  # noqa: B904

    assert failure_info(raised(explicit)).type_name == "ValueError"
    assert failure_info(raised(implicit)).message == "what the user meant"
    assert "RuntimeError: outer" in failure_info(raised(explicit)).details


def test_an_engine_error_that_says_what_is_wrong_is_the_cause_whatever_it_came_from():
    def data():
        try:
            int("x")
        except ValueError as error:
            raise DataError("a.csv, line 3, column id") from error

    def wrapped():
        try:
            data()
        except DataError as error:
            raise RuntimeError("task failed") from error

    for function in (data, wrapped):
        failure = failure_info(raised(function))
        assert (failure.type_name, failure.error_class) == ("DataError", "DataError") and not failure.retryable


def test_resources_are_retryable_and_user_errors_are_not():
    assert failure_info(PartitionReleasedError("gone")).retryable
    assert not failure_info(ValueError("bad")).retryable


def test_what_others_caused_is_not_the_root():
    consequence, cause = failure_info(ProducerFailedError("producer failed")), failure_info(ValueError("bad"))
    assert root_failure([consequence, cause]) is cause
    assert root_failure([consequence]) is consequence


def test_the_result_has_flat_counters_and_the_json_of_the_contract():
    counters = TaskCounters(1, 2, 3, 4, 5, 7)
    vertices = (VertexResult("scan", (SubtaskResult(0, counters, 2),)),)
    result = job_result(JobOutcome(JOB, "prices", "FINISHED", 12, vertices))
    subtask = result.vertices[0].subtasks[0]
    assert isinstance(result, JobResult) and (subtask.bad_rows, subtask.attempts) == (7, 2)
    assert result.to_json_dict() == {
        "job_id": JOB.value,
        "state": "FINISHED",
        "runtime_ms": 12,
        "bad_rows": 7,
        "stores": {},
        "vertices": [
            {
                "name": "scan",
                "subtasks": [
                    {"index": 0, "rows_in": 1, "rows_out": 2, "bytes_in": 3, "bytes_out": 4, "spilled_bytes": 5}
                ],
            }
        ],
    }


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("median of texts", "median of texts is not supported yet"),
        ("read_database; use env.from_arrow", "read_database is not supported yet; use env.from_arrow"),
        ("string_agg(x, '; ') here", "string_agg(x, '; ') here is not supported yet"),
        ("string_agg(x, '; ') here; leave it", "string_agg(x, '; ') here is not supported yet; leave it"),
        ("a is not supported yet; do b", "a is not supported yet; do b"),
    ],
)
def test_what_is_not_there_yet_is_named_in_front_of_the_advice(said, shown):
    assert str(NotYetSupportedError(said)) == shown
