"""TableWrite: what a job does to a table, as data that is kept with the decision.

Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import msgspec

from engine.commit.decision import DecidedFile
from engine.files.hive import values_of
from engine.ids import JobId

#: ending of a file beside a written one: places of rows of the table that are deleted
PLACES: Final = ".deleted"
#: columns of a table that have statistics, as other writers have it
INDEXED_MAX: Final = 32


def change_file(path: str) -> str:
    """Return the name of the file of changes of a written one.

    It lies in the folder of the job, and not in one of a partition: deltalake does not decode the paths of changes.
    """
    return f"{path.rpartition('/')[2].removesuffix('.parquet')}.changes.parquet"


def vector_file(job_id: JobId) -> str:
    """Return the name of the file of a job's deletion vectors, in its folder."""
    return f"deletion_vector_{UUID(hex=str(job_id))}.bin"


class TableWrite(msgspec.Struct, frozen=True, omit_defaults=True):
    """The change of a table.

    ``mode``: error, append, overwrite, overwrite_partitions, or rewrite, which puts the job's files in the place of
    those in ``removed``.
    """

    mode: str
    #: the schema of Delta that the table has then
    schema: dict[str, Any]
    partition_by: tuple[str, ...] = ()
    #: properties of a table that is made
    properties: dict[str, str] = {}
    #: columns that the table does not have yet
    new_columns: tuple[dict[str, Any], ...] = ()
    #: columns in which no value may be null
    required: tuple[str, ...] = ()
    #: files that go, by their paths in the log
    removed: tuple[str, ...] = ()
    #: version of the table that these files were found in; -1: none
    version: int = -1
    #: flag of rows that are others than before, which an optimization does not make
    changes_data: bool = True
    #: flag of rows that have the columns of a merge
    merges: bool = False
    #: flag of a merge that deletes rows by their places
    deletes_rows: bool = False
    #: flag of a merge that writes its changes for the change data feed
    keeps_changes: bool = False
    #: rows of the files that go, each of which is to be once among those that are written or deleted; None: any
    row_count: int | None = None
    #: paths in the log of files that rows name by their place in here, and that are written anew with these rows
    patched_files: tuple[str, ...] = ()
    #: columns in which such rows are others then
    patched_columns: tuple[str, ...] = ()
    #: flag of such rows that may be deleted
    patch_deletes: bool = False
    #: columns with numbers of which the log has bounds in all files
    bounded: tuple[str, ...] = ()
    #: first columns of which files have statistics, -1: all; and others, in lower case
    indexed: tuple[int, tuple[str, ...]] = (INDEXED_MAX, ())

    @property
    def patches(self) -> bool:
        """Whether the rows are those alone that change, and new ones."""
        return bool(self.patched_files)


class WrittenFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The report of a writer about its file, as JSON."""

    #: statistics of the log
    statistics: str = ""
    #: rows of each action of a merge
    counts: dict[str, int] = {}
    #: flag of a file beside it, with places of rows that are deleted
    has_places: bool = False
    #: bytes of a file of changes beside it, 0: there is none
    change_bytes: int = 0
    #: path in the log of the file in whose place it is, "": none
    replaces: str = ""
    #: flag of a row of that file for which there were two changes
    is_ambiguous: bool = False


def written_file(file: DecidedFile) -> WrittenFile:
    """Return the report about a file."""
    return msgspec.json.decode(file.statistics, type=WrittenFile) if file.statistics else WrittenFile()


def partition_folder(run: str) -> str:
    """Return the folder of a partition, from the text of its rows."""
    return run.partition("//")[0]


def partition_values(file: DecidedFile, write: TableWrite) -> dict[str, str | None]:
    """Return the values of a file's partition, as texts of the log."""
    folder = partition_folder(file.folder)
    values = {key: log_text(text, key, write.schema) for key, text in values_of(folder)} if folder else {}
    return {key: values.get(key) for key in write.partition_by}


def log_text(text: str | None, key: str, schema: Mapping[str, Any]) -> str | None:
    """Return the text of a partition's value as the log has it: a moment is one of UTC without a mark."""
    kind = next((field["type"] for field in schema["fields"] if field["name"] == key), "")
    return text.removesuffix("Z") if text is not None and kind == "timestamp" else text


def required_names(schema: dict[str, Any], keys: Collection[str]) -> tuple[str, ...]:
    """Return the columns of a schema in which no value may be null, without those of partitions."""
    return tuple(each["name"] for each in schema["fields"] if not each["nullable"] and each["name"] not in keys)


@lru_cache(maxsize=4)
def decoded(options: str) -> TableWrite:
    """Return the change that a sink's options say."""
    return msgspec.json.decode(options, type=TableWrite)


def encoded(write: TableWrite) -> str:
    """Return a change as a sink's options."""
    return msgspec.json.encode(write).decode()
