"""What somebody removes of the storage while a leader leads is there again; what cannot be is told and ends."""

import contextlib
import errno
import shutil
import subprocess
import threading

import pytest

from engine.commit.staging import create_staging
from engine.dispatcher import dispatcher, job_keeper
from engine.dispatcher.job_handle import JobElsewhereError, StorageElsewhereError, StoredEnd
from engine.dispatcher.job_handles import NoHandleError
from engine.dispatcher.job_storage import StoredJobs
from engine.errors import FencedError, JobNotFoundError, ResourceError
from engine.gateways.messages import ListJobs, RequestJobOutcome, SubmitJob
from engine.graph.source_spec import SinkSpec
from engine.jobmaster.job_event import Led
from tests.dispatcher.stored import World, decision_of, end_of
from tests.dispatcher.test_recovery import Leading, left, patient, run, until
from tests.dispatcher.test_storage_trouble import disk
from tests.jobmaster.job_graphs import job_graph

__all__ = ["disk", "patient"]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "storage")


@pytest.fixture
def graph():
    return job_graph([2])


def remove(world, graph, what):
    folder = world.folder / "jobs" / graph.job_id.value
    if what == "handle":
        world.handles.remove(world.handles.epoch, graph.job_id.value)
    elif what == "everything":
        remove(world, graph, "handle")
        remove_tree(world.folder)
    elif what in ("graph", "journal"):
        next(folder.glob(f"{what}-*")).unlink()
    elif what == "identity":
        (world.folder / "identity").unlink()
    else:
        remove_tree({"job": folder, "jobs": folder.parent, "folder": world.folder}[what])


def remove_tree(folder):
    """Remove a folder in which a leader is at work: files that it removes or stores again meanwhile are no error."""

    def failed(_function, _path, raised):
        if not isinstance(raised[1], FileNotFoundError) and raised[1].errno != errno.ENOTEMPTY:
            raise raised[1]

    shutil.rmtree(folder, onerror=failed)


REMOVED = ["handle", "graph", "journal", "job", "jobs", "identity", "folder", "everything"]


@pytest.mark.parametrize("what", REMOVED)
def test_what_is_removed_while_a_leader_leads_is_there_for_the_next_one(world, graph, what):
    first = world.leader()
    first.put(graph)
    journal = first.new_journal(graph.job_id, [Led(2, 5)])
    remove(world, graph, what)
    first.mend()
    first.mend()
    journal._place.close()
    second = world.leader()
    assert second.job_ids() == (graph.job_id,)
    stored = second.load(graph.job_id)
    assert stored.job_graph == graph and second.events(graph.job_id, stored.journal) == (Led(2, 5),)


@pytest.mark.parametrize("what", REMOVED)
def test_what_is_removed_of_a_job_that_was_taken_over_is_there_again(world, graph, what):
    world.leader().put(graph)
    second = world.leader()
    journal = second.new_journal(graph.job_id)
    second.take_over(second.load(graph.job_id))
    remove(world, graph, what)
    second.mend()
    journal._place.close()
    assert world.leader().load(graph.job_id).job_graph == graph


@pytest.mark.parametrize("what", REMOVED)
def test_a_job_ends_as_it_would_when_something_of_it_is_removed_just_before(world, graph, what):
    first = world.leader()
    first.put(graph)
    first.new_journal(graph.job_id)._place.close()
    remove(world, graph, what)
    assert first.decide(decision_of(graph, 2)) == decision_of(graph, 2)
    first.record(end_of(graph))
    found = world.leader().load(graph.job_id)
    assert isinstance(found, StoredEnd) and found.job.outcome.status == "FINISHED"


@pytest.mark.parametrize("what", REMOVED)
def test_a_submission_is_taken_whatever_was_removed_before_it(world, graph, what):
    first, other = world.leader(), job_graph([1])
    first.put(graph)
    first.new_journal(graph.job_id)._place.close()
    remove(world, graph, what)
    assert first.put(other)
    assert world.leader().load(other.job_id).job_graph == other


@pytest.mark.parametrize("content", [b"", b"rubbish"])
def test_a_handle_that_is_overwritten_with_rubbish_is_made_again_when_it_is_needed(world, graph, content):
    first = world.leader()
    first.put(graph)
    world.handles.replace(world.handles.epoch, graph.job_id.value, content, 0)
    first.cancel(graph.job_id)
    first.record(end_of(graph, "CANCELED"))
    found = world.leader().load(graph.job_id)
    assert isinstance(found, StoredEnd) and found.job.outcome.status == "CANCELED"


def test_what_was_cleaned_does_not_come_back(world, graph):
    first = world.leader()
    first.put(graph)
    first.record(end_of(graph))
    first.clean(graph.job_id)
    first.mend()
    assert world.files() == [] and world.handles.names() == ()


class Interrupted:
    """Handles at whose next call of a name something else is done first, or right afterwards."""

    def __init__(self, handles, name, *, first=None, then=None):
        self._call, self._first, self._then = getattr(handles, name), first, then
        setattr(handles, name, self)

    def __call__(self, *arguments):
        (first, self._first), (then, self._then) = (self._first, None), (self._then, None)
        if first is not None:
            first()
        answer = self._call(*arguments)
        if then is not None:
            then()
        return answer


