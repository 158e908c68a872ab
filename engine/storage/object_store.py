"""ObjectStore: objects of S3, Google Cloud Storage, Azure and HTTP servers, through obstore; they are read.

    s3://bucket/key  gs://bucket/key  abfs://container@account.dfs.core.windows.net/key  az://container/key  https://...

A store has names and no folders: a folder is what stands before ``/`` in the name of some object. It is listed by
prefix. An HTTP server lists nothing: its files are named one by one.

Limits: it does not write.
Held by: tests/storage/test_object_store.py
"""

from __future__ import annotations

import errno
import fnmatch
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn, cast

from engine.errors import PlanError
from engine.storage.file_system import FileStatus, FolderEntry
from engine.storage.store_client import FAMILIES, StorePlace, client_library, client_of, place_of, told
from engine.storage.store_files import StoreRangeFile, StoreStream

_GLOB: Final = re.compile(r"[*?[]")
_BUFFER_BYTES: Final = 256 << 10


class StoreEntry(NamedTuple):
    """One name below a prefix."""

    name: str
    path: str
    is_folder: bool
    size_bytes: int
    is_link: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it is an object."""
        return not self.is_folder


class ObjectStore:
    """Objects by their URL. Thread: any."""

    schemes = tuple(FAMILIES)
    folders = None

    def status(self, path: str) -> FileStatus:
        """Return size, version and kind of an object, or of the prefix of one. Raises OSError where there is none."""
        place, found = place_of(path), None
        if place.key:
            found = self._head(place, path)
        if found is not None:
            modified = int(found["last_modified"].timestamp() * 1e9)
            version = (found["e_tag"], found["size"], modified)
            return FileStatus(found["size"], modified, version, is_folder=False, is_file=True)
        if place.family != "http" and self._is_prefix(place, path):
            return FileStatus(0, 0, 0, is_folder=True, is_file=False)
        raise FileNotFoundError(errno.ENOENT, "there is no such object", path)

    def _head(self, place: StorePlace, path: str) -> Mapping[str, Any] | None:
        obstore = client_library(path)
        try:
            with told(path):
                return cast("Mapping[str, Any]", obstore.head(client_of(place), place.key))
        except FileNotFoundError:
            return None

    def _is_prefix(self, place: StorePlace, path: str) -> bool:
        obstore = client_library(path)
        with told(path):
            chunk = next(iter(obstore.list(client_of(place), f"{place.key}/" if place.key else None, chunk_size=1)), ())
        return bool(chunk)

    def find(self, path: str) -> FileStatus | None:
        """Return size, version and kind of an object or a prefix; None where there is none."""
        try:
            return self.status(path)
        except FileNotFoundError:
            return None

    def is_taken(self, path: str) -> bool:
        """Return whether something has a name."""
        return self.find(path) is not None

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield the objects and prefixes directly below a prefix, in no order."""
        place = self._listed(folder)
        obstore = client_library(folder)
        with told(folder):
            found = obstore.list_with_delimiter(client_of(place), f"{place.key}/" if place.key else None)
        for prefix in found["common_prefixes"]:
            yield StoreEntry(prefix.rstrip("/").rpartition("/")[2], place.path_of(prefix.rstrip("/")), True, 0)
        for each in found["objects"]:
            key = each["path"]
            if key != place.key:  # the marker of an empty folder
                yield StoreEntry(key.rpartition("/")[2], place.path_of(key), False, each["size"])

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield (folder, names of folders, names of files) from the top down."""
        entries = list(self.entries(folder))
        folders = [each.name for each in entries if each.is_folder]
        yield folder, folders, [each.name for each in entries if each.is_file]
        for name in folders:
            yield from self.walk(f"{folder.rstrip('/')}/{name}")

    def matching(self, pattern: str) -> Iterable[str]:
        """Return objects and prefixes that match a glob, in no order."""
        place = place_of(pattern)
        parts = place.key.split("/")
        fixed = next((index for index, part in enumerate(parts) if _GLOB.search(part)), len(parts))
        if fixed == len(parts):
            return [pattern] if self.is_taken(pattern) else []
        self._listed(pattern)
        obstore = client_library(pattern)
        tests = [re.compile(_translated(part)) for part in parts]
        before = "/".join(parts[:fixed])
        found: dict[str, None] = {}
        with told(pattern):
            for chunk in obstore.list(client_of(place), f"{before}/" if before else None):
                for each in chunk:
                    names = each["path"].split("/")
                    if len(names) >= len(tests) and all(map(re.Pattern.match, tests, names)):
                        found[place.path_of("/".join(names[: len(tests)]))] = None
        return list(found)

    def _listed(self, path: str) -> StorePlace:
        """Return the place of what is listed; PlanError for a server that lists nothing."""
        place = place_of(path)
        if place.family == "http":
            raise PlanError(f"{path}: an HTTP server does not say what files it has; name them one by one, as a list")
        return place

    def open_stream(self, path: str, *, is_buffered: bool = False) -> BinaryIO:
        """Open an object for reading from any position."""
        stream = StoreStream(self.open_ranges(path))
        return cast(BinaryIO, io.BufferedReader(stream, _BUFFER_BYTES) if is_buffered else stream)

    def open_ranges(self, path: str) -> StoreRangeFile:
        """Open an object for reading ranges of it."""
        status = self.status(path)
        if not status.is_file:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return StoreRangeFile(path, status.size_bytes, cast("tuple[str | None]", status.version)[0])

    def read(self, path: str) -> bytes:
        """Return all of a small object."""
        file = self.open_ranges(path)
        return file.read_at(0, file.size_bytes)

    def native_path(self, path: str) -> None:
        """Return None: libraries get streams."""

    def create(self, path: str) -> NoReturn:
        """Refuse to write."""
        raise _not_written(path)

    def publish(self, staged: str, path: str) -> NoReturn:
        """Refuse to write."""
        raise _not_written(path)

    def create_if_absent(self, path: str, content: bytes, is_durable: bool = True) -> NoReturn:
        """Refuse to write."""
        raise _not_written(path)

    def replace(self, path: str, content: bytes, is_durable: bool = True) -> NoReturn:
        """Refuse to write."""
        raise _not_written(path)

    def delete(self, path: str) -> NoReturn:
        """Refuse to delete."""
        raise _not_written(path)

    def delete_tree(self, path: str) -> NoReturn:
        """Refuse to delete."""
        raise _not_written(path)

    def free_bytes(self, path: str) -> None:
        """Return None: there is no bound."""


def _not_written(path: str) -> PlanError:
    return PlanError(
        f"{path}: object stores are read and not written yet; write to a path of this machine, and copy the output"
    )


def _translated(part: str) -> str:
    """Return a part of a glob as a pattern; as in folders, ``*`` means no name that begins with a dot."""
    hidden = "" if part.startswith(".") else r"(?!\.)"
    return hidden + fnmatch.translate(part)
