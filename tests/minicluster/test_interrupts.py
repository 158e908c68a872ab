"""Jobs of fake tasks that are cancelled, or interrupted from the keyboard, at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from engine.errors import EngineError, JobCancelledError, JobExecutionError
from engine.graph.source_spec import SinkSpec
from engine.minicluster.cluster_components import ClusterComponents
from engine.minicluster.mini_cluster import MiniCluster
from tests.jobmaster.job_graphs import Edge, job_graph
from tests.minicluster.clusters import SETTINGS


def test_cancel_ends_all_tasks_and_leaves_nothing(cluster, resources, tmp_path):
    running = threading.Barrier(3)
    resources.bodies["wait"] = lambda task: (running.wait(60), task.wait_cancelled())
    graph = job_graph([2], names=["wait"], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    outcome: list[BaseException] = []

    def client() -> None:
        try:
            cluster.submit(graph)
        except EngineError as error:
            outcome.append(error)

    thread = threading.Thread(target=client)
    thread.start()
    running.wait(60)
    cluster.cancel(graph.job_id)
    thread.join()
    assert isinstance(outcome[0], JobCancelledError)
    assert list(tmp_path.iterdir()) == []
    assert not any(thread.name.startswith("wait") for thread in threading.enumerate())


def test_a_task_that_ignores_its_cancellation_is_given_up_after_the_time_out(resources):
    cluster = MiniCluster({**SETTINGS, "task.cancellation.timeout": "200 ms"}, resources)
    stuck, release = threading.Event(), threading.Event()
    resources.bodies["stuck"] = lambda task: (stuck.set(), release.wait(60))
    resources.bodies["fail"] = lambda task: stuck.wait(60) and 1 / 0
    try:
        started = time.monotonic()
        with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
            cluster.submit(job_graph([1, 1], [Edge(0, 1)], ["stuck", "fail"]))
        assert time.monotonic() - started < 50, "the task holds the job up"
    finally:
        release.set()
        cluster.close()


def test_a_callback_that_is_interrupted_cancels_the_job_and_waits_for_its_end(cluster, resources, tmp_path):
    resources.bodies["wait"] = lambda task: task.wait_cancelled()

    def interrupted(progress) -> None:
        raise KeyboardInterrupt

    graph = job_graph([2], names=["wait"], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    with pytest.raises(KeyboardInterrupt):
        cluster.submit(graph, interrupted)
    assert resources.ended_jobs == [graph.job_id] and list(tmp_path.iterdir()) == []


def test_an_interrupt_that_the_system_hands_to_another_thread_is_heard(cluster, resources):
    running, cancelled = threading.Event(), []
    resources.bodies["wait"] = lambda task: (running.set(), cancelled.append(task.cancelled.wait(30)))

    def interrupt() -> None:
        assert running.wait(60)
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # the main thread is not woken by it

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        cluster.submit(job_graph([1], names=["wait"]))
    interrupter.join()
    assert cancelled == [True]


@pytest.mark.parametrize("is_waiting", [False, True], ids=["running", "in the line"])
def test_an_interrupt_from_the_keyboard_cancels_the_job_and_leaves_nothing(cluster, resources, tmp_path, is_waiting):
    running, release = threading.Event(), threading.Event()
    resources.bodies["wait"] = lambda task: (running.set(), task.wait_cancelled())
    resources.bodies["hold"] = lambda task: (running.set(), release.wait(60))
    other = threading.Thread(target=lambda: cluster.submit(job_graph([3], names=["hold"])))
    if is_waiting:
        other.start()
        assert running.wait(60)

    def interrupt() -> None:
        assert running.wait(60)
        while is_waiting and not cluster._waiting:
            time.sleep(0.01)
        time.sleep(0.1)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    graph = job_graph([2], names=["wait"], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    with pytest.raises(KeyboardInterrupt):
        cluster.submit(graph)
    interrupter.join()
    release.set()
    if is_waiting:
        other.join()
    assert (graph.job_id in resources.ended_jobs) != is_waiting and list(tmp_path.iterdir()) == []
    assert cluster.submit(job_graph([2])).state == "FINISHED"


@pytest.mark.parametrize("is_handed_over", [False, True])
def test_an_interrupt_while_a_job_is_handed_over_leaves_nothing(cluster, resources, monkeypatch, is_handed_over):
    running = threading.Event()
    resources.bodies["wait"] = lambda task: (running.set(), task.wait_cancelled())
    loop = cluster._started_loop()
    hand_over = loop.call_soon_threadsafe

    def interrupted(*arguments, **named):
        monkeypatch.undo()
        if is_handed_over:
            hand_over(*arguments, **named)
            assert running.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    graph = job_graph([2], names=["wait"])
    with pytest.raises(KeyboardInterrupt):
        cluster.submit(graph)
    assert resources.ended_jobs == ([graph.job_id] if is_handed_over else [])
    assert cluster.submit(job_graph([2])).state == "FINISHED"


@pytest.mark.parametrize("is_used_again", [True, False])
def test_an_interrupt_while_the_cluster_starts_leaves_nothing_of_it(resources, monkeypatch, is_used_again):
    threads, descriptors = set(threading.enumerate()), set(Path("/proc/self/fd").iterdir())
    start, starts = ClusterComponents.start, []

    async def interrupted(self) -> None:
        starts.append(self)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.3)
        await start(self)

    monkeypatch.setattr(ClusterComponents, "start", interrupted)
    cluster = MiniCluster(SETTINGS, resources)
    with pytest.raises(KeyboardInterrupt):
        cluster.submit(job_graph([2]))
    if is_used_again:
        assert cluster.submit(job_graph([2])).state == "FINISHED"
    cluster.close()
    assert len(starts) == 1 and resources.is_closed
    assert set(threading.enumerate()) <= threads
    assert set(Path("/proc/self/fd").iterdir()) <= descriptors
