"""BlobStore: content-addressed files in one folder per job.

    <folder>/<job id>/<SHA-256 in hex>            mode 0600, complete and right, or not there
    <folder>/<job id>/.<key>.<random>             being written; swept at a start an hour later

    with store.writer(job_id, key) as writer: writer.write(chunk) * ─► writer.commit()
    store.path(job_id, key) ─► Path or None         store.remove_job(job_id)

Names are made here from a checked job id and a checked key; an untrusted text never becomes part of a path. Content
is written to a temporary file, its digest compared, flushed to the disk and renamed: a reader sees all of it or none.
Folders are 0700: other users' jobs cannot look in.

Thread: every method from any thread; a writer by one at a time.

Held by: tests/blob/test_blobs.py
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.clock import SystemClock
from engine.errors import DiskFullError, EngineError, ResourceError, SpillError
from engine.ids import JobId

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_KEY = re.compile(r"[0-9a-f]{64}")
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
#: seconds after which an unfinished file counts as abandoned
_UNFINISHED_S = 3600.0

_log = logging.getLogger(__name__)


class BlobNameError(EngineError, ValueError):
    """A job id or key that is not one."""


class CorruptBlobError(ResourceError):
    """Content that does not have the digest it is named by."""


class BlobStore:
    """The blobs of one process, or of a cluster (``is_durable``: files outlive a crash of the machine)."""

    def __init__(
        self, folder: Path, is_durable: bool = False, ensure_around: Callable[[], object] = lambda: None
    ) -> None:
        """Args: ensure_around: makes the folders around it again when they were removed; raises OSError."""
        self._folder = folder
        self._is_durable = is_durable
        self._ensure_around = ensure_around
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._sweep(SystemClock().wall_ms() / 1000 - _UNFINISHED_S)

    def _sweep(self, before_s: float) -> None:
        """Remove unfinished files of processes that died; others may be writing to the same folder."""
        for unfinished in self._folder.glob("*/.*"):
            with contextlib.suppress(FileNotFoundError):
                if unfinished.stat().st_mtime < before_s:
                    unfinished.unlink()

    def path(self, job_id: str, key: str) -> Path | None:
        """Return the file of a blob, or None when it is not here."""
        path = self._path(job_id, key)
        return path if path.is_file() else None

    def writer(self, job_id: str, key: str) -> BlobWriter:
        """Begin to write a blob."""
        path = self._path(job_id, key)
        try:
            self._ensure_around()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._is_durable:
                _synchronise(self._folder)
        except OSError as error:
            raise _blob_error(path, error) from error
        return BlobWriter(path, self._is_durable)

    def job_folder(self, job_id: str) -> Path:
        """Return the folder of a job; it need not exist."""
        if _JOB_ID.fullmatch(job_id) is None:
            raise BlobNameError("a job id has 32 hexadecimal digits")
        return self._folder / job_id

    def changes(self) -> dict[JobId, float]:
        """Return the jobs that have blobs here, and the time of the last change, seconds since 1970."""
        found: dict[JobId, float] = {}
        with contextlib.suppress(FileNotFoundError):  # it was removed
            for entry in self._folder.iterdir():
                if _JOB_ID.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):  # its job has just ended
                        found[JobId(entry.name)] = entry.stat().st_mtime
        return found

    def remove_job(self, job_id: str) -> None:
        """Remove all blobs of a job; what cannot be removed is logged."""
        folder = self.job_folder(job_id)
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            _log.warning("%s of an ended job could not be removed", folder)

    def _path(self, job_id: str, key: str) -> Path:
        if _KEY.fullmatch(key) is None:
            raise BlobNameError("a blob's key is its SHA-256 in 64 hexadecimal digits")
        return self.job_folder(job_id) / key


class BlobWriter:
    """A blob that is being written; leaving the ``with`` without ``commit`` drops it."""

    def __init__(self, path: Path, is_durable: bool = False) -> None:
        self._path = path
        self._is_durable = is_durable
        self._temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        self._sha = hashlib.sha256()
        #: a call for a whole, right blob before it appears here
        self.keep: Callable[[Path], None] = lambda path: None
        self._file = self._opened()

    def _opened(self) -> int:
        try:
            return os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _blob_error(self._path, error) from error

    def write(self, chunk: bytes) -> None:
        """Append content."""
        self._sha.update(chunk)
        view = memoryview(chunk)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            raise _blob_error(self._path, error) from error

    def commit(self) -> Path:
        """Make the blob appear; CorruptBlobError when its content is not that of its key."""
        if self._sha.hexdigest() != self._path.name:
            raise CorruptBlobError(f"content for blob {self._path.name} has another SHA-256")
        try:
            os.fsync(self._file)
            self.keep(self._temporary)
            self._temporary.rename(self._path)
            if self._is_durable:
                _synchronise(self._path.parent)
        except OSError as error:
            raise _blob_error(self._path, error) from error
        return self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        self._temporary.unlink(missing_ok=True)


def _blob_error(path: Path, error: OSError) -> EngineError:
    if error.errno in _FULL_DISK:
        return DiskFullError(f"no room for a blob in {path.parent}: {error.strerror}")
    if isinstance(error, FileNotFoundError):
        return ResourceError(f"blob {path.name} came after the end of its job")
    return SpillError(f"cannot write a blob to {path.parent}: {error.strerror}")


def _synchronise(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
