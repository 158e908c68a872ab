"""The plan of a write: the table that is there or is to be made, and how rows become its files.

    plan = write_plan(WriteRequest(...), schema of the rows)
    plan.options     WriteOptions
    plan.columns     columns of the files: name, type, and whether rows have them
    plan.hidden      partition columns to be computed: name, source, transform, width
    plan.sort_by     columns in whose order the rows of a partition are
    rewrite_plan(name, catalog, metadata, stores)     of rows that take the place of others

    partition_by     "day(ts)", "bucket(16, id)", "truncate(10, name)", "year(d)", "month(d)", "hour(ts)", "city"

A table that is there says its partitions; ``partition_by`` must be those then, or is left out. Its sort order holds
where ``sort_by`` is left out. Columns are matched by name, and widened; optional ones that rows lack are null.

Held by: tests/iceberg_tables/test_write_iceberg.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from engine.errors import ConfigurationError, NotYetSupportedError, PlanError, SchemaError
from engine.expressions.common_type import common_type
from engine.files.store_access import StoreAccess
from engine.iceberg_tables.arrow_types import FIELD_ID, to_arrow
from engine.iceberg_tables.catalog_place import described
from engine.iceberg_tables.iceberg_types import iceberg_schema
from engine.iceberg_tables.planned_files import data_path
from engine.iceberg_tables.table_properties import (
    check_properties,
    check_same,
    codec_of,
    measured_columns,
    target_bytes,
)
from engine.iceberg_tables.tables import check_name, open_table, placed_errors
from engine.iceberg_tables.write_options import WriteOptions
from engine.storage.file_systems import LOCAL, file_system_of

_CALL: Final = "write_iceberg"
_MODES: Final = ("error", "overwrite", "append", "overwrite_partitions")
_TERM: Final = re.compile(r"\s*([A-Za-z]+?)s?\s*\(\s*(?:(\d+)\s*,\s*)?(.+?)\s*\)\s*\Z")
_TRANSFORMS: Final = ("bucket", "truncate", "year", "month", "day", "hour", "identity", "void")
_SUFFIXES: Final = {"truncate": "trunc", "void": "null"}


class WriteRequest(NamedTuple):
    """The arguments of a call that writes."""

    table: str
    catalog: Any
    mode: str
    partition_by: Sequence[str] | None
    sort_by: Sequence[str] | None
    properties: Mapping[str, str]
    stores: StoreAccess


class Hidden(NamedTuple):
    """A column with the values of a partition."""

    name: str
    source: str
    transform: str
    width: int


class WritePlan(NamedTuple):
    """See the module's text."""

    options: WriteOptions
    columns: pa.Schema
    hidden: tuple[Hidden, ...]
    sort_by: tuple[str, ...]
    target_file_bytes: int
    #: compression of files, and its level
    codec: tuple[str, int | None]


def write_plan(request: WriteRequest, schema: pa.Schema) -> WritePlan:
    """Return the plan of a write. Raises: PlanError, SchemaError, ConfigurationError, NotYetSupportedError."""
    if request.mode not in _MODES:
        raise ConfigurationError(f"{_CALL}: mode={request.mode!r}: choose one of {', '.join(_MODES)}")
    check_name(request.table, _CALL)
    check_properties(request.properties, f"{_CALL}({request.table!r})")
    place, catalog = described(request.catalog, request.stores)
    with placed_errors(_CALL, request.table):
        is_there = catalog.table_exists(request.table)
        if is_there and request.mode == "error":
            raise PlanError(f"{_CALL}({request.table!r}): the table is there; pass mode='append' or 'overwrite'")
        metadata = _known_metadata(catalog, request) if is_there else _new_metadata(catalog, request, schema)
        open_table(metadata, request.stores)
        return _plan(request, schema, metadata, place, is_there=is_there)


def rewrite_plan(name: str, catalog: Any, metadata: Any, stores: StoreAccess) -> WritePlan:
    """Return the plan of rows that are written in a table's own form, with what it sorts by."""
    place, _ = described(catalog, stores)
    request = WriteRequest(name, catalog, "rewrite", None, None, {}, stores)
    return _plan(request, to_arrow(metadata.schema(), stores.call), metadata, place, is_there=True)


