"""Jobs of fake tasks through Dispatcher, JobMaster, ResourceManager and TaskExecutor."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from engine.dispatcher.dispatcher import Dispatcher
from engine.errors import EngineError, JobExecutionError, PlanError
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.minicluster import mini_cluster as mini_cluster_module
from engine.minicluster.mini_cluster import (
    MiniCluster,
    close_mini_clusters,
    mini_cluster,
    release_mini_clusters,
)
from engine.rpc.errors import RpcTimeoutError
from engine.taskexecutor.task_executor import TaskExecutor
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.minicluster.clusters import SETTINGS, until
from tests.minicluster.fake_tasks import FakeTask


def test_a_pipelined_job_runs_and_returns_the_counters_of_every_subtask(cluster, resources):
    result = cluster.submit(job_graph([2, 2], [Edge(0, 1)], ["scan", "write"], name="first"))
    assert (result.state, result.name) == ("FINISHED", "first")
    assert [(vertex.name, len(vertex.subtasks)) for vertex in result.vertices] == [("scan", 2), ("write", 2)]
    assert result.to_json_dict()["vertices"][0]["subtasks"][1] == {
        "index": 1,
        "rows_in": 1,
        "rows_out": 1,
        "bytes_in": 0,
        "bytes_out": 0,
        "spilled_bytes": 0,
    }
    assert resources.ended_jobs and resources.is_prepared


def test_a_consumer_of_pipelined_results_runs_while_its_producer_runs(cluster, resources):
    consumer_runs = threading.Event()
    resources.bodies["scan"] = lambda task: consumer_runs.wait(60) or pytest.fail("the consumer was not deployed")
    resources.bodies["write"] = lambda task: consumer_runs.set()
    cluster.submit(job_graph([1, 1], [Edge(0, 1)], ["scan", "write"]))
    assert resources.events.index(("start", "write", 0)) < resources.events.index(("end", "scan", 0))


def test_consumers_of_blocking_results_start_when_all_producers_have_finished(cluster, resources):
    edges = [Edge(0, 1, result_type=BLOCKING), Edge(1, 2, result_type=BLOCKING)]
    cluster.submit(job_graph([3, 2, 1], edges, ["scan", "write", "count"]))
    last_end = max(index for index, event in enumerate(resources.events) if event[:2] == ("end", "scan"))
    assert last_end < min(index for index, event in enumerate(resources.events) if event[:2] == ("start", "write"))
    # What was read goes with the tasks that follow, and what is left with the job.
    until(lambda: len(resources.released) == 3)
    scans = {each.partitions[0].id for each in resources.descriptors if each.vertex_name == "scan"}
    assert set(resources.released) == scans


def test_the_root_cause_comes_first_whatever_else_fails(cluster, resources):
    def fail(task: FakeTask) -> None:
        raise ValueError("no such currency: 'XYZ'")

    resources.bodies["parse"] = fail
    resources.bodies["sink"] = lambda task: task.wait_cancelled()
    with pytest.raises(JobExecutionError) as failure:
        cluster.submit(job_graph([2, 2], [Edge(0, 1)], ["parse", "sink"], name="prices"))
    lines = str(failure.value).splitlines()
    assert lines[0] == "ValueError: no such currency: 'XYZ'"
    assert any(line.startswith("  task: parse (") and "on TaskManager" in line for line in lines)
    assert len(lines) <= 15 and "Traceback" in failure.value.details


def test_a_task_that_fails_in_its_constructor_fails_the_job(cluster, resources):
    def broken(descriptor):
        raise RuntimeError("no operator of that name")

    resources.create_invokable = broken
    with pytest.raises(JobExecutionError, match="RuntimeError: no operator of that name"):
        cluster.submit(job_graph([2]))


def test_outputs_are_published_in_subtask_order_and_nothing_else(cluster, tmp_path):
    target = tmp_path / "deep" / "out"
    cluster.submit(job_graph([3], sinks={0: SinkSpec("csv", str(target))}))
    assert sorted(path.name for path in target.iterdir()) == ["part-00000.csv", "part-00001.csv", "part-00002.csv"]
    assert [(target / f"part-0000{index}.csv").read_text() for index in range(3)] == ["0\n", "1\n", "2\n"]
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_an_output_that_exists_is_refused_before_anything_starts(cluster, resources, tmp_path):
    (tmp_path / "out").mkdir()
    graph = job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    with pytest.raises(PlanError, match=r"already exists; pass overwrite=True to replace it"):
        cluster.submit(graph)
    assert resources.events == [] and [path.name for path in tmp_path.iterdir()] == ["out"]


def test_overwrite_replaces_the_old_output(cluster, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.csv").write_text("old")
    cluster.submit(job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"), overwrite=True)}))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["part-00000.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failed_job_leaves_neither_output_nor_staging_nor_new_folders(cluster, resources, tmp_path):
    resources.bodies["fail"] = lambda task: 1 / 0
    graph = job_graph([1], names=["fail"], sinks={0: SinkSpec("csv", str(tmp_path / "a" / "b" / "out"))})
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        cluster.submit(graph)
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_appears_while_the_job_runs_is_left_alone(cluster, resources, tmp_path):
    target = tmp_path / "out"
    resources.bodies["scan"] = lambda task: target.mkdir()
    with pytest.raises(JobExecutionError, match="created by another program while the job ran"):
        cluster.submit(job_graph([1], names=["scan"], sinks={0: SinkSpec("csv", str(target))}))
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and list(target.iterdir()) == []


def test_submission_is_idempotent_by_job_id(cluster, resources):
    graph = job_graph([1])
    assert cluster.submit(graph) == cluster.submit(graph)
    assert sum(event[0] == "end" for event in resources.events) == 1


def test_progress_is_reported_while_the_job_runs(cluster, resources):
    enough = threading.Event()

    def work(task: FakeTask) -> None:
        task.rows = 41
        enough.wait(60)

    def seen(progress) -> None:
        if progress.vertices[0].counters.rows_in == 82 and progress.vertices[0].subtasks == {"RUNNING": 2}:
            enough.set()

    resources.bodies["scan"] = work
    result = cluster.submit(job_graph([2], names=["scan"]), seen)
    assert enough.is_set() and result.vertices[0].subtasks[0].rows_in == 42


def test_progress_that_cannot_be_told_does_not_end_the_job(cluster, resources, monkeypatch):
    asked = threading.Semaphore(0)

    async def late(dispatcher, request):
        asked.release()
        raise RpcTimeoutError("the JobMaster did not answer within 10 s")

    def work(task: FakeTask) -> None:
        assert asked.acquire(timeout=60) and asked.acquire(timeout=60)

    resources.bodies["scan"] = work
    monkeypatch.setattr(Dispatcher, "request_job_progress", late)
    assert cluster.submit(job_graph([1], names=["scan"]), lambda progress: None).state == "FINISHED"


def test_a_machine_that_is_busy_for_an_hour_ends_no_call_within_the_process(cluster, resources, monkeypatch):
    submit_job, submit_tasks = Dispatcher.submit_job, TaskExecutor.submit_tasks

    async def an_hour_later():
        loop = asyncio.get_running_loop()
        now_s = loop.time
        loop.time = lambda: now_s() + 3600
        for _ in range(20):
            await asyncio.sleep(0)

    async def late_job(dispatcher, request):
        await an_hour_later()
        return await submit_job(dispatcher, request)

    async def late_task(task_executor, request):
        await an_hour_later()
        return await submit_tasks(task_executor, request)

    monkeypatch.setattr(Dispatcher, "submit_job", late_job)
    monkeypatch.setattr(TaskExecutor, "submit_tasks", late_task)
    assert cluster.submit(job_graph([1])).state == "FINISHED"


def test_a_cluster_that_fails_answers_for_a_job_that_is_being_submitted(cluster, monkeypatch):
    async def never(dispatcher, request):
        cluster._component_failed(RuntimeError("the disk is gone"))
        await asyncio.Event().wait()

    monkeypatch.setattr(Dispatcher, "submit_job", never)
    with pytest.raises(EngineError, match=r"the embedded cluster failed: .*the disk is gone"):
        cluster.submit(job_graph([1]))


def test_counters_that_cannot_be_read_cost_neither_the_job_nor_the_cluster(cluster, resources, monkeypatch):
    asked = []

    def unreadable(task: FakeTask) -> None:
        asked.append(task)
        raise RuntimeError("no such file: /proc/4711/statm")

    def work(task: FakeTask) -> None:
        # Asked for twice while it runs: the first time the reporter did not end, then.
        deadline = time.monotonic() + 30
        while len(asked) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)

    resources.bodies["scan"] = work
    monkeypatch.setattr(FakeTask, "counters", unreadable)
    result = cluster.submit(job_graph([1], names=["scan"]), lambda progress: None)
    assert result.state == "FINISHED" and result.vertices[0].subtasks[0].rows_in == 0 and len(asked) >= 4
    monkeypatch.undo()
    assert cluster.is_usable and cluster.submit(job_graph([1])).vertices[0].subtasks[0].rows_in == 1


@pytest.mark.thorough
def test_many_jobs_run_one_after_the_other(cluster):
    for _ in range(20):
        edges = [Edge(0, 1), Edge(1, 2, result_type=BLOCKING)]
        assert cluster.submit(job_graph([2, 2, 1], edges)).state == "FINISHED"


def test_close_while_a_job_runs_ends_it(resources):
    cluster = MiniCluster(SETTINGS, resources)
    running = threading.Event()
    resources.bodies["wait"] = lambda task: (running.set(), task.wait_cancelled())
    errors: list[BaseException] = []

    def client() -> None:
        try:
            cluster.submit(job_graph([1], names=["wait"]))
        except EngineError as error:
            errors.append(error)

    thread = threading.Thread(target=client)
    thread.start()
    assert running.wait(60)
    cluster.close()
    thread.join()
    assert isinstance(errors[0], EngineError) and resources.is_closed
    with pytest.raises(EngineError, match="closed"):
        cluster.submit(job_graph([1]))


def test_the_same_configuration_gives_the_same_cluster_until_it_is_closed():
    first, second = mini_cluster({"parallelism.default": "2"}), mini_cluster({"parallelism.default": "2"})
    assert first is second and first is not mini_cluster({})
    close_mini_clusters()
    assert mini_cluster({"parallelism.default": "2"}) is not first
    close_mini_clusters()


class Owner:
    """Stands for an environment."""


def test_the_last_owner_closes_the_cluster_and_others_do_not():
    one, other, stranger = Owner(), Owner(), Owner()
    settings = {"parallelism.default": "3"}
    cluster = mini_cluster(settings, one)
    assert mini_cluster(settings, other) is cluster
    for owner in (stranger, one, one):
        release_mini_clusters(owner)
        assert cluster.is_usable
    release_mini_clusters(other)
    assert not cluster.is_usable
    fresh = mini_cluster(settings, one)
    assert fresh is not cluster
    close_mini_clusters()
    assert not fresh.is_usable


def test_a_fault_of_a_component_fails_the_job_instead_of_hanging(resources):
    cluster = MiniCluster(SETTINGS, resources)
    try:
        resources.release_attempts = lambda job_id, attempts: 1 / 0
        with pytest.raises(EngineError, match="ZeroDivisionError"):
            cluster.submit(job_graph([1]))
        assert not cluster.is_usable
    finally:
        cluster.close()


def test_paths_are_those_of_the_time_of_submission(cluster, resources, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    resources.bodies["scan"] = lambda task: os.chdir(tmp_path / "elsewhere")
    cluster.submit(job_graph([1], names=["scan"], sinks={0: SinkSpec("csv", "out")}))
    assert (Path(tmp_path) / "out" / "part-00000.csv").exists()


def test_all_clusters_of_an_owner_are_closed_when_one_of_them_cannot_be(monkeypatch):
    owner, closed = Owner(), []

    def close(cluster) -> None:
        closed.append(cluster)
        raise OSError(f"number {len(closed)} does not end")

    monkeypatch.setattr(MiniCluster, "close", close)
    clusters = {mini_cluster({"parallelism.default": str(number)}, owner) for number in (1, 2, 3)}
    with pytest.raises(OSError, match="number 1 does not end") as raised:
        release_mini_clusters(owner)
    assert set(closed) == clusters and len(closed) == 3
    assert len(raised.value.__notes__) == 2, "the others are told as well"


@pytest.mark.parametrize("what", ["answer", "end"])
def test_who_asks_a_cluster_that_stands_still_is_told_where_it_does(resources, monkeypatch, what):
    monkeypatch.setattr(mini_cluster_module, "_LOOP_WAIT_S", 0.05)
    cluster = MiniCluster({**SETTINGS, "task.cancellation.timeout": "1 ms"}, resources)
    assert cluster.submit(job_graph([1])).state == "FINISHED"
    goes_on = threading.Event()
    cluster._loop.call_soon_threadsafe(goes_on.wait)
    with pytest.raises(EngineError, match=rf"did not {what} within .* s; its thread is at line \d+ of .*threading"):
        cluster.cancel(JobId.random()) if what == "answer" else cluster.close()
    thread = cluster._thread
    goes_on.set()
    monkeypatch.undo()
    cluster.close()
    thread.join(60)
    assert not thread.is_alive()
