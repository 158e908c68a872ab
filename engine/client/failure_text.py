"""A failed job as an exception: class, and a text of at most 15 lines with the root cause first.

    ValueError: invalid literal for int() with base 10: 'x'      without the type where that is the error's class
      in function parse (jobs/clean.py, line 12)
      row: Row(id=7, price='x')
      task: map (2/4) on TaskManager 5f0c...
      job: clean prices (3b1e...)

The whole traceback is in ``details``. Pure.
"""

from __future__ import annotations

from engine import errors
from engine.errors import LINES_MAX, EngineError, JobCancelledError, JobExecutionError
from engine.gateways.messages import JobOutcome
from engine.graph.deployment import FailureInfo
from engine.shown_text import shown, shown_line

#: advice for failures whose message names no key of the configuration
_HELP = {
    "MemoryBudgetError": "  help: give operators more memory (taskmanager.memory.managed.size or .process.size), or "
    "lower parallelism.default, so that fewer share it",
}
_KEYS = "taskmanager."
#: texts for ends of a job other than failures
_ENDS = {
    "CANCELED": "was cancelled",
    "SUSPENDED": "ended as SUSPENDED: its environment was closed, or its JobManager stopped, while it ran",
}
_LINE_CHARACTERS_MAX = 500


def job_error(outcome: JobOutcome) -> EngineError:
    """Return the error to raise for a job that did not finish."""
    job_id = outcome.job_id.value
    if outcome.failure is None:
        what = _ENDS.get(outcome.status, f"ended as {outcome.status}")
        return JobCancelledError(f"job {shown_line(outcome.name)} ({job_id}) {what}", job_id=job_id)
    error_class = getattr(errors, outcome.failure.error_class, JobExecutionError)
    # an error whose class says the type does not say it once more: DataError: DataError: ...
    is_typed = getattr(error_class, "__name__", "") != outcome.failure.type_name
    text = failure_text(outcome.failure, f"{outcome.name} ({job_id})", is_typed=is_typed)
    if isinstance(error_class, type) and issubclass(error_class, JobExecutionError):
        return error_class(text, details=outcome.failure.details, job_id=job_id)
    if isinstance(error_class, type) and issubclass(error_class, EngineError):
        # Configuration, schema and plan errors say by themselves what is wrong and where.
        return error_class(outcome.failure.message)
    return JobExecutionError(text, details=outcome.failure.details, job_id=job_id)


def failure_text(failure: FailureInfo, job: str = "", *, is_typed: bool = True) -> str:
    """Return the lines for a person; ``is_typed``: they begin with the type of the root cause."""
    where = [_HELP[failure.error_class]] if failure.error_class in _HELP and _KEYS not in failure.message else []
    if failure.function:
        where.append(f"  in function {_one_line(failure.function)}")
    if failure.row:
        where.append(f"  row: {_one_line(failure.row)}")
    if failure.task:
        on = f" on TaskManager {_one_line(failure.task_manager)}" if failure.task_manager else ""
        where.append(f"  task: {_one_line(failure.task)}{on}")
    if job:
        where.append(f"  job: {_one_line(job)}")
    message = failure.message.strip().splitlines() or [""]
    first = f"{failure.type_name}: {message[0]}" if is_typed else message[0]
    lines = [first.rstrip(": ") or failure.type_name, *message[1:]]
    room = LINES_MAX - len(where)
    if len(lines) > room:
        lines = [*lines[: room - 1], "  ..."]
    return "\n".join(_shortened(line) for line in (*lines, *where))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shortened(line: str) -> str:
    line = shown(line)
    return line if len(line) <= _LINE_CHARACTERS_MAX else line[: _LINE_CHARACTERS_MAX - 3] + "..."
