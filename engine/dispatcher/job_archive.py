"""JobArchive: ended jobs as files, which outlive the process.

    <folder>/<job id>.job      length and CRC-32 of the overview, CRC-32 of the rest: 4 bytes each, big-endian
                               msgpack of JobOverview │ msgpack of outcome and details

    overviews() ─► what there is, oldest end first      read(job_id)  write(job)  remove(job_id)

A file appears whole or not at all (written beside, then renamed). One that cannot be read counts as if it were not
there and is removed, with a warning: a history is not worth a start that fails. Readable by its owner only: failures
may hold rows. Source: Flink's FileExecutionGraphInfoStore, which forgets with its process.
Held by: tests/dispatcher/test_job_store.py
"""

from __future__ import annotations

import logging
import os
import re
import struct
import time
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from engine.gateways.job_details import JobDetails
from engine.gateways.messages import JobOutcome, JobOverview
from engine.ids import JobId
from engine.private_folder import check_place
from engine.storage.file_systems import LOCAL

T = TypeVar("T")

_log = logging.getLogger(__name__)

_SUFFIX = ".job"
_TEMPORARY = ".part"
_LEFT_AGE_S = 600.0
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

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._make_folder()
            check_place(folder)
        except OSError as error:
            _log.warning("ended jobs cannot be kept in %s at present: %s", folder, error)

    def overviews(self) -> list[JobOverview]:
        """Return the jobs in the folder, in the order in which they ended."""
        found = []
        for path in self._paths():
            if path.name.endswith(_TEMPORARY):
                _unlink_left(path)
            elif (match := _NAME.fullmatch(path.name)) is not None:
                overview = self._first_part(path)
                if overview is not None and overview.job_id.value == match[1]:
                    found.append(overview)
        return sorted(found, key=lambda overview: (overview.end_ms, overview.job_id))

    def write(self, job: EndedJob) -> int:
        """Keep a job, synchronised, and return the size of its file; raises OSError. Any thread."""
        overview = msgspec.msgpack.encode(job.overview)
        rest = msgspec.msgpack.encode(_Rest(job.outcome, job.details))
        path = self._path(job.overview.job_id)
        temporary = path.with_name(f"{path.name}.{os.getpid()}{_TEMPORARY}")
        self._make_folder()
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_HEAD.pack(len(overview), zlib.crc32(overview), zlib.crc32(rest)) + overview + rest)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            _unlink(temporary)
            raise
        LOCAL.folders.sync(os.fspath(self._folder))
        return _HEAD.size + len(overview) + len(rest)

    def read(self, job_id: JobId) -> EndedJob | None:
        """Return a job, or None when its file is gone or damaged."""
        path = self._path(job_id)
        try:
            content = path.read_bytes()
            length, overview_sum, rest_sum = _HEAD.unpack_from(content)
            overview = _decoded(content[_HEAD.size : _HEAD.size + length], overview_sum, JobOverview)
            rest = _decoded(content[_HEAD.size + length :], rest_sum, _Rest)
        except FileNotFoundError:
            return None
        except (OSError, *_DAMAGE) as error:
            self._drop(path, error)
            return None
        return EndedJob(overview, rest.outcome, rest.details)

    def size(self, job_id: JobId) -> int:
        """Return the bytes of a job's file, 0 when there is none."""
        try:
            return self._path(job_id).stat().st_size
        except OSError:
            return 0

    def remove(self, job_id: JobId) -> None:
        """Remove a job; idempotent."""
        _unlink(self._path(job_id))

    def _make_folder(self) -> None:
        """Make the folder unless it exists: it may have been removed."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _paths(self) -> list[Path]:
        try:
            return list(self._folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _path(self, job_id: JobId) -> Path:
        return self._folder / f"{job_id}{_SUFFIX}"

    def _first_part(self, path: Path) -> JobOverview | None:
        try:
            with path.open("rb") as file:
                length, checksum, _ = _HEAD.unpack(file.read(_HEAD.size))
                return _decoded(file.read(min(length, _OVERVIEW_BYTES_MAX)), checksum, JobOverview)
        except (OSError, *_DAMAGE) as error:
            self._drop(path, error)
            return None

    def _drop(self, path: Path, error: Exception) -> None:
        _log.warning("%s is damaged and is removed: %s", path, error)
        _unlink(path)


def _unlink_left(path: Path) -> None:
    """Remove a file that was left half written, unless it is new: another JobManager may be writing it now."""
    try:
        is_left = time.time() - path.stat().st_mtime >= _LEFT_AGE_S
    except OSError:
        return  # it has its name by now
    if is_left:
        _unlink(path)


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s stays: %s", path, error)
