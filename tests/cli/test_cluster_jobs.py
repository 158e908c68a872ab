"""What ``job status`` prints of a job that runs, has failed or was cancelled."""

from argparse import Namespace

from engine.cli.cluster_jobs import show_status
from engine.rest.job_document import exceptions_document, job_document
from tests.rest.details import JOB_ID, NASTY, TASK_MANAGER, job


class Client:
    def __init__(self, details):
        self.details = details

    def document(self, path):
        if "exceptions" in path:
            return exceptions_document(self.details.failures, is_truncated=False, limit=1)
        assert path == f"/jobs/{JOB_ID}"
        return job_document(self.details, 11_000)


def status(capsys, name):
    assert show_status(Namespace(job_id=JOB_ID.value, json=False), Client(job(status=name))) == 0
    return capsys.readouterr().out.splitlines()


def test_a_failed_job_shows_its_cause_and_no_traceback(capsys):
    lines = status(capsys, "FAILED")
    assert lines[0] == f"Job {JOB_ID} (prices): FAILED, 8100 ms"
    assert "1/1 subtasks, 0 rows in, 7 out, 2.0 KB spilled" in lines[1]
    assert "join: 0/2 subtasks, 7 rows in" in lines[2], "only what has finished counts"
    assert lines[3:] == [f"ValueError: {NASTY}", f"  task: join (2/2) on TaskManager {TASK_MANAGER}"]


def test_a_cancelled_job_shows_no_cause(capsys):
    assert len(status(capsys, "CANCELED")) == 3
