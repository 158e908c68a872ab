"""What leaders store of jobs: found by the next one, refused to the one before, never half."""

from pathlib import Path
from unittest import mock

import pytest

from engine.dispatcher.job_handle import BrokenJobError, StorageElsewhereError, StoredEnd, StoredJob
from engine.errors import FencedError, ResourceError
from engine.graph.deployment import Staging
from engine.ids import JobId
from engine.jobmaster.job_commit import StorageUnavailableError
from engine.jobmaster.job_event import Led, Prepared
from engine.jobmaster.job_journal import NoJournal
from ha.interfaces import ForeignStateError
from tests.dispatcher.stored import World, decision_of, end_of
from tests.jobmaster.job_graphs import job_graph


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "storage")


@pytest.fixture
def graph():
    return job_graph([2])


def close(journal):
    journal._place.close()


def test_the_next_leader_finds_a_job_as_it_was_submitted(world, graph):
    jobs = world.leader()
    assert jobs.put(graph)
    found = world.leader()
    assert found.job_ids() == (graph.job_id,)
    stored = found.load(graph.job_id)
    assert isinstance(stored, StoredJob) and stored.job_graph == graph and stored.decision is None
    assert found.events(graph.job_id, stored.journal) == ()


def test_nobody_else_can_read_what_is_stored(world, graph):
    world.leader().put(graph)
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in (world.folder, world.folder / "jobs"))


def test_a_job_that_is_stored_is_not_new_and_stays_as_it_is(world, graph):
    assert world.leader().put(graph)
    again = world.leader()
    assert not again.put(job_graph([3], name="another").__class__(graph.job_id, "another", graph.vertices, b"", {}))
    assert again.load(graph.job_id).job_graph == graph


def test_a_submission_whose_answer_was_lost_is_new_when_it_is_repeated(world, graph):
    jobs = world.leader()
    world.handles.silent, world.handles.is_lost = 1, True
    with pytest.raises(StorageUnavailableError, match="it does not answer"):
        jobs.put(graph)
    assert jobs.put(graph)
    assert jobs.job_ids() == (graph.job_id,)


def test_who_leads_no_more_changes_nothing_and_is_told_so(world, graph):
    old = world.leader()
    old.put(graph)
    stored = old.load(graph.job_id)
    new = world.leader()
    new.take_over(new.load(graph.job_id))
    in_force, files = new.load(graph.job_id), world.files()
    for write in (
        lambda: old.put(job_graph([1])),
        lambda: old.take_over(stored),
        lambda: old.cancel(graph.job_id),
        lambda: old.decide(decision_of(graph, 2)),
        lambda: old.record(end_of(graph)),
    ):
        with pytest.raises(FencedError):
            write()
    assert world.handles.refused_writes == 5
    assert new.load(graph.job_id) == in_force and set(files) <= set(world.files())


def test_who_leads_no_more_and_gets_no_answer_does_not_ask_again(world, graph):
    old = world.leader()
    world.leader()
    world.handles.silent = 1
    with pytest.raises(FencedError):
        old.put(graph)


def test_a_journal_is_taken_over_with_what_it_says_and_the_old_one_goes(world, graph):
    first = world.leader()
    first.put(graph)
    close(first.new_journal(graph.job_id, [Led(2, 5)]))
    second = world.leader()
    stored = second.load(graph.job_id)
    events = second.events(graph.job_id, stored.journal)
    assert events == (Led(2, 5),)
    close(second.new_journal(graph.job_id, (*events, Led(3, 6))))
    # Until it is taken over, the one before counts.
    assert second.load(graph.job_id).journal == first.journal_path(graph.job_id)
    second.take_over(stored)
    second.take_over(stored)
    third = world.leader()
    stored = third.load(graph.job_id)
    assert third.events(graph.job_id, stored.journal) == (Led(2, 5), Led(3, 6))
    assert [name for name in world.files() if "journal" in name] == [f"jobs/{graph.job_id}/{Path(stored.journal).name}"]


def test_a_damaged_journal_is_an_empty_one(world, graph):
    jobs = world.leader()
    jobs.put(graph)
    Path(jobs.journal_path(graph.job_id)).write_bytes(b"rubbish")
    assert jobs.events(graph.job_id, jobs.journal_path(graph.job_id)) == ()


def test_a_job_runs_without_a_journal_where_none_can_be_made(world, graph):
    jobs = world.leader()
    assert isinstance(jobs.new_journal(graph.job_id), NoJournal)


