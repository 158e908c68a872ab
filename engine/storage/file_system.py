"""FileSystem: what the engine asks of the place where data lies.

    reading    status(path)  entries(folder)  matching(pattern)  open_stream(path)  open_ranges(path)  read(path)
    writing    create(path) ─► write, write ... ─► close, or abort        in parts; the file is whole when it is closed
               publish(staged, path)                                      a whole file gets its name
               create_if_absent(path, content)  replace(path, content)    small files, whole or not there
               delete(path)  delete_tree(path)

What only some file systems can do is an object or a value that may be missing, and callers ask for it:

    folders                 Folders: renames, hard links, locks; None: the file system has no folders, only names
    objects                 Objects: conditional puts, copies, deletion of many; None: the file system has files
    RangeFile.descriptor    a descriptor for kernels that call pread; NO_DESCRIPTOR: they get bytes from ``read_at``
    native_path(path)       a path for libraries that open files by themselves; None: they get a stream

Nothing here renames a file that readers may see, but ``publish``: a store completes an upload there.

Errors: OSError with an errno and the path as ``filename``; FileNotFoundError and FileExistsError as Python has them.
Held by: tests/storage/test_local.py
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, Self, TypeAlias

from engine.errors import EngineError

#: bytes, or an object with bytes that a memoryview takes
Buffer: TypeAlias = Any
#: The descriptor of a file that has none.
NO_DESCRIPTOR: Final = -1


class HardLinksError(EngineError):
    """A file system that has folders, but no hard links."""


class FileStatus(NamedTuple):
    """A file or a folder; ``version`` differs once the content does."""

    size_bytes: int
    modified_ns: int
    version: Hashable
    is_folder: bool
    is_file: bool


class FolderEntry(Protocol):
    """One name in a folder."""

    @property
    def name(self) -> str:
        """The name within the folder."""
        ...

    @property
    def path(self) -> str:
        """The whole path."""
        ...

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, or a link to one."""
        ...

    @property
    def is_file(self) -> bool:
        """Whether it is a file, or a link to one."""
        ...

    @property
    def is_link(self) -> bool:
        """Whether it is a link."""
        ...

    @property
    def size_bytes(self) -> int:
        """The bytes of the file."""
        ...


class ByteRanges(Protocol):
    """Something with bytes at positions. Thread: any."""

    path: str

    @property
    def size_bytes(self) -> int:
        """The bytes of the file."""
        ...

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes of a range; fewer of them at the end of the file."""
        ...

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Iterable[tuple[int, Buffer]]:
        """Yield the bytes between pairs of positions, as parts: (position, bytes of some kind)."""
        ...


class RangeFile(ByteRanges, Protocol):
    """A file that is open for ranges. Thread: any; close it once."""

    #: A descriptor of the open file; NO_DESCRIPTOR: there is none.
    descriptor: int

    @property
    def version(self) -> Hashable:
        """The version of the content, as ``FileStatus`` has it."""
        ...

    def __enter__(self) -> Self:
        """Return the file."""
        ...

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        ...

    def close(self) -> None:
        """Close the file; idempotent."""
        ...


class OutputStream(Protocol):
    """A new file that is written in parts, as Python's raw streams are: ``write`` may take a part of what it gets."""

    @property
    def closed(self) -> bool:
        """Whether it was closed or aborted."""
        ...

    def write(self, data: Any, /) -> int | None:
        """Append bytes; return how many were taken."""
        ...

    def tell(self) -> int:
        """Return the number of bytes that were taken."""
        ...

    def close(self) -> None:
        """Complete the file; idempotent."""
        ...

    def abort(self) -> None:
        """Leave nothing of the file, unless it is closed."""
        ...


class Folders(Protocol):
    """Folders as such, of a file system that has them. A call that repeats what is done already changes nothing."""

    def make(self, folder: str) -> None:
        """Make a folder, and those above it that are missing."""
        ...

    def make_missing(self, folder: str) -> tuple[str, ...]:
        """Make a folder and those above it; return those that were missing, innermost first.

        Raises: OSError; what was made is gone then.
        """
        ...

    def remove_empty(self, folders: Iterable[str]) -> None:
        """Remove folders, innermost first, up to one in which something is."""
        ...

    def remove_left(self, folder: str) -> bool:
        """Remove temporary files in a folder that a process of this machine has left; return whether there was one."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file or a folder; a file, or an empty folder, that has the new name is replaced."""
        ...

    def rename_if_absent(self, old: str, new: str) -> None:
        """Rename; FileExistsError when the new name is taken, even by an empty folder."""
        ...

    def exchange(self, first: str, second: str) -> bool:
        """Exchange what two names mean, both of which are taken; False: that is not possible here."""
        ...

    def link(self, old: str, new: str) -> None:
        """Give a file a second name; HardLinksError where the file system has none."""
        ...

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return the identity that a file or a folder keeps when it is renamed; None where nothing has the name."""
        ...

    def resolved(self, path: str) -> str:
        """Return the path without links."""
        ...

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Hold a lock by name; others wait. The system lets it go when the process ends."""
        ...

    def remove_stale_lock(self, path: str) -> None:
        """Remove a lock that no process holds."""
        ...

    def sync(self, folder: str) -> None:
        """Make the names in a folder durable, where the file system can do that."""
        ...

    def sync_file(self, path: str) -> None:
        """Make the content of a file durable."""
        ...


