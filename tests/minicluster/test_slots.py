"""Jobs of fake tasks and the slots of an embedded cluster: what waits, what fits, and what is said meanwhile."""

from __future__ import annotations

import threading
import time

import msgspec
import pyarrow as pa
import pytest

from engine import Environment, count, count_distinct
from engine.errors import JobExecutionError
from engine.gateways.job_queue import WaitingJob, WaitingReason
from engine.minicluster.mini_cluster import MiniCluster
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.minicluster.clusters import IMPATIENT, SETTINGS, fixed_cluster, until


def test_a_job_of_blocking_stages_finishes_on_one_slot(resources):
    cluster = fixed_cluster(resources, 1)
    try:
        edges = [Edge(0, 1, result_type=BLOCKING), Edge(1, 2, result_type=BLOCKING)]
        result = cluster.submit(job_graph([4, 5, 3], edges))
        assert result.state == "FINISHED"
        assert sum(event[0] == "end" for event in resources.events) == 12
    finally:
        cluster.close()


def test_a_region_larger_than_the_cluster_fails_after_the_time_out_and_says_what_is_missing(resources):
    cluster = fixed_cluster(resources, 2, **IMPATIENT)
    try:
        with pytest.raises(JobExecutionError) as failure:
            cluster.submit(job_graph([4, 4], [Edge(0, 1)]))
        text = str(failure.value)
        assert text.startswith("SlotTimeoutError: 4 slots needed at one time, 2 missing")
        assert "the cluster has 2 slots on 1 TaskManager, 2 free" in text and "slot.request.timeout" in text
        assert resources.events == []
        assert cluster.submit(job_graph([2])).state == "FINISHED"
    finally:
        cluster.close()


def test_the_slot_time_out_names_the_job_that_holds_the_slots(resources):
    cluster = fixed_cluster(resources, 2, **{"debug.check-gateways": "false"}, **IMPATIENT)
    holding, release = threading.Event(), threading.Event()
    resources.bodies["hold"] = lambda task: (holding.set(), release.wait(60))
    first = threading.Thread(target=cluster.submit, args=(job_graph([2], names=["hold"], name="the long one"),))
    try:
        first.start()
        assert holding.wait(60)
        with pytest.raises(JobExecutionError, match=r"3 slots needed at one time, 3 missing.*held: 2 by the long one"):
            cluster.submit(job_graph([3, 2], [Edge(0, 1)]))
    finally:
        release.set()
        first.join()
        cluster.close()


def test_a_job_whose_slots_others_have_waits_longer_than_the_time_out_and_says_at_which_place(resources):
    cluster = fixed_cluster(resources, 2, **{"slot.request.timeout": "50 ms"})
    holding, release = threading.Event(), threading.Event()
    resources.bodies["hold"] = lambda task: (holding.set(), release.wait(60))
    places, ended = [], []

    def submit(name, on_progress=None):
        ended.append((name, cluster.submit(job_graph([2], names=[name], name=name), on_progress).state))

    def note(progress):
        if progress.waiting is not None:  # it may not have asked yet
            places.append(progress.waiting)
        if len(places) == 3:  # longer than the time-out
            release.set()

    threads = [threading.Thread(target=submit, args=("hold",)), threading.Thread(target=submit, args=("wait", note))]
    try:
        threads[0].start()
        assert holding.wait(60)
        threads[1].start()
        for thread in threads:
            thread.join(60)
        assert sorted(ended) == [("hold", "FINISHED"), ("wait", "FINISHED")]
        assert places[0] == WaitingJob(1, 1, 1, 2, WaitingReason.SLOTS)
    finally:
        release.set()
        cluster.close()


def test_no_more_jobs_run_at_one_time_than_are_allowed(resources):
    cluster = MiniCluster(
        {**SETTINGS, "taskmanager.numberOfTaskSlots": "4", "jobmanager.max-running-jobs": "1"}, resources
    )
    holding, release, seen = threading.Event(), threading.Event(), []
    resources.bodies["hold"] = lambda task: (holding.set(), release.wait(60))

    def note(progress):
        if progress.waiting is not None:
            seen.append(progress.waiting.reason)
            release.set()

    first = threading.Thread(target=cluster.submit, args=(job_graph([1], names=["hold"]),))
    try:
        first.start()
        assert holding.wait(60)
        assert cluster.submit(job_graph([1]), note).state == "FINISHED"
        assert seen[0] is WaitingReason.LIMIT
    finally:
        release.set()
        first.join()
        cluster.close()


