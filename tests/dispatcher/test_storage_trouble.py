"""The storage folder is full, read-only or slow: who is refused hears why, and everybody else goes on."""

import asyncio
import contextlib
import os
import subprocess
import threading

import pytest

from engine.dispatcher.job_handle import StoredEnd
from engine.errors import JobNotFoundError, ResourceError
from engine.gateways.messages import ListJobs, RequestJobOutcome, RequestJobStatus, SubmitJob
from engine.storage import local
from tests.dispatcher.stored import World, decision_of, end_of
from tests.dispatcher.test_recovery import Leading, left, patient, run, until
from tests.jobmaster.job_graphs import job_graph

__all__ = ["patient"]

SIZE = 512 << 10


def mount(*words):
    return subprocess.run(["mount", *words], check=False, capture_output=True, text=True)


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = mount("-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder))
    if done.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def world(disk):
    return World(disk / "storage")


def fill(disk):
    """Take all room; return how to give it back."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler.unlink


def test_on_a_full_disk_a_submission_is_refused_and_a_job_that_runs_ends(world, disk):
    async def body():
        async with Leading(world, slots=(1,)) as leader:
            runs, refused = job_graph([1]), job_graph([1])
            await leader.gateway.ask(SubmitJob(runs))
            give_back = fill(disk)
            with pytest.raises(ResourceError, match=r"cannot be stored in .*storage: No space left on device"):
                await leader.gateway.ask(SubmitJob(refused))
            with pytest.raises(JobNotFoundError):
                await leader.gateway.ask(RequestJobStatus(refused.job_id))
            assert [path.name for path in (world.folder / "jobs").iterdir()] == [runs.job_id.value]
            assert (await leader.end(runs)).status == "FINISHED"
            give_back()
            await until(lambda: runs.job_id.value not in world.handles.names())
            assert (await leader.run(refused)).status == "FINISHED"
            await until(lambda: left(world) == [])
            assert len((await leader.gateway.ask(ListJobs())).jobs) == 2 and leader.faults == []

    run(body())


def test_on_a_full_disk_the_next_leader_goes_on_with_what_is_stored(world, disk):
    async def body():
        graph = job_graph([1])
        world.leader().put(graph)
        (world.folder / "history").mkdir()
        give_back = fill(disk)
        async with Leading(world) as second:
            assert (await second.end(graph)).status == "FINISHED"
            give_back()
            await until(lambda: left(world) == [])
            assert second.faults == []

    run(body())


def test_what_cannot_be_decided_says_where_there_is_no_room_and_nothing_is_decided(world, disk):
    jobs, graph = world.leader(), job_graph([1])
    jobs.put(graph)
    give_back = fill(disk)
    with pytest.raises(ResourceError, match=r"output of job .* cannot be stored in .*: No space left on device"):
        jobs.decide(decision_of(graph, 2))
    assert jobs.load(graph.job_id).decision is None
    jobs.record(end_of(graph, "FAILED"))
    found = world.leader().load(graph.job_id)
    assert isinstance(found, StoredEnd) and found.job.outcome.status == "FAILED"
    give_back()


def test_a_read_only_disk_keeps_no_leader_from_ending_what_is_stored(world, disk):
    async def body():
        graph, refused = job_graph([1]), job_graph([1])
        world.leader().put(graph)
        (world.folder / "history").mkdir()
        assert mount("-o", "remount,ro", str(disk)).returncode == 0
        try:
            async with Leading(world) as second:
                assert (await second.end(graph)).status == "FINISHED"
                with pytest.raises(ResourceError, match=r"cannot be stored in .*storage: Read-only file system"):
                    await second.gateway.ask(SubmitJob(refused))
                assert world.handles.names() == (graph.job_id.value,)
                assert mount("-o", "remount,rw", str(disk)).returncode == 0
                await until(lambda: left(world) == [])
                assert (await second.run(refused)).status == "FINISHED" and second.faults == []
        finally:
            mount("-o", "remount,rw", str(disk))

    run(body())


def test_a_disk_that_does_not_answer_holds_up_nobody_but_who_waits_for_it(tmp_path, monkeypatch):
    async def body():
        world = World(tmp_path / "storage")
        async with Leading(world) as leader:
            runs, slow = job_graph([1]), job_graph([1])
            await leader.gateway.ask(SubmitJob(runs))
            assert (await leader.end(runs)).status == "FINISHED"
            answers, synchronise = threading.Event(), os.fsync
            monkeypatch.setattr(local.os, "fsync", lambda file: (answers.wait(60), synchronise(file)))
            submission = asyncio.ensure_future(leader.gateway.ask(SubmitJob(slow), None))
            for _ in range(20):
                assert (await leader.gateway.ask(RequestJobOutcome(runs.job_id))).status == "FINISHED"
                await asyncio.sleep(0.01)
            assert not submission.done()
            answers.set()
            assert (await submission).is_new and (await leader.end(slow)).status == "FINISHED"

    run(body())
