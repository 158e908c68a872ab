"""SpillDirectory: one configured directory, this process's folder in it, its two request queues.

    /data1/                                     configured
      drey-spill-4711-88102937-0/               <pid>-<start time of the process>-<number>, mode 0700
        lock                                    flock held while the process lives
        b6c0-v3-0-0.7.0.spill                   <owner>.<file number>.<extent number>.spill
      drey-spill-3999-88090001-0/               of a dead process: its lock is free, so it is swept

    sweep(directory)                  remove folders of dead processes; at start
    spill = SpillDirectory.create(directory, number)
    spill.write_queue  spill.read_queue  spill.attraction()  spill.open_file(name)  spill.remove_file(path)
    spill.close()                     joins the threads, removes the folder

A lock and not a pid decides who is dead: pids are reused and mean nothing between containers. A folder whose lock
file is missing is one that is being created at this moment, and is left alone until it is a minute old.

Source: the idea is Flink's FileChannelManager (a folder per process, removed at exit); sweeping by lock is ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
from pathlib import Path

from engine.clock import SystemClock
from engine.errors import SpillError
from engine.iomanager.request_queue import RequestQueue

_LOG = logging.getLogger(__name__)

FOLDER_PREFIX = "drey-spill-"
LOCK_NAME = "lock"
#: a folder without a lock file is left alone for so long
_YOUNG_FOLDER_MS = 60_000


def sweep(directory: Path) -> list[Path]:
    """Remove spill folders of dead processes; return those that were removed.

    What cannot be removed (another user's folder) is left and logged.
    """
    removed = []
    for folder in sorted(directory.glob(f"{FOLDER_PREFIX}*")):
        try:
            if _remove_if_dead(folder):
                removed.append(folder)
        except FileNotFoundError:
            continue  # another process swept it at the same time
        except OSError as error:
            _LOG.warning("the spill folder %s of a dead process stays: %s", folder, error)
    return removed


def _remove_if_dead(folder: Path) -> bool:
    try:
        lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        if SystemClock().wall_ms() - folder.stat().st_mtime * 1000 < _YOUNG_FOLDER_MS:
            return False
        shutil.rmtree(folder)
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # its process lives
    else:
        shutil.rmtree(folder)
        return True
    finally:
        os.close(lock)


def _process_start() -> str:
    """Return the start time of this process in clock ticks since boot ("0" where /proc is not there)."""
    try:
        # the second field is the program's name in parentheses and may contain spaces
        return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"


class SpillDirectory:
    """One configured directory and what this process has in it."""

    def __init__(self, folder: Path, lock: int, index: int, queue_depth: int) -> None:
        self.folder = folder
        self.write_queue = RequestQueue(f"drey-spill-write-{index}", queue_depth)
        self.read_queue = RequestQueue(f"drey-spill-read-{index}", 64)
        self._lock: int | None = lock
        self._file_count = 0

    @classmethod
    def create(cls, directory: Path, index: int, queue_depth: int) -> SpillDirectory:
        """Make this process's folder in the directory (which is made too) and lock it.

        Raises: OSError when the directory cannot be made or written.
        """
        directory.mkdir(parents=True, exist_ok=True)
        number = 0
        while True:
            folder = directory / f"{FOLDER_PREFIX}{os.getpid()}-{_process_start()}-{number}"
            try:
                folder.mkdir(mode=0o700)
                lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                number += 1
                continue
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink > 0:
                return cls(folder, lock, index, queue_depth)
            os.close(lock)  # a sweeper came between open and flock, and took the folder with it
            number += 1

    def free_bytes(self) -> int:
        """Return the bytes that an ordinary user may still write here; 0 when the directory is gone."""
        try:
            status = os.statvfs(self.folder)
        except OSError:
            return 0
        return status.f_bavail * status.f_frsize

    def open_file(self, name: str) -> tuple[int, str]:
        """Create a file for writing; return (descriptor, path). Raises: OSError."""
        path = str(self.folder / name)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file_count += 1
        return descriptor, path

    def remove_file(self, path: str) -> None:
        """Unlink a file of open_file; one that is gone already is fine. Raises: OSError."""
        self._file_count -= 1
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()

    def attraction(self) -> float:
        """Return how good a place this is for the next file: the free bytes for each file that is here, and it."""
        return self.free_bytes() / (self._file_count + 1)

    def close(self) -> None:
        """End both threads and remove the folder with all in it; idempotent."""
        self.write_queue.close()
        self.read_queue.close()
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        try:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.folder)
        except OSError as error:
            raise SpillError(f"the spill folder {self.folder} cannot be removed: {error}") from error
        finally:
            os.close(lock)

    def __str__(self) -> str:
        return str(self.folder)
