"""Errors of the engine pass through tasks of Spark."""

import pytest

from engine.dataframes.failures import carried, engine_error
from engine.errors import DataError, JobExecutionError, SchemaError


@pytest.mark.parametrize(
    "error", [DataError("part 3: no number"), SchemaError("no column 'x'"), JobExecutionError("a\nb")]
)
def test_errors_of_the_engine_come_back_as_they_were(error):
    through = RuntimeError(f"Job aborted. PythonException: Traceback\nRuntimeError: {carried(error)}\nat java.lang")
    back = engine_error(through)
    assert type(back) is type(error)
    assert str(back) == str(error)


def test_other_errors_are_failures_of_the_job():
    assert str(engine_error(RuntimeError(str(carried(KeyError("gone")))))) == "'gone'"


def test_words_of_spark_are_its_last_cause():
    said = "[JOB_ABORTED] Job aborted\n\tat x\nCaused by: [CAST_OVERFLOW] no such value. SQLSTATE: 22003\n\tat y"
    assert str(engine_error(RuntimeError(said))) == "Spark: no such value. SQLSTATE: 22003"
    assert engine_error(error := SchemaError("x")) is error


def test_decimals_that_spark_cannot_hold_say_what_to_do():
    said = (
        "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION]  1e33 cannot be represented as Decimal(38, 6). If necessary set x"
    )
    error = engine_error(RuntimeError(said))
    assert type(error) is DataError
    assert str(error).startswith("Spark: 1e33 cannot be represented as Decimal(38, 6). Its decimals have 38 digits")


def test_overflow_is_the_error_that_it_is_elsewhere():
    said = "Caused by: [ARITHMETIC_OVERFLOW] long overflow. Use 'try_add' ... set spark.sql.ansi.enabled to false"
    error = engine_error(RuntimeError(said))
    assert type(error) is DataError
    assert str(error).startswith("overflow: ") and "ansi" not in str(error)


def test_a_worker_that_ended_is_no_error_of_files():
    error = engine_error(RuntimeError("Job aborted\nCaused by: java.io.EOFException\n\tat x"))
    assert str(error).startswith("a Python worker of Spark ended without a word")
