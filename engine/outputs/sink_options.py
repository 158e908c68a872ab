"""Options of every write_*: where rows go, in which order, and the treatment of existing data.

    mode               "error", "overwrite", "append", "overwrite_partitions"
    partition_by       columns that become folders: year=2024/
    sort_by            order of the rows in the files, within each partition
    target_file_size   "128mb": a file that has so much is followed by another one
    storage_options    what opens the bucket of an object store; it stays in this process
    single_file        the path is that of one file, not of a folder
    schema_mode        "strict", or "union": rows that are added may be others than those that are there

Rows of a partitioned output are sorted by the columns of ``partition_by``, then ``sort_by``, in ranges: what a subtask
writes is a run of partitions, one file after the other, however many there are. With a target size, where a partition
has several files anyway, they are sorted by their places as well (sorted_sinks.py), so that ranges may end within a
partition: a large one is written by several subtasks.

Held by: tests/integration/test_partitioned_outputs.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

import msgspec
import pyarrow as pa

from engine.column_expressions.named_columns import column_names
from engine.config.sizes import parse_size
from engine.csv.style import CsvWriteOptions
from engine.errors import ConfigurationError, SchemaError
from engine.expressions.column_names import check_columns
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import SinkSpec
from engine.records.key_types import is_key_type, key_remedy
from engine.storage.store_options import StorageOptions

MODES: Final = ("error", "overwrite", "append", "overwrite_partitions")


class SinkOptions(TypedDict, total=False):
    """Options of all sinks; each may be left out."""

    mode: str
    partition_by: str | Sequence[str]
    sort_by: str | Sequence[str]
    target_file_size: int | str
    single_file: bool
    schema_mode: str
    storage_options: StorageOptions


class CsvSinkOptions(SinkOptions, CsvWriteOptions, total=False):
    """Options of ``write_csv``: of all sinks, and of the form of values."""


class IcebergOptions(TypedDict, total=False):
    """More options of ``write_iceberg``."""

    properties: Mapping[str, str] | None
    storage_options: StorageOptions


def with_options(
    spec: SinkSpec, schema: pa.Schema, options: SinkOptions, writer: str
) -> tuple[SinkSpec, tuple[SortKey, ...]]:
    """Return a sink as the options want it, and the order that its rows must have.

    Raises: ConfigurationError (words, sizes), SchemaError (columns).
    """
    mode = options.get("mode", "overwrite" if spec.overwrite else "error")
    if mode not in MODES:
        raise ConfigurationError(f"{writer}: mode={mode!r}: choose one of {', '.join(MODES)}")
    if spec.overwrite and mode != "overwrite":
        raise ConfigurationError(
            f"{writer}: overwrite=True is short for mode='overwrite', and mode={mode!r} is another"
        )
    if spec.is_single_file:
        _check_single(options, mode, writer)
    keys = _names(options.get("partition_by", ()), schema, f"{writer}: partition_by")
    order = _names(options.get("sort_by", ()), schema, f"{writer}: sort_by")
    if keys:
        from engine.connectors.partition_runs import check_partition_by

        check_partition_by(schema, keys, writer)
    elif mode == "overwrite_partitions":
        raise ConfigurationError(f"{writer}: mode='overwrite_partitions' needs partition_by")
    for name in order:
        data_type = schema.field(name).type
        if not is_key_type(data_type):
            remedy = key_remedy(data_type)
            raise SchemaError(f"{writer}: sort_by: column {name!r} is {data_type}, which has no order: {remedy}")
    schema_mode = options.get("schema_mode", "strict")
    if schema_mode not in ("strict", "union"):
        raise ConfigurationError(f"{writer}: schema_mode={schema_mode!r}: choose strict or union")
    size_bytes = file_size(options.get("target_file_size"), writer)
    changed = msgspec.structs.replace(
        spec,
        overwrite=mode == "overwrite",
        mode=mode if mode in ("append", "overwrite_partitions") else "",
        partition_by=keys,
        target_file_bytes=size_bytes,
        schema_mode=schema_mode,
    )
    if mode != "error":
        from engine.files.table_formats import check_not_added

        check_not_added(changed.path, mode, writer)
    if changed.mode:
        from engine.outputs.added_files import like_what_is_there

        changed = like_what_is_there(changed, schema, writer)
    return changed, tuple(SortKey(name) for name in dict.fromkeys((*keys, *order)))


def _check_single(options: SinkOptions, mode: str, writer: str) -> None:
    """Raise ConfigurationError for options that make several files."""
    several = [name for name in ("partition_by", "target_file_size") if options.get(name)]
    several += [f"mode={mode!r}"] if mode not in ("error", "overwrite") else []
    if several:
        raise ConfigurationError(
            f"{writer}: single_file=True makes one file, and {several[0]} is about several; leave one of them out"
        )


def file_size(size: int | str | None, writer: str) -> int:
    """Return the bytes of ``target_file_size``, 0 where it is left out. Raises: ConfigurationError."""
    size_bytes = 0 if size is None else parse_size(size, "target_file_size")
    if size is not None and not size_bytes:
        raise ConfigurationError(f"{writer}: target_file_size={size!r}: give a size such as '128mb', or leave it out")
    return size_bytes


def _names(value: Any, schema: pa.Schema, what: str) -> tuple[str, ...]:
    names = column_names([value] if isinstance(value, str) else list(value), what) if value else []
    check_columns(names, schema)
    return tuple(names)