class Objects(Protocol):
    """Objects as such, of a store. Paths are those of the file system."""

    def read_version(self, path: str) -> tuple[bytes, Any] | None:
        """Return the content of a small object and its version; None where there is none."""
        ...

    def put_version(self, path: str, content: bytes, version: Any) -> Any:
        """Replace a small object that has this version still; None: create one. Return its new version.

        None is returned where another has done so.
        """
        ...

    def require_conditions(self, folder: str) -> None:
        """Raise PlanError where the store ignores the conditions of ``put_version``, which is tried below a prefix."""
        ...

    def copy(self, old: str, new: str) -> None:
        """Copy an object within its store, which has to be one; FileNotFoundError where there is none."""
        ...

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete objects; idempotent."""
        ...

    def abort_uploads(self, folder: str) -> int:
        """Abort uploads below a prefix that were not completed, where they can be found; return how many there were."""
        ...

    def has_below(self, folder: str) -> bool:
        """Return whether there is an object below a prefix."""
        ...

    def below(self, folder: str) -> Iterable[tuple[str, int, float]]:
        """Return all objects below a prefix, hidden ones too: (name relative to it, bytes, time of change)."""
        ...


class FileSystem(Protocol):
    """A place where data lies. Thread: any."""

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes of its URLs."""
        ...

    @property
    def folders(self) -> Folders | None:
        """The operations on folders; None where there are no folders."""
        ...

    @property
    def objects(self) -> Objects | None:
        """The operations on objects; None where there are files."""
        ...

    def status(self, path: str) -> FileStatus:
        """Return size, version and kind of a file or a folder. Raises OSError where there is none."""
        ...

    def find(self, path: str) -> FileStatus | None:
        """Return size, version and kind of a file or a folder; None where there is none."""
        ...

    def is_taken(self, path: str) -> bool:
        """Return whether something has a name, also a link to nothing."""
        ...

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield the entries of a folder, in no order."""
        ...

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield (folder, names of folders, names of files) from the top down; links to folders are not entered.

        Folders that the caller takes out of the list are not entered either.
        """
        ...

    def matching(self, pattern: str) -> Iterable[str]:
        """Return the paths that match an absolute glob, in no order."""
        ...

    def open_stream(self, path: str, *, is_buffered: bool = False) -> BinaryIO:
        """Open a file for reading from any position; without a buffer ``read`` may return less than asked for."""
        ...

    def open_ranges(self, path: str, *, is_tail_wanted: bool = False, status: FileStatus | None = None) -> RangeFile:
        """Open a file for reading ranges of it.

        is_tail_wanted: its end is read in any case, and first. status: what it was when it was looked at; a store does
        not look again, and refuses ranges of another object.
        """
        ...

    def read(self, path: str) -> bytes:
        """Return all of a small file."""
        ...

    def native_path(self, path: str) -> str | None:
        """Return a path by which a library can open the file itself; None: it takes a stream."""
        ...

    def create(self, path: str) -> OutputStream:
        """Create a file and write it in parts; FileExistsError when there is one."""
        ...

    def written_bytes(self, path: str) -> int:
        """Return the bytes so far of a file that this process writes, without those in buffers."""
        ...

    def publish(self, staged: str, path: str) -> None:
        """Give a whole file that was created as ``staged`` its name; a file that has it is replaced."""
        ...

    def create_if_absent(self, path: str, content: bytes, is_durable: bool = True) -> bool:
        """Create a small file; return False, and change nothing, when something has the name.

        is_durable: False where the file is not needed after a crash of the machine: then nothing is synchronised.
        """
        ...

    def replace(self, path: str, content: bytes, is_durable: bool = True) -> None:
        """Make a small file of that content, whether there is one or not; readers see one of both, whole."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file or a link; idempotent."""
        ...

    def delete_tree(self, path: str) -> None:
        """Delete a file, a link, or a folder and all that is in it; idempotent."""
        ...

    def free_bytes(self, path: str) -> int | None:
        """Return the bytes that are free; None where there is no bound."""
        ...
