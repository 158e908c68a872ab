"""WriteOptions: what tasks, and the leader that commits, have to know of a table; in ``SinkSpec.options``.

Held by: tests/iceberg_tables/test_write_iceberg.py
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from engine.graph.source_spec import SinkSpec
from engine.iceberg_tables.catalog_place import CatalogPlace


class Rewrite(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files in whose place a job's files go, and what it has read of others."""

    #: snapshot that was read; None: the table had none
    snapshot_id: int | None
    #: files that go, as manifests name them
    removed: tuple[str, ...] = ()
    #: flag of rows that have the columns of a merge
    merges: bool = False
    #: flag of rows that are others than before
    changes_data: bool = True
    #: lowest and highest value of columns in rows that the job has looked for, as texts of Arrow; (): it looked at all
    looked_for: tuple[tuple[str, str, str], ...] = ()
    #: files that rows name by their place in here, and that are written anew with these rows
    patched_files: tuple[str, ...] = ()
    #: columns in which such rows are others then
    patched_columns: tuple[str, ...] = ()
    #: flag of such rows that may be deleted
    patch_deletes: bool = False
    #: texts of the values that columns have which such a file may lack, by the names of columns; (): all have theirs
    constants: tuple[dict[str, str | None], ...] = ()
    #: bytes of a file of new rows beside such files
    new_bytes: int = 0


class WriteOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table, and the form of files that are added to it."""

    catalog: CatalogPlace
    #: name with its namespaces, such as "sales.orders"
    table: str
    location: str
    #: Arrow schema of the files, with ids of fields
    schema_ipc: bytes
    #: schema, partition specification and sort order as JSON of Iceberg's metadata
    schema_json: str
    partition_json: str
    sort_json: str
    #: properties of a table that is made, and those of one that is there which decide on statistics
    properties: dict[str, str] = {}
    #: True for mode="error": the table must not be there
    is_new: bool = False
    #: names of required columns, in which a null fails the job
    required: tuple[str, ...] = ()
    #: names of columns of type uuid
    uuids: tuple[str, ...] = ()
    #: mode="rewrite": what the job has read of the table
    rewrite: Rewrite | None = None


def options_of(spec: SinkSpec) -> WriteOptions:
    """Return the options of a sink."""
    return decoded(spec.options)


@lru_cache(maxsize=4)
def decoded(text: str) -> WriteOptions:
    """Return options from their JSON."""
    return msgspec.json.decode(text, type=WriteOptions)


def encoded(options: WriteOptions) -> str:
    """Return the JSON of options."""
    return msgspec.json.encode(options).decode()
