"""Rows for a client in the same process: those of attempts that count, in the order of subtasks, and no others."""

import pytest

from engine.commit.handed_target import HandedResult, handed_result
from engine.commit.targets import target_named
from engine.errors import PlanError
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.jobmaster.job_commit import JobCommit
from tests.jobmaster.folder_storage import FolderStorage
from tests.jobmaster.job_graphs import job_graph

TARGET, JOB = target_named("handed"), JobId.random()
SPEC = SinkSpec("handed", "/a/result-1")
STAGING = TARGET.staging(TARGET.resolved(SPEC), JOB)


def staged(subtask, name):
    return StagedFile(0, subtask, name, 1, 1)


def test_parts_of_attempts_that_count_are_handed_over_in_the_order_of_subtasks_and_once():
    with HandedResult(SPEC.path) as result:
        TARGET.prepare(SPEC, STAGING, JOB, "")
        result.staged.update({"late": "c", "failed": "x", "first": "a", "second": "b"})
        files = [staged(1, "late"), staged(0, "first"), staged(0, "second")]
        output = TARGET.decided(SPEC, 0, STAGING, files, JOB, is_passing=True)
        steps = []
        for _ in range(2):
            assert TARGET.publish(output, JOB, steps.append, is_durable=False) == {}
            assert result.parts == ("a", "b", "c")
            TARGET.clean(output, JOB, steps.append)
        assert steps == ["handed", "handed"]


def test_a_job_that_failed_leaves_nothing_and_its_client_takes_nothing():
    with HandedResult(SPEC.path) as result:
        assert TARGET.is_there(STAGING)
        result.staged["one"] = "a"
        TARGET.abort(STAGING, JOB)
        assert not result.staged and result.parts == ()
    assert not TARGET.is_there(STAGING)
    TARGET.abort(STAGING, JOB)


def test_what_no_client_of_this_process_waits_for_is_refused_before_the_job_begins():
    with pytest.raises(PlanError, match="no client of this process waits for /a/result-1"):
        TARGET.prepare(SPEC, STAGING, JOB, "")
    with HandedResult(SPEC.path):
        assert handed_result(SPEC.path).parts == ()


def test_outputs_of_memory_alone_need_no_threads(tmp_path):
    def commit(*sinks, takes_time=False):
        graph = job_graph([1] * len(sinks), sinks=dict(enumerate(sinks)))
        storage = FolderStorage(tmp_path, graph.job_id)
        storage.takes_time = takes_time
        return JobCommit(graph, 1, lambda: True, storage)

    file = SinkSpec("csv", str(tmp_path / "out"))
    assert commit(SPEC).is_at_once
    assert not commit(SPEC, file).is_at_once
    assert not commit(SPEC, takes_time=True).is_at_once
    with HandedResult(SPEC.path) as result:
        handed = commit(SPEC)
        handed.prepare()
        result.staged["name"] = "rows"
        handed.commit([staged(0, "name")])
        assert result.parts == ("rows",)
