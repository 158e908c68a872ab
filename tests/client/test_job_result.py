"""What a result says to people."""

from engine.client.job_result import JobResult, SubtaskResult, VertexResult


def test_the_report_counts_as_people_do():
    one = VertexResult("sink", (SubtaskResult(0, 1, 1, 8, 8, 0, network_buffers_peak=1),))
    two = VertexResult("map", (SubtaskResult(0, 1, 2, 8, 8, 0), SubtaskResult(1, 0, 0, 0, 0, 0)))
    lines = JobResult("a" * 32, "job", "FINISHED", 5, (one, two)).report
    assert lines[0] == "sink: 1 subtask, 1 row out, 0 B spilled; at most 1 network buffer"
    assert lines[1] == "map: 2 subtasks, 2 rows out, 0 B spilled"


def test_the_report_says_what_was_begun_again():
    subtasks = (SubtaskResult(0, 1, 1, 8, 8, 0, attempts=3), SubtaskResult(1, 1, 1, 8, 8, 0))
    (line,) = JobResult("a" * 32, "job", "FINISHED", 5, (VertexResult("scan", subtasks),)).report
    assert line.endswith(", begun again 2 times")


def test_the_report_says_what_arrow_and_python_workers_held():
    subtasks = (
        SubtaskResult(0, 1, 1, 8, 8, 0, arrow_bytes_peak=5 << 20, worker_bytes_peak=20 << 20),
        SubtaskResult(1, 1, 1, 8, 8, 0, arrow_bytes_peak=7 << 20),
    )
    vertex = VertexResult("map", subtasks)
    assert (vertex.arrow_bytes_peak, vertex.worker_bytes_peak) == (7 << 20, 20 << 20)
    (line,) = JobResult("a" * 32, "job", "FINISHED", 5, (vertex,)).report
    assert line.endswith("0 B spilled; at most 7.3 MB of Arrow in a process, 21 MB in Python workers")


def test_a_printed_result_is_its_report():
    result = JobResult("a" * 32, "job", "FINISHED", 1234, (VertexResult("scan", (SubtaskResult(0, 1, 1, 8, 8, 0),)),))
    head, line = str(result).splitlines()
    assert head == f"job {'a' * 32} (job) FINISHED after 1.2 s"
    assert line.strip() == result.report[0]
