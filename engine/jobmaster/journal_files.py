"""The place of a journal: a file that grows, or objects of a store; its bytes, and how they are read.

    journal_place(path, content) ─► JournalFile or JournalObjects ─► append(frames) * ─► close
    end_journal(path)      its writer adds nothing from here on: the next leader reads it then
    read_journal(path) ─► JournalContent

    header   magic "DREYJRNL" │ u16 format │ u64 epoch │ 16 bytes job id │ u32 crc32c of all that
    frame    u32 length │ u32 crc32c │ msgpack of a JobEvent                                     big-endian

A store cannot append. There the journal is a row of objects, of which the last one is replaced with each batch of
events, as the version that was written last, until it is large enough; so their number is bounded by their bytes:

    <path>/00000  c ...     <path>/00001  c ...     <path>/00002  o ...       o open, c continued, e ended, then bytes

At any time one conditional put can make the journal longer: of the open object, or of the one behind the last that is
continued. ``end_journal`` takes the place of that put. So a former leader cannot add an event after it was read, and
what it was told to be durable has been read; its late request finds another version, or an object that is there.

Frames that are cut off or damaged are the end of a journal: what comes before them is a state that the job really had.
A damaged header is an error: the file is none of that job. So is a whole event that is unknown: a newer program has
written it, and to leave it out would do finished work again.

Held by: tests/jobmaster/test_job_journal.py
Held by: tests/jobmaster/test_journal_objects.py
"""

from __future__ import annotations

import errno
import logging
import os
import struct
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from engine.errors import CorruptBlockError, VersionMismatchError
from engine.ids import JobId
from engine.iomanager.crc32c import crc32c
from engine.jobmaster.job_event import JobEvent, decode_event, encode_event
from engine.storage.file_system import Objects
from engine.storage.file_systems import LOCAL, file_system_of
from engine.versions import JOURNAL

_log = logging.getLogger(__name__)

_MAGIC = b"DREYJRNL"
_HEADER = struct.Struct(">8sHQ16s")
_CHECKSUM = struct.Struct(">I")
_FRAME = struct.Struct(">II")
#: largest frame; a larger length means damage
_FRAME_BYTES_MAX = 1 << 28
#: bytes of an object beyond which the next one is begun
_OBJECT_BYTES: Final = 256 << 10
_OPEN, _CONTINUED, _ENDED = b"o", b"c", b"e"


class JournalContent(NamedTuple):
    """The content of a journal. ``damage`` says why it ends early, "" when it ends with a whole frame."""

    job_id: JobId
    epoch: int
    events: tuple[JobEvent, ...]
    damage: str = ""


class JournalPlace(Protocol):
    """The bytes of a journal that is written. One thread appends; OSError, after which nothing is appended."""

    def append(self, content: bytes) -> None:
        """Add bytes; they are durable."""
        ...

    def mend(self) -> bool:
        """Write everything again when it was removed; return whether that was so. Any thread."""
        ...

    def close(self) -> None:
        """Write no more."""
        ...


def journal_place(path: str, job_id: JobId, epoch: int, events: Iterable[JobEvent]) -> JournalPlace:
    """Make a journal with what was known before; raises OSError."""
    head = _HEADER.pack(_MAGIC, JOURNAL.newest, epoch, bytes.fromhex(job_id.value))
    content = head + _CHECKSUM.pack(crc32c(head)) + b"".join(frame(event) for event in events)
    objects = file_system_of(path).objects
    return JournalFile(path, content) if objects is None else JournalObjects(path, objects, content)


class JournalFile:
    """One file, which grows; ``close`` is called once."""

    def __init__(self, path: str, content: bytes) -> None:
        self._path = Path(path)
        #: lock held while the descriptor is used
        self._turn = threading.Lock()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._has_descriptor = True
        try:
            _write_all(self._descriptor, content)
            os.fsync(self._descriptor)
            LOCAL.folders.sync(os.fspath(self._path.parent))
        except OSError:
            os.close(self._descriptor)
            raise

    def append(self, content: bytes) -> None:
        """Add bytes and synchronise them."""
        with self._turn:
            _write_all(self._descriptor, content)
            os.fdatasync(self._descriptor)

    def mend(self) -> bool:
        """Write the file again when it is not there any more; return whether that was so."""
        with self._turn:
            if not self._has_descriptor or self._is_there():
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

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._has_descriptor = False
            os.close(self._descriptor)


