"""JobArchive: ended jobs as files, which outlive the process.

    <folder>/<job id>.job      length and CRC-32 of the overview, CRC-32 of the rest: 4 bytes each, big-endian
                               msgpack of JobOverview │ msgpack of outcome and details

    overviews() ─► what there is, oldest end first      read(job_id)  write(job)  remove(job_id)

The folder may be a prefix of an object store. A file that cannot be read at present stays known by its name: a job that
has ended must not run again. A file appears whole or not at all (written beside, then renamed). One
that is damaged counts as if it were not there and is removed, with a warning: a history is not worth a start that
fails. Readable by its owner only: failures may hold rows. Source: Flink's FileExecutionGraphInfoStore, which forgets
with its process.
Held by: tests/dispatcher/test_job_store.py
"""

from __future__ import annotations

import logging
import os
import re
import struct
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from engine.gateways.job_details import JobDetails
from engine.gateways.messages import JobOutcome, JobOverview
from engine.ids import JobId
from engine.private_folder import check_place
from engine.storage.file_systems import LOCAL, file_system_of

T = TypeVar("T")

_log = logging.getLogger(__name__)

_SUFFIX = ".job"
_TEMPORARY = ".part"
_LEFT_AGE_S = 600.0
#: objects that are read at the same time
_AT_ONCE = 16
_NAME = re.compile(r"([0-9a-f]{32})\.job")
_HEAD = struct.Struct(">III")
_OVERVIEW_BYTES_MAX = 1 << 20
#: errors that damaged bytes raise when they are read; a MsgspecError is a ValueError
_DAMAGE = (struct.error, ValueError)


class EndedJob(msgspec.Struct, frozen=True):
    """The archived state of a job."""

    overview: JobOverview
    outcome: JobOutcome
    details: JobDetails


class _Rest(msgspec.Struct, frozen=True):
    """The part of an archived job that is read only on request."""

    outcome: JobOutcome
    details: JobDetails


def _decoded(content: bytes, checksum: int, kind: type[T]) -> T:
    if zlib.crc32(content) != checksum:
        raise ValueError("its checksum is another one")
    return msgspec.msgpack.decode(content, type=kind)


