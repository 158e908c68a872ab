"""The trace of a job, made of what REST tells."""

import json
from argparse import Namespace

from engine.cli.job_trace import write_trace
from engine.cli.main import build_parser
from engine.rest.job_document import job_document
from engine.rest.vertex_document import subtask_document, times_document, vertex_document
from tests.rest.details import JOB_ID, TASK_MANAGER, job

NOW_MS = 11_000


class Client:
    def __init__(self, details):
        self.details = details

    def document(self, path):
        words = path.removeprefix(f"/jobs/{JOB_ID}").strip("/").split("/")
        if words == [""]:
            return self.through(job_document(self.details, NOW_MS))
        vertex = next(vertex for vertex in self.details.vertices if vertex.id == words[1])
        if words[2:] == ["subtasktimes"]:
            return self.through(times_document(vertex, NOW_MS))
        if words[2:3] == ["subtasks"]:
            index, number = int(words[3]), int(words[5])
            (attempt,) = (each for each in vertex.prior if (each.index, each.attempt) == (index, number))
            return self.through(subtask_document(attempt, NOW_MS))
        return self.through(vertex_document(vertex, NOW_MS))

    def through(self, document):
        return json.loads(json.dumps(document))


def traced(details, tmp_path):
    path = tmp_path / "trace.json"
    assert write_trace(Namespace(job_id=JOB_ID.value, file=str(path)), Client(details)) == 0
    return json.loads(path.read_text())["traceEvents"]


def test_each_subtask_has_a_track_with_spans_of_its_states_and_one_for_each_earlier_attempt(tmp_path):
    details = job()
    events = traced(details, tmp_path)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    for vertex in details.vertices:
        for attempt in vertex.subtasks:
            (place,) = (
                key
                for key, name in names.items()
                if name == f"{vertex.name} ({attempt.index + 1}/{vertex.parallelism})"
            )
            spans = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == place]
            states = {e["name"]: (e["ts"], e["dur"]) for e in spans if not e["name"].startswith("attempt")}
            left_ms = attempt.end_ms if attempt.end_ms > 0 else NOW_MS
            assert states["DEPLOYING"] == (1_100_000, 400_000)
            assert states["RUNNING"] == (1_500_000, (left_ms - 1500) * 1000)
            before = [e["name"] for e in spans if e["name"].startswith("attempt")]
            assert len(before) == attempt.attempt
    assert any(e["name"] == "attempt 0, FAILED" for e in events)
    running = next(e for e in events if e["name"] == "RUNNING" and e["pid"] > 0)
    assert "read-records" in running["args"]


def test_processes_are_the_job_and_its_task_managers(tmp_path):
    events = traced(job(), tmp_path)
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes[0] == "job prices"
    assert TASK_MANAGER in processes[1]
    assert all(e["ts"] > 0 and e["dur"] >= 0 for e in events if e["ph"] == "X")


def test_without_a_file_the_trace_goes_to_standard_output(capsys):
    options = build_parser().parse_args(["job", "trace", JOB_ID.value])
    assert options.file is None
    assert write_trace(options, Client(job(status="FINISHED"))) == 0
    assert json.loads(capsys.readouterr().out)["traceEvents"]
