"""The journal of a job: what was flushed is there, what is damaged is its end, and a disk that fails ends no job."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import threading

import msgspec
import pytest

from engine.errors import CorruptBlockError, VersionMismatchError
from engine.graph.deployment import FailureInfo, RangeSamples, StagedFile, Staging, TaskCounters, TaskReport
from engine.graph.packed_sizes import packed_sizes
from engine.graph.run_time_decision import RunTimeDecision, SubtaskRanges
from engine.ids import AllocationId, ExecutionAttemptId, IntermediateDataSetId, JobId, JobVertexId, ResourceId
from engine.iomanager.crc32c import crc32c
from engine.jobmaster import journal_files
from engine.jobmaster.job_event import (
    BoundsChosen,
    CancelAsked,
    FailingBegun,
    FailureNoted,
    JobEvent,
    Led,
    Prepared,
    Replanned,
    Restarted,
    Scheduled,
    ScheduledAttempt,
    TaskEnded,
    decode_event,
    encode_event,
)
from engine.jobmaster.job_journal import FileJournal, NoJournal
from engine.jobmaster.journal_files import read_journal
from engine.jobmaster.slot_pool import AllocatedSlot
from engine.versions import JOURNAL

JOB = JobId("ab" * 16)
VERTEX = JobVertexId(1)
ATTEMPT = ExecutionAttemptId(VERTEX, 2, 0, "00ff00ff00ff00ff")
SLOT = AllocatedSlot(AllocationId("c" * 32), ResourceId("d" * 32), "host:1/te", "host:2", 64)
REPORT = TaskReport(
    ATTEMPT,
    "FINISHED",
    TaskCounters(rows_in=3, functions={"f": 2}),
    staged_files=(StagedFile(0, 2, "0-00002-x.csv", 3, 40),),
    partition_rows=(3,),
    partition_bytes=(40,),
    subpartition_bytes=(packed_sizes((30, 10)),),
    partition_samples=(RangeSamples((b"\x00k",), (40,)),),
)
DECISION = RunTimeDecision(
    "PARALLELISM", VERTEX, "join", "4", "2", 10.0, 5, "small", SubtaskRanges((VERTEX,), ((0, 2), (2, 4)))
)
EVENTS = (
    Led(7, 1000),
    Prepared({0: "/out/.x.drey"}),
    BoundsChosen(IntermediateDataSetId(VERTEX, 0), (b"\x01", b"\xff")),
    Scheduled((ScheduledAttempt(ATTEMPT, SLOT),), 1001),
    TaskEnded(REPORT, {"DEPLOYING": 1001, "FINISHED": 1002}),
    FailureNoted(FailureInfo("ResourceError", "lost", retryable=True), 1003),
    Replanned((DECISION,)),
    Restarted((ATTEMPT,), 1003),
    CancelAsked(1004),
    FailingBegun(1005),
)
#: EVENTS as the first version wrote them
GOLDEN = bytes.fromhex(
    "445245594a524e4c00010000000000000007ababababababababababababababababa68a6f590000001c11034d2683a474797065a36c65"
    "64a565706f636807a774696d655f6d73cd03e8000000265e7629c382a474797065a87072657061726564a773746167696e678100ac2f6f"
    "75742f2e782e647265790000004b5278214283a474797065ad626f756e64732d63686f73656ea8646174615f73657482a870726f647563"
    "657281a5696e64657801ac6f75747075745f696e64657800a6626f756e647392c40101c401ff0000011bb13b253e83a474797065a97363"
    "686564756c6564a8617474656d7074739182a7617474656d707484a676657274657881a5696e64657801ad7375627461736b5f696e6465"
    "7802ae617474656d70745f6e756d62657200a56e6f6e6365b030306666303066663030666630306666a4736c6f7485ad616c6c6f636174"
    "696f6e5f696481a576616c7565d9206363636363636363636363636363636363636363636363636363636363636363ab7265736f757263"
    "655f696481a576616c7565d9206464646464646464646464646464646464646464646464646464646464646464a761646472657373a968"
    "6f73743a312f7465ac646174615f61646472657373a6686f73743a32ad6d616e616765645f706167657340a774696d655f6d73cd03e900"
    "0002215ccd541f83a474797065aa7461736b2d656e646564a67265706f727489a7617474656d707484a676657274657881a5696e646578"
    "01ad7375627461736b5f696e64657802ae617474656d70745f6e756d62657200a56e6f6e6365b030306666303066663030666630306666"
    "a57374617465a846494e4953484544a8636f756e746572738ca7726f77735f696e03a8726f77735f6f757400a862797465735f696e00a9"
    "62797465735f6f757400ad7370696c6c65645f627974657300b26d616e616765645f70616765735f7065616b00a86261645f726f777300"
    "a966756e6374696f6e7381a16602b26d616e616765645f62797465735f7065616b00b46e6574776f726b5f627566666572735f7065616b"
    "00b16261636b5f7072657373757265645f6d7300a769646c655f6d7300a76661696c757265c0ac7374616765645f66696c65739186aa73"
    "696e6b5f696e64657800ad7375627461736b5f696e64657802a46e616d65ad302d30303030322d782e637376a9726f775f636f756e7403"
    "aa73697a655f627974657328af737461746973746963735f6a736f6ea0ae706172746974696f6e5f726f77739103af706172746974696f"
    "6e5f62797465739128b2737562706172746974696f6e5f627974657391921e0ab1706172746974696f6e5f73616d706c65739182a46b65"
    "797391c402006ba7776569676874739128ad74696d657374616d70735f6d7382a94445504c4f59494e47cd03e9a846494e4953484544cd"
    "03ea000000ad9a4306d583a474797065ad6661696c7572652d6e6f746564a76661696c7572658aa9747970655f6e616d65ad5265736f75"
    "7263654572726f72a76d657373616765a46c6f7374ab6572726f725f636c617373b14a6f62457865637574696f6e4572726f72a9726574"
    "727961626c65c3a866756e6374696f6ea0a3726f77a0a47461736ba0ac7461736b5f6d616e61676572a0a764657461696c73a0a9706172"
    "746974696f6ec0a774696d655f6d73cd03eb000000cab69ee6b382a474797065a97265706c616e6e6564a96465636973696f6e739189a4"
    "6b696e64ab504152414c4c454c49534da676657274657881a5696e64657801ab7665727465785f6e616d65a46a6f696ea7706c616e6e65"
    "64a134a6626563616d65a132ae65787065637465645f6279746573cb4024000000000000aa7265616c5f627974657305a6726561736f6e"
    "a5736d616c6ca66368616e676583a474797065ab706172616c6c656c69736da876657274696365739181a5696e64657801a672616e6765"
    "73929200029202040000006d8441963483a474797065a9726573746172746564a8617474656d7074739184a676657274657881a5696e64"
    "657801ad7375627461736b5f696e64657802ae617474656d70745f6e756d62657200a56e6f6e6365b03030666630306666303066663030"
    "6666a96661696c65645f6d73cd03eb0000001eda4d172482a474797065ac63616e63656c2d61736b6564a774696d655f6d73cd03ec0000"
    "001f0cafa43482a474797065ad6661696c696e672d626567756ea774696d655f6d73cd03ed"
)


def written(path, events, **settings):
    async def run():
        journal = FileJournal.create(str(path), JOB, 7, **settings)
        for event in events:
            journal.append(event)
        await journal.flush()
        assert journal.is_durable
        await journal.close()

    asyncio.run(run())


@pytest.mark.parametrize("removed", ["file", "folder", "file before the first event"])
def test_a_journal_that_somebody_removes_is_written_again_with_all_that_it_said(tmp_path, removed):
    path = tmp_path / "job" / "journal"
    path.parent.mkdir()

    def remove():
        shutil.rmtree(path.parent) if removed == "folder" else path.unlink()

    async def run():
        journal = FileJournal.create(str(path), JOB, 7, EVENTS[:2])
        assert not journal.mend()
        if removed.endswith("event"):
            remove()
            assert journal.mend()
        journal.append(EVENTS[2])
        await journal.flush()
        if not removed.endswith("event"):
            remove()
            assert await asyncio.to_thread(journal.mend)
        journal.append(EVENTS[3])
        await journal.flush()
        assert not journal.mend() and journal.is_durable
        await journal.close()
        assert read_journal(str(path)) == (JOB, 7, EVENTS[:4], "")
        path.unlink()
        assert not journal.mend() and not path.exists()  # it is over

    asyncio.run(run())


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event):
    assert decode_event(encode_event(event)) == event


def test_what_the_first_version_wrote_is_read_by_every_later_one(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(GOLDEN)
    assert read_journal(str(path)) == (JOB, 7, EVENTS, "")


def test_an_event_that_a_newer_version_has_added_is_not_left_out(tmp_path):
    """To take it for damage would do again what comes after it."""
    path = tmp_path / "journal"
    written(path, EVENTS[:2])
    content = msgspec.msgpack.encode({"type": "moved", "time_ms": 1})
    with path.open("ab") as file:
        file.write(len(content).to_bytes(4, "big") + crc32c(content).to_bytes(4, "big") + content)
    with pytest.raises(VersionMismatchError, match=f"{path} has an event at offset .* start a JobManager of"):
        read_journal(str(path))


def test_a_journal_of_another_form_says_which_version_it_needs(tmp_path):
    path = tmp_path / "journal"
    head = GOLDEN[:8] + (JOURNAL.newest + 1).to_bytes(2, "big") + GOLDEN[10:34]
    path.write_bytes(head + crc32c(head).to_bytes(4, "big"))
    with pytest.raises(VersionMismatchError, match="is a journal of form 2, written by a newer version of Drey"):
        read_journal(str(path))


def test_fields_that_a_newer_version_has_added_are_ignored():
    content = msgspec.msgpack.decode(encode_event(EVENTS[0])) | {"zone": "north"}
    assert decode_event(msgspec.msgpack.encode(content)) == EVENTS[0]


def test_staging_comes_back_as_it_was_and_a_path_of_the_first_version_is_a_folder(tmp_path):
    path, table = tmp_path / "journal", Staging("/table/data", "/table", "log")
    written(path, [Prepared({0: "/out/.x.drey", 1: table})])
    (event,) = read_journal(str(path)).events
    assert event.places == {0: Staging("/out/.x.drey", "", "folder"), 1: table}


def test_every_kind_of_event_is_tried_here():
    assert {type(event) for event in EVENTS} == set(JobEvent.__args__)


def test_what_was_flushed_is_read(tmp_path):
    path = tmp_path / "journal"
    written(path, EVENTS)
    assert read_journal(str(path)) == (JOB, 7, EVENTS, "")
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_events_of_an_earlier_leader_come_first_and_are_durable_at_once(tmp_path):
    path = tmp_path / "journal"
    journal = FileJournal.create(str(path), JOB, 8, EVENTS[:3])
    assert journal.is_durable and read_journal(str(path)).events == EVENTS[:3]
    asyncio.run(journal.close())
    assert read_journal(str(path)) == (JOB, 8, EVENTS[:3], "")


def test_a_closed_journal_takes_nothing_more_and_its_thread_has_ended(tmp_path):
    path = tmp_path / "journal"

    async def run():
        journal = FileJournal.create(str(path), JOB, 7)
        journal.append(EVENTS[0])
        await journal.close()
        await journal.close()
        journal.append(EVENTS[1])
        await journal.flush()

    asyncio.run(run())
    assert read_journal(str(path)).events == EVENTS[:1]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("journal")]


@pytest.mark.thorough
def test_every_cut_and_every_flipped_byte_leaves_a_beginning_of_the_events(tmp_path, caplog):
    path = tmp_path / "journal"
    written(path, EVENTS)
    whole = path.read_bytes()
    ends = [38]
    for event in EVENTS:
        ends.append(ends[-1] + 8 + len(encode_event(event)))
    assert ends[-1] == len(whole)
    caplog.set_level(logging.CRITICAL)
    for offset in range(ends[0], len(whole)):
        kept = sum(end <= offset for end in ends) - 1
        path.write_bytes(whole[:offset])
        assert read_journal(str(path)).events == EVENTS[:kept]
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0x41]) + whole[offset + 1 :])
        content = read_journal(str(path))
        assert content.events == EVENTS[:kept] and f"offset {ends[kept]}" in content.damage


def test_a_damaged_header_is_an_error_that_names_file_and_offset(tmp_path):
    path = tmp_path / "journal"
    written(path, EVENTS)
    whole = path.read_bytes()
    for offset in range(38):
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0x41]) + whole[offset + 1 :])
        with pytest.raises(CorruptBlockError, match=rf"{path}.*offset \d"):
            read_journal(str(path))
        path.write_bytes(whole[:offset])
        with pytest.raises(CorruptBlockError, match=rf"{path} is not a journal.*offset 0"):
            read_journal(str(path))


def test_a_torn_end_is_told_once(tmp_path, caplog):
    path = tmp_path / "journal"
    written(path, EVENTS)
    path.write_bytes(path.read_bytes()[:-1])
    assert read_journal(str(path)).events == EVENTS[:-1]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("error", [28, 30, 5], ids=["full", "read-only", "input-output"])
def test_a_disk_that_fails_ends_the_journal_with_one_warning_and_nothing_else(tmp_path, monkeypatch, caplog, error):
    path = tmp_path / "journal"
    real, calls = os.fdatasync, []

    def fdatasync(descriptor):
        calls.append(descriptor)
        if len(calls) > 2:
            raise OSError(error, os.strerror(error))
        real(descriptor)

    monkeypatch.setattr(journal_files.os, "fdatasync", fdatasync)

    async def run():
        journal = FileJournal.create(str(path), JOB, 7)
        for event in EVENTS:
            journal.append(event)
            await journal.flush()
        assert journal.is_durable
        await journal.close()

    asyncio.run(run())
    assert len(calls) == 3, "a synchronisation that failed is never tried again"
    content = read_journal(str(path))
    assert content.events == EVENTS[: len(content.events)] and len(content.events) in (2, 3)
    (record,) = caplog.records
    assert os.strerror(error) in record.getMessage() and str(path) in record.getMessage()


def test_a_disk_that_does_not_answer_holds_nobody_up(tmp_path, monkeypatch, caplog):
    path, answer = tmp_path / "journal", threading.Event()
    real = os.fdatasync

    def fdatasync(descriptor):
        answer.wait(60)
        real(descriptor)

    monkeypatch.setattr(journal_files.os, "fdatasync", fdatasync)

    async def run():
        journal = FileJournal.create(str(path), JOB, 7, patience_s=0.05)
        journal.append(EVENTS[0])
        await asyncio.gather(journal.flush(), journal.flush())
        journal.append(EVENTS[1])
        await journal.flush()
        await journal.close()
        return journal

    journal = asyncio.run(run())
    answer.set()
    journal._writer.join(60)
    assert read_journal(str(path)).events == EVENTS[:1]
    (record,) = caplog.records
    assert "has not been written for 0.05 s" in record.getMessage()


def test_a_full_disk_refuses_a_new_journal():
    with pytest.raises(OSError, match="No space left"):
        FileJournal.create("/dev/full", JOB, 7)


def test_no_journal_has_nothing_to_wait_for():
    async def run():
        journal = NoJournal()
        journal.append(EVENTS[0])
        await journal.flush()
        assert journal.is_durable
        await journal.close()

    asyncio.run(run())
