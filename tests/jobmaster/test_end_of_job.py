"""The end of a job, in a leader that dies or sleeps at any step: the next one ends it once, and nothing is left."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.errors import PlanError
from engine.gateways.messages import CancelJob
from engine.jobmaster import job_calls, job_commit, job_master, output_steps
from engine.jobmaster.job_commit import StorageUnavailableError
from tests.jobmaster.folder_storage import FolderStorage
from tests.jobmaster.takeover_world import WAIT_S, hold, scenario
from tests.jobmaster.test_takeover import finished, left_over, output, stages

IN_EXECUTOR = ("sink.deciding", "sink.decided", "sink.published", "job.recorded")
ON_LOOP = ("job.prepared", "job.reattaching", "job.reattached")
ROOMS = (job_calls, job_commit, job_master, output_steps)


class DiedError(BaseException):
    """The leader is no more: nothing of it goes on."""


@pytest.fixture
def at(monkeypatch):
    """Have ``action`` called at a point, once."""

    def arm(point, action):
        armed = [point]

        def reach(name):
            if name in armed:
                armed.remove(name)
                action()

        for room in ROOMS:
            monkeypatch.setattr(room, "reach", reach, raising=False)

    return arm


def die():
    raise DiedError


def decision_in_force(world, graph):
    return FolderStorage(world.folder, graph.job_id).decision()


async def go_on(world, graph):
    return await world.take_over(graph, decision=decision_in_force(world, graph))


@pytest.mark.parametrize("point", [*ON_LOOP[:1], *IN_EXECUTOR[:3]])
def test_a_leader_that_dies_at_a_step_is_followed_by_one_that_ends_the_job(tmp_path, at, point):
    async def body(world):
        at(point, die)
        graph = stages(tmp_path)
        await world.lead(graph)
        await world.until(lambda: any(isinstance(fault, DiedError) for fault in world.faults))
        world.faults.clear()
        job_master = await go_on(world, graph)
        assert (await finished(job_master)).status == "FINISHED"
        assert output(tmp_path) == ["0\n", "1\n"] and left_over(tmp_path) == []
        assert [end.record.status for end in world.ends] == ["FINISHED"]
        assert len(world.attempts()) == len(set(world.attempts())) == 5
        assert all(resources.ended_jobs == [graph.job_id] for resources in world.resources)

    scenario([2, 1], tmp_path / "storage", body)


@pytest.mark.parametrize("point", ON_LOOP[1:])
def test_a_leader_that_dies_while_it_takes_over_is_followed_by_another_one(tmp_path, at, point):
    async def body(world):
        release = threading.Event()
        world.all_do(reduce=hold(release))
        graph = stages(tmp_path)
        await world.lead(graph)
        await world.until(lambda: world.started("reduce") == 2)
        at(point, die)
        await go_on(world, graph)
        await world.until(lambda: world.faults)
        world.faults.clear()
        job_master = await go_on(world, graph)
        release.set()
        assert (await finished(job_master)).status == "FINISHED"
        assert output(tmp_path) == ["0\n", "1\n"] and left_over(tmp_path) == []
        assert len(world.attempts()) == len(set(world.attempts())) == 5

    scenario([2, 1], tmp_path / "storage", body)


@pytest.mark.parametrize("point", IN_EXECUTOR)
def test_a_leader_that_wakes_up_too_late_changes_nothing(tmp_path, at, point):
    async def body(world):
        asleep, awake, work_of_first = threading.Event(), threading.Event(), ThreadPoolExecutor(4)

        def sleep():
            asleep.set()
            awake.wait(WAIT_S)

        at(point, sleep)
        graph = stages(tmp_path)
        await world.lead(graph, work=work_of_first)
        await world.until(asleep.is_set)
        has_ended = bool(world.ends)
        if not has_ended:
            job_master = await go_on(world, graph)
            assert (await finished(job_master)).status == "FINISHED"
        assert output(tmp_path) == ["0\n", "1\n"]
        before = sorted((path.name, path.stat().st_ino) for path in (tmp_path / "out").iterdir())
        awake.set()
        await asyncio.to_thread(work_of_first.shutdown)  # it has done all that it was at
        await world.depose()
        assert sorted((path.name, path.stat().st_ino) for path in (tmp_path / "out").iterdir()) == before
        assert left_over(tmp_path) == [] and len(world.ends) == 1

    scenario([2, 1], tmp_path / "storage", body)


def test_a_stale_leader_does_not_take_the_staging_of_its_successor(tmp_path):
    async def body(world):
        release = threading.Event()
        world.all_do(map=hold(release))
        graph = stages(tmp_path)
        stale = await world.lead(graph)
        await world.until(lambda: world.started("map") == 3)
        # It leads no more and does not know: what it is asked for is refused by the storage.
        world.epoch += 1
        await stale.cancel_job(CancelJob(graph.job_id))
        await world.until(lambda: world.refused)
        world.epoch -= 1
        assert len(left_over(tmp_path)) == 1 and world.ends == []
        release.set()
        events = [event for event in world.journal.events if type(event).__name__ != "CancelAsked"]
        job_master = await world.take_over(graph, events)
        assert (await finished(job_master)).status == "FINISHED"
        assert output(tmp_path) == ["0\n", "1\n"] and left_over(tmp_path) == []

    scenario([3], tmp_path / "storage", body)


def test_an_end_waits_for_a_storage_that_does_not_answer_and_says_so_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(output_steps, "_STORAGE_PAUSE_S", 0.01)

    async def body(world):
        graph = stages(tmp_path)
        refusals = []

        def unavailable(call):
            def ask(*arguments):
                if len(refusals) % 4 < 3:
                    refusals.append(call)
                    raise StorageUnavailableError("no quorum")
                refusals.append(None)
                return call(*arguments)

            return ask

        job_master = await world.lead(graph)
        steps, replied = job_master._outputs, []
        monkeypatch.setattr(
            steps, "_counted", lambda work, known=steps._counted: (replied.append(steps.trouble), known(work))[1]
        )
        storage = steps.commit._storage
        storage.decide, storage.record = unavailable(storage.decide), unavailable(storage.record)
        assert (await finished(job_master)).status == "FINISHED"
        assert len(refusals) == 8 and len(world.ends) == 1
        assert replied.count("no quorum") == 6 and steps.trouble == "", "told to clients as long as it lasts"
        assert output(tmp_path) == ["0\n", "1\n"] and left_over(tmp_path) == []

    scenario([3], tmp_path / "storage", body)
    told = [each.getMessage() for each in caplog.records if "waits for its storage" in each.getMessage()]
    assert len(told) == 2, "of the decision, and of the record"


def test_a_job_that_fails_is_recorded_before_its_staging_goes(tmp_path, at):
    async def body(world):
        def map_(task):
            raise PlanError("the user's own")

        world.all_do(map=map_)
        at("job.recorded", die)
        graph = stages(tmp_path)
        await world.lead(graph)
        await world.until(lambda: any(isinstance(fault, DiedError) for fault in world.faults))
        world.faults.clear()
        assert [end.outcome.status for end in world.ends] == ["FAILED"]
        assert len(left_over(tmp_path)) == 1

    scenario([3], tmp_path / "storage", body)


def test_the_end_tells_what_people_ask_for(tmp_path):
    async def body(world):
        graph = stages(tmp_path)
        outcome = await finished(await world.lead(graph))
        (end,) = world.ends
        assert end.outcome == outcome and end.record.runtime_ms == outcome.runtime_ms
        assert (end.overview.status, end.details.status) == ("FINISHED", "FINISHED")
        assert end.overview.end_ms == end.details.end_ms >= end.overview.start_ms
        assert "FINISHED" in end.details.timestamps_ms
        await asyncio.sleep(0)

    scenario([3], tmp_path / "storage", body)
