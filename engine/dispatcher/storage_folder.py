"""StorageFolder: the folder that the jobs of a cluster lie in: its files, which one it is, and whether it is still it.

    open ─► (files are written and read) ─► mend now and then: folders that were removed are made again
                                              └─ another folder is there, or a file system is not mounted any more:
                                                 StorageElsewhereError, and nothing is made in its place

The folder tells which one it is by the random text in ``identity``. One that was removed gets the same text again, so
that handles which name it stay right. Blocking, for any thread. Raises OSError.

Held by: tests/dispatcher/test_storage_mending.py
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from engine.dispatcher.job_archive import EndedJob
from engine.dispatcher.job_handle import (
    DamagedJobError,
    JobHandle,
    StorageElsewhereError,
    StoredResult,
    bare_end,
    checked_content,
)
from engine.ids import JobId
from engine.jobmaster.job_commit import JobEnd
from engine.storage.file_systems import LOCAL

_log = logging.getLogger(__name__)

_IDENTITY = "identity"


class StorageFolder:
    """One folder. ``is_durable``: what is written is synchronised."""

    def __init__(self, path: Path, is_durable: bool) -> None:
        self.path = path
        self.is_durable = is_durable
        #: identity of the folder that was opened, "" before
        self.identity = ""
        self._device = 0

    def open(self) -> None:
        """Make the folder where it is not there, and know it from now on."""
        self._make()
        # Where it is there already, nothing is written: a full disk does not prevent leadership.
        if not self.read_identity():
            LOCAL.create_if_absent(os.fspath(self.path / _IDENTITY), os.urandom(16).hex().encode(), self.is_durable)
        self.identity = self.read_identity()
        self._device = self.path.stat().st_dev

    def mend(self) -> bool:
        """Make again what was removed; return whether that was so. Raises StorageElsewhereError."""
        found = self.read_identity()
        if not found and self._nearest_device() != self._device:
            raise StorageElsewhereError(
                f"{self.path} is not there any more, and what is above it is another file system: it is not mounted"
            )
        is_whole = bool(found) and (self.path / "jobs").is_dir() and (self.path / "results").is_dir()
        if not is_whole and found in ("", self.identity):
            self._make()
            LOCAL.create_if_absent(os.fspath(self.path / _IDENTITY), self.identity.encode(), self.is_durable)
            found = self.read_identity()
        if found != self.identity:
            raise StorageElsewhereError(f"{self.path} is another folder than the one that this JobManager has opened")
        return not is_whole

    def read_identity(self) -> str:
        """Return the identity of the folder, "" where there is none."""
        try:
            return (self.path / _IDENTITY).read_text()
        except FileNotFoundError:
            return ""

    def job(self, job_id: JobId) -> Path:
        """Return the folder of a job."""
        return self.path / "jobs" / job_id.value

    def file(self, job_id: JobId, name: str) -> Path:
        """Return a file of a job."""
        return self.job(job_id) / name

    def result(self, name: str) -> Path:
        """Return a file with the end of a job."""
        return self.path / "results" / name

    def write(self, path: Path, content: bytes) -> None:
        """Write a whole file."""
        if self.is_durable:
            LOCAL.replace(os.fspath(path), content)
        else:
            path.write_bytes(content)

    def make_job(self, job_id: JobId) -> None:
        """Make the folder of a job where it is not there."""
        folder = self.job(job_id)
        folder.mkdir(mode=0o700, exist_ok=True)
        if self.is_durable:
            LOCAL.folders.sync(os.fspath(folder.parent))

    def ended_job(self, handle: JobHandle, result: StoredResult) -> EndedJob:
        """Return an ended job, without details where those are lost."""
        if result.file is not None:
            try:
                end = msgspec.json.decode(checked_content(self.result(result.file.file), result.file), type=JobEnd)
                return EndedJob(end.overview, end.outcome, end.details)
            except (OSError, ValueError, DamagedJobError) as error:
                _log.warning("details of the end of job %s are lost: %s", handle.job_id, error)
        return bare_end(handle.job_id, handle.name, result.status)

    def _make(self) -> None:
        for folder in (self.path, self.path / "jobs", self.path / "results"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _nearest_device(self) -> int:
        """Return the file system of the folder, or of the first one above it that is there."""
        for folder in (self.path, *self.path.parents):
            try:
                return folder.stat().st_dev
            except FileNotFoundError:
                continue
        return 0
