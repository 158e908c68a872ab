"""ZipFileSystem: members of zip archives, which are read as files in folders.

    zip:///data/archive.zip!/2024/a.csv      a member; /data/archive.zip is a path of any file system
    zip://a.csv::archive.zip                 the same kind of thing as fsspec writes it (``absolute_zip``)
    zip:///data/archive.zip!/*.csv           a glob; zip:///data/archive.zip!/ all members at the top

A member is decompressed from its begin on by each subtask that reads a part of it, up to the end of that part.
Archives are read alone. What is damaged, encrypted or compressed in another way is an OSError that says so.

Held by: tests/storage/test_zip_files.py
"""

from __future__ import annotations

import errno
import fnmatch
import io
import os
import threading
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, Self, TypeAlias, cast

from engine.storage.file_system import NO_DESCRIPTOR, FileStatus, FolderEntry
from engine.storage.fsspec_files import FsspecEntry

if TYPE_CHECKING:
    import zipfile

SCHEME: Final = "zip"
_BEGIN: Final = "zip://"
_MARK: Final = "!"
_PART_BYTES: Final = 4 << 20
#: function from the path of an archive to its stream
OpenFile: TypeAlias = Callable[[str], BinaryIO]
_BUFFER_BYTES: Final = 256 << 10


def absolute_zip(path: str, absolute: Callable[[str], str]) -> str:
    """Return the URL of a member with the whole path of its archive, of either way to write it."""
    rest = path.removeprefix(_BEGIN)
    if "::" in rest:
        member, _, archive = rest.partition("::")
    else:
        archive, mark, member = rest.partition(f"{_MARK}/")
        archive = archive if mark else rest.removesuffix(_MARK)
    return f"{_BEGIN}{absolute(archive)}{_MARK}/{member.strip('/')}".rstrip("/")


def _parts(path: str) -> tuple[str, str]:
    """Return the path of the archive, and the name of the member, "" for all."""
    archive, _, member = path.removeprefix(_BEGIN).partition(f"{_MARK}/")
    return archive.removesuffix(_MARK), member.strip("/")


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Raise what zipfile says of an archive as OSError."""
    import zipfile

    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        said = f"the zip archive is none, or damaged ({error})"
        raise OSError(errno.EIO, said, path) from None
    except (RuntimeError, NotImplementedError) as error:
        raise OSError(errno.ENOTSUP, f"the zip archive cannot be read: {error}; unpack it", path) from None


def _archive(path: str, open_file: OpenFile) -> zipfile.ZipFile:
    import zipfile

    stream = open_file(_parts(path)[0])
    try:
        with _told(path):
            return zipfile.ZipFile(stream)
    except BaseException:
        stream.close()
        raise


@contextmanager
def _opened(path: str, open_file: OpenFile) -> Iterator[zipfile.ZipFile]:
    with _archive(path, open_file) as archive:
        stream = archive.fp
        try:
            yield archive
        finally:
            cast(Any, stream).close()


class ZipStream(io.RawIOBase):
    """A member that is read from any position; going back begins anew."""

    def __init__(self, path: str, open_file: OpenFile) -> None:
        super().__init__()
        self.name = path
        self._archive = _archive(path, open_file)
        self._stream = self._archive.fp
        try:
            with _told(path):
                self._file = self._archive.open(_parts(path)[1])
        except BaseException:
            self.close()
            raise

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position."""
        with _told(self.name):
            return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def readinto(self, target: Any) -> int:
        """Fill a buffer; return the number of bytes."""
        view = memoryview(target).cast("B")
        with _told(self.name):
            data = self._file.read(min(len(view), _PART_BYTES))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the member and its archive; idempotent."""
        if not self.closed:
            super().close()
            if hasattr(self, "_file"):
                self._file.close()
            self._archive.close()
            cast(Any, self._stream).close()


class ZipRangeFile:
    """A member that is read in ranges. Thread: any, one after the other."""

    descriptor = NO_DESCRIPTOR

    def __init__(self, path: str, status: FileStatus, open_file: OpenFile) -> None:
        self.path = path
        self.size_bytes = status.size_bytes
        self.version: Hashable = status.version
        self._turn = threading.Lock()
        self._stream = ZipStream(path, open_file)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes of a range; fewer of them at the end of the file."""
        found = bytearray(max(0, min(size, self.size_bytes - offset)))
        view, used = memoryview(found), 0
        with self._turn:
            self._stream.seek(offset)
            while used < len(view) and (count := self._stream.readinto(view[used:])):
                used += count
        return bytes(view[:used])

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes between pairs of positions, as parts (position, bytes)."""
        for begin, end in sorted(ranges):
            for start in range(begin, min(end, self.size_bytes), _PART_BYTES):
                yield start, self.read_at(start, min(_PART_BYTES, end - start))

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; idempotent."""
        self._stream.close()


