"""FileHandles: a StateHandleStore in a folder, for the one JobManager of a cluster without a quorum.

    <folder>/lock              held by the process that writes
    <folder>/<name>            version, a blank, content; replaced in one step, synchronised

So the jobs of a JobManager that is started again over the same folder go on. The lock keeps a second one out, which
a quorum would do otherwise. A folder that was removed is made again, and locked. Thread safe. Source: Flink's
FileSystemJobResultStore, for all that is kept.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

from engine.errors import ConfigurationError
from engine.storage.file_systems import LOCAL
from ha.interfaces import ForeignStateError, StaleEpochError, StateUnavailableError, StoredState

_LOCK_NAME = "lock"
_NAME = re.compile(r"[0-9a-f]{1,64}")


class HeldError(ConfigurationError):
    """Another process holds the folder."""


class FileHandles:
    """Contents as files. ``is_granted`` tells whether an epoch may write."""

    def __init__(self, folder: Path, is_granted: Callable[[int], bool]) -> None:
        self._folder = folder
        self._is_granted = is_granted
        self._lock = threading.Lock()
        self._file: int | None = None

    def hold(self) -> None:
        """Keep other processes out, as long as this one lives; HeldError when one is in."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HeldError(
                f"another JobManager keeps its jobs in {self._folder}: several need high-availability.type ZOOKEEPER"
            ) from error
        except OSError as error:
            raise ConfigurationError(f"{self._folder} cannot be used: {error.strerror or error}") from error

    def names(self) -> tuple[str, ...]:
        """Return the names that there are, sorted."""
        try:
            return tuple(sorted(path.name for path in self._folder.iterdir() if _NAME.fullmatch(path.name)))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StateUnavailableError(f"{self._folder}: {error}") from error

    def read(self, name: str) -> StoredState | None:
        """Return a content, or None."""
        try:
            version, separator, content = (self._folder / name).read_bytes().partition(b" ")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateUnavailableError(f"{self._folder / name}: {error}") from error
        if not separator or not version.isdigit():
            raise ForeignStateError(f"{self._folder / name} was not written by a JobManager")
        return StoredState(content, int(version))

    def create(self, epoch: int, name: str, content: bytes) -> bool:
        """Store a content under a new name; return False when the name is there."""
        with self._lock:
            if self.read(name) is not None:
                return False
            self._write(epoch, name, 0, content)
            return True

    def replace(self, epoch: int, name: str, content: bytes, version: int) -> bool:
        """Change a content that still has that version; return False when it has not."""
        with self._lock:
            found = self.read(name)
            if found is None or found.version != version:
                return False
            self._write(epoch, name, version + 1, content)
            return True

    def remove(self, epoch: int, name: str) -> None:
        """Remove a name; one that is gone is no error."""
        with self._lock:
            self._check(epoch, name)
            try:
                (self._folder / name).unlink(missing_ok=True)
            except OSError as error:
                raise StateUnavailableError(f"{self._folder / name}: {error}") from error
            LOCAL.folders.sync(os.fspath(self._folder))

    def _write(self, epoch: int, name: str, version: int, content: bytes) -> None:
        self._check(epoch, name)
        try:
            if not self._folder.is_dir():  # it was removed, and the lock with it
                self._folder.mkdir(mode=0o700, parents=True)
                self._lock_again()
            LOCAL.replace(os.fspath(self._folder / name), b"%d " % version + content)
        except OSError as error:
            raise StateUnavailableError(f"{self._folder / name}: {error}") from error

    def _lock_again(self) -> None:
        held, self._file = self._file, None
        if held is not None:
            os.close(held)
            self.hold()

    def _check(self, epoch: int, name: str) -> None:
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a name for a content: write 1 to 64 hexadecimal digits")
        if not self._is_granted(epoch):
            raise StaleEpochError(f"{name} is not changed: epoch {epoch} leads no more")
