"""``JobKeeper``: what it says while it cannot keep what it should."""

import asyncio
import errno
import logging
import os

from engine.dispatcher import job_keeper
from engine.dispatcher.job_keeper import JobKeeper
from engine.dispatcher.job_store import JobStore
from tests.dispatcher.test_job_store import ended


def test_a_job_that_finds_no_room_is_told_once_and_again_when_it_is_kept(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    store, tries = JobStore(5), []

    def write(job):
        tries.append(job)
        if len(tries) < 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return 1

    monkeypatch.setattr(JobStore, "has_archive", True)
    monkeypatch.setattr(store, "write", write)
    monkeypatch.setattr(job_keeper, "pauses_s", lambda: [0.0] * 10)
    job = ended("a")
    store.add(job)
    asyncio.run(JobKeeper(store).forget(job))
    told = [record.getMessage() for record in caplog.records if record.name == job_keeper.__name__]
    assert [text.partition("job " + "a" * 32)[2][:20] for text in told] == [" has ended, but cann", " is kept now"]
