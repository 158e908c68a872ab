"""StorageFolder: the place that the jobs of a cluster lie in: its files, which one it is, and whether it is still it.

    open ─► (files are written and read) ─► mend now and then: folders that were removed are made again
                                              └─ another folder is there, or a file system is not mounted any more:
                                                 StorageElsewhereError, and nothing is made in its place

It is a folder, or a prefix of an object store. It tells which one it is by the random text in ``identity``. One that
was removed gets the same text again, so that handles which name it stay right. Blocking, for any thread. Raises
OSError.

Held by: tests/dispatcher/test_storage_mending.py
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
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
from engine.storage.file_systems import file_system_of

_log = logging.getLogger(__name__)

_IDENTITY = "identity"


class StorageFolder:
    """One folder, or prefix of a store. ``is_durable``: what is written is synchronised."""

    def __init__(self, path: str, is_durable: bool) -> None:
        self.path = path
        self.is_durable = is_durable
        self._files = file_system_of(path)
        #: identity of the folder that was opened, "" before
        self.identity = ""
        self._device = 0

    @property
    def is_in_store(self) -> bool:
        """Whether it is a prefix of an object store."""
        return self._files.folders is None

    def open(self) -> None:
        """Make the folder where it is not there, and know it from now on."""
        self._make()
        # Where it is there already, nothing is written: a full disk does not prevent leadership.
        if not self.read_identity():
            self._create_identity(os.urandom(16).hex())
        self.identity = self.read_identity()
        self._device = self._nearest_device()

    def mend(self) -> bool:
        """Make again what was removed; return whether that was so. Raises StorageElsewhereError."""
        found = self.read_identity()
        if not found and self._nearest_device() != self._device:
            raise StorageElsewhereError(
                f"{self.path} is not there any more, and what is above it is another file system: it is not mounted"
            )
        is_whole = bool(found) and all(map(os.path.isdir, self._folders()))
        if not is_whole and found in ("", self.identity):
            self._make()
            self._create_identity(self.identity)
            found = self.read_identity()
        if found != self.identity:
            raise StorageElsewhereError(f"{self.path} is another folder than the one that this JobManager has opened")
        return not is_whole

    def read_identity(self) -> str:
        """Return the identity of the folder, "" where there is none."""
        return read_identity(self.path)

    def job(self, job_id: JobId) -> str:
        """Return the folder of a job."""
        return f"{self.path}/jobs/{job_id}"

    def file(self, job_id: JobId, name: str) -> str:
        """Return a file of a job."""
        return f"{self.job(job_id)}/{name}"

    def result(self, name: str) -> str:
        """Return a file with the end of a job."""
        return f"{self.path}/results/{name}"

    def results(self, job_id: JobId) -> Iterator[str]:
        """Yield the files with ends of a job."""
        for name in names_below(f"{self.path}/results"):
            if name.startswith(f"{job_id}-") and name.endswith(".json"):
                yield self.result(name)

    def write(self, path: str, content: bytes) -> None:
        """Write a whole file. Its name says its content, so that a former leader's late request changes nothing."""
        if self.is_durable:
            self._files.replace(path, content)
        else:
            Path(path).write_bytes(content)

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it; idempotent."""
        self._files.delete_tree(path)

    def make_job(self, job_id: JobId) -> None:
        """Make the folder of a job where it is not there."""
        if self._files.folders is None:
            return
        folder = Path(self.job(job_id))
        folder.mkdir(mode=0o700, exist_ok=True)
        if self.is_durable:
            self._files.folders.sync(os.fspath(folder.parent))

    def remove_empty_job(self, job_id: JobId) -> None:
        """Remove the folder of a job whose first file could not be written; one with files stays."""
        if self._files.folders is not None:
            with contextlib.suppress(OSError):
                Path(self.job(job_id)).rmdir()

    def ended_job(self, handle: JobHandle, result: StoredResult) -> EndedJob:
        """Return an ended job, without details where those are lost."""
        if result.file is not None:
            try:
                end = msgspec.json.decode(checked_content(self.result(result.file.file), result.file), type=JobEnd)
                return EndedJob(end.overview, end.outcome, end.details)
            except (OSError, ValueError, DamagedJobError) as error:
                _log.warning("details of the end of job %s are lost: %s", handle.job_id, error)
        return bare_end(handle.job_id, handle.name, result.status)

    def _create_identity(self, text: str) -> None:
        self._files.create_if_absent(f"{self.path}/{_IDENTITY}", text.encode(), self.is_durable)

    def _folders(self) -> tuple[str, ...]:
        """Return the folders that have to be there; a store has none."""
        return () if self.is_in_store else (self.path, f"{self.path}/jobs", f"{self.path}/results")

    def _make(self) -> None:
        for folder in self._folders():
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)

    def _nearest_device(self) -> int:
        """Return the file system of the folder, or of the first one above it that is there."""
        for folder in () if self.is_in_store else (Path(self.path), *Path(self.path).parents):
            try:
                return folder.stat().st_dev
            except FileNotFoundError:
                continue
        return 0


def read_identity(folder: str) -> str:
    """Return the identity of a folder, "" where there is none."""
    try:
        return file_system_of(folder).read(f"{folder}/{_IDENTITY}").decode(errors="replace")
    except FileNotFoundError:
        return ""


def names_below(folder: str) -> list[str]:
    """Return the names in a folder, in order; none where it is missing."""
    try:
        return sorted(entry.name for entry in file_system_of(folder).entries(folder))
    except FileNotFoundError:
        return []
