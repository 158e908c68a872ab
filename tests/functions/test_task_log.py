"""Each task attempt has a log file of its own, also for what its functions print in their worker."""

import logging
import os
import sys
import threading

import pytest

import engine.task_log as task_log_module
from engine import Environment
from engine.ids import ExecutionAttemptId, JobId, JobVertexId
from engine.task_log import current_task_log, divide_output, install_task_logs, task_log, task_log_path

pytestmark = pytest.mark.usefixtures("one_zygote")


@pytest.fixture
def folder(tmp_path):
    before = sys.stdout, sys.stderr
    handler = install_task_logs(tmp_path, logging.Formatter("%(levelname)s %(message)s"))
    yield tmp_path
    logging.getLogger().removeHandler(handler)
    sys.stdout, sys.stderr = before
    task_log_module._folder = None


def test_a_thread_logs_to_the_file_of_its_attempt_and_to_no_other(folder, caplog):
    caplog.set_level(logging.INFO)
    job_id = JobId.random()
    attempts = [ExecutionAttemptId.create(JobVertexId(3), subtask, 1) for subtask in range(4)]
    meeting = threading.Barrier(len(attempts))

    def run(attempt):
        with task_log(job_id, attempt, "sort"):
            meeting.wait(30)
            for number in range(20):
                logging.getLogger("x").info("%d of %s", number, attempt)

    threads = [threading.Thread(target=run, args=(attempt,)) for attempt in attempts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logging.getLogger("x").info("by nobody")
    for attempt in attempts:
        path = task_log_path(folder, job_id, attempt)
        assert path.name == f"v3-{attempt.subtask_index}-1.log"
        first, *lines, last = path.read_text().splitlines()
        assert first == f"INFO sort, attempt {attempt} of job {job_id}, begins"
        assert lines == [f"INFO {number} of {attempt}" for number in range(20)]
        assert last.endswith("has ended")


def test_a_log_that_cannot_be_written_costs_no_task(folder):
    (folder / "jobs").write_text("in the way")
    with task_log(JobId.random(), ExecutionAttemptId.create(JobVertexId(0), 0, 0), "sort"):
        assert current_task_log() is None


def test_the_folders_of_the_oldest_jobs_go(folder, monkeypatch):
    monkeypatch.setattr(task_log_module, "JOBS_KEPT", 3)
    for _ in range(6):
        with task_log(JobId.random(), ExecutionAttemptId.create(JobVertexId(0), 0, 0), "sort"):
            pass
    assert len(list((folder / "jobs").iterdir())) == 3


def test_what_a_function_prints_and_logs_in_its_worker_is_in_the_log_of_its_task(folder, capfd):
    def shout(row):
        import logging
        import os
        import sys

        print("printed", row.n)
        print("to standard error", file=sys.stderr)
        logging.getLogger("mine").info("logged")
        os.write(1, b"written\n")
        return (row.n + 1,)

    with Environment({"parallelism.default": 1}) as env:
        data = env.from_rows([(1,), (2,)], pa_schema())
        assert sorted(data.map(shout, pa_schema()).collect()) == [(2,), (3,)]
    (job,) = (folder / "jobs").iterdir()
    text = "".join(path.read_text() for path in job.iterdir())
    for line in ("printed 1", "printed 2", "to standard error", "INFO  mine - logged", "written"):
        assert line in text
    assert "printed" not in "".join(capfd.readouterr())


def pa_schema():
    import pyarrow as pa

    return pa.schema([("n", pa.int64())])


@pytest.mark.parametrize("kind", ["by row", "over all rows"])
def test_what_a_function_prints_in_the_thread_of_its_task_is_in_the_log_of_its_task(capsys, folder, kind):
    def shout(row):
        import sys

        print("printed", row.n)
        print("to standard error", row.n, file=sys.stderr)
        return (row.n + 1,)

    def shout_all(rows):
        for row in rows:
            yield shout(row)

    divide_output()  # pytest has taken it back since the fixture
    with Environment({"parallelism.default": 1, "python.execution-mode": "thread"}) as env:
        data = env.from_rows([(1,), (2,)], pa_schema())
        mapped = data.map(shout, pa_schema()) if kind == "by row" else data.map_partition(shout_all, pa_schema())
        assert sorted(mapped.collect()) == [(2,), (3,)]
    print("by nobody")
    (job,) = (folder / "jobs").iterdir()
    text = "".join(path.read_text() for path in job.iterdir())
    for line in ("printed 1", "printed 2", "to standard error 1", "to standard error 2"):
        assert f"{line}\n" in text
    captured = capsys.readouterr()
    assert "by nobody" in captured.out and "by nobody" not in text
    assert "printed" not in captured.out and "to standard error" not in captured.err


def test_logs_of_tasks_are_for_their_owner_only(folder):
    def shout(row):
        print("printed", row.n)
        return (row.n,)

    before = os.umask(0)
    try:
        with Environment({"parallelism.default": 1}) as env:
            env.from_rows([(1,)], pa_schema()).map(shout, pa_schema()).collect()
    finally:
        os.umask(before)
    (job,) = (folder / "jobs").iterdir()
    assert {path.stat().st_mode & 0o777 for path in (job, job.parent)} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in job.iterdir()} == {0o600}
