"""Dispatchers over the same storage, one after the other: what one accepted the next one runs to its end, once."""

import asyncio
import errno
import hashlib
import json
import threading

import msgspec
import pytest
from msgspec.structs import replace

from engine.clock import SystemClock
from engine.dispatcher import dispatcher
from engine.dispatcher.dispatcher import Dispatcher
from engine.dispatcher.job_archive import JobArchive
from engine.dispatcher.job_keeper import JobKeeper
from engine.dispatcher.job_store import JobStore
from engine.errors import FencedError, JobNotFoundError, ResourceError, VersionMismatchError
from engine.gateways.messages import CancelJob, ListJobs, RequestJobOutcome, RequestJobStatus, SubmitJob
from engine.ids import JobId
from engine.iomanager.crc32c import crc32c
from engine.jobmaster.job_event import Led
from engine.jobmaster.job_facts import RecoveredJob
from engine.jobmaster.job_master import JobMaster
from engine.jobmaster.job_master_settings import JobMasterSettings, job_turn
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.versions import HANDLE
from tests.dispatcher.stored import World, end_of
from tests.dispatcher.test_cluster_components import EPOCH, Cluster
from tests.jobmaster.job_graphs import job_graph

#: limit in seconds for what comes soon: other work on this machine may leave nothing to a test for a minute
WAIT_S = 120


class Leading(Cluster):
    """One leader: a Dispatcher over the world's storage, with TaskExecutors of its own."""

    def __init__(self, world, slots=(2,), open_tries=None):
        super().__init__(list(slots), heartbeat_s=WAIT_S)
        self.jobs = world.leader()
        self.removed_blobs = []
        self.history = JobStore(archive=JobArchive(str(world.folder / "history")), is_patient=True)
        keeper = JobKeeper(self.history, self.jobs, self.work, self._remove_blobs, open_tries)
        self.dispatcher = Dispatcher(self.rpc, EPOCH, self._make, self.faults.append, keeper)
        self.made = []

    async def _remove_blobs(self, job_id):
        self.removed_blobs.append(job_id)

    def _make(self, graph, journal, taken, order):
        self.made.append(graph.job_id)
        return JobMaster(
            graph,
            self.leadership,
            JobMasterSettings(WAIT_S, 5.0, WAIT_S, RESOURCE_MANAGER_ADDRESS, reattach_timeout_s=WAIT_S),
            self.jobs.of(graph.job_id),
            journal,
            RecoveredJob(taken.events, taken.stored.decision) if taken is not None else None,
            job_turn(graph, order),
        )

    def recovered_turns(self):
        return self.dispatcher.recovered_turns

    async def __aenter__(self):
        await self.dispatcher.recover()
        await super().__aenter__()
        self.dispatcher.start()
        return self

    async def end(self, graph):
        return await self.gateway.ask(RequestJobOutcome(graph.job_id), None)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """On a slow disk, too, the news of a job's end waits until its remains are removed."""
    monkeypatch.setattr(dispatcher, "_REMAINS_S", WAIT_S)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "storage")


def run(body):
    asyncio.run(asyncio.wait_for(body, 2 * WAIT_S))


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.01)


def left(world):
    """What is stored of jobs, but for their history."""
    return [name for name in world.files() if not name.startswith("history")] + list(world.handles.names())


def test_a_job_is_stored_when_it_is_acknowledged_and_nothing_is_left_when_its_end_is_told(world):
    async def body():
        async with Leading(world) as leader:
            graph = job_graph([2])
            assert (await leader.gateway.ask(SubmitJob(graph))).is_new
            assert world.handles.names() == (graph.job_id.value,)
            assert (await leader.end(graph)).status == "FINISHED"
            assert left(world) == [] and leader.removed_blobs == [graph.job_id]
            assert not (await leader.gateway.ask(SubmitJob(graph))).is_new
            assert leader.faults == []

    run(body())


def test_the_same_job_submitted_twice_at_once_runs_once(world):
    async def body():
        async with Leading(world) as leader:
            graph = job_graph([1])
            replies = await asyncio.gather(*(leader.gateway.ask(SubmitJob(graph)) for _ in range(5)))
            assert sorted(reply.is_new for reply in replies) == [False] * 4 + [True]
            await leader.end(graph)
            assert leader.made == [graph.job_id]

    run(body())


