"""The journal of a job: its events, written by the leader that has it, read by the next one.

    FileJournal.create(path, job id, epoch, events so far)       blocking; durable when it returns
        ─► append(event) * ─► await flush() ─► await close()     on the loop; one thread writes
        ─► mend()                                                any thread: a file that was removed is there again

The path is a file's, or a prefix of an object store (``journal_files``). Events that are appended while others are
being written are written and synchronised together.

A journal that cannot be written (disk full, read-only, no answer for ``patience_s``) is given up with one warning: the
job goes on, and its next leader will know less. Nothing is written after what could not be written, so the file is a
beginning of the events in any case.

Source: Flink's FileSystemJobEventStore, which writes now and then.
Held by: tests/jobmaster/test_job_journal.py
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Iterable
from typing import Protocol, Self

from engine.ids import JobId
from engine.jobmaster.job_event import JobEvent
from engine.jobmaster.journal_files import JournalPlace, frame, journal_place

_log = logging.getLogger(__name__)

#: seconds that closing a journal waits for its last events
_CLOSE_S = 1.0


class Journal(Protocol):
    """The event log of a JobMaster. Called on the loop."""

    @property
    def is_durable(self) -> bool:
        """Whether there is nothing to wait for."""
        ...

    def append(self, event: JobEvent) -> None:
        """Write an event after those before it, soon."""
        ...

    async def flush(self) -> None:
        """Wait until all events so far are durable, or the journal was given up."""
        ...

    async def close(self) -> None:
        """Write what was appended, and write no more."""
        ...


class NoJournal:
    """The journal of a job that ends with its JobMaster: it keeps nothing."""

    is_durable = True

    def append(self, event: JobEvent) -> None:
        """Remove an event."""

    async def flush(self) -> None:
        """Wait for nothing."""

    async def close(self) -> None:
        """Do nothing."""


class FileJournal:
    """One journal, written by one leader; ``create`` makes it."""

    def __init__(self, path: str, place: JournalPlace, patience_s: float) -> None:
        self._path = path
        self._place = place
        self._patience_s = patience_s
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._appended = 0
        #: entries written so far; set by the writer
        self._written = 0
        self._failure = ""
        self._is_given_up = self._is_closed = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer = threading.Thread(target=self._write, name=f"journal {path.rpartition('/')[2]}", daemon=True)

    @classmethod
    def create(
        cls, path: str, job_id: JobId, epoch: int, events: Iterable[JobEvent] = (), patience_s: float = 10.0
    ) -> Self:
        """Make the journal with what was known before; raises OSError."""
        return cls(path, journal_place(path, job_id, epoch, events), patience_s)

    @property
    def is_durable(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._is_given_up or self.is_written

    @property
    def is_written(self) -> bool:
        """Whether all events are in the file."""
        return self._written >= self._appended

    def append(self, event: JobEvent) -> None:
        """Write an event after those before it, soon."""
        if self._is_given_up or self._is_closed:
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._writer.start()
        self._appended += 1
        self._frames.put(frame(event))

    async def flush(self) -> None:
        """Wait until all events so far are durable, or the journal was given up."""
        if not await self._is_flushed(self._patience_s):
            self._give_up(f"it has not been written for {self._patience_s:g} s")

    async def _is_flushed(self, timeout_s: float) -> bool:
        if self.is_durable:
            return True
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((self._appended, done))
        try:
            async with asyncio.timeout(timeout_s):
                await done
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Write what was appended, and write no more; idempotent. A slow disk is not waited for: leaders change."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._is_flushed(min(self._patience_s, _CLOSE_S))
        finally:  # also where the wait is broken off
            if self._loop is None:
                self._place.close()
            else:
                self._frames.put(None)
                if self.is_written or self._failure:
                    self._writer.join(self._patience_s)  # it has nothing to do

    def mend(self) -> bool:
        """Write the file again when it is not there any more; return whether that was so. Any thread; OSError."""
        return not self._failure and self._place.mend()

    # ---- results of the writer, on the loop ----

    def _progressed(self) -> None:
        if self._failure:
            self._give_up(self._failure)
        for count, done in self._waiting:
            if not done.done() and (self._written >= count or self._is_given_up):
                done.set_result(None)
        self._waiting = [each for each in self._waiting if not each[1].done()]

    def _give_up(self, reason: str) -> None:
        if self._is_given_up:
            return
        self._is_given_up = True
        _log.warning(
            "%s is not written any more: %s; the job goes on, but after a fail-over of its JobManager it repeats "
            "what it does from now on",
            self._path,
            reason,
        )
        self._progressed()

    # ---- the writer's thread ----

    def _write(self) -> None:
        frames: list[bytes] | None
        while (frames := self._take()) is not None:
            if not self._failure:
                try:
                    self._place.append(b"".join(frames))
                    self._written += len(frames)
                except OSError as error:  # never tried again: what a failed synchronisation left is not known
                    self._failure = error.strerror or str(error)
            self._tell_loop()
        self._place.close()

    def _take(self) -> list[bytes] | None:
        """Wait for a frame and return it with those behind it; None at the end."""
        frames: list[bytes] = []
        frame = self._frames.get()
        while frame is not None:
            frames.append(frame)
            try:
                frame = self._frames.get_nowait()
            except queue.Empty:
                return frames
        if frames:
            self._frames.put(None)
        return frames or None

    def _tell_loop(self) -> None:
        assert self._loop is not None, "the writer is started by append"
        try:
            self._loop.call_soon_threadsafe(self._progressed)
        except RuntimeError:  # the loop is closed, and no task waits
            _log.debug("%s: nobody waits", self._path)
