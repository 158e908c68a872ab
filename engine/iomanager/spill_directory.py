"""SpillDirectory: one configured directory, this process's folder in it, its two request queues.

/data1/                                     configured
  drey-spill-4711-88102937-0/               ProcessFolder: locked while the process lives, swept when it is dead
    b6c0-v3-0-0.7.0.spill                   <owner>.<file number>.<extent number>.spill

spill_directories(configuration) -> ["/data1/tmp", "/data2/tmp"]
spill = SpillDirectory.create(directory, number)
spill.write_queue  spill.read_queue  spill.attraction()
spill.open_file(name, job_id)     spill.reserve(file, size)       spill.remove_file(file)
spill.close()                     joins the threads, removes the folder

A folder that was removed is made again for the next file. A reader of what was in it fails, and its producer runs
again.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engine.config.loader import Configuration
from engine.config.options import TMP_DIRS
from engine.errors import SpillError
from engine.iomanager.disk_limit import DiskLimit, DiskShare
from engine.iomanager.open_files import OpenFile
from engine.iomanager.request_queue import RequestQueue
from engine.private_folder import scratch_folder
from engine.process_folder import FolderPrefix, ProcessFolder

FOLDER_PREFIX = FolderPrefix.SPILL


def spill_directories(configuration: Configuration) -> list[str]:
    """Return the spill folders of this process: those of io.tmp.dirs, or the user's folder for temporary files."""
    named = [each.strip() for each in (configuration.get(TMP_DIRS) or "").split(",")]
    return [each for each in named if each] or [str(scratch_folder())]


class SpillDirectory:
    """One configured directory and what this process has in it."""

    def __init__(self, own: ProcessFolder, index: int, queue_depth: int, limit_bytes: int = 0) -> None:
        self.folder = own.path
        self.limit = DiskLimit(own.path, limit_bytes)
        self.write_queue = RequestQueue(f"drey-spill-write-{index}", queue_depth)
        self.read_queue = RequestQueue(f"drey-spill-read-{index}", 64)
        self._own = own
        #: share and size of each file  # written by: its writer
        self._files: dict[OpenFile, tuple[DiskShare, int]] = {}

    @classmethod
    def create(cls, directory: Path, index: int, queue_depth: int, limit_bytes: int = 0) -> SpillDirectory:
        """Make this process's folder in the directory (which is made too) and lock it.

        Args: limit_bytes: what its files may take together; 0: no limit.
        Raises: OSError when the directory cannot be made or written.
        """
        return cls(ProcessFolder.create(directory, FOLDER_PREFIX), index, queue_depth, limit_bytes)

    def ensure(self) -> None:
        """Make the folder again when it was removed. Raises: OSError."""
        self._own.ensure()

    def free_bytes(self) -> int:
        """Return the bytes that may still be written here: of disk and limit; 0 when the directory is gone."""
        try:
            self._own.ensure()
            status = os.statvfs(self.folder)
        except OSError:
            return 0
        return max(0, min(status.f_bavail * status.f_frsize, self.limit.left_bytes))

    def open_file(self, name: str, job_id: str) -> OpenFile:
        """Create a file of a job. Raises: OSError."""
        self._own.ensure()
        file = OpenFile(self.folder / name, is_new=True)
        self._files[file] = self.limit.share(job_id), 0
        return file

    def share_of(self, file: OpenFile) -> DiskShare:
        """Return the share that a file's bytes are taken from by a writer, which says ``note_size`` at its end."""
        return self._files[file][0]

    def note_size(self, file: OpenFile, size_bytes: int) -> None:
        """Note how many bytes were taken for a file."""
        self._files[file] = self._files[file][0], size_bytes

    def reserve(self, file: OpenFile, size_bytes: int) -> bool:
        """Take so many bytes more for a file; False when the limit has no room for them."""
        share, taken = self._files[file]
        try:
            share.reserve(size_bytes)
        except OSError:
            return False
        self._files[file] = share, taken + size_bytes
        return True

    def remove_file(self, file: OpenFile) -> None:
        """Unlink a file of open_file; one that is gone already is fine. Raises: OSError."""
        with contextlib.suppress(OSError):  # what a disk reports of dropped bytes
            file.close()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            Path(file.path).unlink()
        if file in self._files:
            share, size_bytes = self._files.pop(file)
            share.give_back(size_bytes)

    def attraction(self) -> float:
        """Return the attraction of this folder for the next file: its free bytes for each file, with the next one."""
        return self.free_bytes() / (len(self._files) + 1)

    def close(self) -> None:
        """End both threads and remove the folder with all in it; idempotent."""
        self.write_queue.close()
        self.read_queue.close()
        try:
            self._own.close()
        except OSError as error:
            raise SpillError(f"the spill folder {self.folder} cannot be removed: {error}") from error

    def __str__(self) -> str:
        return str(self.folder)
