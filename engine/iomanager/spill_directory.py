"""SpillDirectory: one configured directory, this process's folder in it, its two request queues.

/data1/                                     configured
  drey-spill-4711-88102937-0/               ProcessFolder: locked while the process lives, swept when it is dead
    b6c0-v3-0-0.7.0.spill                   <owner>.<file number>.<extent number>.spill

spill_directories(configuration) -> ["/data1/tmp", "/data2/tmp"]
spill = SpillDirectory.create(directory, number)
spill.write_queue  spill.read_queue  spill.attraction()  spill.open_file(name)  spill.remove_file(file)
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

    def __init__(self, own: ProcessFolder, index: int, queue_depth: int) -> None:
        self.folder = own.path
        self.write_queue = RequestQueue(f"drey-spill-write-{index}", queue_depth)
        self.read_queue = RequestQueue(f"drey-spill-read-{index}", 64)
        self._own = own
        self._file_count = 0

    @classmethod
    def create(cls, directory: Path, index: int, queue_depth: int) -> SpillDirectory:
        """Make this process's folder in the directory (which is made too) and lock it.

        Raises: OSError when the directory cannot be made or written.
        """
        return cls(ProcessFolder.create(directory, FOLDER_PREFIX), index, queue_depth)

    def ensure(self) -> None:
        """Make the folder again when it was removed. Raises: OSError."""
        self._own.ensure()

    def free_bytes(self) -> int:
        """Return the bytes that an ordinary user may still write here; 0 when the directory is gone."""
        try:
            self._own.ensure()
            status = os.statvfs(self.folder)
        except OSError:
            return 0
        return status.f_bavail * status.f_frsize

    def open_file(self, name: str) -> OpenFile:
        """Create a file. Raises: OSError."""
        self._own.ensure()
        file = OpenFile(self.folder / name, is_new=True)
        self._file_count += 1
        return file

    def remove_file(self, file: OpenFile) -> None:
        """Unlink a file of open_file; one that is gone already is fine. Raises: OSError."""
        self._file_count -= 1
        with contextlib.suppress(OSError):  # what a disk reports of dropped bytes
            file.close()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            Path(file.path).unlink()

    def attraction(self) -> float:
        """Return the attraction of this folder for the next file: its free bytes for each file, with the next one."""
        return self.free_bytes() / (self._file_count + 1)

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