def _plan(request: WriteRequest, rows: pa.Schema, metadata: Any, place: Any, *, is_there: bool) -> WritePlan:
    if metadata.format_version > 3:
        raise NotYetSupportedError(
            f"{_CALL}({request.table!r}): a table of version {metadata.format_version}, written by pyiceberg,"
        )
    location = metadata.location.rstrip("/")
    if file_system_of(data_path(location)) is LOCAL and "://" in data_path(location):
        raise NotYetSupportedError(f"{_CALL}({request.table!r}) to {location}: a place of this kind")
    schema, spec, order = metadata.schema(), metadata.spec(), metadata.sort_order()
    if is_there and request.partition_by is not None and _terms(request.partition_by) != _spec_terms(spec, schema):
        shown = ", ".join(_shown(term) for term in _spec_terms(spec, schema)) or "nothing"
        raise ConfigurationError(
            f"{_CALL}({request.table!r}): partition_by: the table is partitioned by {shown}; leave it out, or change"
            " the table's specification"
        )
    if request.mode == "overwrite_partitions" and spec.is_unpartitioned():
        raise ConfigurationError(f"{_CALL}: mode='overwrite_partitions' needs a table with partitions")
    arrow_schema = to_arrow(schema, _CALL)
    required = tuple(field.name for field in schema.fields if field.required)
    _check_rows(request.table, rows, arrow_schema, required)
    _check_defaults(request, rows, schema)
    terms = _spec_terms(spec, schema)
    hidden = tuple(
        Hidden(f"__partition_{index}", source, transform, width)
        for index, (transform, width, source) in enumerate(terms)
    )
    sort_by, is_table_order = _sort_columns(request, order, schema, arrow_schema)
    options = WriteOptions(
        catalog=place,
        table=request.table,
        location=location,
        schema_ipc=_file_schema(arrow_schema, schema).serialize().to_pybytes(),
        schema_json=schema.model_dump_json(),
        partition_json=spec.model_dump_json(),
        sort_json=(order if is_table_order else _unsorted()).model_dump_json(),
        properties={**metadata.properties, "format-version": str(metadata.format_version)},
        is_new=request.mode == "error",
        required=required,
        uuids=tuple(field.name for field in schema.fields if str(field.field_type) == "uuid"),
    )
    text = f"{_CALL}({request.table!r})"
    measured_columns(metadata.properties, text)
    size, codec = target_bytes(metadata.properties, text), codec_of(metadata.properties, text)
    columns = pa.schema([pa.field(each.name, each.type) for each in arrow_schema])
    return WritePlan(options, columns, hidden, sort_by, size, codec)


def _known_metadata(catalog: Any, request: WriteRequest) -> Any:
    from engine.iceberg_tables.third_version import check_known

    table = catalog.load_table(request.table)
    check_known(table, _CALL)
    check_same(request.properties, table.metadata, f"{_CALL}({request.table!r})")
    return table.metadata


def _unsorted() -> Any:
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

    return UNSORTED_SORT_ORDER


def _file_schema(arrow_schema: pa.Schema, schema: Any) -> pa.Schema:
    """Return the schema of files, in which UUIDs are such."""
    uuids = {field.name for field in schema.fields if str(field.field_type) == "uuid"}
    fields = [field.with_type(pa.uuid()) if field.name in uuids else field for field in arrow_schema]
    return pa.schema([field.with_metadata({FIELD_ID: field.metadata[FIELD_ID]}) for field in fields])


def _new_metadata(catalog: Any, request: WriteRequest, rows: pa.Schema) -> Any:
    """Return the metadata of a table that is to be made."""
    from pyiceberg.catalog import Catalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import assign_fresh_schema_ids
    from pyiceberg.table.sorting import SortField, SortOrder
    from pyiceberg.transforms import IdentityTransform, parse_transform

    namespace = Catalog.namespace_from(request.table)
    if not catalog.namespace_exists(namespace):
        name, folder = ".".join(namespace), getattr(catalog, "folder", "")
        advice = f"catalog.create_namespace({name!r})"
        if folder:
            advice = f"it is the folder {'/'.join((folder, *namespace))!r}"
        raise PlanError(f"{_CALL}({request.table!r}): there is no namespace {name!r}; make it: {advice}")
    schema = assign_fresh_schema_ids(iceberg_schema(rows, _CALL))
    ids = {field.name: field.field_id for field in schema.fields}
    fields: list[Any] = []
    for index, (transform, width, source) in enumerate(_terms(request.partition_by or ())):
        if source not in ids:
            raise SchemaError(f"{_CALL}: partition_by: there is no column {source!r}; there are {', '.join(ids)}")
        found = parse_transform(f"{transform}[{width}]" if width else transform)
        kind = schema.find_field(source).field_type
        if not found.can_transform(kind):
            raise SchemaError(
                f"{_CALL}: partition_by: {transform} has no values for column {source!r}, which is {kind}"
            )
        name = source if transform == "identity" else f"{source}_{_SUFFIXES.get(transform, transform)}"
        if name in {each.name for each in fields} or (name != source and name in ids):
            raise ConfigurationError(
                f"{_CALL}: partition_by={list(request.partition_by or ())!r}: two terms, or a term and a column, have"
                f" the name {name!r}; leave one out"
            )
        fields.append(PartitionField(ids[source], 1000 + index, found, name))
    for name in request.sort_by or ():
        if name not in ids:
            raise SchemaError(f"{_CALL}: sort_by: there is no column {name!r}; there are {', '.join(ids)}")
    order = SortOrder(*[SortField(ids[name], IdentityTransform()) for name in request.sort_by or ()])
    from engine.iceberg_tables.third_version import creating

    transaction = creating(
        catalog.create_table_transaction(
            request.table, schema, None, PartitionSpec(*fields), order, dict(request.properties)
        )
    )
    return transaction.table_metadata


