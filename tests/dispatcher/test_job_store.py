"""Ended jobs: bounded by number and age, and in files that outlive the store."""

from __future__ import annotations

import asyncio
import errno
import os
import threading

import pytest

from engine.clock import ManualClock
from engine.dispatcher.job_archive import EndedJob, JobArchive
from engine.dispatcher.job_store import JobStore
from engine.gateways.job_details import JobDetails
from engine.gateways.messages import JobOutcome, JobOverview
from engine.ids import JobId
from engine.storage import file_systems
from engine.storage.local import LocalFileSystem
from tests.storage.memory import MemoryStore


def ended(letter: str, end_ms: int = 1, status: str = "FINISHED", name: str = "prices") -> EndedJob:
    job_id = JobId(letter * 32)
    return EndedJob(
        JobOverview(job_id, name, status, 0, end_ms, {status: 3}),
        JobOutcome(job_id, name, status, 1, ()),
        JobDetails(job_id, name, status, 0, end_ms, {status: end_ms}, ()),
    )


def keep(store, job):
    """What a Dispatcher does, in one thread."""
    store.add(job)
    store.written(job.overview.job_id, store.write(job))


def names(store: JobStore) -> str:
    return "".join(overview.job_id.value[0] for overview in store.overviews)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "history"


def test_jobs_outlive_the_store_over_the_same_folder(folder):
    jobs = [ended("b", 5), ended("a", 7, "FAILED")]
    store = JobStore(archive=JobArchive(str(folder)), cache_bytes=1 << 20)
    for job in jobs:
        keep(store, job)
    again = JobStore(archive=JobArchive(str(folder)), cache_bytes=1 << 20)
    assert names(again) == "ba"
    assert [again.get(job.overview.job_id) for job in jobs] == jobs
    assert again.get(JobId("f" * 32)) is None


@pytest.mark.parametrize("cache_bytes", [0, 400, 1 << 20])
def test_memory_is_bounded_and_every_job_is_found_all_the_same(folder, cache_bytes):
    store = JobStore(archive=JobArchive(str(folder)), cache_bytes=cache_bytes)
    jobs = [ended(letter, position + 1) for position, letter in enumerate("abcdef")]
    for job in jobs:
        keep(store, job)
    for job in [*jobs, *reversed(jobs)]:
        assert store.get(job.overview.job_id) == job
        assert store._cached_bytes <= cache_bytes
    assert store._cached_bytes == sum(size for _, size in store._cache.values())


def test_the_oldest_jobs_go_when_there_are_too_many_also_their_files(folder):
    store = JobStore(limit=2, archive=JobArchive(str(folder)))
    for position, letter in enumerate("abc"):
        keep(store, ended(letter, position + 1))
    assert names(store) == "bc" and store.get(JobId("a" * 32)) is None
    assert sorted(path.name[0] for path in folder.iterdir()) == ["b", "c"]
    assert names(JobStore(limit=1, archive=JobArchive(str(folder)))) == "c"
    assert [path.name[0] for path in folder.iterdir()] == ["c"]


@pytest.mark.parametrize("is_archived", [True, False])
def test_a_job_is_forgotten_when_it_is_too_old(folder, is_archived):
    clock = ManualClock(1.0)
    archive = JobArchive(str(folder)) if is_archived else None
    store = JobStore(archive=archive, expiration_ms=5000, clock=clock)
    begin_ms = clock.wall_ms()
    keep(store, ended("a", begin_ms))
    clock.advance(4.0)
    keep(store, ended("b", clock.wall_ms()))
    assert names(store) == "ab"
    clock.advance(2.0)
    assert names(store) == "b" and store.get(JobId("a" * 32)) is None
    assert not is_archived or [path.name[0] for path in folder.iterdir()] == ["b"]


def test_a_job_that_was_only_suspended_is_kept_in_no_file(folder):
    store = JobStore(archive=JobArchive(str(folder)))
    keep(store, ended("a", status="SUSPENDED"))
    assert names(store) == "a" and list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"\0\0", b"\0\0\0\5abc", b"\xff\xff\xff\xff", "cut", "flipped"], ids=["0", "2", "3", "4", "5", "6"]
)
def test_a_damaged_file_counts_as_none_and_goes(folder, content):
    keep(JobStore(archive=JobArchive(str(folder))), ended("a"))
    keep(JobStore(archive=JobArchive(str(folder))), ended("b"))
    path = folder / f"{'a' * 32}.job"
    whole = path.read_bytes()
    damaged = {"cut": whole[:-3], "flipped": whole[:-8] + b"\xc1" + whole[-7:]}
    path.write_bytes(damaged[content] if isinstance(content, str) else content)
    store = JobStore(archive=JobArchive(str(folder)))
    assert store.get(JobId("a" * 32)) is None and names(store) == "b"
    assert not path.exists()


