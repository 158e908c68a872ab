"""Lines of logs as JSON objects, with the ids of what they are about."""

import json
import logging
import sys

import pyarrow as pa
import pytest

import engine.task_log as task_log_module
from engine import Environment
from engine.config.loader import configuration_from_texts
from engine.config.options import LOG_FORMAT
from engine.entrypoint.logging_setup import set_up_logging
from engine.ids import ExecutionAttemptId, JobId, JobVertexId
from engine.log_format import JsonLines, line_formatter
from engine.task_log import install_task_logs, task_log, task_log_path


def record(text, *arguments, **more):
    return logging.LogRecord("engine.x", logging.INFO, "x.py", 1, text, arguments, more.get("exc_info"))


def told(made, formatter=None):
    line = (formatter or JsonLines()).format(made)
    assert "\n" not in line
    return json.loads(line)


@pytest.fixture
def folder(tmp_path):
    before = sys.stdout, sys.stderr
    handler = install_task_logs(tmp_path, line_formatter("json"))
    yield tmp_path
    logging.getLogger().removeHandler(handler)
    sys.stdout, sys.stderr = before
    task_log_module._folder, task_log_module._is_json = None, False


def test_a_line_has_time_level_logger_thread_process_and_text():
    line = told(record("%d of\n%s", 3, "äöü"))
    assert line["message"] == "3 of\näöü"
    assert (line["level"], line["logger"], line["thread"]) == ("INFO", "engine.x", "MainThread")
    assert line["process"] > 0
    assert "T" in line["time"]
    assert "job" not in line


def test_ids_that_a_line_names_are_fields_of_it():
    job, other = JobId.random(), JobId.random()
    attempt = ExecutionAttemptId.create(JobVertexId(2), 1, 0)
    line = told(record("job %s, after %s: %s", job, other, attempt))
    assert (line["job"], line["attempt"]) == (job.value, str(attempt))


def test_a_failure_is_one_line_with_its_traceback():
    try:
        raise ValueError("three\nlines\n\udcff")
    except ValueError:
        line = told(record("failed", exc_info=sys.exc_info()))
    assert "Traceback" in line["error"]
    assert "ValueError: three\nlines" in line["error"]


def test_text_is_the_default():
    assert not isinstance(line_formatter("text"), JsonLines)
    assert configuration_from_texts({}).get(LOG_FORMAT) == "text"


def test_one_setting_makes_the_log_of_a_process_json(tmp_path):
    root = logging.getLogger()
    before = list(root.handlers), root.level, sys.stdout, sys.stderr
    try:
        path = tmp_path / "jobmanager.log"
        set_up_logging(configuration_from_texts({"logging.format": "json"}), path, to_terminal=False)
        with task_log(JobId.random(), ExecutionAttemptId.create(JobVertexId(0), 0, 0), "sort (1/1)"):
            logging.getLogger("engine.y").info("at work")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    finally:
        for handler in set(root.handlers) - set(before[0]):
            root.removeHandler(handler)
            handler.close()
        root.setLevel(before[1])
        logging.captureWarnings(False)
        sys.stdout, sys.stderr = before[2:]
        task_log_module._folder, task_log_module._is_json = None, False
    (line,) = [line for line in lines if line["message"] == "at work"]
    assert line["task"] == "sort (1/1)"


def test_each_line_of_a_task_has_its_ids_and_the_next_one_of_the_thread_has_not(folder, caplog):
    caplog.set_level(logging.INFO)
    job, attempt = JobId.random(), ExecutionAttemptId.create(JobVertexId(3), 0, 1)
    with task_log(job, attempt, "sort (1/4)"):
        logging.getLogger("x").info("at work")
    lines = [json.loads(line) for line in task_log_path(folder, job, attempt).read_text().splitlines()]
    assert [line["message"] for line in lines][1] == "at work"
    for line in lines:
        assert (line["job"], line["task"], line["attempt"]) == (job.value, "sort (1/4)", str(attempt))
    assert "job" not in told(record("later"))


def test_what_a_function_logs_in_its_worker_has_the_ids_of_its_task(folder, tmp_path):
    def noted(row):
        logging.getLogger("mine").warning("row %d", row.x)
        return row

    with Environment(config={"parallelism.default": 1}) as env:
        env.from_arrow(pa.table({"x": [1, 2]})).map(noted, pa.schema([("x", pa.int64())])).collect()
    lines = [
        json.loads(text)
        for path in (folder / "jobs").glob("*/*.log")
        for text in path.read_text().splitlines()
        if '"mine"' in text
    ]
    assert [line["message"] for line in lines] == ["row 1", "row 2"]
    assert {line["task"].endswith("(1/1)") for line in lines} == {True}
    assert len({line["job"] for line in lines}) == 1
