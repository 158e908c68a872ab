"""LocalFolders: folders of this machine: made, renamed, exchanged, linked, locked.

    make_missing(folder) ─► ... ─► remove_empty(what was missing)

A lock is a file that is there while a process holds it. Its descriptor holds flock(2), which the system lets go when
the process ends; the process that held it before removes the file, so a waiter looks whether it still has that name.

Held by: tests/storage/test_local_folders.py
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from typing import Final

from engine.storage.file_system import HardLinksError
from engine.storage.renames import exchange, rename_if_absent
from engine.storage.temporary_files import remove_left

#: Errors of link(2) on a file system without hard links.
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class LocalFolders:
    """Folders of this machine."""

    def make(self, folder: str) -> None:
        """Make a folder, and those above it that are missing."""
        os.makedirs(folder, exist_ok=True)

    def make_missing(self, folder: str) -> tuple[str, ...]:
        """Make a folder and those above it; return those that were missing, innermost first.

        Raises: OSError; what was made is gone then.
        """
        missing: list[str] = []
        each = folder
        while not os.path.exists(each):  # what is no folder is told by the first one below it
            missing.append(each)
            parent = os.path.dirname(each)
            if parent == each:
                break
            each = parent
        try:
            for each in reversed(missing):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(each)
                if not os.path.isdir(each):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), each)
        except OSError:
            self.remove_empty(missing)
            raise
        return tuple(missing)

    def remove_empty(self, folders: Iterable[str]) -> None:
        """Remove folders, innermost first, up to one in which something is."""
        for folder in folders:
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                return

    def remove_left(self, folder: str) -> bool:
        """Remove temporary files in a folder that a process of this machine has left; return whether there was one."""
        return remove_left(folder)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or a folder; a file, or an empty folder, that has the new name is replaced."""
        os.rename(old, new)

    def rename_if_absent(self, old: str, new: str) -> None:
        """Rename; FileExistsError when the new name is taken, even by an empty folder."""
        rename_if_absent(old, new)

    def exchange(self, first: str, second: str) -> bool:
        """Exchange what two names mean, both of which are taken; False: that is not possible here."""
        return exchange(first, second)

    def link(self, old: str, new: str) -> None:
        """Give a file a second name; HardLinksError where the file system has none."""
        try:
            os.link(old, new, follow_symlinks=False)
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise HardLinksError(f"{old}: its file system has no hard links") from error
            raise

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return device and inode; None where nothing has the name."""
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_dev, found.st_ino

    def resolved(self, path: str) -> str:
        """Return the path without links."""
        return os.path.realpath(path)

    @contextlib.contextmanager
    def lock(self, path: str) -> Iterator[None]:
        """Hold a lock by name; others wait."""
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if self._is_there(descriptor, path):
                break
            os.close(descriptor)  # the one before removed it
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            os.close(descriptor)

    def remove_stale_lock(self, path: str) -> None:
        """Remove a lock that no process holds."""
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_there(descriptor, path):
                    os.unlink(path)
            finally:
                os.close(descriptor)

    def _is_there(self, descriptor: int, path: str) -> bool:
        opened = os.fstat(descriptor)
        return self.identity(path) == (opened.st_dev, opened.st_ino)

    def sync_file(self, path: str) -> None:
        """Make the content of a file durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync(self, folder: str) -> None:
        """Make the names in a folder durable; no error on file systems that cannot do that."""
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
