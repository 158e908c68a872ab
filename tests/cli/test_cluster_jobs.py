"""What ``job status`` prints of a job that runs, has failed or was cancelled."""

from argparse import Namespace

import msgspec

from engine.cli.cluster_jobs import list_jobs, show_status
from engine.client.cluster_client import JobLine
from engine.gateways.job_queue import WaitingJob, WaitingReason
from engine.gateways.messages import JobOverview
from engine.ids import JobId
from engine.rest.job_document import exceptions_document, job_document
from engine.rest.job_list_routes import job_line
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


#: options that choose no jobs
UNCHOSEN = dict.fromkeys(("name", "user", "state", "since"))
SECOND = WaitingJob(2, 3, 4, 8, WaitingReason.SLOTS)


def test_a_job_that_waits_shows_its_place(capsys):
    waiting = msgspec.structs.replace(job(), waiting=SECOND)
    assert show_status(Namespace(job_id=JOB_ID.value, json=False), Client(waiting)) == 0
    assert "WAITING, place 2 of 3 in the queue: 4 slots needed" in capsys.readouterr().out.splitlines()[0]


def test_jobs_that_wait_are_listed_by_themselves_in_the_order_of_their_turns(capsys):
    overviews = [
        JobOverview(JobId("a" * 32), "later", "RUNNING", 1, -1, waiting=SECOND),
        JobOverview(JobId("b" * 32), "next", "RUNNING", 2, -1, waiting=msgspec.structs.replace(SECOND, place=1)),
        JobOverview(JobId("c" * 32), "busy", "RUNNING", 3, -1),
    ]

    class Cluster:
        def jobs(self, query=""):
            assert query == ""
            return [msgspec.convert(job_line(each, 10), JobLine) for each in overviews]

    def listed(**flags):
        options = {**UNCHOSEN, "json": False, "running": False, "scheduled": False, "all": False, **flags}
        assert list_jobs(Namespace(**options), Cluster()) == 0
        return [line.split(" : ")[2] for line in capsys.readouterr().out.splitlines() if " : " in line]

    waiting = [
        "next (WAITING, place 1 of 3 in the queue: 4 slots needed, others have them or come first)",
        "later (WAITING, place 2 of 3 in the queue: 4 slots needed, others have them or come first)",
    ]
    assert listed() == ["busy (RUNNING)", *waiting]
    assert listed(running=True) == ["busy (RUNNING)"]
    assert listed(scheduled=True) == waiting


def test_a_name_commands_no_terminal_and_is_one_line(capsys):
    class Listing:
        def jobs(self, query=""):
            assert query == ""
            overviews = [
                JobOverview(JobId(letter * 32), "a\x1b]0;title\x07b\0c\nd", state, 1, 2 if state == "FAILED" else -1)
                for letter, state in (("a", "RUNNING"), ("b", "CREATED"), ("c", "FAILED"))
            ]
            return [msgspec.convert(job_line(overview, 10), JobLine) for overview in overviews]

    assert list_jobs(Namespace(**UNCHOSEN, json=False, running=False, scheduled=False, all=True), Listing()) == 0
    printed = capsys.readouterr().out
    assert printed.count("a\\x1b]0;title\\x07b\\x00c\\nd (") == 3
    assert not {"\x1b", "\x07", "\0"} & set(printed)


def test_the_options_of_the_list_are_its_query_and_ended_jobs_are_shown_when_states_are_named(capsys):
    asked = []

    class Cluster:
        def jobs(self, query=""):
            asked.append(query)
            ended = JobOverview(JobId("a" * 32), "daily", "FAILED", 1, 2, user="ada")
            return [msgspec.convert(job_line(ended, 10), JobLine)]

    options = {"json": False, "running": False, "scheduled": False, "all": False}
    chosen = {"name": "a&b", "user": "ada", "state": "FAILED,CANCELED", "since": None}
    assert list_jobs(Namespace(**options, **chosen), Cluster()) == 0
    assert asked == ["?name=a%26b&user=ada&state=FAILED%2CCANCELED"]
    assert "daily of ada (FAILED)" in capsys.readouterr().out
    assert list_jobs(Namespace(**options, **{**UNCHOSEN, "since": 60.0}), Cluster()) == 0
    assert asked[1].startswith("?since=") and int(asked[1].removeprefix("?since=")) > 0
