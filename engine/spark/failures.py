"""An error of the engine, through a task of Spark to the driver.

    task:    raise carried(error)              a RuntimeError whose text holds kind and words of the error
    driver:  engine_error(SparkException)      the same kind with the same words; else Spark's own first line

Held by: tests/dataframes/test_failures.py
"""

from __future__ import annotations

import base64
import re
from typing import Final

import msgspec

from engine import errors
from engine.errors import DataError, EngineError, JobExecutionError

_MARK: Final = "drey-failure:"
_PATTERN: Final = re.compile(rf"{_MARK}([A-Za-z0-9+/=]+);")
_CONDITION: Final = re.compile(r"^\[[A-Z_.]+\]\s*")


class _Failure(msgspec.Struct):
    kind: str
    text: str


def carried(error: BaseException) -> RuntimeError:
    """Return what a task raises in place of an error."""
    is_known = isinstance(error, EngineError)
    failure = _Failure(type(error).__name__ if is_known else "JobExecutionError", str(error) or repr(error))
    text = base64.b64encode(msgspec.json.encode(failure)).decode()
    return RuntimeError(f"{failure.text}\n{_MARK}{text};")


def engine_error(error: BaseException) -> EngineError:
    """Return the error of the engine that made a job of Spark fail, or one with what Spark says."""
    if isinstance(error, EngineError):
        return error
    said = str(error)
    found = _PATTERN.search(said)
    if found is not None:
        failure = msgspec.json.decode(base64.b64decode(found[1]), type=_Failure)
        kind = getattr(errors, failure.kind, JobExecutionError)
        if isinstance(kind, type) and issubclass(kind, EngineError):
            try:
                return kind(failure.text)
            except TypeError:
                return JobExecutionError(failure.text)
        return JobExecutionError(failure.text)
    if "NUMERIC_VALUE_OUT_OF_RANGE" in said and "Decimal(38" in said:
        return DataError(
            f"Spark: {_root_line(said).partition(' If necessary')[0]} Its decimals have 38 digits at most: cast to "
            "pa.float64() or to fewer places after the point, or run the job on the cluster (-t cluster)"
        )
    if "ARITHMETIC_OVERFLOW" in said:
        return DataError(
            "overflow: a result of +, - or * is beyond the range of its type (Spark does not say of which row); cast "
            "to pa.float64() or to a decimal first, or run the job locally, which names the row"
        )
    if "java.io.EOFException" in said:
        return JobExecutionError(
            "a Python worker of Spark ended without a word: a function ended its process, or it was killed for its "
            "memory; see the executor's log, or run the job locally, which names the function"
        )
    return JobExecutionError(f"Spark: {_root_line(said)}")


def _root_line(said: str) -> str:
    """Return the line of Spark's words that says why."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    first = causes[-1] if causes else (lines[0] if lines else "the job failed and did not say why")
    return _CONDITION.sub("", first)
