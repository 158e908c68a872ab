"""Who watches a job, and fails."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine import Environment
from engine.client import job_listener
from engine.client.job_listener import install_listener

SCHEMA = pa.schema([("x", pa.int64())])


class Watcher:
    """Raises at what is named in ``fails_at``."""

    def __init__(self, fails_at: str, error: BaseException) -> None:
        self._fails_at = fails_at
        self._error = error
        self.heard: list[str] = []

    def _hear(self, event: str) -> None:
        self.heard.append(event)
        if event == self._fails_at:
            raise self._error

    @property
    def wants_progress(self) -> bool:
        self._hear("wants_progress")
        return True

    def on_submitted(self, job_id, name):
        self._hear("on_submitted")

    def on_waiting(self, reason):
        self._hear("on_waiting")

    def on_progress(self, progress):
        self._hear("on_progress")

    def on_finished(self, result):
        self._hear("on_finished")

    def on_failed(self, job_id, state, error):
        self._hear("on_failed")


@pytest.fixture
def watch(monkeypatch):
    # The listener is the process's: it is given back afterwards.
    monkeypatch.setattr(job_listener, "_current", job_listener._current)

    def install(fails_at: str, error: BaseException) -> Watcher:
        watcher = Watcher(fails_at, error)
        install_listener(watcher)
        return watcher

    return install


@pytest.mark.parametrize("fails_at", ["on_submitted", "wants_progress", "on_finished"])
def test_a_watcher_that_fails_misses_that_report_and_the_job_goes_on(watch, fails_at, caplog):
    watcher = watch(fails_at, ValueError("I/O operation on closed file"))
    with Environment() as env:
        assert env.from_rows([(1,)], schema=SCHEMA).count() == 1
    assert [event for event in watcher.heard if event != "on_progress"][-1] == "on_finished"
    assert "what watches the job failed" in caplog.text and "closed file" in caplog.text


def test_a_watcher_that_failed_hears_of_no_progress_any_more(watch, caplog):
    watcher = watch("on_progress", BrokenPipeError())
    listener = job_listener.current_listener()
    listener.on_progress(None)
    listener.on_progress(None)
    assert watcher.heard == ["on_progress"] and not listener.wants_progress
    assert caplog.text.count("what watches the job failed") == 1


def test_an_interrupt_from_the_keyboard_reaches_the_caller(watch):
    watch("on_submitted", KeyboardInterrupt())
    with Environment() as env, pytest.raises(KeyboardInterrupt):
        env.from_rows([(1,)], schema=SCHEMA).count()
