"""Errors of the engine pass through tasks of Spark."""

import logging
import sys

import pytest
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from engine.errors import ConfigurationError, DataError, JobExecutionError, PlanError, SchemaError
from engine.spark.failures import carried, engine_error, errors_of_spark, plain_words, unlogged


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
    assert str(engine_error(RuntimeError(said))) == "Spark: no such value."
    assert engine_error(error := SchemaError("x")) is error


def test_decimals_that_spark_cannot_hold_say_what_to_do():
    said = (
        "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION]  1e33 cannot be represented as Decimal(38, 6). If necessary set x"
    )
    error = engine_error(RuntimeError(said))
    assert type(error) is DataError
    assert str(error).startswith("Spark: 1e33 cannot be represented as Decimal(38, 6). Its decimals have 38 digits")


def test_pyspark_logs_nothing_that_is_raised_anyway():
    logger = logging.getLogger("DataFrameQueryContextLogger")
    with pytest.raises(JobExecutionError, match=r"\ASpark: it broke\Z"), errors_of_spark():
        assert not logger.isEnabledFor(logging.ERROR)
        raise PySparkException("[BROKEN] it broke")
    assert logger.isEnabledFor(logging.ERROR)


def test_of_two_who_want_silence_the_last_one_ends_it():
    logger = logging.getLogger("DataFrameQueryContextLogger")
    first, second = unlogged(), unlogged()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not logger.isEnabledFor(logging.ERROR)
    second.__exit__(None, None, None)
    assert logger.isEnabledFor(logging.ERROR)


def test_errors_that_pyspark_raises_later_are_its_own(monkeypatch):
    # it gives its loggers more than others take
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        monkeypatch.delitem(logging.root.manager.loggerDict, name, raising=False)
    with errors_of_spark():
        pass
    assert isinstance(logging.getLogger("SQLQueryContextLogger"), PySparkLogger)
    assert isinstance(logging.getLogger("DataFrameQueryContextLogger"), PySparkLogger)


def test_overflow_is_the_error_that_it_is_elsewhere():
    said = "Caused by: [ARITHMETIC_OVERFLOW] long overflow. Use 'try_add' ... set spark.sql.ansi.enabled to false"
    error = engine_error(RuntimeError(said))
    assert type(error) is DataError
    assert str(error).startswith("overflow: ") and "ansi" not in str(error)


@pytest.mark.parametrize(
    "cause",
    [
        "java.io.EOFException",
        "java.net.SocketException: Connection reset",
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
    ],
)
def test_a_worker_that_ended_is_no_error_of_files(cause):
    error = engine_error(RuntimeError(f"Job aborted\nCaused by: {cause}\n\tat x"))
    assert str(error).startswith("a Python worker of Spark ended without a word")


@pytest.mark.parametrize(
    "said",
    [
        "pickle.loads(obj)\nModuleNotFoundError: No module named 'engine'\n",
        "in beside\nModuleNotFoundError: No module named 'drey'\n",
        "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9",
    ],
)
def test_a_worker_without_our_packages_says_which_python_it_should_be(said):
    error = engine_error(RuntimeError(f"Job aborted\nTraceback (most recent call last):\n{said}"))
    assert type(error) is ConfigurationError
    assert f"export PYSPARK_PYTHON={sys.executable} " in str(error)


FROM_JAVA = """An error occurred while calling o142.parquet.
: org.apache.spark.SparkException: [FAILED_READ_FILE.FOOTER] Could not read footer.
If not, please convert it. SQLSTATE: KD001
\tat org.apache.spark.sql.x(Y.scala:1)
Caused by: java.util.concurrent.ExecutionException: wrapped
\tat x
Caused by: java.io.FileNotFoundException: /data/x does not exist
\tat x
"""
FROM_PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/spark/worker.py", line 3, in process
    go()
  File "/home/me/job.py", line 55, in f
    return 1 // 0
           ~~^~~
ZeroDivisionError: by zero
 SQLSTATE: 38000

JVM stacktrace:
org.apache.spark.api.python.PythonException
"""
FROM_A_STAGE = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "1.0 (TID 2) (localhost executor driver): java.lang.IllegalArgumentException: not all nodes\n\tat x"
)
FROM_A_FILE = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "1.0 (TID 2) (localhost executor driver): org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered "
    "error while reading file file:///data/1.parquet.  SQLSTATE: KD001\n\tat x\n"
    "Caused by: java.io.IOException: no page\n\tat x"
)
FROM_SQL = (
    "[DIVIDE_BY_ZERO] By zero. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^\n\n"
    "JVM stacktrace:\nx"
)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (FROM_JAVA, "FileNotFoundException: /data/x does not exist"),
        (FROM_JAVA.partition("Caused")[0], "Could not read footer.\nIf not, please convert it."),
        (FROM_PYTHON, 'ZeroDivisionError: by zero\n  in File "/home/me/job.py", line 55, in f'),
        (FROM_A_STAGE, "IllegalArgumentException: not all nodes"),
        (FROM_A_FILE, "file /data/1.parquet: IOException: no page"),
        (FROM_SQL, "By zero.\n== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^"),
        ("[NO_ORDER] no order of m. SQLSTATE: 42822; line 1 pos 0;\nProject [m#1]\n+- x", "no order of m."),
        ("", "the job failed and did not say why"),
    ],
)
def test_what_spark_says_is_told_in_few_lines_with_the_cause_first(said, words):
    assert plain_words(said) == words


@pytest.mark.parametrize("end", ["\n SQLSTATE: 38000", " \n SQLSTATE: 38000\n\nJVM stacktrace:\nx", "\n\tat x", ""])
def test_refusals_of_a_data_source_are_errors_of_their_kind(end):
    said = f"[PYTHON_DATA_SOURCE_ERROR] Failed to create: engine.errors.PlanError: no column 'x'\nthere{end}"
    error = engine_error(RuntimeError(said))
    assert (type(error), str(error)) == (PlanError, "no column 'x'\nthere")