def test_jobs_keep_their_turns_under_the_next_leader_and_those_that_come_later_are_behind_them(world, monkeypatch):
    def graph(name, priority=0):
        return replace(job_graph([1], names=[name]), configuration={"job.priority": str(priority)})

    async def body():
        accepted = [graph("second"), graph("first", 1), graph("third")]
        async with Leading(world, slots=()) as leader:
            for each in accepted:
                await leader.gateway.ask(SubmitJob(each))
            waiting = {}
            while len(waiting) < 3:
                await asyncio.sleep(0.01)
                jobs = (await leader.gateway.ask(ListJobs())).jobs
                waiting = {job.job_id: job.waiting.place for job in jobs if job.waiting}
            assert [waiting[each.job_id] for each in accepted] == [2, 1, 3]
        # The clock of the next machine is far behind.
        monkeypatch.setattr(SystemClock, "wall_ms", lambda self: 1)
        async with Leading(world, slots=(1,)) as leader:
            late = graph("fourth")
            await leader.gateway.ask(SubmitJob(late))
            for each in (*accepted, late):
                assert (await leader.end(each)).status == "FINISHED"
            ran = [descriptor.vertex_name for descriptor in leader.resources[0].descriptors]
            assert ran == ["first", "second", "third", "fourth"]

    run(body())


def test_the_next_leader_runs_what_was_accepted_and_knows_what_has_ended(world):
    async def body():
        waiting, done = job_graph([2]), job_graph([1])
        async with Leading(world, slots=(1,)) as first:
            await first.run(done)
            await first.gateway.ask(SubmitJob(waiting))  # it needs one slot more than there is
        async with Leading(world) as second:
            assert second.dispatcher.is_known_job(waiting.job_id)
            assert (await second.end(waiting)).status == "FINISHED"
            assert (await second.end(done)).status == "FINISHED"
            assert not (await second.gateway.ask(SubmitJob(done))).is_new
            assert second.made == [waiting.job_id] and left(world) == []

    run(body())


def test_an_end_that_was_recorded_is_told_by_the_next_leader_and_its_remains_go(world):
    async def body():
        graph = job_graph([1])
        first = world.leader()
        first.put(graph)
        first.record(end_of(graph, "CANCELED"))
        async with Leading(world) as second:
            assert (await second.end(graph)).status == "CANCELED"
            assert not second.dispatcher.is_known_job(graph.job_id)
            await until(lambda: left(world) == [])
            assert second.made == [] and second.removed_blobs == [graph.job_id]
        async with Leading(world) as third:
            assert (await third.end(graph)).status == "CANCELED"

    run(body())


def test_a_job_that_was_cancelled_ends_so_under_the_next_leader(world):
    async def body():
        graph = job_graph([1])
        first = world.leader()
        first.put(graph)
        first.cancel(graph.job_id)
        async with Leading(world, slots=()) as second:
            assert (await second.end(graph)).status == "CANCELED"
            assert left(world) == []

    run(body())


def test_damage_and_rubbish_fail_one_job_and_nobody_else(world):
    async def body():
        good, bad, foreign = job_graph([1]), job_graph([1]), "f" * 32
        first = world.leader()
        first.put(good)
        first.put(bad)
        world.handles.create(world.handles.epoch, foreign, b"rubbish")
        path = next((world.folder / "jobs" / bad.job_id.value).glob("graph-*"))
        path.write_bytes(b"\0" + path.read_bytes()[1:])
        async with Leading(world) as second:
            assert (await second.end(good)).status == "FINISHED"
            outcome = await second.end(bad)
            assert outcome.status == "FAILED" and str(path) in outcome.failure.message
            with pytest.raises(JobNotFoundError):
                await second.gateway.ask(RequestJobStatus(JobId(foreign)))
            await until(lambda: left(world) == [foreign])
            assert second.faults == []

    run(body())


def test_a_job_that_nobody_can_run_fails_alone(world):
    async def body():
        graph, other = job_graph([1]), job_graph([1])
        first = world.leader()
        first.put(graph)
        first.put(other)
        second = Leading(world)
        make = second._make

        def refuse(made, *rest):
            if made.job_id == graph.job_id:
                raise ValueError("of a later version")
            return make(made, *rest)

        second.dispatcher._job_master_factory = refuse
        async with second:
            assert (await second.end(other)).status == "FINISHED"
            outcome = await second.end(graph)
            assert outcome.status == "FAILED" and "of a later version" in outcome.failure.message
            await until(lambda: left(world) == [])

    run(body())


def test_a_job_that_cannot_be_read_yet_keeps_nobody_waiting_and_runs_when_it_can(world):
    async def body():
        graph, other = job_graph([1]), job_graph([1])
        first = world.leader()
        first.put(graph)
        first.put(other)
        folder = world.folder / "jobs" / graph.job_id.value
        path = next(folder.glob("graph-*"))
        content = path.read_bytes()
        path.unlink()
        path.mkdir()  # an OSError whoever reads
        async with Leading(world) as second:
            assert (await second.end(other)).status == "FINISHED"
            assert second.dispatcher.is_known_job(graph.job_id)
            assert not (await second.gateway.ask(SubmitJob(graph))).is_new
            with pytest.raises(ResourceError, match=r"waits to be recovered: .*directory"):
                await second.gateway.ask(RequestJobOutcome(graph.job_id), None)
            assert (await second.gateway.ask(RequestJobStatus(graph.job_id))).status == "RECONCILING"
            path.rmdir()
            path.write_bytes(content)
            await until(lambda: graph.job_id in second.made)
            assert (await second.end(graph)).status == "FINISHED"
            assert left(world) == [] and second.faults == []

    run(body())


