"""The journal of a job: its events as a file of the leader that writes them, read by the next one.

    FileJournal.create(path, job id, epoch, events so far)       blocking; durable when it returns
        ─► append(event) * ─► await flush() ─► await close()     on the loop; one thread writes
        ─► mend()                                                any thread: a file that was removed is there again
    read_journal(path) ─► JournalContent

    header   magic "DREYJRNL" │ u16 format │ u64 epoch │ 16 bytes job id │ u32 crc32c of all that
    frame    u32 length │ u32 crc32c │ msgpack of a JobEvent                                     big-endian

Frames that are appended while others are being written are written and synchronised together. A frame that is cut off
or damaged is the end of the journal: what comes before it is a state that the job really had. A damaged header is an
error: the file is none of that job.

A journal that cannot be written (disk full, read-only, no answer for ``patience_s``) is given up with one warning: the
job goes on, and its next leader will know less. Nothing is written after what could not be written, so the file is a
beginning of the events in any case.

Source: Flink's FileSystemJobEventStore, which writes now and then.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import queue
import struct
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import msgspec

from engine.errors import CorruptBlockError
from engine.ids import JobId
from engine.iomanager.crc32c import crc32c
from engine.jobmaster.job_event import JobEvent, decode_event, encode_event
from engine.storage.file_systems import LOCAL

_log = logging.getLogger(__name__)

_MAGIC = b"DREYJRNL"
_FORMAT = 1
_HEADER = struct.Struct(">8sHQ16s")
_CHECKSUM = struct.Struct(">I")
_FRAME = struct.Struct(">II")
#: largest frame; a larger length means damage
_FRAME_BYTES_MAX = 1 << 28
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


class JournalContent(NamedTuple):
    """The content of a journal. ``damage`` says why it ends early, "" when it ends with a whole frame."""

    job_id: JobId
    epoch: int
    events: tuple[JobEvent, ...]
    damage: str = ""


class FileJournal:
    """One file, written by one leader; ``create`` makes it."""

    def __init__(self, path: Path, descriptor: int, patience_s: float) -> None:
        self._path = path
        self._descriptor = descriptor
        self._patience_s = patience_s
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._appended = 0
        #: entries written so far; set by the writer
        self._written = 0
        self._failure = ""
        self._is_given_up = self._is_closed = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        #: lock held while the descriptor is used
        self._turn = threading.Lock()
        self._has_descriptor = True
        self._writer = threading.Thread(target=self._write, name=f"journal {path.name}", daemon=True)

    @classmethod
    def create(
        cls, path: Path, job_id: JobId, epoch: int, events: Iterable[JobEvent] = (), patience_s: float = 10.0
    ) -> Self:
        """Make the file with what was known before; raises OSError."""
        head = _HEADER.pack(_MAGIC, _FORMAT, epoch, bytes.fromhex(job_id.value))
        content = head + _CHECKSUM.pack(crc32c(head)) + b"".join(_frame(event) for event in events)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, content)
            os.fsync(descriptor)
            LOCAL.folders.sync(os.fspath(path.parent))
        except OSError:
            os.close(descriptor)
            raise
        return cls(path, descriptor, patience_s)

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
        self._frames.put(_frame(event))

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
        await self._is_flushed(min(self._patience_s, _CLOSE_S))
        if self._loop is None:
            self._close_descriptor()
            return
        self._frames.put(None)
        if self.is_written or self._failure:
            self._writer.join(self._patience_s)  # it has nothing to do

    def mend(self) -> bool:
        """Write the file again when it is not there any more; return whether that was so. Any thread; OSError."""
        with self._turn:
            if not self._has_descriptor or self._failure or self._is_there():
                return False
            size = os.fstat(self._descriptor).st_size
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            LOCAL.replace(os.fspath(self._path), os.pread(self._descriptor, size, 0))
            copy = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.lseek(copy, 0, os.SEEK_END)
                os.dup2(copy, self._descriptor, inheritable=False)
            finally:
                os.close(copy)
            return True

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def _close_descriptor(self) -> None:
        with self._turn:
            self._has_descriptor = False
            os.close(self._descriptor)

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
                    with self._turn:
                        _write_all(self._descriptor, b"".join(frames))
                        os.fdatasync(self._descriptor)
                    self._written += len(frames)
                except OSError as error:  # never tried again: what a failed synchronisation left is not known
                    self._failure = error.strerror or str(error)
            self._tell_loop()
        self._close_descriptor()

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


def _frame(event: JobEvent) -> bytes:
    content = encode_event(event)
    return _FRAME.pack(len(content), crc32c(content)) + content


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        count = os.write(descriptor, rest)
        if count == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest = rest[count:]


def read_journal(path: Path) -> JournalContent:
    """Return the content of a journal; CorruptBlockError for other files, OSError for those that cannot be read."""
    content = path.read_bytes()
    job_id, epoch = _read_header(path, content)
    events: list[JobEvent] = []
    offset, damage = _HEADER.size + _CHECKSUM.size, ""
    while offset < len(content):
        try:
            end = _frame_end(content, offset)
            events.append(decode_event(memoryview(content)[offset + _FRAME.size : end]))
        except (ValueError, msgspec.MsgspecError) as error:
            damage = f"{path} ends at offset {offset} of {len(content)}: {error}"
            _log.warning("%s; what came after that is done again", damage)
            break
        offset = end
    return JournalContent(job_id, epoch, tuple(events), damage)


def _read_header(path: Path, content: bytes) -> tuple[JobId, int]:
    size = _HEADER.size + _CHECKSUM.size
    if len(content) < size:
        raise CorruptBlockError(f"{path} is not a journal: it has {len(content)} bytes, its header {size} at offset 0")
    magic, version, epoch, job_id = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise CorruptBlockError(f"{path} is not a journal: offset 0 holds {magic!r}")
    if _CHECKSUM.unpack_from(content, _HEADER.size)[0] != crc32c(content[: _HEADER.size]):
        raise CorruptBlockError(f"{path}: the header at offset 0 is damaged, its checksum is another one")
    if version != _FORMAT:
        raise CorruptBlockError(f"{path} has format {version} at offset 8, this version reads {_FORMAT}")
    return JobId(job_id.hex()), epoch


def _frame_end(content: bytes, offset: int) -> int:
    """Return the end offset of the frame at ``offset``; ValueError when it is cut off or damaged."""
    if offset + _FRAME.size > len(content):
        raise ValueError("a frame is cut off")
    length, checksum = _FRAME.unpack_from(content, offset)
    end = int(offset + _FRAME.size + length)
    if length > _FRAME_BYTES_MAX or end > len(content):
        raise ValueError("a frame is cut off")
    if crc32c(memoryview(content)[offset + _FRAME.size : end]) != checksum:
        raise ValueError("the checksum of a frame is another one")
    return end
