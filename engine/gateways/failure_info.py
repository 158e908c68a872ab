"""An exception as data: FailureInfo with the root cause first.

An engine error that says what is wrong (DataError, MemoryBudgetError, SpillError ...) is the root cause itself,
whatever library error it was raised from. Any other exception is followed along its explicit ``raise ... from`` chain
to the end. Where that end is a limit of the machine, such as open files, it is a MachineLimitError, whatever was being
done. What user code raises arrives as an exception with attributes: ``type_name``,
``message``, ``function_name``, ``file``, ``line``, ``row``, ``details`` (each may be missing). Controls in these
texts are written out (``shown_text``): they reach logs, terminals and pages.

Held by: tests/client/test_retryable_errors.py
"""

from __future__ import annotations

import traceback

from engine.errors import (
    ConfigurationError,
    DataError,
    EngineError,
    JobCancelledError,
    JobExecutionError,
    MachineLimitError,
    MemoryBudgetError,
    PlanError,
    ResourceError,
    SchemaError,
)
from engine.graph.deployment import FailureInfo
from engine.ids import ResultPartitionId
from engine.machine_limits import machine_limit
from engine.shown_text import shown, shown_line

_ROW_CHARACTERS_MAX = 500
#: classes of errors that the client raises under their own names
_CLIENT_CLASSES: tuple[type[EngineError], ...] = (
    DataError,
    MemoryBudgetError,
    JobCancelledError,
    PlanError,
    SchemaError,
    ConfigurationError,
)


def failure_info(error: BaseException, task: str = "", task_manager: str = "") -> FailureInfo:
    """Return the description of a failure, for the report to the JobMaster and for users."""
    cause = _root_cause(error)
    if not getattr(cause, "type_name", None):  # what a user's function met is its own
        cause = machine_limit(cause) or cause
    error_class = next((known.__name__ for known in _CLIENT_CLASSES if isinstance(cause, known)), "JobExecutionError")
    return FailureInfo(
        type_name=shown_line(str(getattr(cause, "type_name", "") or type(cause).__name__)),
        message=shown(str(getattr(cause, "message", None) or cause)),
        error_class=error_class,
        retryable=isinstance(cause, EngineError) and cause.retryable,
        function=shown(_function_text(cause)),
        row=shown(_shortened(str(getattr(cause, "row", "") or ""))),
        task=task,
        task_manager=task_manager,
        details=shown(_details(error, cause)),
        partition=None if isinstance(cause, MachineLimitError) else _partition(error, cause),
    )


def lost_task_executor(resource_id: str, reason: str, task: str = "") -> FailureInfo:
    """Return the failure of an attempt whose TaskExecutor is gone."""
    return FailureInfo(
        type_name=ResourceError.__name__,
        message=f"TaskManager {resource_id} was lost: {reason}",
        retryable=True,
        task=task,
        task_manager=resource_id,
    )


def _partition(error: BaseException, cause: BaseException) -> ResultPartitionId | None:
    for each in (cause, error):
        partition = getattr(each, "partition", None)
        if isinstance(partition, ResultPartitionId):
            return partition
    return None


def cancelled_elsewhere(task: str) -> FailureInfo:
    """Return the failure of an attempt that its TaskExecutor ended by itself."""
    message = "the task was cancelled on its TaskManager"
    return FailureInfo("TaskCancelledError", message, retryable=True, task=task)


def _root_cause(error: BaseException) -> BaseException:
    seen: set[int] = set()
    current = error
    while id(current) not in seen:
        seen.add(id(current))
        if _says_what_is_wrong(current) or current.__cause__ is None:
            return current
        current = current.__cause__
    return error


def _says_what_is_wrong(error: BaseException) -> bool:
    if getattr(error, "type_name", None):
        return True
    return isinstance(error, EngineError) and type(error) not in (EngineError, JobExecutionError)


def _function_text(cause: BaseException) -> str:
    name = getattr(cause, "function_name", "")
    if not name:
        return ""
    file, line = getattr(cause, "file", ""), getattr(cause, "line", 0)
    if not file:
        return str(name)
    return f"{name} ({file}, line {line})" if line else f"{name} ({file})"


def _shortened(text: str) -> str:
    return text if len(text) <= _ROW_CHARACTERS_MAX else text[: _ROW_CHARACTERS_MAX - 3] + "..."


def _details(error: BaseException, cause: BaseException) -> str:
    own = str(getattr(cause, "details", "") or "")
    is_raised = error.__traceback__ is not None or error.__cause__ is not None
    trace = "".join(traceback.format_exception(error)) if is_raised else ""  # one that was not says nothing more
    return "\n".join(filter(None, (own, trace)))
