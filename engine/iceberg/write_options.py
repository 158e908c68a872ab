"""WriteOptions: what tasks, and the leader that commits, have to know of a table; in ``SinkSpec.options``.

Held by: tests/iceberg/test_write_iceberg.py
"""

from __future__ import annotations

import msgspec

from engine.graph.source_spec import SinkSpec
from engine.iceberg.catalog_place import CatalogPlace


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


def options_of(spec: SinkSpec) -> WriteOptions:
    """Return the options of a sink."""
    return decoded(spec.options)


def decoded(text: str) -> WriteOptions:
    """Return options from their JSON."""
    return msgspec.json.decode(text, type=WriteOptions)


def encoded(options: WriteOptions) -> str:
    """Return the JSON of options."""
    return msgspec.json.encode(options).decode()