class ZipFileSystem:
    """Members of archives, by their URL. Thread: any."""

    schemes = (SCHEME,)
    folders = None
    objects = None

    def __init__(self, open_file: OpenFile) -> None:
        #: function that opens archives, by their paths
        self._open_file = open_file

    def status(self, path: str) -> FileStatus:
        """Return size, version and kind of a member or a folder. Raises OSError where there is none."""
        _, member = _parts(path)
        with _opened(path, self._open_file) as archive:
            found = next((each for each in archive.infolist() if each.filename == member), None)
            if found is not None:
                return FileStatus(found.file_size, 0, (found.CRC, found.file_size), is_folder=False, is_file=True)
            if not member or any(each.filename.startswith(f"{member}/") for each in archive.infolist()):
                return FileStatus(0, 0, (), is_folder=True, is_file=False)
        raise FileNotFoundError(errno.ENOENT, "the zip archive has no such member", path)

    def find(self, path: str) -> FileStatus | None:
        """Return size, version and kind of a member or a folder; None where there is none."""
        try:
            return self.status(path)
        except (FileNotFoundError, IsADirectoryError):
            return None

    def is_taken(self, path: str) -> bool:
        """Return whether something has a name."""
        return self.find(path) is not None

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield the entries of a folder, in no order."""
        _, member = _parts(folder)
        begin = f"{member}/" if member else ""
        found: dict[str, FsspecEntry] = {}
        place = folder.rstrip("/") if member else f"{folder.rstrip('/').removesuffix(_MARK)}{_MARK}"
        with _opened(folder, self._open_file) as archive:
            for each in archive.infolist():
                name, slash, _ = each.filename.removeprefix(begin).partition("/")
                if each.filename.startswith(begin) and name:
                    found[name] = FsspecEntry(name, f"{place}/{name}", bool(slash), 0 if slash else each.file_size)
        yield from found.values()

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield (folder, names of folders, names of files) from the top down."""
        found = list(self.entries(folder))
        folders = [each.name for each in found if each.is_folder]
        yield folder, folders, [each.name for each in found if each.is_file]
        for name in folders:
            yield from self.walk(f"{folder.rstrip('/')}/{name}")

    def matching(self, pattern: str) -> Iterable[str]:
        """Return the members that match a glob, in no order; ``*`` matches within a folder."""
        archive, member = _parts(pattern)
        parts = member.split("/")
        if not member:
            return [pattern] if self.is_taken(pattern) else []
        try:
            with _opened(pattern, self._open_file) as opened:
                names = {each.filename.rstrip("/") for each in opened.infolist()}
        except FileNotFoundError:
            return []
        folders = {name.rsplit("/", count)[0] for name in names for count in range(1, name.count("/") + 1)}
        return [
            f"{_BEGIN}{archive}{_MARK}/{name}"
            for name in names | folders
            if name.count("/") == len(parts) - 1 and all(map(fnmatch.fnmatchcase, name.split("/"), parts))
        ]

    def open_stream(self, path: str, *, is_buffered: bool = False) -> BinaryIO:
        """Open a member for reading from any position."""
        stream = ZipStream(path, self._open_file)
        return cast(BinaryIO, io.BufferedReader(stream, _BUFFER_BYTES) if is_buffered else stream)

    def open_ranges(self, path: str, *, is_tail_wanted: bool = False, status: FileStatus | None = None) -> ZipRangeFile:
        """Open a member for reading ranges of it."""
        return ZipRangeFile(path, self.status(path) if status is None else status, self._open_file)

    def read(self, path: str) -> bytes:
        """Return all of a member."""
        with self.open_stream(path, is_buffered=True) as file:
            return file.read()

    def native_path(self, path: str) -> None:
        """Return None: libraries get streams."""

    def create(self, path: str) -> NoReturn:
        """Refuse: archives are read alone."""
        raise _read_alone(path)

    def written_bytes(self, path: str) -> NoReturn:
        """Refuse, as ``create``."""
        raise _read_alone(path)

    def publish(self, staged: str, path: str) -> NoReturn:
        """Refuse, as ``create``."""
        raise _read_alone(path)

    def create_if_absent(self, path: str, content: bytes, is_durable: bool = True) -> NoReturn:
        """Refuse, as ``create``."""
        raise _read_alone(path)

    def replace(self, path: str, content: bytes, is_durable: bool = True) -> NoReturn:
        """Refuse, as ``create``."""
        raise _read_alone(path)

    def delete(self, path: str) -> NoReturn:
        """Refuse, as ``create``."""
        raise _read_alone(path)

    def delete_tree(self, path: str) -> NoReturn:
        """Refuse, as ``create``."""
        raise _read_alone(path)

    def free_bytes(self, path: str) -> int:
        """Return 0: nothing is written."""
        return 0


def _read_alone(path: str) -> OSError:
    return OSError(errno.EROFS, "a zip archive is read, and not written; write files and pack them", path)
