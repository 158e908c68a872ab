"""Errors on their way through Spark: few lines, the cause first.

    task:    raise carried(error)              a RuntimeError whose text holds kind and words of the error
    worker:  with plainly_told(): ...          what ends a data source's worker is told without the lines of our code
    driver:  engine_error(SparkException)      the same kind with the same words; else what Spark says, without its own
             with errors_of_spark(): ...       ways through the JVM: a PlanError of a query that it does not understand,
                                               a DataError of values, a JobExecutionError of all others

Held by: tests/spark/test_failures.py
"""

from __future__ import annotations

import base64
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    PySparkException,
)
from pyspark.logger import PySparkLogger

from engine import errors
from engine.errors import ConfigurationError, DataError, EngineError, JobExecutionError, PlanError

_MARK: Final = "drey-failure:"
_PATTERN: Final = re.compile(rf"{_MARK}([A-Za-z0-9+/=]+);")
#: error of the engine as a worker of a data source reports it
_TOLD: Final = re.compile(
    r"\bengine\.errors\.(\w+): (.*?)(?: ?\n SQLSTATE: |\n\tat |\n\nJVM stacktrace:|\Z)", re.DOTALL
)
_TRACEBACK: Final = "Traceback (most recent call last):"
_CODES: Final = re.compile(r"^\[[A-Z_.0-9]+\]\s*|\s*SQLSTATE: \w+")
#: prefix of a cause: where it happened, and its class in the JVM
_WHERE: Final = re.compile(r"^(?:Caused by: |: |Job aborted due to stage failure: .*?\(TID \d+\) \([^)]*\): )+")
_CLASS: Final = re.compile(r"^(?:org\.apache\.spark\.[\w.$]+|(?:[a-z]\w*\.)+([A-Z][\w$]*)): ")
#: messages of a lost connection to a worker that has ended
_ENDED: Final = ("java.io.EOFException", "java.net.SocketException: Connection reset", "Python worker exited unexp")
#: first words of a worker that lacks these packages, or has another version of Python
_ANOTHER_PYTHON: Final = (
    "ModuleNotFoundError: No module named 'engine'",
    "ModuleNotFoundError: No module named 'drey'",
    "[PYTHON_VERSION_MISMATCH]",
)
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: message about a file that cannot be read, further up
_FILE: Final = re.compile(r"while reading file (?:file:(?://)?)?(/.+?)\.(?=\s|\Z)")
_NOT_THE_CAUSE: Final = ("\tat ", "JVM stacktrace:", "Driver stacktrace:", "Caused by: ", " SQLSTATE: ")
_PLACE: Final = re.compile(r"(?:; line \d+ pos \d+)?;?\Z")
_LINES_MOST: Final = 8


class _Failure(msgspec.Struct):
    kind: str
    text: str


def carried(error: BaseException) -> RuntimeError:
    """Return the error that a task raises in place of another."""
    is_known = isinstance(error, EngineError)
    failure = _Failure(type(error).__name__ if is_known else "JobExecutionError", str(error) or repr(error))
    text = base64.b64encode(msgspec.json.encode(failure)).decode()
    return RuntimeError(f"{failure.text}\n{_MARK}{text};")


@contextmanager
def plainly_told() -> Iterator[None]:
    """Show users an error of the engine without a traceback, where it ends the process: in Spark's workers."""
    try:
        yield
    except EngineError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


@contextmanager
def errors_of_spark() -> Iterator[None]:
    """Raise what Spark raises inside as an error of the engine."""
    try:
        with unlogged():
            yield
    except (PySparkException, Py4JError) as error:
        raise engine_error(error) from None


class _Silence:
    """Levels of PySpark's loggers before the first call that wants silence, in any thread, until the last has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._levels: dict[logging.Logger, int] = {}

    def begin(self) -> None:
        with self._lock:
            self._wanted += 1
            if self._wanted > 1:
                return
            # of PySpark's own kind: made here as any other, they would not take what it tells them from then on
            self._levels = {logger: logger.level for logger in map(PySparkLogger.getLogger, _LOGGERS)}
            for logger in self._levels:
                logger.setLevel(logging.CRITICAL)

    def end(self) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                for logger, level in self._levels.items():
                    logger.setLevel(level)


_SILENCE: Final = _Silence()


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep PySpark from writing its errors on standard error, as JSON with the stack of the JVM."""
    _SILENCE.begin()
    try:
        yield
    finally:
        _SILENCE.end()


