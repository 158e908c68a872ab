"""ProcessFolder: a temporary folder that goes with its process, however that ends.

    /data1/                                     given
      drey-spill-4711-88102937-0/               <prefix><pid>-<start time of the process>-<number>, mode 0700
        lock                                    flock held while the process lives
      drey-spill-3999-88090001-0/               of a dead process: its lock is free, so it is swept

    sweep(directory, prefix)                    remove folders of dead processes
    folder = ProcessFolder.create(directory, prefix)
    folder.path
    folder.ensure()                             makes it again when it was removed
    folder.close()                              removes it with all that is in it; idempotent

A lock and not a pid decides which process is dead: pids are reused and mean nothing between containers. A folder whose
lock file is missing is one that is being created at this moment, and is left alone until it is a minute old.

Source: the idea is Flink's FileChannelManager (a folder per process, removed at exit); sweeping by lock is ours.
Held by: tests/iomanager/test_spill_directory.py
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import threading
from enum import StrEnum
from pathlib import Path

from engine.clock import SystemClock
from engine.private_folder import make_closed

_LOG = logging.getLogger(__name__)

LOCK_NAME = "lock"
#: age up to which a folder without a lock file is left alone, milliseconds
_YOUNG_FOLDER_MS = 60_000


class FolderPrefix(StrEnum):
    """Prefixes of temporary folders, by kind."""

    #: folders of spilled blocks, stored results, and files that came with jobs
    SPILL = "drey-spill-"
    #: folders of the data plane's socket
    DATA = "drey-data-"
    #: folders in which a JobManager keeps jobs
    JOBS = "drey-jobs-"
    #: folders of files that a script's environment ships
    CLIENT = "drey-client-"
    #: folders of files that came with jobs, as versions before 0.2.0 made them: they are swept alone
    BLOBS = "drey-blobs-"


def sweep(directory: Path, prefix: str) -> list[Path]:
    """Remove the folders of dead processes; return those that were removed.

    Other users' folders, and links, are left alone; what cannot be removed is left and logged.
    """
    removed = []
    for folder in sorted(directory.glob(f"{prefix}*")):
        try:
            if _is_own(folder) and _remove_if_dead(folder):
                removed.append(folder)
        except FileNotFoundError:
            continue  # another process swept it at the same time
        except OSError as error:
            _LOG.warning("the folder %s of a dead process stays: %s", folder, error)
    return removed


def _is_own(folder: Path) -> bool:
    """Return whether it is a folder that this user has made: in a common one, others may make what looks like ours."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _remove_if_dead(folder: Path) -> bool:
    try:
        lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
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


class ProcessFolder:
    """A folder of this process."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock: int | None = lock
        self._making = threading.Lock()

    @classmethod
    def create(cls, directory: Path, prefix: str) -> ProcessFolder:
        """Make and lock a folder in the directory (which is made too).

        Raises: OSError when the directory cannot be made or written.
        """
        make_closed(directory)
        number = 0
        while True:
            path = directory / f"{prefix}{os.getpid()}-{_process_start()}-{number}"
            try:
                path.mkdir(mode=0o700)
                lock = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                number += 1
                continue
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink > 0:
                return cls(path, lock)
            os.close(lock)  # a sweeper came between open and flock, and took the folder with it
            number += 1

    def ensure(self) -> bool:
        """Make the folder and its lock again when they were removed; return whether that was so.

        Cleaners of temporary folders do that to what lies long, and what was in it is gone. Any thread.
        Raises: OSError.
        """
        if self._is_there():
            return False
        with self._making:
            if self._lock is None or self._is_there():
                return False
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._lock, gone = lock, self._lock
            os.close(gone)
        _LOG.warning("the folder %s was removed while it is in use, and is made again", self.path)
        return True

    def _is_there(self) -> bool:
        """Whether the lock in the folder is the one that this process holds."""
        lock = self._lock
        if lock is None:
            return True
        try:
            there, held = (self.path / LOCK_NAME).lstat(), os.fstat(lock)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)

    def close(self) -> None:
        """Remove the folder with all that is in it; idempotent. Raises: OSError."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        try:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                shutil.rmtree(self.path)
        finally:
            os.close(lock)
