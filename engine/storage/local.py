"""LocalFileSystem: files of this machine, and of file systems that are mounted on it.

A small file is there whole or not at all, also after a crash:

    temporary file ─► write, fsync ─► link (create) or rename (replace) ─► fsync of the folder

``link`` fails when the name is taken, which makes creation atomic among processes; where a file system has no hard
links the file is created exclusively instead (then a crash may leave it cut short, and its reader refuses it).

Held by: tests/storage/test_local.py
"""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import os
import shutil
import stat
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import BinaryIO, Final, Self, cast

from engine.storage.file_system import NO_DESCRIPTOR, FileStatus, FolderEntry
from engine.storage.local_folders import LocalFolders
from engine.storage.temporary_files import temporary_path

#: Errors of link(2) after which a small file is created exclusively instead.
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES})
#: Errors of a name that means nothing.
_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP})


class LocalEntry:
    """One name in a folder; what it is, is looked up when it is asked for."""

    __slots__ = ("_entry", "name", "path")

    def __init__(self, entry: os.DirEntry[str]) -> None:
        self._entry = entry
        self.name = entry.name
        self.path = entry.path

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, or a link to one."""
        return self._entry.is_dir()

    @property
    def is_file(self) -> bool:
        """Whether it is a file, or a link to one."""
        return self._entry.is_file()

    @property
    def is_link(self) -> bool:
        """Whether it is a link."""
        return self._entry.is_symlink()

    @property
    def size_bytes(self) -> int:
        """The bytes of the file."""
        return self._entry.stat().st_size


class LocalRangeFile:
    """A file with a descriptor of its own."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def size_bytes(self) -> int:
        """The bytes of the file."""
        return os.fstat(self.descriptor).st_size

    @property
    def version(self) -> Hashable:
        """The version of the content."""
        return _version(os.fstat(self.descriptor))

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes of a range; fewer of them at the end of the file."""
        return os.pread(self.descriptor, size, offset)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes between pairs of positions."""
        return ((begin, self.read_at(begin, end - begin)) for begin, end in ranges)

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; idempotent."""
        descriptor, self.descriptor = self.descriptor, NO_DESCRIPTOR
        if descriptor >= 0:
            os.close(descriptor)


class LocalOutputStream(io.FileIO):
    """A file that did not exist before."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "x")

    def abort(self) -> None:
        """Close and remove the file, unless it is closed."""
        if not self.closed:
            self.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(cast(str, self.name))


def _version(found: os.stat_result) -> Hashable:
    return found.st_ino, found.st_size, found.st_mtime_ns


class LocalFileSystem:
    """Files of this machine."""

    schemes = ("file",)
    objects = None

    def __init__(self) -> None:
        self.folders = LocalFolders()

    def status(self, path: str) -> FileStatus:
        """Return size, version and kind of a file or a folder; a link counts as its target."""
        found = os.stat(path)
        mode = found.st_mode
        return FileStatus(found.st_size, found.st_mtime_ns, _version(found), stat.S_ISDIR(mode), stat.S_ISREG(mode))

    def find(self, path: str) -> FileStatus | None:
        """Return size, version and kind of a file or a folder; None where there is none."""
        try:
            return self.status(path)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        except ValueError:  # a path that no file can have
            return None

    def is_taken(self, path: str) -> bool:
        """Return whether something has a name, also a link to nothing."""
        return os.path.lexists(path)

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield the entries of a folder, in no order."""
        with os.scandir(folder) as entries:
            yield from map(LocalEntry, entries)

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield (folder, names of folders, names of files) from the top down; links to folders are not entered."""
        return os.walk(folder)

    def matching(self, pattern: str) -> Iterable[str]:
        """Return the paths that match an absolute glob, in no order."""
        return glob.glob(pattern)

    def open_stream(self, path: str, *, is_buffered: bool = False) -> BinaryIO:
        """Open a file for reading from any position."""
        return open(path, "rb", buffering=-1 if is_buffered else 0)

    def open_ranges(
        self, path: str, *, is_tail_wanted: bool = False, status: FileStatus | None = None
    ) -> LocalRangeFile:
        """Open a file for reading ranges of it, with a descriptor."""
        return LocalRangeFile(path)

    def read(self, path: str) -> bytes:
        """Return all of a small file."""
        with open(path, "rb", buffering=0) as file:
            return file.readall()

    def native_path(self, path: str) -> str | None:
        """Return the path itself."""
        return path

    def create(self, path: str) -> LocalOutputStream:
        """Create a file and write it in parts; FileExistsError when there is one."""
        return LocalOutputStream(path)

    def written_bytes(self, path: str) -> int:
        """Return the bytes so far of a file that this process writes."""
        return os.stat(path).st_size

    def publish(self, staged: str, path: str) -> None:
        """Give a whole file its name; a file that has it is replaced."""
        os.rename(staged, path)

    def create_if_absent(self, path: str, content: bytes, is_durable: bool = True) -> bool:
        """Create a small file; return False, and change nothing, when something has the name."""
        temporary = _write_temporary(path, content, is_durable)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return _create_exclusively(path, content, is_durable)
        finally:
            self.delete(temporary)
        if is_durable:
            self.folders.sync(os.path.dirname(path))
        return True

    def replace(self, path: str, content: bytes, is_durable: bool = True) -> None:
        """Make a small file of that content, whether there is one or not."""
        temporary = _write_temporary(path, content, is_durable)
        try:
            os.replace(temporary, path)
        except OSError:
            self.delete(temporary)
            raise
        if is_durable:
            self.folders.sync(os.path.dirname(path))

    def delete(self, path: str) -> None:
        """Delete a file or a link; idempotent."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def delete_tree(self, path: str) -> None:
        """Delete a file, a link, or a folder and all that is in it; idempotent."""
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, onerror=_raise_unless_gone)
        else:
            self.delete(path)

    def free_bytes(self, path: str) -> int | None:
        """Return the bytes that are free on the disk of a path."""
        return shutil.disk_usage(path).free


def _raise_unless_gone(_call: object, _path: str, found: tuple[object, BaseException, object]) -> None:
    """Raise the error of a name that cannot be removed; one that another process has removed is no error."""
    if not isinstance(found[1], FileNotFoundError):
        raise found[1]


def _write_temporary(path: str, content: bytes, is_durable: bool) -> str:
    temporary = temporary_path(path)
    try:
        _create_exclusively(temporary, content, is_durable)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return temporary


def _create_exclusively(path: str, content: bytes, is_durable: bool) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())
    return True