def engine_error(error: BaseException) -> EngineError:
    """Return the error of the engine that made a job of Spark fail, or one with what Spark says."""
    if isinstance(error, EngineError):
        return error
    said = str(error)
    found = _PATTERN.search(said)
    if found is not None:
        failure = msgspec.json.decode(base64.b64decode(found[1]), type=_Failure)
        return _of_kind(failure.kind, failure.text)
    told = _TOLD.search(said)
    if told is not None:
        return _of_kind(told[1], told[2].strip())
    if "NUMERIC_VALUE_OUT_OF_RANGE" in said and "Decimal(38" in said:
        return DataError(
            f"Spark: {plain_words(said).partition(' If necessary')[0]} Its decimals have 38 digits at most: cast to "
            "pa.float64() or to fewer places after the point, or run the job on the cluster (-t cluster)"
        )
    if "ARITHMETIC_OVERFLOW" in said:
        return DataError(
            "overflow: a result of +, - or * is beyond the range of its type (Spark does not say of which row); cast "
            "to pa.float64() or to a decimal first, or run the job locally, which names the row"
        )
    if any(words in said for words in _ANOTHER_PYTHON):
        return ConfigurationError(
            "Spark's Python workers are not the Python of this program and lack its packages; have them be the same "
            f"before the session is made: export PYSPARK_PYTHON={sys.executable} (its path on the executors' machines)"
        )
    if any(words in said for words in _ENDED):
        return JobExecutionError(
            "a Python worker of Spark ended without a word: a function ended its process, or it was killed for its "
            "memory; see the executor's log, or run the job locally, which names the function"
        )
    return _kind_of(error)(f"Spark: {plain_words(said)}")


def _of_kind(name: str, text: str) -> EngineError:
    kind = getattr(errors, name, JobExecutionError)
    if isinstance(kind, type) and issubclass(kind, EngineError):
        try:
            return kind(text)
        except TypeError:
            return JobExecutionError(text)
    return JobExecutionError(text)


def _kind_of(error: BaseException) -> type[EngineError]:
    if isinstance(error, AnalysisException):
        return PlanError
    values = (ArithmeticException, ArrayIndexOutOfBoundsException, DateTimeException, NumberFormatException)
    return DataError if isinstance(error, values) else JobExecutionError


def plain_words(said: str) -> str:
    """Return the cause from Spark's message: the last one, without codes, classes and stacks.

    Of a function in Python that is its error, and the last line of its code.
    """
    return _of_python(said) if _TRACEBACK in said else _of_the_jvm(said)


def first_line(error: BaseException) -> str:
    """Return the first line of Spark's message, without codes and its plan."""
    return _CODES.sub("", str(error).strip().partition("\n")[0]).strip()


def _of_python(said: str) -> str:
    place = ""
    words: list[str] = []
    for line in said.rpartition(_TRACEBACK)[2].splitlines():
        if line.startswith(_NOT_THE_CAUSE):
            break
        if words or (line.strip() and not line.startswith(" ")):
            words.append(line)
        elif line.startswith('  File "'):
            place = f"\n  in {line.strip()}"
    return "\n".join(words[:_LINES_MOST]).strip() + place


def _of_the_jvm(said: str) -> str:
    lines = [line for line in said.strip().splitlines() if line.strip()]
    if not lines:
        return "the job failed and did not say why"
    # Py4J's own first line says which of its objects was asked.
    is_by_py4j = len(lines) > 1 and lines[1].startswith(": ")
    first = max((at for at, line in enumerate(lines) if line.startswith("Caused by: ")), default=int(is_by_py4j))
    found = [_CLASS.sub(_short_class, _WHERE.sub("", lines[first]))]
    for line in lines[first + 1 : first + _LINES_MOST]:
        # behind a semicolon is the plan
        if line.startswith((*_NOT_THE_CAUSE, "'", "+-")) or found[-1].endswith(";"):
            break
        found.append(line)
    told = _PLACE.sub("", "\n".join([_CODES.sub("", line).rstrip() for line in found]).strip())
    file = _FILE.search(said)
    return told if file is None or file[1] in told else f"file {file[1]}: {told}"


def _short_class(found: re.Match[str]) -> str:
    return f"{found[1]}: " if found[1] else ""
