"""FsspecFileSystem: files of servers and stores that fsspec knows: hdfs, sftp, ftp, smb, webdav and others.

    sftp://user@host/data/a.csv   hdfs://namenode/data   ftp://host/a   memory://a/b

Files are read in ranges, each by a call of its own, as objects of a store are. A new file is written in parts; its
folders are made. There is no put with a condition and no lock, so that an output is made by one writer at a time
(``engine.commit.renamed_target``): a rename of a folder makes it count.

Limits: a file that is replaced while it is read is seen only where its size changes with it.

Held by: tests/storage/test_fsspec_files.py
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import io
import os
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO, Final, NamedTuple, Self, cast

from engine.storage.file_system import NO_DESCRIPTOR, FileStatus, FolderEntry
from engine.storage.fsspec_client import FSSPEC_SCHEMES, asked_of, connection, fsspec_place, told_by_fsspec
from engine.storage.store_counters import note
from engine.storage.store_files import StoreStream, joined_ranges

_GLOB: Final = re.compile(r"[*?[]")
_BUFFER_BYTES: Final = 256 << 10
#: bytes that fsspec reads ahead of what is asked for
_BLOCK_BYTES: Final = 64 << 10
_PART_BYTES: Final = 4 << 20
#: files that this process writes, by path
_OPEN: Final[weakref.WeakValueDictionary[str, FsspecOutput]] = weakref.WeakValueDictionary()


class FsspecEntry(NamedTuple):
    """One name in a folder."""

    name: str
    path: str
    is_folder: bool
    size_bytes: int
    is_link: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it is a file."""
        return not self.is_folder


class FsspecRangeFile:
    """A file that is read in ranges. Thread: any."""

    descriptor = NO_DESCRIPTOR

    def __init__(self, path: str, status: FileStatus) -> None:
        self.path = path
        self.size_bytes = status.size_bytes
        self.version = status.version

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes of a range; fewer of them at the end of the file."""
        wanted = min(size, self.size_bytes - offset)
        if wanted <= 0:
            return b""

        def read(system: Any, inner: str) -> bytes:
            with system.open(inner, "rb", block_size=_BLOCK_BYTES) as file:
                file.seek(offset)
                return bytes(file.read(wanted))

        content = asked_of(self.path, read)
        if len(content) != wanted:
            raise OSError(errno.ESTALE, "it was replaced meanwhile; run the job again", self.path)
        note(fsspec_place(self.path).root, read_bytes=wanted)
        return content

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes between pairs of positions, as parts (position, bytes)."""
        for begin, end in joined_ranges(ranges):
            for start in range(begin, min(end, self.size_bytes), _PART_BYTES):
                yield start, self.read_at(start, min(_PART_BYTES, end - start))

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""

    def close(self) -> None:
        """Close the file, of which nothing is open between calls."""


