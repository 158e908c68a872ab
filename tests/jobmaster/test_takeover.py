"""A leader goes, another one comes: jobs go on where they were, and nothing that lives is done twice."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter

import pytest

from engine.commit.decision import Decision
from engine.errors import ResourceError
from engine.gateways.messages import CancelJob, RequestJobStatus, TaskExecutorLost
from engine.graph.source_spec import SinkSpec
from engine.jobmaster import journal_files
from engine.jobmaster.job_event import (
    CancelAsked,
    FailingBegun,
    Led,
    Prepared,
    Restarted,
    Scheduled,
    TaskEnded,
)
from engine.jobmaster.job_facts import RecoveredJob
from engine.jobmaster.job_journal import FileJournal
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.journal_files import read_journal
from tests.jobmaster.job_graphs import BLOCKING, PIPELINED, Edge, job_graph
from tests.jobmaster.takeover_world import WAIT_S, hold, scenario


def stages(tmp_path, maps=3, reduces=2, kind=BLOCKING, exchange="HASH"):
    sinks = {1: SinkSpec("csv", str(tmp_path / "out"))}
    return job_graph([maps, reduces], [Edge(0, 1, exchange, kind)], ["map", "reduce"], sinks=sinks)


def output(tmp_path):
    return sorted(path.read_text() for path in (tmp_path / "out").iterdir())


def left_over(tmp_path):
    return [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


async def finished(job_master):
    return await asyncio.wait_for(asyncio.shield(job_master.outcome), WAIT_S)


def test_finished_tasks_stay_finished_and_running_ones_go_on(tmp_path):
    async def body(world):
        release = threading.Event()
        world.all_do(reduce=hold(release))
        graph = stages(tmp_path)
        await world.lead(graph)
        await world.until(lambda: world.started("reduce") == 2)
        job_master = await world.take_over(graph)
        await world.until(lambda: job_master.status is JobStatus.RUNNING)
        release.set()
        outcome = await finished(job_master)
        assert outcome.status == "FINISHED"
        assert set(Counter(world.attempts()).values()) == {1} and len(world.attempts()) == 5
        assert output(tmp_path) == ["0\n", "1\n"] and left_over(tmp_path) == []
        assert [[each.counters.rows_in for each in vertex.subtasks] for vertex in outcome.vertices] == [
            [1] * 3,
            [1] * 2,
        ]
        assert [end.record.status for end in world.ends] == ["FINISHED"]
        assert all(resources.ended_jobs == [graph.job_id] for resources in world.resources)

    scenario([2, 1], tmp_path / "storage", body)


@pytest.mark.parametrize("kind", [BLOCKING, PIPELINED], ids=["blocking", "pipelined"])
def test_leaders_may_change_again_and_again(tmp_path, kind):
    async def body(world):
        steps = [threading.Event() for _ in range(4)]
        world.all_do(
            map=lambda task: hold(steps[task.descriptor.subtask_index])(task),
            reduce=lambda task: hold(steps[2 + task.descriptor.subtask_index])(task),
        )
        graph = stages(tmp_path, 2, 2, kind)
        job_master = await world.lead(graph)
        for step, event in enumerate(steps):
            await world.until(lambda step=step: len(world.attempts()) > step // 2 * 2)
            job_master = await world.take_over(graph)
            await world.until(lambda job_master=job_master: job_master.status is JobStatus.RUNNING)
            event.set()
        assert (await finished(job_master)).status == "FINISHED"
        assert set(Counter(world.attempts()).values()) == {1} and len(world.attempts()) == 4
        assert output(tmp_path) == ["0\n", "1\n"]
        assert sum(isinstance(event, Led) for event in world.journal.events) == 5

    scenario([2, 2], tmp_path / "storage", body)


def test_what_ended_between_two_leaders_is_learned_from_the_task_executors(tmp_path):
    async def body(world):
        release = threading.Event()
        world.all_do(map=hold(release))
        graph = stages(tmp_path)
        await world.lead(graph)
        await world.until(lambda: world.started("map") == 3)
        await world.depose()
        release.set()
        await world.until(lambda: world.ended("map") == 3)
        assert (await finished(await world.take_over(graph))).status == "FINISHED"
        assert set(Counter(world.attempts()).values()) == {1}
        assert output(tmp_path) == ["0\n", "1\n"]

    scenario([3], tmp_path / "storage", body)


def test_a_task_executor_that_died_with_the_leader_costs_what_it_held(tmp_path):
    async def body(world):
        release = threading.Event()
        world.all_do(reduce=hold(release))
        graph = stages(tmp_path, maps=4)
        await world.lead(graph)
        await world.until(lambda: world.started("reduce") == 2)
        lost = {each[1] for each in world.attempts()[:4] if each[0] == "map"} & {
            each.subtask_index for each in world.resources[0].descriptors if each.vertex_name == "map"
        }
        assert 0 < len(lost) < 4
        await world.depose()
        await world.lose(0)
        job_master = await world.take_over(graph)
        await world.until(lambda: job_master.status is not JobStatus.RECONCILING)
        release.set()
        assert (await finished(job_master)).status == "FINISHED"
        attempts = Counter((name, index) for name, index, _ in world.attempts())
        assert {index: attempts["map", index] for index in range(4)} == {i: 2 if i in lost else 1 for i in range(4)}
        assert output(tmp_path) == ["0\n", "1\n"] and left_over(tmp_path) == []

    scenario([2, 2], tmp_path / "storage", body)


def test_a_result_that_is_not_there_any_more_is_computed_again(tmp_path):
    async def body(world):
        release = threading.Event()
        world.all_do(reduce=hold(release))
        graph = stages(tmp_path, maps=3, reduces=1)
        await world.lead(graph)
        await world.until(lambda: world.started("reduce") == 1)
        await world.depose()
        (resources,) = world.resources
        gone = next(each for each in resources.descriptors if (each.vertex_name, each.subtask_index) == ("map", 1))
        resources.released.append(gone.partitions[0].id)
        job_master = await world.take_over(graph)
        await world.until(lambda: job_master.status is not JobStatus.RECONCILING)
        release.set()
        assert (await finished(job_master)).status == "FINISHED"
        attempts = Counter((name, index) for name, index, _ in world.attempts())
        assert attempts == {("map", 0): 1, ("map", 1): 2, ("map", 2): 1, ("reduce", 0): 2}

    scenario([3], tmp_path / "storage", body)


@pytest.mark.parametrize("cut_by", range(9))
def test_any_beginning_of_the_journal_ends_with_the_right_output(tmp_path, cut_by):
    """Whatever the journal lost: what runs and is not known is cancelled, and the job ends well."""

    async def body(world):
        release = threading.Event()
        world.all_do(reduce=hold(release))
        graph = stages(tmp_path, maps=2, reduces=1)
        await world.lead(graph)
        await world.until(lambda: world.started("reduce") == 1)
        await world.depose()
        events = world.journal.events
        job_master = await world.take_over(graph, events[: max(0, len(events) - cut_by)])
        await world.until(lambda: job_master.status is JobStatus.RUNNING)
        release.set()
        assert (await finished(job_master)).status == "FINISHED"
        assert output(tmp_path) == ["0\n"] and left_over(tmp_path) == []
        assert all(each.slot_table.free_count == 2 for each in world.task_executors)

    scenario([2], tmp_path / "storage", body)


def test_a_job_that_is_cancelled_while_its_task_executors_are_asked_ends_cancelled(tmp_path):
    async def body(world):
        world.all_do(map=hold(threading.Event()))
        graph = stages(tmp_path)
        await world.lead(graph)
        await world.until(lambda: world.started("map") == 3)
        await world.depose()
        silent = world.task_executors[0]
        world.rpc.stop(silent)  # refuses for less than it takes to count as gone
        job_master = await world.take_over(graph)
        assert job_master.status is JobStatus.RECONCILING
        gateway = world.rpc.connect(job_master.address, world.epoch)
        assert (await gateway.ask(RequestJobStatus(graph.job_id))).status == "RECONCILING"
        await gateway.ask(CancelJob(graph.job_id))
        world.rpc.start(silent)
        assert (await finished(job_master)).status == "CANCELED"
        assert any(isinstance(event, CancelAsked) for event in world.journal.events)
        assert [end.record.status for end in world.ends] == ["CANCELED"]
        assert not (tmp_path / "out").exists() and left_over(tmp_path) == []

    scenario([2, 2], tmp_path / "storage", body)


def test_a_job_that_was_being_cancelled_goes_on_ending(tmp_path):
    async def body(world):
        stuck = threading.Event()
        world.all_do(map=lambda task: stuck.wait(WAIT_S))
        graph = stages(tmp_path)
        job_master = await world.lead(graph)
        await world.until(lambda: world.started("map") == 3)
        await world.rpc.connect(job_master.address, world.epoch).ask(CancelJob(graph.job_id))
        job_master = await world.take_over(graph)
        stuck.set()
        assert (await finished(job_master)).status == "CANCELED"
        assert left_over(tmp_path) == [] and not (tmp_path / "out").exists()
        assert all(resources.ended_jobs == [graph.job_id] for resources in world.resources)

    scenario([2, 1], tmp_path / "storage", body)


def test_a_job_that_was_failing_fails_with_the_same_cause(tmp_path):
    async def body(world):
        stuck = threading.Event()

        def body_of_map(task):
            if task.descriptor.subtask_index == 1:
                raise ValueError("the user's own")
            stuck.wait(WAIT_S)

        world.all_do(map=body_of_map)
        graph = stages(tmp_path)
        await world.lead(graph)
        await world.until(lambda: any(isinstance(event, FailingBegun) for event in world.journal.events))
        job_master = await world.take_over(graph)
        stuck.set()
        outcome = await finished(job_master)
        assert (outcome.status, outcome.failure.message) == ("FAILED", "the user's own")
        assert left_over(tmp_path) == []

    scenario([3], tmp_path / "storage", body)


def test_a_failure_whose_mending_was_not_written_down_is_mended(tmp_path):
    async def body(world):
        def reduce(task):
            if task.descriptor.attempt.attempt_number == 0:
                raise ResourceError("lost")

        world.all_do(reduce=reduce)
        graph = stages(tmp_path, reduces=1)
        await finished(await world.lead(graph))
        events = world.journal.events
        cut = next(index for index, event in enumerate(events) if isinstance(event, Restarted))
        # As if the job had not ended: its TaskExecutor holds nothing of it any more.
        (tmp_path / "out").rename(tmp_path / "first")
        for path in (tmp_path / "storage" / "results").iterdir():
            path.unlink()
        job_master = await world.take_over(graph, events[:cut])
        outcome = await finished(job_master)
        assert outcome.status == "FINISHED" and output(tmp_path) == ["0\n"]
        assert sum(isinstance(event, Restarted) for event in world.journal.events) == 1
        assert [failure.failure.message for failure in job_master._report.exceptions.failures].count("lost") == 1

    scenario([3], tmp_path / "storage", body)


def test_the_resource_manager_knows_that_a_task_executor_is_gone(tmp_path):
    async def body(world):
        world.all_do(map=hold(release := threading.Event()))
        graph = stages(tmp_path)
        await world.lead(graph)
        await world.until(lambda: world.started("map") == 3)
        await world.depose()
        silent = world.task_executors[0]
        deliver = world.rpc.deliver

        async def deliver_late(address, epoch, message):
            if address == silent.address:
                await asyncio.sleep(3600)
            return await deliver(address, epoch, message)

        world.rpc.deliver = deliver_late
        world.rpc.stop(silent)
        job_master = await world.take_over(graph)
        assert job_master.status is JobStatus.RECONCILING
        await world.until(lambda: job_master._reattachment is not None and job_master._reattachment._asking)
        await world.rpc.connect(job_master.address, world.epoch).ask(TaskExecutorLost(silent.resource_id, "it left"))
        release.set()
        outcome = await finished(job_master)
        assert outcome.status == "FINISHED" and output(tmp_path) == ["0\n", "1\n"]
        world.rpc.deliver = deliver

    scenario([2, 2], tmp_path / "storage", body, heartbeat_s=1.0)


def test_the_journal_says_what_happened_in_order(tmp_path):
    async def body(world):
        graph = stages(tmp_path, maps=1, reduces=1)
        await finished(await world.lead(graph))
        kinds = [type(event) for event in world.journal.events]
        assert kinds == [Led, Prepared, Scheduled, TaskEnded, Scheduled, TaskEnded]

    scenario([1], tmp_path / "storage", body)


def test_a_job_that_had_ended_in_all_but_name_is_only_published(tmp_path):
    async def body(world):
        graph = stages(tmp_path)
        await finished(await world.lead(graph))
        events = list(world.journal.events)
        begun = len(world.attempts())
        for path in (tmp_path / "storage" / "results").iterdir():
            path.unlink()
        # The staging is gone, as after a publication that was not recorded.
        job_master = await world.take_over(graph, events, Decision(graph.job_id, 1, ()))
        assert (await finished(job_master)).status == "FINISHED"
        assert len(world.attempts()) == begun and output(tmp_path) == ["0\n", "1\n"]
        assert [end.record.status for end in world.ends] == ["FINISHED", "FINISHED"]

    scenario([3], tmp_path / "storage", body)


def test_a_job_goes_on_from_the_file_that_its_leader_left(tmp_path):
    async def body(world):
        release = threading.Event()
        world.all_do(reduce=hold(release))
        graph = stages(tmp_path)
        first, second = tmp_path / "journal-1", tmp_path / "journal-2"
        await world.lead(graph, FileJournal.create(str(first), graph.job_id, 1))
        await world.until(lambda: world.started("reduce") == 2)
        await world.depose()
        content = read_journal(str(first))
        assert (content.job_id, content.epoch, content.damage) == (graph.job_id, 1, "")
        journal = FileJournal.create(str(second), graph.job_id, 2, content.events)
        job_master = await world.lead(graph, journal, RecoveredJob(content.events))
        release.set()
        assert (await finished(job_master)).status == "FINISHED"
        assert len(world.attempts()) == len(set(world.attempts())) == 5
        await world.depose()
        ended = [event.report.state for event in read_journal(str(second)).events if isinstance(event, TaskEnded)]
        assert ended == ["FINISHED"] * 5
        assert output(tmp_path) == ["0\n", "1\n"] and left_over(tmp_path) == []

    scenario([2, 1], tmp_path / "storage", body)


def test_a_job_goes_on_when_its_journal_cannot_be_written_any_more(tmp_path, monkeypatch, caplog):
    """What follows is not known to the next leader, which repeats it."""

    async def body(world):
        release, is_full, begun = threading.Event(), threading.Event(), itertools.count()

        def first_at_once(task):
            if next(begun):
                hold(is_full)(task)

        world.all_do(map=first_at_once, reduce=hold(release))
        graph = stages(tmp_path)
        path = tmp_path / "journal"
        await world.lead(graph, FileJournal.create(str(path), graph.job_id, 1))
        await world.until(lambda: world.ended("map") >= 1)

        def refuse(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(journal_files.os, "fdatasync", refuse)
        is_full.set()
        await world.until(lambda: world.started("reduce") == 1)
        await world.depose()
        events = read_journal(str(path)).events
        job_master = await world.lead(graph, recovered=RecoveredJob(events))
        await world.until(lambda: job_master.status is not JobStatus.RECONCILING)
        release.set()
        assert (await finished(job_master)).status == "FINISHED"
        assert output(tmp_path) == ["0\n", "1\n"] and left_over(tmp_path) == []
        given_up = [record for record in caplog.records if "is not written any more" in record.getMessage()]
        assert len(given_up) == 1

    scenario([1], tmp_path / "storage", body)
