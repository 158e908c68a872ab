"""TableWrite: what a job does to a table, as data that is kept with the decision.

Held by: tests/delta/test_write_delta.py
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

#: values of the column that says what becomes of each row of a merge
KEPT, INSERTED, UPDATED, DELETED = range(4)
#: facts of a merge, by those values
COUNTED: Final = {INSERTED: "rows_inserted", UPDATED: "rows_updated", DELETED: "rows_deleted"}


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
    #: column of actions, which is not written: the rows that they are counted of; "": all rows are written
    action: str = ""


def decoded(options: str) -> TableWrite:
    """Return the change that a sink's options say."""
    return msgspec.json.decode(options, type=TableWrite)


def encoded(write: TableWrite) -> str:
    """Return a change as a sink's options."""
    return msgspec.json.encode(write).decode()
