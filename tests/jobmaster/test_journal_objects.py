"""A journal in an object store: ended by its reader at any request of its writer, whose answers may be lost."""

import asyncio
import logging

import pytest

from engine.jobmaster import journal_files
from engine.jobmaster.job_journal import FileJournal
from engine.jobmaster.journal_files import JournalObjects, end_journal, journal_place, read_journal
from engine.storage import file_systems
from tests.jobmaster.test_job_journal import EVENTS, JOB
from tests.storage.memory import CrashError, MemoryStore

PATH = "memory://bucket/ha/jobs/a/journal-7"
FRAMES = [journal_files.frame(event) for event in EVENTS]


@pytest.fixture
def store(monkeypatch):
    found = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, found))
    return found


@pytest.fixture(params=[1, 100, 1 << 20], ids=["each", "some", "one"])
def object_bytes(request, monkeypatch):
    """An event an object, a few, or all in one."""
    monkeypatch.setattr(journal_files, "_OBJECT_BYTES", request.param)
    return request.param


def names(store):
    return sorted(path.removeprefix(f"{PATH}/") for path in store.files)


def test_what_was_flushed_is_read_from_objects_whose_number_is_bounded_by_their_bytes(store, object_bytes):
    async def run():
        journal = FileJournal.create(PATH, JOB, 7, EVENTS[:2])
        for event in EVENTS[2:]:
            journal.append(event)
            await journal.flush()
        assert journal.is_durable and not journal.mend()
        await journal.close()

    asyncio.run(run())
    assert read_journal(PATH) == (JOB, 7, EVENTS, "")
    assert len(store.files) <= 1 + sum(map(len, FRAMES[2:])) / object_bytes + 1
    assert (len(store.files) == 1) == (object_bytes > 100)


def test_a_journal_is_ended_at_any_request_of_its_writer_and_has_all_that_was_durable_then(store, object_bytes):
    for turn in range(50):
        store.__init__()
        is_ended, durable, read = [], [], []

        def end(what, path, turn=turn, is_ended=is_ended, durable=durable, read=read):
            if store.requests == turn and not is_ended:
                is_ended.append(True)
                end_journal(PATH)
                try:
                    read.extend(read_journal(PATH).events)
                except FileNotFoundError:
                    assert not durable
                assert tuple(durable) == tuple(read)[: len(durable)], turn

        store.before = end
        try:
            journal = journal_place(PATH, JOB, 7, EVENTS[:1])
            durable.append(EVENTS[0])
            for event, content in zip(EVENTS[1:], FRAMES[1:], strict=True):
                journal.append(content)
                durable.append(event)
        except OSError as error:
            assert "another JobManager leads" in str(error)
            assert tuple(read) == tuple(durable), "a request that was refused has changed nothing"
            end_journal(PATH)
            assert not read or read_journal(PATH).events == tuple(read)
            with pytest.raises(OSError, match="another JobManager leads"):  # nor can it begin anew
                journal_place(PATH, JOB, 7, EVENTS)
        else:
            assert not is_ended and turn >= len(EVENTS)
            return
    pytest.fail("the journal does not end")


@pytest.mark.parametrize("is_done", [False, True], ids=["lost", "done"])
def test_a_reader_that_dies_at_any_request_leaves_a_journal_that_the_next_one_ends(store, object_bytes, is_done):
    for crash_at in range(10):
        store.__init__()
        journal = journal_place(PATH, JOB, 7, EVENTS[:1])
        journal.append(FRAMES[1])
        store.requests, store.crash_at, store.is_done = 0, crash_at, is_done
        try:
            end_journal(PATH)
        except CrashError:
            store.crash_at = -1
            end_journal(PATH)
            assert read_journal(PATH).events == EVENTS[:2]
            with pytest.raises(OSError, match="another JobManager leads"):
                journal.append(FRAMES[2])
            assert read_journal(PATH).events == EVENTS[:2]
        else:
            assert crash_at > 0
            return
    pytest.fail("ending does not end")


def test_an_answer_that_was_lost_is_the_writers_own(store, object_bytes):
    put = store.put_version

    def twice(path, content, version):
        """The store has done it, the answer is lost, and the client asks again."""
        put(path, content, version)
        return put(path, content, version)

    store.put_version = twice
    journal = journal_place(PATH, JOB, 7, EVENTS[:1])
    for content in FRAMES[1:]:
        journal.append(content)
    end_journal(PATH)
    assert read_journal(PATH).events == EVENTS


def test_a_leader_that_makes_its_journal_again_has_one_of_them(store):
    JournalObjects(PATH, store, b"")
    journal_place(PATH, JOB, 7, EVENTS[:3])
    assert read_journal(PATH).events == EVENTS[:3] and names(store) == ["00000"]


def test_a_request_that_comes_when_the_journal_was_removed_brings_nothing_back(store):
    journal = journal_place(PATH, JOB, 7, EVENTS[:1])
    store.delete_tree(PATH)
    with pytest.raises(OSError, match="it was removed, or another JobManager leads"):
        journal.append(FRAMES[1])
    assert store.files == {}


def test_a_journal_that_is_ended_is_given_up_with_one_warning_and_the_job_goes_on(store, caplog):
    async def run():
        journal = FileJournal.create(PATH, JOB, 7)
        end_journal(PATH)
        for event in EVENTS[:3]:
            journal.append(event)
            await journal.flush()
        assert journal.is_durable
        await journal.close()

    caplog.set_level(logging.WARNING)
    asyncio.run(run())
    (record,) = caplog.records
    assert "another JobManager leads and has ended it" in record.getMessage()
    assert read_journal(PATH).events == ()