def test_a_job_that_is_cancelled_while_it_is_taken_over_is_cancelled_under_the_next_leader(world, graph):
    world.leader().put(graph)
    second = world.leader()
    cancelling = threading.Thread(target=second.cancel, args=(graph.job_id,))

    def cancel():
        cancelling.start()
        cancelling.join(0.3)  # it may have to wait

    Interrupted(world.handles, "replace", then=cancel)
    second.take_over(second.load(graph.job_id))
    cancelling.join()
    remove(world, graph, "handle")
    second.mend()
    assert world.leader().load(graph.job_id).handle.is_cancelled


def test_a_job_that_ends_while_it_is_taken_over_does_not_come_back(world, graph):
    world.leader().put(graph)
    second = world.leader()
    stored = second.load(graph.job_id)
    second.end_unread(graph.job_id)

    def take_over():
        with contextlib.suppress(NoHandleError):
            second.take_over(stored)

    Interrupted(world.handles, "remove", first=take_over)
    second.clean(graph.job_id, stored.journal)
    second.mend()
    assert world.files() == [] and world.handles.names() == ()


def test_who_leads_no_more_makes_nothing_again(world, graph):
    first = world.leader()
    first.put(graph)
    world.handles.epoch += 1
    remove(world, graph, "everything")
    with pytest.raises(FencedError):
        first.mend()
    assert not world.folder.exists() and world.handles.names() == ()


def test_staging_of_a_running_job_whose_handle_is_removed_is_not_swept_by_others(world, graph):
    first = world.leader()
    first.put(graph)
    remove(world, graph, "handle")
    assert not first.is_over(graph.job_id)


def test_another_folder_in_its_place_is_told_and_nothing_is_written_there(world, graph):
    first = world.leader()
    shutil.rmtree(world.folder)
    StoredJobs(str(world.folder), world.handles, 1).open()
    with pytest.raises(ResourceError, match=r"cannot be stored in .*: .* is another folder than the one"):
        first.put(graph)
    with pytest.raises(StorageElsewhereError):
        first.mend()
    assert world.files() == [] and world.handles.names() == ()


def test_a_file_system_that_is_not_mounted_any_more_is_told_and_nothing_is_made_in_its_place(disk, graph):
    world = World(disk / "storage")
    first = world.leader()
    subprocess.run(["umount", str(disk)], check=True)
    try:
        with pytest.raises(ResourceError, match="it is not mounted"):
            first.put(graph)
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=True)


# ---- a Dispatcher ----


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(job_keeper, "_MEND_PAUSE_S", 0.01)


def test_a_leader_has_what_is_removed_stored_again_and_its_jobs_end(world, quick):
    async def body():
        async with Leading(world, slots=()) as leader:
            graph = job_graph([1])
            await leader.gateway.ask(SubmitJob(graph))
            for what in REMOVED:
                remove(world, graph, what)
                await until(lambda: graph.job_id.value in world.handles.names() and len(left(world)) == 3)
            assert leader.faults == []

    run(body())


def test_a_leader_whose_folder_became_another_one_gives_up_where_another_one_may_lead(world, quick):
    async def body():
        async with Leading(world, open_tries=2) as leader:
            (world.folder / "identity").write_text("another")
            await until(lambda: leader.faults)
            assert "is another folder" in str(leader.faults[0]) and "another one leads" in str(leader.faults[0])

    run(body())


@pytest.mark.parametrize("late_s", [0.0, 0.5])
def test_jobs_of_a_folder_that_is_lost_fail_after_a_while_and_leave_nothing(world, tmp_path, monkeypatch, late_s):
    async def body():
        graph = job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
        first = world.leader()
        first.put(graph)
        staging = create_staging(tmp_path / "out", graph.job_id, first.cluster)
        shutil.rmtree(world.folder)
        over = []
        async with Leading(world) as second:
            second.dispatcher._on_over = over.append
            await until(lambda: (ended := second.history.get(graph.job_id)) and ended.outcome.status == "FAILED")
            outcome = await second.gateway.ask(RequestJobOutcome(graph.job_id))
            assert "is it mounted, or was it removed?" in outcome.failure.message
            await until(lambda: left(world) == [])
            assert not staging.exists() and over == [graph.job_id] and second.faults == []

    monkeypatch.setattr(dispatcher, "_ELSEWHERE_S", late_s)
    run(body())


def test_a_folder_that_is_mounted_late_loses_no_job(world):
    async def body():
        graph = job_graph([1])
        world.leader().put(graph)
        hidden = world.folder.rename(world.folder.with_name("hidden"))
        async with Leading(world) as second:
            assert [job.status for job in (await second.gateway.ask(ListJobs())).jobs] == ["RECONCILING"]
            shutil.rmtree(world.folder)
            hidden.rename(world.folder)
            with pytest.raises(JobElsewhereError):
                second.jobs.load(graph.job_id)  # it has opened the other one
        async with Leading(world) as third:
            assert (await third.end(graph)).status == "FINISHED"

    run(body())


def test_a_job_whose_handle_is_removed_while_it_is_broken_is_forgotten_and_nobody_is_hurt(world):
    async def body():
        graph = job_graph([1])
        world.leader().put(graph)
        next((world.folder / "jobs" / graph.job_id.value).glob("graph-*")).unlink()
        async with Leading(world, slots=()) as second:
            world.handles.remove(world.handles.epoch, graph.job_id.value)
            await until(lambda: not second.dispatcher.is_known_job(graph.job_id))
            assert second.faults == []
            try:
                assert (await second.end(graph)).status == "FAILED"
            except JobNotFoundError:
                assert left(world) == []

    run(body())