class JournalObjects:
    """Objects, of which the last one is replaced until it is large."""

    def __init__(self, path: str, objects: Objects, content: bytes) -> None:
        self._path, self._objects = path, objects
        self._index, self._content = 0, content
        try:
            self._version = self._put(_OPEN, None)
        except FileExistsError:
            # This leader has made it before, and has not got as far as to take the job over.
            found = objects.read_version(_object(path, 0))
            if found is None or found[0][:1] != _OPEN:
                raise
            self._version = self._put(_OPEN, found[1])

    def append(self, content: bytes) -> None:
        """Replace the last object by one with these bytes behind its own."""
        self._content += content
        is_full = len(self._content) >= _OBJECT_BYTES
        self._version = self._put(_CONTINUED if is_full else _OPEN, self._version)
        if is_full:
            self._index, self._content, self._version = self._index + 1, b"", None

    def _put(self, state: bytes, version: Any) -> Any:
        path = _object(self._path, self._index)
        put = self._objects.put_version(path, state + self._content, version)
        if put is None:
            number = errno.EEXIST if version is None else errno.ESTALE
            raise OSError(number, "it was removed, or another JobManager leads and has ended it", path)
        return put

    def mend(self) -> bool:
        """Return False: what is removed from a store is not written again, and ends the journal."""
        return False

    def close(self) -> None:
        """Do nothing: no object is open."""


def end_journal(path: str) -> None:
    """Keep its writer from adding anything; idempotent. A file needs no end: what is added later is not read."""
    objects = file_system_of(path).objects
    index = 0
    while objects is not None:
        content, version = objects.read_version(_object(path, index)) or (b"", None)
        if content[:1] == _CONTINUED:
            index += 1
        elif content[:1] == _ENDED or objects.put_version(_object(path, index), _ENDED + content[1:], version):
            return


def read_journal(path: str) -> JournalContent:
    """Return the content of a journal.

    Raises: CorruptBlockError (another file), VersionMismatchError (a newer program's), OSError.
    """
    objects = file_system_of(path).objects
    content = file_system_of(path).read(path) if objects is None else _joined(path, objects)
    job_id, epoch = _read_header(path, content)
    events: list[JobEvent] = []
    offset, damage = _HEADER.size + _CHECKSUM.size, ""
    while offset < len(content):
        try:
            end = _frame_end(content, offset)
        except ValueError as error:
            damage = f"{path} ends at offset {offset} of {len(content)}: {error}"
            _log.warning("%s; what came after that is done again", damage)
            break
        try:
            events.append(decode_event(memoryview(content)[offset + _FRAME.size : end]))
        except msgspec.MsgspecError as error:  # its checksum is right
            raise VersionMismatchError(
                f"{path} has an event at offset {offset} that this version of Drey does not know ({error}): start a "
                "JobManager of the version that wrote it, or a newer one"
            ) from error
        offset = end
    return JournalContent(job_id, epoch, tuple(events), damage)


def _object(path: str, index: int) -> str:
    return f"{path}/{index:05d}"


def _joined(path: str, objects: Objects) -> bytes:
    """Return the bytes of a journal's objects; FileNotFoundError where nothing was written."""
    parts = bytearray()
    state, index = _CONTINUED, 0
    while state == _CONTINUED and (found := objects.read_version(_object(path, index))) is not None:
        state, index = found[0][:1], index + 1
        parts += found[0][1:]
    if not parts:
        raise FileNotFoundError(errno.ENOENT, "there is no journal", path)
    return bytes(parts)


def frame(event: JobEvent) -> bytes:
    """Return an event as it is in a journal."""
    content = encode_event(event)
    return _FRAME.pack(len(content), crc32c(content)) + content


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        count = os.write(descriptor, rest)
        if count == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest = rest[count:]


def _read_header(path: str, content: bytes) -> tuple[JobId, int]:
    size = _HEADER.size + _CHECKSUM.size
    if len(content) < size:
        raise CorruptBlockError(f"{path} is not a journal: it has {len(content)} bytes, its header {size} at offset 0")
    magic, version, epoch, job_id = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise CorruptBlockError(f"{path} is not a journal: offset 0 holds {magic!r}")
    if _CHECKSUM.unpack_from(content, _HEADER.size)[0] != crc32c(content[: _HEADER.size]):
        raise CorruptBlockError(f"{path}: the header at offset 0 is damaged, its checksum is another one")
    JOURNAL.check(version, path)
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