def test_a_decision_is_taken_once_whoever_decides_again(world, graph):
    first = world.leader()
    first.put(graph)
    assert first.decide(decision_of(graph, 2)) == decision_of(graph, 2)
    second = world.leader()
    assert second.load(graph.job_id).decision == decision_of(graph, 2)
    assert second.of(graph.job_id).decide(decision_of(graph, 3)) == decision_of(graph, 2)


def test_a_decision_whose_answer_was_lost_is_in_force(world, graph):
    jobs = world.leader()
    jobs.put(graph)
    world.handles.silent, world.handles.is_lost = 2, True  # it is read, then replaced
    with pytest.raises(StorageUnavailableError):
        jobs.decide(decision_of(graph, 2))
    world.handles.silent = 1
    with pytest.raises(StorageUnavailableError):
        jobs.decide(decision_of(graph, 2))
    assert jobs.decide(decision_of(graph, 2)) == decision_of(graph, 2)


def test_how_a_job_ended_is_known_to_the_next_leader_until_it_is_cleaned(world, graph):
    first = world.leader()
    first.put(graph)
    storage = first.of(graph.job_id)
    assert storage.ended() is None
    storage.record(end_of(graph, "FAILED"))
    storage.record(end_of(graph, "FINISHED"))
    second = world.leader()
    found = second.load(graph.job_id)
    assert isinstance(found, StoredEnd) and found.job.outcome == end_of(graph, "FAILED").outcome
    assert second.of(graph.job_id).ended().status == "FAILED"
    second.clean(graph.job_id)
    second.clean(graph.job_id)
    assert world.files() == [] and world.handles.names() == () and second.load(graph.job_id) is None


def test_the_end_of_a_job_is_known_without_its_details(world, graph):
    first = world.leader()
    first.put(graph)
    first.record(end_of(graph, "FAILED"))
    for path in (world.folder / "results").iterdir():
        path.write_text("rubbish")
    found = world.leader().load(graph.job_id)
    assert isinstance(found, StoredEnd) and found.job.outcome.status == "FAILED"


def test_staging_that_a_leader_left_goes_with_its_job(world, graph, tmp_path):
    jobs = world.leader()
    jobs.put(graph)
    staging = tmp_path / f".out.drey-{graph.job_id}"
    staging.mkdir()
    (staging / "0-0-x.csv").write_text("1\n")
    close(jobs.new_journal(graph.job_id, [Prepared({0: Staging(str(staging), str(tmp_path / "out"))})]))
    jobs.record(end_of(graph, "CANCELED"))
    second = world.leader()
    second.clean(graph.job_id, second.load(graph.job_id).journal)
    assert not staging.exists() and world.files() == []


def test_that_somebody_cancelled_is_known_to_the_next_leader(world, graph):
    jobs = world.leader()
    jobs.put(graph)
    jobs.cancel(graph.job_id)
    assert world.leader().load(graph.job_id).handle.is_cancelled
    jobs.cancel(JobId("f" * 32))  # it has just been cleaned


@pytest.mark.parametrize("damage", ["flip", "cut", "missing", "another"])
def test_a_damaged_graph_breaks_its_own_job_and_says_which_file(world, graph, damage):
    jobs, other = world.leader(), job_graph([1])
    jobs.put(graph)
    jobs.put(other)
    path = next((world.folder / "jobs" / graph.job_id.value).glob("graph-*"))
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    if damage == "another":
        content = next((world.folder / "jobs" / other.job_id.value).glob("graph-*")).read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    if damage == "missing":
        path.unlink()
    second = world.leader()
    with pytest.raises(BrokenJobError, match=str(path)) as raised:
        second.load(graph.job_id)
    assert second.load(other.job_id).job_graph == other
    second.end_broken(raised.value)
    ended = world.leader().load(graph.job_id)
    assert ended.job.outcome.status == "FAILED" and str(path) in ended.job.outcome.failure.message


def test_a_job_whose_graph_is_lost_has_nothing_staged_when_its_end_is_told(world, graph, tmp_path):
    jobs = world.leader()
    jobs.put(graph)
    staging = tmp_path / f".out.drey-{graph.job_id}"
    staging.mkdir()
    close(jobs.new_journal(graph.job_id, [Prepared({0: Staging(str(staging), str(tmp_path / "out"))})]))
    next((world.folder / "jobs" / graph.job_id.value).glob("graph-*")).unlink()
    second = world.leader()
    with pytest.raises(BrokenJobError) as raised:
        second.load(graph.job_id)
    assert second.end_broken(raised.value).job.outcome.status == "FAILED"
    assert not staging.exists()


