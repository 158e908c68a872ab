"""Objects of a store as a plan found them: what a reader opens without asking the store about it again.

    stored_file(file), stored_as(path, version)  -> StoredFile        a Parquet source's ``stored``
    statuses(stored)                             -> {path: FileStatus}

Held by: tests/storage/test_needed_pages.py
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import cast

from engine.graph.source_spec import StoredFile
from engine.storage.file_system import FileStatus, RangeFile
from engine.storage.store_files import Version


def stored_file(file: RangeFile) -> StoredFile:
    """Return an object that is open."""
    return stored_as(file.path, file.version)


def stored_as(path: str, version: Hashable) -> StoredFile:
    """Return an object by its version."""
    tag, size_bytes, modified_ns = cast("Version", version)
    return StoredFile(path, size_bytes, modified_ns, tag)


def statuses(stored: Iterable[StoredFile]) -> dict[str, FileStatus]:
    """Return the statuses of objects by path."""
    return {
        each.path: FileStatus(
            each.size_bytes,
            each.modified_ns,
            (each.tag, each.size_bytes, each.modified_ns),
            is_folder=False,
            is_file=True,
        )
        for each in stored
    }
