"""Limits of the operating system: raised where that is allowed, and told of as such wherever they are met."""

import errno
import logging
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import (
    DataError,
    MachineLimitError,
    PartitionConnectionError,
    SpillError,
    TaskCancelledError,
)
from engine.functions.function_error import UserFunctionError
from engine.gateways.failure_info import failure_info
from engine.graph.deployment import FailureInfo
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, JobVertexId, ResultPartitionId
from engine.machine_limits import machine_limit, no_process, raise_descriptor_limit

ROOT = Path(__file__).resolve().parents[1]
LIMITS = [
    (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "ulimit -n"),
    (OSError(errno.ENFILE, os.strerror(errno.ENFILE)), "fs.file-max"),
    (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "no memory left"),
    (RuntimeError("can't start new thread"), "ulimit -u"),
]


def _raised(error: BaseException, *causes: BaseException) -> BaseException:
    current = error
    for cause in causes:
        current.__cause__ = cause
        current = cause
    return error


@pytest.mark.parametrize(("cause", "advice"), LIMITS, ids=["files", "all files", "memory", "threads"])
@pytest.mark.parametrize("kind", [SpillError, PartitionConnectionError, DataError, None])
def test_whatever_was_being_done_the_machine_is_named(
    cause: Exception, advice: str, kind: type[Exception] | None
) -> None:
    error = cause if kind is None else _raised(kind("what was done"), OSError("on the way"), cause)
    failure = failure_info(error, "task", "tm")
    assert (failure.type_name, failure.retryable, failure.function) == (MachineLimitError.__name__, True, "")
    assert advice in failure.message
    assert ("what was done" in failure.message) == (kind is not None)
    assert failure.task_manager == "tm"


def test_what_a_function_meets_by_itself_is_its_own() -> None:
    cause = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    failure = failure_info(_raised(UserFunctionError("OSError", "too many", "f", "job.py", 3), cause))
    assert (failure.type_name, failure.retryable) == ("OSError", False)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        RuntimeError("something else"),
        TaskCancelledError("cancelled"),
    ],
    ids=["would block", "disk", "other", "cancelled"],
)
def test_other_errors_are_what_they_were(error: Exception) -> None:
    assert machine_limit(error) is None
    assert failure_info(error).type_name == type(error).__name__


def test_a_process_that_cannot_be_forked_is_a_limit_too() -> None:
    found = no_process(BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "no worker")
    assert found is not None
    assert str(found).startswith("no worker: ") and "pids.max" in str(found)
    assert no_process(OSError(errno.ENOENT, "gone"), "no worker") is None


def test_a_result_of_another_machine_is_not_lost_by_a_limit_of_this_one() -> None:
    """Its producer would run again for nothing."""
    error = PartitionConnectionError("no connection")
    vertex = JobVertexId(0)
    error.partition = ResultPartitionId(IntermediateDataSetId(vertex, 0), ExecutionAttemptId.create(vertex, 0, 0))
    assert failure_info(error).partition == error.partition
    assert failure_info(_raised(error, OSError(errno.EMFILE, "files"))).partition is None


SCRIPT = """
import logging, resource, sys
from engine.machine_limits import raise_descriptor_limit
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
raise_descriptor_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "after", "said"),
    [
        (256, 8000, 8000, "INFO this process may have 8000 open files: the limit was 256"),
        (256, 300, 300, "WARNING this process may have no more than 300 open files"),
        (5000, 5000, 5000, ""),
    ],
)
def test_a_process_asks_for_as_many_open_files_as_it_may_have(soft: int, hard: int, after: int, said: str) -> None:
    words = [sys.executable, "-c", SCRIPT, str(soft), str(hard)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == f"({after}, {hard})"
    assert said in done.stdout
    assert said or done.stdout.count("\n") == 1


def test_a_limit_that_cannot_be_raised_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 200))
    monkeypatch.setattr(resource, "setrlimit", refused)
    with caplog.at_level(logging.WARNING):
        raise_descriptor_limit()
    assert "no more than 100 open files" in caplog.text


def test_failures_say_that_they_are_of_the_machine() -> None:
    assert isinstance(failure_info(MachineLimitError("full")), FailureInfo)
    assert failure_info(MachineLimitError("full")).message == "full"