def test_what_was_decided_is_published_though_the_graph_is_lost(world, graph):
    jobs = world.leader()
    jobs.put(graph)
    jobs.decide(decision_of(graph, 2))
    next((world.folder / "jobs" / graph.job_id.value).glob("graph-*")).unlink()
    second = world.leader()
    with pytest.raises(BrokenJobError) as raised:
        second.load(graph.job_id)
    assert second.end_broken(raised.value).job.outcome.status == "FINISHED"


@pytest.mark.parametrize("is_cancelled_first", [True, False])
def test_a_job_that_is_lost_and_cancelled_ends_once(world, graph, is_cancelled_first):
    world.leader().put(graph)
    next((world.folder / "jobs" / graph.job_id.value).glob("graph-*")).unlink()
    second = world.leader()
    with pytest.raises(BrokenJobError) as raised:
        second.load(graph.job_id)
    ends = [lambda: second.end_unread(graph.job_id), lambda: second.end_broken(raised.value)]
    told = [end().job.outcome.status for end in (ends if is_cancelled_first else reversed(ends))]
    assert told == ["CANCELED" if is_cancelled_first else "FAILED"] * 2
    assert world.leader().load(graph.job_id).job.outcome.status == told[0]


def test_a_cancelled_job_that_cannot_be_read_publishes_what_was_decided(world, graph, monkeypatch):
    jobs = world.leader()
    jobs.put(graph)
    jobs.decide(decision_of(graph, 2))
    published, second = [], world.leader()
    monkeypatch.setattr("engine.dispatcher.job_storage.publish", published.append)
    assert second.end_unread(graph.job_id).job.outcome.status == "FINISHED"
    assert len(published) == 1


def test_a_cancelled_job_whose_decided_output_cannot_be_published_yet_goes_on(world, graph, monkeypatch):
    jobs = world.leader()
    jobs.put(graph)
    jobs.decide(decision_of(graph, 2))
    second = world.leader()
    monkeypatch.setattr("engine.dispatcher.job_storage.publish", mock.Mock(side_effect=OSError("slow disk")))
    with pytest.raises(ResourceError, match=r"is not cancelled: its output was to be published.*slow disk"):
        second.end_unread(graph.job_id)
    assert isinstance(second.load(graph.job_id), StoredJob)


def test_a_job_of_another_folder_is_kept_and_told(world, graph, tmp_path):
    world.leader().put(graph)
    here, world.folder = world.folder, tmp_path / "elsewhere"
    with pytest.raises(StorageElsewhereError, match=r"high-availability\.storageDir; is it mounted"):
        world.leader().load(graph.job_id)
    world.folder = here
    assert world.leader().load(graph.job_id).job_graph == graph


def test_a_folder_that_went_away_loses_no_job(world, graph):
    jobs = world.leader()
    jobs.put(graph)
    hidden = world.folder.rename(world.folder.with_name("hidden"))
    with pytest.raises(StorageElsewhereError):
        jobs.load(graph.job_id)
    hidden.rename(world.folder)
    assert jobs.load(graph.job_id).job_graph == graph


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"{}", b'{"job_id": {"value": "00"}}', "path", "job"], ids=["0", "1", "2", "3", "4", "5"]
)
def test_rubbish_in_a_handle_is_foreign_and_nothing_else_suffers(world, graph, content):
    jobs = world.leader()
    jobs.put(graph)
    good = world.handles.read(graph.job_id.value).content
    if content == "path":
        content = good.replace(b"journal-", b"../../etc/journal-")
    elif content == "job":
        content = good
    name = "a" * 32
    world.handles.create(world.handles.epoch, name, content)
    with pytest.raises(ForeignStateError):
        jobs.load(JobId(name))
    with pytest.raises(ResourceError, match="the handle of a job is damaged"):
        jobs.put(graph.__class__(JobId(name), "mine", graph.vertices, b"", {}))
    assert jobs.load(graph.job_id).job_graph == graph


def test_names_that_are_no_jobs_are_left_alone(world, graph):
    jobs = world.leader()
    jobs.put(graph)
    world.handles.create(world.handles.epoch, "abc", b"what")
    assert jobs.job_ids() == (graph.job_id,) and "abc" in world.handles.names()
