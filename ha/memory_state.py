"""MemoryStateStore: small contents as long as the process lives, for clusters without a quorum.

It keeps the contract of the store over ZooKeeper: versions, refused epochs, limits. Thread safe.

Held by: tests/ha/test_state_store.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ha.interfaces import StaleEpochError, StoredState
from ha.state_limits import check_write


class MemoryStateStore:
    """The contents of one process."""

    def __init__(self, is_granted: Callable[[int], bool]) -> None:
        self._is_granted = is_granted
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._contents: dict[str, StoredState] = {}
        #: number of writes that a lost leadership has stopped
        self.refused_writes = 0

    def names(self) -> tuple[str, ...]:
        """Return the names that there are, sorted."""
        with self._lock:
            return tuple(sorted(self._contents))

    def read(self, name: str) -> StoredState | None:
        """Return a content, or None."""
        with self._lock:
            return self._contents.get(name)

    def create(self, epoch: int, name: str, content: bytes) -> bool:
        """Store a content under a new name; return False when the name is there."""
        check_write(name, content)
        with self._lock:
            self._check_epoch(epoch, name)
            if name in self._contents:
                return False
            self._contents[name] = StoredState(content, 0)
            return True

    def replace(self, epoch: int, name: str, content: bytes, version: int) -> bool:
        """Change a content that still has that version; return False when it has not."""
        check_write(name, content)
        with self._lock:
            self._check_epoch(epoch, name)
            found = self._contents.get(name)
            if found is None or found.version != version:
                return False
            self._contents[name] = StoredState(content, version + 1)
            return True

    def remove(self, epoch: int, name: str) -> None:
        """Remove a name; one that is gone is no error."""
        check_write(name)
        with self._lock:
            self._check_epoch(epoch, name)
            self._contents.pop(name, None)

    def _check_epoch(self, epoch: int, name: str) -> None:
        if not self._is_granted(epoch):
            self.refused_writes += 1
            raise StaleEpochError(f"{name} is not changed: epoch {epoch} leads no more")
