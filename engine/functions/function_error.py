"""Errors of a user's function: what it raised, where in the user's code, and the current row.

UserFunctionError   what the job fails with; its fields travel from the worker to the task
WorkerMemoryError   the workers held more than their budget, and this one most
BadOutputError      what a function returned does not fit the schema; becomes a UserFunctionError
FunctionStopped     raised inside a function whose results are not needed any more; no failure
FunctionPlace       makes UserFunctionErrors for one function

Held by: tests/functions/test_function_runner.py
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from engine.errors import (
    DataError,
    DiskFullError,
    JobExecutionError,
    MachineLimitError,
    MemoryBudgetError,
    SpillError,
)
from engine.functions.row import RowsAt, missing_name
from engine.graph.operator_descriptor import PythonOperator
from engine.records.value_check import MisfitError
from engine.records.value_writer import described

_ROW_TEXT_MAX = 300
#: errors of what surrounds a function, by name: another machine may not meet them
MACHINE_ERRORS: Final = {each.__name__: each for each in (MachineLimitError, DiskFullError, SpillError)}
#: folder of the engine: errors raised there about a function's input are not in the user's code
_OWN_FOLDER = str(Path(__file__).parent.parent)
#: iterators that give rows to functions; they are not lists
_ITERATORS = ("row_reader.GroupRows", "row_reader.RowStream")
_NO_DEBUGGER = (
    "a debugger has no terminal here: functions run in worker processes; run the job embedded with "
    "python.execution-mode: thread (flink-run -t local -p 1 -D python.execution-mode=thread JOB.py), there "
    "breakpoint() and pdb.set_trace() stop"
)


class UserFunctionError(JobExecutionError):
    """A user's function failed; the fields say what, where and on which row.

    What to do: correct the function at the line that is named; ``on_error="collect"`` keeps failed rows apart.
    """

    def __init__(
        self,
        type_name: str,
        message: str,
        function_name: str = "",
        file: str = "",
        line: int = 0,
        row: str = "",
        details: str = "",
    ) -> None:
        super().__init__(message, details=details)
        self.type_name = type_name
        self.message = message
        self.function_name = function_name
        self.file = file
        self.line = line
        self.row = row
        #: row for which a function of one row failed (failed_row.py)
        self.failed_row: Any = None
        #: place of the row in the batch that the function got; -1: unknown
        self.position = -1


def plain_text(text: str) -> str:
    """Return a text that can be sent and written: lone surrogates of the user's strings as their escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


class WorkerKilledError(UserFunctionError):
    """A worker was ended by a signal from outside (out of memory, a shutdown); the function may be fine.

    What to do: nothing at first, the task runs again. If it is repeated, give the machine or container more memory.
    """

    retryable = True


class WorkerMemoryError(UserFunctionError, MemoryBudgetError):
    """Workers of this process held more than they may, and this was the largest; it would again.

    What to do: let the function keep less, or set the key that the error names to more.
    """


class BadOutputError(Exception):
    """The function's result does not fit the output schema."""


class FunctionStopped(BaseException):
    """The function is stopped: no consumer needs more rows. Unwinds the user's code, which need not catch it."""


def describe_row(row: object) -> str:
    """Return a row as text of bounded length; also where its own text cannot be made."""
    try:
        text = repr(row)
    except Exception as failure:
        return f"(its text cannot be made: {type(failure).__name__})"
    return text if len(text) <= _ROW_TEXT_MAX else f"{text[:_ROW_TEXT_MAX]}..."


def unfit_value(value: object, field: pa.Field, error: BaseException) -> BadOutputError:
    """Return the error of a value that is none of its column; a MisfitError says why."""
    reason = f": {error.reason}" if isinstance(error, MisfitError) and value is not None else ""
    return BadOutputError(f"returned {describe_row(value)} ({type(value).__name__}) for {described(field)}{reason}")


def message_of(error: BaseException) -> str:
    """Return an exception's text, also of one whose ``__str__`` fails: it is the user's code."""
    try:
        text = missing_name(error) or str(error)
        if isinstance(error, TypeError) and any(name in text for name in _ITERATORS):
            text += ": rows are read one by one; rows = list(rows) has them all, if they fit into memory"
        return text
    except Exception as failure:
        return f"(its text cannot be made: {type(failure).__name__})"


def _message_with_root(error: BaseException) -> str:
    """Return an exception's text, with the one that it comes from in the first place.

    That is what it was raised from (``raise ... from``), and of a group, such as a TaskGroup's, the first one.
    """
    if type(error).__name__ == "BdbQuit":
        return _NO_DEBUGGER
    root, passed = error, {id(error)}
    while (inner := _inner(root)) is not None and id(inner) not in passed:
        root = inner
        passed.add(id(root))
    text = message_of(error)
    return text if root is error else f"{text} (caused by {type(root).__name__}: {message_of(root)})"


def _inner(error: BaseException) -> BaseException | None:
    return error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__


def _is_own(file: str) -> bool:
    """Return whether a file is of the engine; native modules are known by their place below its root."""
    return file.startswith(_OWN_FOLDER) or (file.startswith("engine/") and file.endswith(".pyx"))


class FunctionPlace:
    """The place where a function was defined."""

    def __init__(self, operator: PythonOperator) -> None:
        self.name = operator.function_name
        self.file = operator.file
        self.line = operator.line

    def error_at(self, error: BaseException, place: Sequence[object]) -> UserFunctionError:
        """Return the error of a failure at a place: a sequence of one row, which may be None."""
        row = place[0]
        failure = self.error(error, "" if row is None else describe_row(row))
        if failure.failed_row is None:
            failure.failed_row = row
            failure.position = place.positions[0] if isinstance(place, RowsAt) else -1
        return failure

    def place_of(self, error: BaseException) -> tuple[str, int]:
        """Return file and line of what raised an error: in the function's file, else in what is not the engine's."""
        places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        inside = [place for place in places if place[0] == self.file]
        if not inside and not isinstance(error, DataError):
            inside = [place for place in places if not _is_own(place[0])]
        return inside[-1] if inside else (self.file, self.line)

    def error(self, error: BaseException, row: str = "", step: str = "") -> UserFunctionError:
        """Return the error about a failure in the user's code.

        row: the current row as text; step: "open" or "close", where it was no row that failed.
        """
        if isinstance(error, UserFunctionError):
            return error
        file, line = self.place_of(error)
        bad_output = isinstance(error, BadOutputError)
        return UserFunctionError(
            plain_text("TypeError" if bad_output else type(error).__name__),
            plain_text(f"{self.name} {error}" if bad_output else _message_with_root(error)),
            plain_text(f"{self.name}.{step}" if step else self.name),
            plain_text(file),
            line,
            plain_text(row),
            plain_text("".join(traceback.format_exception(error))),
        )
