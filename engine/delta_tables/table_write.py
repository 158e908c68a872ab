"""TableWrite: what a job does to a table, as data that is kept with the decision.

Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec


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


def required_names(schema: dict[str, Any], keys: Collection[str]) -> tuple[str, ...]:
    """Return the columns of a schema in which no value may be null, without those of partitions."""
    return tuple(each["name"] for each in schema["fields"] if not each["nullable"] and each["name"] not in keys)


def decoded(options: str) -> TableWrite:
    """Return the change that a sink's options say."""
    return msgspec.json.decode(options, type=TableWrite)


def encoded(write: TableWrite) -> str:
    """Return a change as a sink's options."""
    return msgspec.json.encode(write).decode()