def _terms(partition_by: Sequence[str]) -> list[tuple[str, int, str]]:
    """Return transform, width and column of each term."""
    return [_term(each) for each in ([partition_by] if isinstance(partition_by, str) else partition_by)]


def _term(text: str) -> tuple[str, int, str]:
    found = _TERM.match(text)
    if found is None:
        return "identity", 0, text
    transform, width, source = found[1].lower(), int(found[2] or 0), found[3]
    if transform not in _TRANSFORMS or (width > 0) is not (transform in ("bucket", "truncate")):
        raise ConfigurationError(
            f"{_CALL}: partition_by={text!r}: write a column, or one of year(c), month(c), day(c), hour(c), bucket(n,"
            " c), truncate(n, c), identity(c) and void(c)"
        )
    return transform, width, source


def _shown(term: tuple[str, int, str]) -> str:
    transform, width, source = term
    return source if transform == "identity" else f"{transform}({f'{width}, ' if width else ''}{source})"


def _spec_terms(spec: Any, schema: Any) -> list[tuple[str, int, str]]:
    found = []
    for field in spec.fields:
        name, _, width = str(field.transform).partition("[")
        source = schema.find_column_name(field.source_id)
        if "." in source and source not in {each.name for each in schema.fields}:
            raise NotYetSupportedError(f"{_CALL}: partitions by {source!r}, a field within a column,")
        if name not in _TRANSFORMS:
            raise NotYetSupportedError(f"{_CALL}: the partition transform {field.transform}")
        found.append((name, int(width.rstrip("]") or 0), source))
    return found


def _sort_columns(request: WriteRequest, order: Any, schema: Any, columns: pa.Schema) -> tuple[tuple[str, ...], bool]:
    """Return the columns by which rows are sorted, and whether that is the table's order."""
    known: list[str] = []
    for field in order.fields:
        is_plain = str(field.transform) == "identity" and field.direction.value == "asc"
        name = schema.find_column_name(field.source_id)
        if not is_plain or field.null_order.value != "nulls-first" or name not in columns.names:
            known = []
            break
        known.append(name)
    if request.sort_by is None:
        return tuple(known), bool(known)
    asked = (request.sort_by,) if isinstance(request.sort_by, str) else tuple(request.sort_by)
    missing = [name for name in asked if name not in columns.names]
    if missing:
        raise SchemaError(f"{_CALL}: sort_by: there is no column {missing[0]!r}; there are {', '.join(columns.names)}")
    return asked, bool(known) and asked == tuple(known)


def _check_rows(table: str, rows: pa.Schema, columns: pa.Schema, required: Sequence[str]) -> None:
    """Raise SchemaError for rows that are not those of a table."""
    extra = [name for name in rows.names if name not in columns.names]
    if extra:
        raise SchemaError(
            f"{_CALL}({table!r}): the table has no column {', '.join(map(repr, extra))}; select others, or add it to"
            " the table: table.update_schema()"
        )
    missing = [name for name in required if name not in rows.names]
    if missing:
        raise SchemaError(
            f"{_CALL}({table!r}): the rows have no column {', '.join(map(repr, missing))}, which is required"
        )
    for field in rows:
        wanted = columns.field(field.name).type
        if not _fits(field.type, wanted):
            raise SchemaError(
                f"{_CALL}({table!r}): column {field.name!r} is {field.type}, and {wanted} in the table; cast it:"
                f" .with_columns({field.name}=col({field.name!r}).cast(...))"
            )


def _check_defaults(request: WriteRequest, rows: pa.Schema, schema: Any) -> None:
    """Raise SchemaError if the rows lack a column that has a write default in the table."""
    for field in schema.fields:
        if getattr(field, "write_default", None) is not None and field.name not in rows.names:
            raise SchemaError(
                f"{_CALL}({request.table!r}): the rows have no column {field.name!r}, which is {field.write_default!r}"
                f" by default; add it: .with_columns({field.name}=lit(...))"
            )


def _fits(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether all values of a type are values of the table's."""
    if own == wanted:
        return True
    if pa.types.is_timestamp(own) and pa.types.is_timestamp(wanted):
        return (own.tz is None) is (wanted.tz is None) and (own.unit != "ns" or wanted.unit == "ns")
    if pa.types.is_date(own) or pa.types.is_time(own):
        return own.id in (pa.date64().id, pa.time32("s").id) and pa.types.is_date(own) is pa.types.is_date(wanted)
    if pa.types.is_nested(own) or pa.types.is_nested(wanted):
        return False
    is_text = pa.types.is_large_string(own) and pa.types.is_string(wanted)
    is_binary = (pa.types.is_large_binary(own) or pa.types.is_fixed_size_binary(own)) and pa.types.is_binary(wanted)
    is_number = pa.types.is_integer(own) or pa.types.is_floating(own) or pa.types.is_decimal(own)
    return bool(is_text or is_binary) or (is_number and common_type(own, wanted) == wanted)