def test_a_job_that_cannot_be_read_can_be_cancelled(world):
    async def body():
        graph = job_graph([1])
        world.leader().put(graph)
        (world.folder / "identity").write_text("another")
        async with Leading(world, slots=()) as second:
            assert [job.status for job in (await second.gateway.ask(ListJobs())).jobs] == ["RECONCILING"]
            await second.gateway.ask(CancelJob(graph.job_id))
            assert (await second.end(graph)).status == "CANCELED"
            await until(lambda: left(world) == [])

    run(body())


def test_a_job_that_can_be_read_while_it_is_being_cancelled_does_not_run(world):
    async def body():
        graph, is_readable, is_taken = job_graph([1]), threading.Event(), threading.Event()
        world.leader().put(graph)
        second = Leading(world, slots=())
        load, take_over, end_unread = second.jobs.load, second.jobs.take_over, second.jobs.end_unread

        def load_late(job_id):
            if not is_readable.is_set():
                raise OSError(errno.EIO, "it cannot be read yet")
            return load(job_id)

        def taken_over(stored):
            take_over(stored)
            is_taken.set()

        def end_late(job_id):
            is_readable.set()
            assert is_taken.wait(WAIT_S)
            return end_unread(job_id)

        second.jobs.load, second.jobs.take_over, second.jobs.end_unread = load_late, taken_over, end_late
        async with second:
            await second.gateway.ask(CancelJob(graph.job_id))
            assert (await second.end(graph)).status == "CANCELED"
            await until(lambda: left(world) == [])
            assert second.made == [] and second.faults == []

    run(body())


def write_as_newer(world, graph, what):
    """Have a newer program store the graph with a field more, or an event or a handle of another form."""
    job_id = graph.job_id.value
    handle = json.loads(world.handles.read(job_id).content)
    folder = world.folder / "jobs" / job_id
    if what == "graph":
        content = msgspec.msgpack.decode((folder / handle["graph"]["file"]).read_bytes())
        content["vertices"][0]["niceness"] = 1
        newer = msgspec.msgpack.encode(content)
        handle["graph"] |= {"sha256": hashlib.sha256(newer).hexdigest()}
        (folder / handle["graph"]["file"]).write_bytes(newer)
    elif what == "journal":
        content = msgspec.msgpack.encode({"type": "moved"})
        with (folder / handle["journal"]).open("ab") as file:
            file.write(len(content).to_bytes(4, "big") + crc32c(content).to_bytes(4, "big") + content)
    else:
        handle["format"] = HANDLE.newest + 1
    world.handles.remove(world.handles.epoch, job_id)
    world.handles.create(world.handles.epoch, job_id, json.dumps(handle).encode())


@pytest.mark.parametrize("what", ["graph", "journal", "handle"])
def test_a_job_of_a_newer_version_waits_for_a_leader_that_knows_it_and_others_run(world, what, caplog):
    async def body():
        graph, other = job_graph([1]), job_graph([1])
        first = world.leader()
        for each in (graph, other):
            first.put(each)
            await first.new_journal(each.job_id, [Led(1, 1)]).close()
        write_as_newer(world, graph, what)
        async with Leading(world) as second:
            assert (await second.end(other)).status == "FINISHED"
            assert (await second.gateway.ask(RequestJobStatus(graph.job_id))).status == "RECONCILING"
            assert not (await second.gateway.ask(SubmitJob(graph))).is_new
            assert "cannot be recovered yet" in caplog.text and "version" in caplog.text
            if what == "handle":
                with pytest.raises(VersionMismatchError, match="is a handle of a job of form 2"):
                    await second.gateway.ask(CancelJob(graph.job_id))
                return
            await second.gateway.ask(CancelJob(graph.job_id))
            assert (await second.end(graph)).status == "CANCELED"
            await until(lambda: left(world) == [])
            assert second.faults == []

    run(body())


def test_handles_that_do_not_answer_are_asked_again(world):
    async def body():
        graph = job_graph([1])
        world.leader().put(graph)
        world.handles.silent = 3
        async with Leading(world) as second:
            assert (await second.end(graph)).status == "FINISHED"
            world.handles.silent, world.handles.is_lost = 1, True
            another = job_graph([1])
            assert (await second.gateway.ask(SubmitJob(another))).is_new
            assert (await second.end(another)).status == "FINISHED"
            assert left(world) == [] and second.faults == []

    run(body())