def test_a_job_whose_file_cannot_be_read_for_a_moment_has_ended_all_the_same(folder, monkeypatch):
    job = ended("a")
    keep(JobStore(archive=JobArchive(str(folder))), job)
    job_id = job.overview.job_id

    def fail(*_, **__):
        raise OSError(errno.EIO, "the disk does not answer")

    with monkeypatch.context() as failing:
        failing.setattr(LocalFileSystem, "open_stream", fail)
        failing.setattr(LocalFileSystem, "read", fail)
        store = JobStore(archive=JobArchive(str(folder)))
        assert store.is_known(job_id) and store.is_unread(job_id)
        assert store.get(job_id) is None and store.is_known(job_id)
    assert store.get(job_id) == job and not store.is_unread(job_id) and names(store) == "a"
    (folder / f"{job_id}.job").unlink()
    assert JobStore(archive=JobArchive(str(folder))).get(job_id) is None


def test_what_is_no_job_is_left_alone_and_what_was_half_written_goes(folder):
    archive = JobArchive(str(folder))
    (folder / "notes.txt").write_text("mine")
    left, new = folder / f"{'a' * 32}.job.4711.part", folder / f"{'b' * 32}.job.4712.part"
    left.write_text("half")
    os.utime(left, (0, 0))
    new.write_text("half")
    (folder / f"{'c' * 32}.job").write_bytes(b"")
    archive.write(ended("b"))
    # A file under another job's name is not that job.
    (folder / f"{'d' * 32}.job").write_bytes((folder / f"{'b' * 32}.job").read_bytes())
    assert names(JobStore(archive=JobArchive(str(folder)))) == "b"
    assert (folder / "notes.txt").exists() and not left.exists()
    assert new.exists()  # another leader may be writing it


def test_what_another_process_wrote_or_removed_is_seen_after_a_refresh(folder):
    store, archive = JobStore(archive=JobArchive(str(folder)), cache_bytes=1 << 20), JobArchive(str(folder))
    archive.write(ended("a", 1))
    archive.write(ended("b", 2))
    assert names(store) == ""
    asyncio.run(store.refresh())
    assert names(store) == "ab" and store.get(JobId("a" * 32)) == ended("a", 1)
    archive.remove(JobId("a" * 32))
    asyncio.run(store.refresh())
    assert names(store) == "b" and store.get(JobId("a" * 32)) is None


def test_files_are_for_their_owner_only(folder):
    JobArchive(str(folder)).write(ended("a"))
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / f"{'a' * 32}.job").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_leaves_jobs_in_memory(folder):
    store = JobStore(archive=JobArchive(str(folder)))
    folder.chmod(0o500)
    with pytest.raises(PermissionError):
        keep(store, ended("a"))
    assert store.get(JobId("a" * 32)) == ended("a")


def test_a_folder_that_is_gone_is_made_again(folder):
    store = JobStore(archive=JobArchive(str(folder)))
    folder.rmdir()
    assert not store.overviews
    keep(store, ended("a"))
    assert names(JobStore(archive=JobArchive(str(folder)))) == "a"


def test_a_folder_that_cannot_be_made_leaves_jobs_in_memory(folder):
    folder.write_text("in the way")
    store = JobStore(archive=JobArchive(str(folder)))
    with pytest.raises(OSError, match="exists"):
        keep(store, ended("a"))
    assert store.get(JobId("a" * 32)) == ended("a") and names(store) == "a"
    folder.unlink()
    keep(store, ended("a"))
    assert names(JobStore(archive=JobArchive(str(folder)))) == "a"


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_the_loop_finds_jobs_of_a_store_that_are_read_once_and_stay_when_it_does_not_answer(monkeypatch, cache_bytes):
    store = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, store))
    folder, jobs = "memory://bucket/history", [ended("a", 1), ended("b", 2)]
    first = JobStore(archive=JobArchive(folder), cache_bytes=cache_bytes)
    for job in jobs:
        keep(first, job)
    asked, stream = [], store.open_stream
    store.open_stream = lambda path, **named: (asked.append(path), stream(path, **named))[1]
    again = JobStore(archive=JobArchive(folder), cache_bytes=cache_bytes)
    asyncio.run(again.refresh())
    assert names(again) == "ab" and len(asked) == 2
    for _ in range(2):
        assert [asyncio.run(again.find(job.overview.job_id)) for job in jobs] == jobs
    assert asyncio.run(again.find(JobId("f" * 32))) is None and again.is_known(JobId("a" * 32))

    def fail(path, **_):
        raise OSError(5, "the store cannot be reached", path)

    store.open_stream = store.read = fail
    late = JobStore(archive=JobArchive(folder))
    assert names(late) == "" and len(store.files) == 2, "nothing is removed that cannot be read at present"
    JobArchive(folder).remove(JobId("a" * 32))
    for thread in threading.enumerate():
        if thread.name == "drey-archive":
            thread.join()
    assert list(store.files) == [f"{folder}/{'b' * 32}.job"]