class JobArchive:
    """A folder of ended jobs; made when it is not there. Raises: NotPrivateError."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files = file_system_of(folder)
        #: first parts of objects, by path
        self._read_before: dict[str, JobOverview] = {}
        #: jobs whose files could not be read when they were listed
        self.unread: set[JobId] = set()
        try:
            self._make_folder()
            if self._files.folders is not None:
                check_place(Path(folder))
        except OSError as error:
            _log.warning("ended jobs cannot be kept in %s at present: %s", folder, error)

    def overviews(self) -> list[JobOverview]:
        """Return the jobs in the folder, in the order in which they ended."""
        self.unread.clear()
        paths = [path for path in self._paths() if not self._is_left(path)]
        names = [path for path in paths if _NAME.fullmatch(path.rpartition("/")[2]) is not None]
        found = [first for path, first in self._firsts(names) if path == self._path(first.job_id)]
        return sorted(found, key=lambda overview: (overview.end_ms, overview.job_id))

    def _firsts(self, paths: list[str]) -> list[tuple[str, JobOverview]]:
        """Return the first parts that can be read. Each object of a store is read once: none of them ever changes."""
        if self._files.folders is not None:
            return [(path, first) for path in paths if (first := self._first_part(path)) is not None]
        new = [path for path in paths if path not in self._read_before]
        with ThreadPoolExecutor(_AT_ONCE, "drey-archive") as requests:
            firsts = dict(zip(new, requests.map(self._first_part, new), strict=True))
        self._read_before = {
            path: first for path in paths if (first := self._read_before.get(path) or firsts.get(path))
        }
        return list(self._read_before.items())

    def write(self, job: EndedJob) -> int:
        """Keep a job, synchronised, and return the size of its file; raises OSError. Any thread."""
        overview = msgspec.msgpack.encode(job.overview)
        rest = msgspec.msgpack.encode(_Rest(job.outcome, job.details))
        content = _HEAD.pack(len(overview), zlib.crc32(overview), zlib.crc32(rest)) + overview + rest
        path = self._path(job.overview.job_id)
        if self._files.folders is None:
            self._files.replace(path, content)
        else:
            self._make_folder()
            self._write_file(path, content)
        return len(content)

    def _write_file(self, path: str, content: bytes) -> None:
        temporary = Path(f"{path}.{os.getpid()}{_TEMPORARY}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            self._delete(os.fspath(temporary))
            raise
        LOCAL.folders.sync(self._folder)

    def read(self, job_id: JobId) -> EndedJob | None:
        """Return a job, or None when its file is gone or damaged."""
        return self.read_sized(job_id)[0]

    def read_sized(self, job_id: JobId) -> tuple[EndedJob | None, int]:
        """Return a job as ``read`` does, and the bytes of its file. Any thread."""
        path = self._path(job_id)
        try:
            content = self._files.read(path)
            length, overview_sum, rest_sum = _HEAD.unpack_from(content)
            overview = _decoded(content[_HEAD.size : _HEAD.size + length], overview_sum, JobOverview)
            rest = _decoded(content[_HEAD.size + length :], rest_sum, _Rest)
        except FileNotFoundError:
            self.unread.discard(job_id)
            return None, 0
        except OSError as error:
            _unread(path, error)
            self.unread.add(job_id)
            return None, 0
        except _DAMAGE as error:
            self._drop(path, error)
            self.unread.discard(job_id)
            return None, 0
        self.unread.discard(job_id)
        return EndedJob(overview, rest.outcome, rest.details), len(content)

    def remove(self, job_id: JobId) -> None:
        """Remove a job; idempotent. The loop does not wait for a store."""
        if self._files.folders is None:
            threading.Thread(target=self._delete, args=(self._path(job_id),), name="drey-archive", daemon=True).start()
        else:
            self._delete(self._path(job_id))

    def _make_folder(self) -> None:
        """Make the folder unless it exists: it may have been removed."""
        if self._files.folders is not None:
            Path(self._folder).mkdir(mode=0o700, parents=True, exist_ok=True)

    def _paths(self) -> list[str]:
        try:
            return [entry.path for entry in self._files.entries(self._folder)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _path(self, job_id: JobId) -> str:
        return f"{self._folder}/{job_id}{_SUFFIX}"

    def _first_part(self, path: str) -> JobOverview | None:
        try:
            with self._files.open_stream(path, is_buffered=True) as file:
                length, checksum, _ = _HEAD.unpack(file.read(_HEAD.size))
                return _decoded(file.read(min(length, _OVERVIEW_BYTES_MAX)), checksum, JobOverview)
        except FileNotFoundError:
            return None
        except OSError as error:
            _unread(path, error)
            self.unread.add(JobId(path.rpartition("/")[2].removesuffix(_SUFFIX)))
            return None
        except _DAMAGE as error:
            self._drop(path, error)
            return None

    def _drop(self, path: str, error: Exception) -> None:
        _log.warning("%s is damaged and is removed: %s", path, error)
        self._delete(path)

    def _is_left(self, path: str) -> bool:
        """Whether a file was left half written; it is removed unless it is new: another JobManager may be writing."""
        if not path.endswith(_TEMPORARY):
            return False
        found = self._files.find(path)  # else it has its name by now
        if found is not None and time.time() - found.modified_ns / 1e9 >= _LEFT_AGE_S:
            self._delete(path)
        return True

    def _delete(self, path: str) -> None:
        try:
            self._files.delete(path)
        except OSError as error:
            _log.warning("%s stays: %s", path, error)


def _unread(path: str, error: OSError) -> None:
    _log.warning("%s cannot be read at present: %s", path, error)