class FsspecOutput(io.RawIOBase):
    """A new file that is written in parts. Thread: one writes."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self._taken = 0
        self._using = contextlib.ExitStack()
        try:
            with told_by_fsspec(path):
                self._system, self._inner = self._using.enter_context(connection(fsspec_place(path)))
                self._system.makedirs(self._inner.rpartition("/")[0] or "/", exist_ok=True)
                self._file = self._system.open(self._inner, "wb")
        except BaseException:
            super().close()
            self._using.close()
            raise
        _OPEN[path] = self

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any, /) -> int:
        """Append bytes, as many as a part has."""
        view = memoryview(data).cast("B")[:_PART_BYTES]
        with told_by_fsspec(self.path):
            self._file.write(bytes(view))
        self._taken += len(view)
        return len(view)

    def tell(self) -> int:
        """Return the number of bytes that were taken."""
        return self._taken

    def close(self) -> None:
        """Complete the file; idempotent."""
        if self.closed:
            return
        super().close()
        with told_by_fsspec(self.path), self._using:
            self._file.close()
        note(fsspec_place(self.path).root, requests=2, written_bytes=self._taken)

    def abort(self) -> None:
        """Leave nothing of the file, unless it is closed."""
        if not self.closed:
            super().close()
            with contextlib.suppress(Exception), self._using:
                self._file.close()
                self._system.rm_file(self._inner)

    def __del__(self) -> None:
        """Leave nothing of a file that was forgotten."""
        self.abort()


class FsspecFileSystem:
    """Files by their URL. Thread: any."""

    schemes = FSSPEC_SCHEMES
    folders = None
    objects = None

    def status(self, path: str) -> FileStatus:
        """Return size, version and kind of a file or a folder. Raises OSError where there is none."""
        return _status_of(asked_of(path, lambda system, inner: system.info(inner)))

    def find(self, path: str) -> FileStatus | None:
        """Return size, version and kind of a file or a folder; None where there is none."""
        try:
            return self.status(path)
        except FileNotFoundError:
            return None

    def is_taken(self, path: str) -> bool:
        """Return whether something has a name."""
        return self.find(path) is not None

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield the entries of a folder, in no order. Raises FileNotFoundError where there is none."""
        for found in asked_of(folder, lambda system, inner: system.ls(inner, detail=True)):
            name = found["name"].rstrip("/").rpartition("/")[2]
            size = found.get("size") or 0
            yield FsspecEntry(name, f"{folder.rstrip('/')}/{name}", found["type"] == "directory", size)

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield (folder, names of folders, names of files) from the top down; nothing where there is no folder."""
        try:
            found = list(self.entries(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        folders = [each.name for each in found if each.is_folder]
        yield folder, folders, [each.name for each in found if each.is_file]
        for name in folders:
            yield from self.walk(f"{folder.rstrip('/')}/{name}")

    def matching(self, pattern: str) -> Iterable[str]:
        """Return the paths that match a glob, in no order."""
        root = fsspec_place(pattern).root
        found = [root]
        for part in pattern[len(root) :].strip("/").split("/"):
            if _GLOB.search(part) is None:
                found = [f"{folder}/{part}" for folder in found]
                continue
            hidden = "" if part.startswith(".") else r"(?!\.)"
            test = re.compile(hidden + fnmatch.translate(part))
            found = [each.path for folder in found for each in self._inside(folder) if test.match(each.name)]
        return [path for path in found if self.is_taken(path)]

    def _inside(self, folder: str) -> list[FolderEntry]:
        try:
            return list(self.entries(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def open_stream(self, path: str, *, is_buffered: bool = False) -> BinaryIO:
        """Open a file for reading from any position."""
        stream = StoreStream(self.open_ranges(path))
        return cast(BinaryIO, io.BufferedReader(stream, _BUFFER_BYTES) if is_buffered else stream)

    def open_ranges(
        self, path: str, *, is_tail_wanted: bool = False, status: FileStatus | None = None
    ) -> FsspecRangeFile:
        """Open a file for reading ranges of it."""
        status = self.status(path) if status is None else status
        if not status.is_file:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return FsspecRangeFile(path, status)

    def read(self, path: str) -> bytes:
        """Return all of a small file."""
        file = self.open_ranges(path)
        return file.read_at(0, file.size_bytes)

    def native_path(self, path: str) -> None:
        """Return None: libraries get streams."""

    def create(self, path: str) -> FsspecOutput:
        """Create a file, and its folders, and write it in parts; FileExistsError when there is one."""
        if self.is_taken(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return FsspecOutput(path)

    def written_bytes(self, path: str) -> int:
        """Return the bytes so far of a file that this process writes."""
        output = _OPEN.get(path)
        return self.status(path).size_bytes if output is None else output.tell()

    def publish(self, staged: str, path: str) -> None:
        """Rename a file, or a folder; a file that has the name is replaced where the file system does that."""
        target = fsspec_place(path)

        def rename(system: Any, inner: str) -> None:
            new = type(system)._strip_protocol(target.path).rstrip("/")
            system.makedirs(new.rpartition("/")[0] or "/", exist_ok=True)
            system.mv(inner, new)

        try:
            asked_of(staged, rename)
        except OSError:
            if self.is_taken(staged):
                raise
            raise FileNotFoundError(errno.ENOENT, "there is no such file", staged) from None

    def create_if_absent(self, path: str, content: bytes, is_durable: bool = True) -> bool:
        """Create a small file unless something has the name, by one writer at a time."""
        if self.is_taken(path):
            return False
        self.replace(path, content)
        return True

    def replace(self, path: str, content: bytes, is_durable: bool = True) -> None:
        """Make a small file of that content."""

        def put(system: Any, inner: str) -> None:
            system.makedirs(inner.rpartition("/")[0] or "/", exist_ok=True)
            with system.open(inner, "wb") as file:
                file.write(content)

        asked_of(path, put)

    def delete(self, path: str) -> None:
        """Delete a file; idempotent."""
        try:
            asked_of(path, lambda system, inner: system.rm_file(inner))
        except OSError:  # FTP has one answer for a file that is not there and for one that may not be deleted
            if self.is_taken(path):
                raise

    def delete_tree(self, path: str) -> None:
        """Delete a file, or a folder and all that is in it; idempotent."""
        if self.is_taken(path):
            with contextlib.suppress(FileNotFoundError):
                asked_of(path, lambda system, inner: system.rm(inner, recursive=True))

    def free_bytes(self, path: str) -> None:
        """Return None: it is not known."""


def renames_folders(path: str) -> bool:
    """Return whether the file system of a path renames by a request of its own, and not by copies and deletions."""
    if path.partition("://")[0].lower() not in FSSPEC_SCHEMES:
        return False
    return asked_of(path, lambda system, _: str(type(system).mv.__qualname__)) != "AbstractFileSystem.mv"


def _status_of(found: Mapping[str, Any]) -> FileStatus:
    size = found.get("size") or 0
    changed = found.get("mtime") or found.get("modified") or found.get("last_modified") or found.get("modify") or 0
    if isinstance(changed, datetime):
        changed = changed.timestamp()
    changed_ns = int(changed * 1e9) if isinstance(changed, int | float) else 0
    is_folder = found["type"] == "directory"
    return FileStatus(size, changed_ns, (str(changed), size), is_folder, not is_folder)