def test_jobs_that_do_not_fit_stand_in_line_by_priority_and_none_passes(cluster, resources):
    holding, release = threading.Event(), threading.Event()
    resources.bodies["hold"] = lambda task: (holding.set(), release.wait(60))
    began = []
    threads = [threading.Thread(target=cluster.submit, args=(job_graph([2], names=["hold"]),))]

    def submit(name, parallelism, priority):
        settings = {"job.priority": str(priority)}
        graph = msgspec.structs.replace(job_graph([parallelism], names=[name]), configuration=settings)
        resources.bodies[name] = lambda task: began.append(name)
        threads.append(threading.Thread(target=cluster.submit, args=(graph,)))
        threads[-1].start()
        until(lambda: len(cluster._waiting) == len(threads) - 1)

    threads[0].start()
    assert holding.wait(60)
    submit("large", 2, 0)
    submit("small", 1, 0)
    submit("urgent", 2, 1)
    release.set()
    for thread in threads:
        thread.join(60)
    assert list(dict.fromkeys(began)) == ["urgent", "large", "small"]


def test_slots_follow_the_largest_parallelism_and_share_all_pages(cluster, resources):
    cluster.submit(job_graph([2], weights={0: 1.0}))
    assert {descriptor.pages for descriptor in resources.descriptors} == {(2048,)}
    resources.descriptors.clear()
    cluster.submit(job_graph([8, 1], [Edge(0, 1)], weights={0: 1.0, 1: 1.0}))
    pages = {(d.vertex_name, d.subtask_index): d.pages for d in resources.descriptors}
    assert pages["vertex 0", 3] == (512,) and pages["vertex 0", 0] == pages["vertex 1", 0] == (256,)


def test_slots_follow_a_job_that_comes_right_after_one_that_failed(cluster, resources):
    def release_slowly(partition) -> None:
        time.sleep(0.02)  # as files take their time to go: a task is in its slot until then

    resources.release_partition = release_slowly
    resources.bodies["fail"] = lambda task: 1 / 0
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        cluster.submit(job_graph([1, 1], [Edge(0, 1)], ["fail", "sink"]))
    assert cluster.submit(job_graph([4, 4], [Edge(0, 1)])).state == "FINISHED"


def test_a_job_that_does_not_fit_waits_for_the_one_that_runs(resources):
    cluster = MiniCluster({**SETTINGS, **IMPATIENT}, resources)
    release, running = threading.Event(), threading.Event()
    resources.bodies["hold"] = lambda task: (running.set(), release.wait(60))
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda graph=graph: results.append(cluster.submit(graph).name))
        for graph in (job_graph([2], names=["hold"], name="first"), job_graph([8], names=["next"], name="second"))
    ]
    try:
        threads[0].start()
        assert running.wait(60)
        threads[1].start()
        time.sleep(1.2)  # longer than the slot time-out: a job in the line does not time out
        assert results == [] and not any(event[1] == "next" for event in resources.events)
    finally:
        release.set()
        for thread in threads:
            thread.join()
        cluster.close()
    assert sorted(results) == ["first", "second"]
    assert [event[1] for event in resources.events if event[0] == "end"] == ["hold"] * 2 + ["next"] * 8
    last_of_first = max(index for index, event in enumerate(resources.events) if event[1] == "hold")
    assert last_of_first < min(index for index, event in enumerate(resources.events) if event[1] == "next")


def test_pages_fit_the_usual_parallelism_though_the_first_job_needs_one_slot():
    with Environment(
        config={
            "parallelism.default": 5,
            "taskmanager.memory.managed.size": "1mb",
            "debug.force-spill": True,
            "execution.mode": "BATCH",
            "execution.batch.adaptive.enabled": False,
        }
    ) as environment:
        rows = environment.from_rows([(1, "a"), (2, "b")], pa.schema([("i", pa.int64()), ("s", pa.string())]))
        assert rows.count() == 2
        counted = rows.shuffle().group_by("i").agg(texts=count_distinct("s"), rows=count())
        assert sorted(map(tuple, counted.collect())) == [(1, 1, 1), (2, 1, 1)]