def test_who_is_revoked_while_handles_do_not_answer_stops_at_once(world):
    async def body():
        world.leader().put(job_graph([1]))
        leader = Leading(world)
        world.handles.silent = 10_000
        recovery = asyncio.ensure_future(leader.dispatcher.recover())
        await until(lambda: world.handles.silent < 9_999)
        recovery.cancel()
        await leader.dispatcher.stop()
        assert recovery.cancelled() or await asyncio.wait({recovery})
        leader.work.shutdown()
        assert leader.made == [] and leader.faults == []

    run(body())


@pytest.mark.parametrize("open_tries", [1, 2])
def test_a_leader_whose_storage_cannot_be_opened_gives_up_where_another_one_may_lead(world, open_tries):
    async def body():
        leader = Leading(world, open_tries=open_tries)
        (world.folder / "jobs").rmdir()
        (world.folder / "jobs").write_text("in the way")
        with pytest.raises(ResourceError, match=r"storageDir cannot be opened: .*storage/jobs'.* another one leads"):
            await leader.dispatcher.recover()
        (world.folder / "jobs").unlink()
        await leader.dispatcher.recover()
        await leader.dispatcher.stop()
        leader.work.shutdown()
        assert leader.faults == []

    run(body())


def test_a_job_that_cannot_be_stored_is_refused_with_the_reason_and_others_go_on(world):
    async def body():
        async with Leading(world) as leader:
            graph, other = job_graph([1]), job_graph([1])
            (world.folder / "jobs" / graph.job_id.value).write_text("in the way")
            with pytest.raises(ResourceError, match=r"cannot be stored in .*storage"):
                await leader.gateway.ask(SubmitJob(graph))
            with pytest.raises(JobNotFoundError):
                await leader.gateway.ask(RequestJobStatus(graph.job_id))
            assert (await leader.run(other)).status == "FINISHED"
            (world.folder / "jobs" / graph.job_id.value).unlink()
            assert (await leader.run(graph)).status == "FINISHED"
            assert leader.faults == []

    run(body())


def test_history_that_cannot_be_written_leaves_the_end_of_a_job_for_the_next_leader_and_nothing_else(world):
    async def body():
        graph = job_graph([1])
        async with Leading(world) as leader:
            (world.folder / "history").rmdir()
            (world.folder / "history").write_text("in the way")
            assert (await leader.run(graph)).status == "FINISHED"
            await until(lambda: not (world.folder / "jobs" / graph.job_id.value).exists())
        (result,) = (name for name in left(world) if name.startswith("results/"))
        assert left(world) == [result, graph.job_id.value]
        async with Leading(world) as second:
            assert (await second.end(graph)).status == "FINISHED"
            (world.folder / "history").unlink()
            await until((world.folder / "history" / f"{graph.job_id}.job").exists)
            await until(lambda: left(world) == [])
            assert len((await second.gateway.ask(ListJobs())).jobs) == 1
            assert second.made == []

    run(body())


def test_a_leader_that_cannot_list_the_history_says_so_and_knows_it_later(world, monkeypatch):
    def fail(_):
        raise OSError(errno.EIO, "the store does not answer")

    async def body():
        graph, other = job_graph([1]), job_graph([1])
        async with Leading(world) as leader:
            await leader.run(graph)
        with monkeypatch.context() as failing:
            failing.setattr(JobArchive, "overviews", fail)
            second = Leading(world)
            async with second:
                with pytest.raises(ResourceError, match="cannot be listed at present"):
                    await second.end(graph)
                assert (await second.run(other)).status == "FINISHED"
                assert not (await second.gateway.ask(SubmitJob(graph))).is_new
                failing.undo()
                await until(lambda: second.history.is_listed)
                assert (await second.end(graph)).status == "FINISHED"
                jobs = (await second.gateway.ask(ListJobs())).jobs
                assert [job.job_id for job in jobs] == [graph.job_id, other.job_id]
                with pytest.raises(JobNotFoundError):
                    await second.end(job_graph([1]))

    run(body())


def test_who_leads_no_more_neither_ends_a_job_nor_removes_anything(world):
    async def body():
        graph = job_graph([1])
        async with Leading(world, slots=()) as first:
            await first.gateway.ask(SubmitJob(graph))
            world.leader()
            files = left(world)
            ending = asyncio.ensure_future(first.end(graph))
            with pytest.raises(FencedError):
                await first.gateway.ask(CancelJob(graph.job_id))
            assert left(world) == files and not ending.done()
        assert (await ending).status == "SUSPENDED"

    run(body())
