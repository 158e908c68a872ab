"""The file system of a path, by its scheme; a path without a scheme is one of this machine.

    file_system_of("/data/a.csv") is LOCAL

Held by: tests/storage/test_local.py
"""

from __future__ import annotations

from typing import Final

from engine.errors import PlanError
from engine.storage.file_system import FileSystem, Folders
from engine.storage.fsspec_files import FsspecFileSystem
from engine.storage.local import LocalFileSystem
from engine.storage.object_store import ObjectStore
from engine.storage.zip_files import ZipFileSystem

LOCAL: Final = LocalFileSystem()
#: The file systems that there are, one entry each.
FILE_SYSTEMS: tuple[FileSystem, ...] = (
    LOCAL,
    ObjectStore(),
    FsspecFileSystem(),
    ZipFileSystem(lambda path: file_system_of(path).open_stream(path, is_buffered=True)),
)


def file_system_of(path: str) -> FileSystem:
    """Return the file system that a path belongs to."""
    if path.startswith("/"):
        return LOCAL
    scheme, mark, _ = path.partition("://")
    found = (each for each in FILE_SYSTEMS if scheme.lower() in each.schemes) if mark else iter(())
    return next(found, LOCAL)


def folders_of(path: str, what: str) -> Folders:
    """Return the operations on folders of a path's file system; PlanError where it has none."""
    folders = file_system_of(path).folders
    if folders is None:
        raise PlanError(f"{path}: its file system has no folders that can be renamed, and {what} needs them")
    return folders


def size_of(path: str) -> int:
    """Return the bytes of a file. Raises OSError where there is none."""
    return file_system_of(path).status(path).size_bytes


def is_folder(path: str) -> bool:
    """Return whether a path is a folder, or a link to one."""
    found = file_system_of(path).find(path)
    return found is not None and found.is_folder


def is_file(path: str) -> bool:
    """Return whether a path is a file, or a link to one."""
    found = file_system_of(path).find(path)
    return found is not None and found.is_file


def extent_of(path: str) -> tuple[int, float | None]:
    """Return the bytes of a file, or of all below a folder, and the last change, seconds since 1970; None: unknown."""
    files = file_system_of(path)
    found = [status for status in [files.find(path)] if status is not None]
    if found and found[0].is_folder and files.objects is not None:
        listed = [(size, changed) for _, size, changed in files.objects.below(path)]
        return sum(size for size, _ in listed), max((changed for _, changed in listed if changed), default=None)
    if found and found[0].is_folder:
        for folder, _, names in files.walk(path):
            found += filter(None, map(files.find, (folder, *(f"{folder}/{name}" for name in names))))
    size = sum(status.size_bytes for status in found if status.is_file)
    return size, max((status.modified_ns / 1e9 for status in found if status.modified_ns), default=None)
