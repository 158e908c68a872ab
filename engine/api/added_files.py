"""Files that are added to a folder: its readers get them together with existing ones.

    like_what_is_there(spec, schema, writer) -> spec     of a sink with mode="append" or "overwrite_partitions"

Looked at are the names of files, and the columns of one that is there.

    another format    an error: no reader takes both
    another type      an error that names the column and both types, where readers would refuse one of them, or have
                      another type than before: each format says which it takes for one
    other columns     a warning: ``schema_mode="union"`` reads files whose columns differ, and users may be about to
                      write the others anew; of CSV an error, where a header or the number of fields says so
    texts             of CSV, and of JSON where dates are: what the texts are is seen when they are written; one that is
                      not of the type that is there fails the job, and nothing is added (``SinkSpec.text_types_ipc``)

``schema_mode="union"`` of the sink takes other columns, and types as far as that mode of the readers takes them; texts
may be anything then.

Held by: tests/integration/test_appended_types.py
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import pyarrow as pa

from engine.errors import ConfigurationError, DreyWarning, EngineError, SchemaError
from engine.files.compression import heads, plain_ending
from engine.files.paths import is_hidden
from engine.user_warnings import warn_user

if TYPE_CHECKING:
    from engine.graph.source_spec import SinkSpec

#: bytes of a file in which a header is looked for
_HEADER_BYTES: Final = 64 << 10
_SHOWN_MAX: Final = 100
#: limit of file names that are compared
_NAMES_MAX: Final = 10_000
_FORMATS: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".arrow": "ipc",
    ".arrows": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".avro": "avro",
}


class _There(NamedTuple):
    """A file that is there, and what its columns are: as a reader has them, without those of folders."""

    file: Path
    schema: pa.Schema


def like_what_is_there(spec: SinkSpec, schema: pa.Schema, writer: str, *, warns: bool = True) -> SinkSpec:
    """Return a sink that adds files to what is there; ``warns``: tells of other columns.

    Raises: ConfigurationError: files of another format, CSV of which one has a header and the other has none.
        SchemaError: rows of other types.
    """
    what = f"{writer}({spec.path!r}): mode={spec.mode!r}"
    spec = msgspec.structs.replace(spec, text_types_ipc=b"")
    own_format = spec.format.partition("_")[0]
    _check_formats(spec, own_format, what)
    own = pa.schema([field for field in schema if field.name not in spec.partition_by])
    if own_format == "csv":
        _check_header(spec, own, what)
    there = _there(spec, own_format)
    if there is None or not there.schema.names:
        return spec
    what = f"{what}: what is there ({there.file})"
    if own_format == "csv":
        _check_fields(there.schema, own, what)
    elif spec.schema_mode == "strict" and own_format != "json" and warns:
        _warn_of_columns(there.schema, own, what)
    return _with_types(spec, own_format, there.schema, own, what)


def _check_formats(spec: SinkSpec, own_format: str, what: str) -> None:
    for count, file in enumerate(_files_below(Path(spec.path))):
        other = _FORMATS.get(plain_ending(file.name), own_format)
        if other != own_format:
            raise ConfigurationError(
                f"{what}: there is {file}, and files of {other} and of {own_format} are not read together; write"
                f" {other}, or take a new folder"
            )
        if count == _NAMES_MAX:
            return


def _there(spec: SinkSpec, own_format: str) -> _There | None:
    """Return a file that exists and has columns; None for none, or for one that its readers will warn of."""
    read = _READERS.get(own_format)
    endings = [ending for ending, each in _FORMATS.items() if each == own_format]
    for file in _files_below(Path(spec.path)):
        if read is None or plain_ending(file.name) not in endings or not file.stat().st_size:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DreyWarning)
                return _There(file, read(spec, str(file)))
        except (OSError, pa.ArrowException, EngineError):
            return None
    return None


def _read_parquet(_spec: SinkSpec, file: str) -> pa.Schema:
    import pyarrow.parquet as pq  # noqa: PLC0415 - start-up time

    from engine.parquet.source import plain_file_schema  # noqa: PLC0415

    return plain_file_schema(pq.read_schema(file))


def _read_blocks(spec: SinkSpec, file: str) -> pa.Schema:
    from engine.connectors.block_source import block_source  # noqa: PLC0415 - start-up time

    return block_source(spec.format.partition("_")[0], file)[2]


def _read_csv(spec: SinkSpec, file: str) -> pa.Schema:
    from engine.csv.options import CsvOptions  # noqa: PLC0415 - start-up time
    from engine.csv.source import csv_source  # noqa: PLC0415

    return csv_source(file, options=CsvOptions(header=spec.header, delimiter=spec.delimiter))[2]


def _read_json(_spec: SinkSpec, file: str) -> pa.Schema:
    from engine.connectors.json_source import json_source  # noqa: PLC0415 - start-up time

    return json_source(file)[2]


#: functions that read the columns of a file, by format
_READERS: Final[Mapping[str, Callable[[SinkSpec, str], pa.Schema]]] = {
    "parquet": _read_parquet,
    "ipc": _read_blocks,
    "orc": _read_blocks,
    "csv": _read_csv,
    "json": _read_json,
}


def _check_header(spec: SinkSpec, own: pa.Schema, what: str) -> None:
    file = next((file for file in _files_below(Path(spec.path)) if ".csv" in file.suffixes), None)
    if file is None:
        return
    try:
        head = heads([str(file)], spec.compression, _HEADER_BYTES, 1)[0].decode("utf-8-sig", errors="replace")
    except (OSError, EngineError):
        return  # readers of the file are told what is wrong
    first_line = head.partition("\n")[0].strip("\r")
    if not first_line:
        return
    there = next(csv.reader([first_line], delimiter=spec.delimiter))
    if (sorted(there) == sorted(own.names)) == spec.header:
        return
    what = f"{what.replace(': mode', f': header={spec.header}, mode', 1)}: what is there ({file}) begins with"
    if spec.header:
        shown = spec.delimiter.join(there)
        shown = shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "..."
        raise ConfigurationError(f"{what} {shown}, not with the header; leave header=True out, or take a new folder")
    raise ConfigurationError(f"{what} a header; pass header=True, or take a new folder")


def _check_fields(there: pa.Schema, own: pa.Schema, what: str) -> None:
    """Raise SchemaError for rows with more or fewer fields than the file that is there."""
    if len(there) != len(own):
        raise SchemaError(f"{what} has {len(there)} columns, these rows have {len(own)}: {', '.join(own.names)}")


def _warn_of_columns(there: pa.Schema, own: pa.Schema, what: str) -> None:
    """Warn the program's author where appended rows have other columns than the existing files."""
    differing = sorted(set(there.names) ^ set(own.names))
    if differing:
        warn_user(
            f"{what} has other columns: {', '.join(differing)}; select those that are there, or pass"
            " schema_mode='union' here, and to its reader"
        )


def _with_types(spec: SinkSpec, own_format: str, there: pa.Schema, own: pa.Schema, what: str) -> SinkSpec:
    """Return the sink with the types that its texts must be of; SchemaError for a type that is another one."""
    texts: list[pa.Field] = []
    by_place = own_format == "csv" and not spec.header
    stored = _stored(spec, own_format, own)
    for index, field in enumerate(stored):
        place = index if by_place else there.get_field_index(field.name)
        if place < 0:
            continue
        known = there.field(place).type
        fit = _FITS[own_format](known, field.type, spec.schema_mode)
        if fit is None:
            written = own.field(index).type
            raise SchemaError(
                f"{what} has {own.names[index]!r} as {known}, these rows as {written}: cast it, or take a new folder"
                + _union_advice(own_format, known, field.type, spec.schema_mode)
            )
        if not fit:
            texts.append(pa.field(own.names[index], known))
    return msgspec.structs.replace(spec, text_types_ipc=pa.schema(texts).serialize().to_pybytes()) if texts else spec


def _union_advice(own_format: str, known: pa.DataType, own: pa.DataType, schema_mode: str) -> str:
    if schema_mode == "union" or _FITS[own_format](known, own, "union") is None:
        return ""
    return "; schema_mode='union' adds it as it is, for who reads with that mode"


def _stored(spec: SinkSpec, own_format: str, own: pa.Schema) -> pa.Schema:
    """Return the types that rows have when they come back from a file of their own."""
    if own_format == "parquet":
        from engine.parquet.source import stored_schema  # noqa: PLC0415 - start-up time

        return stored_schema(own, "write_parquet")
    if own_format == "orc":
        from engine.connectors.orc_writer import stored_orc_schema  # noqa: PLC0415 - start-up time

        return stored_orc_schema(own, spec.compression)
    from engine.records.plain_types import plain_schema  # noqa: PLC0415 - start-up time

    return plain_schema(own)


def _fits_parquet(known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
    from engine.parquet.source import united, widened  # noqa: PLC0415 - start-up time

    return None if (widened if schema_mode == "strict" else united)(known, own) is None else True


def _fits_blocks(known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
    from engine.parquet.source import united  # noqa: PLC0415 - start-up time

    return True if known == own or (schema_mode == "union" and united(known, own) is not None) else None


def _kind(data_type: pa.DataType) -> str:
    """Return the form that texts of a type have."""
    types = pa.types
    if types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type):
        return "number"
    if types.is_date(data_type) or types.is_timestamp(data_type):
        return "moment"
    for kind in ("boolean", "time", "duration", "null"):
        if getattr(types, f"is_{kind}")(data_type):
            return kind
    return "nested" if types.is_nested(data_type) else "text"


def _fits_csv(known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
    """Return whether texts of a type are read together with those that are there; False: that is seen by each text."""
    kinds = _kind(known), _kind(own)
    if schema_mode == "union" or kinds[0] in (kinds[1], "text") or "null" in kinds:
        return True  # texts take any
    if kinds[1] == "duration":
        return True if kinds[0] == "number" else None
    return False if kinds[1] == "text" else None


def _fits_json(known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
    """Return whether values of a type are read together with those that are there; False: that is seen by each."""
    kinds = [_json_kind(known), _json_kind(own)]
    if kinds[0] != kinds[1] and "null" not in kinds:
        return None
    if kinds[0] == "nested":
        return _fits_nested(known, own, schema_mode)
    is_text = kinds[0] == "text" and _kind(own) == "text" and _kind(known) == "moment"
    return not (is_text and schema_mode == "strict")


def _json_kind(data_type: pa.DataType) -> str:
    """Return the kind of JSON value that a type is written as."""
    kind = "number" if pa.types.is_duration(data_type) else _kind(data_type)
    is_quoted = kind in ("moment", "time") or pa.types.is_decimal(data_type)
    return "text" if is_quoted else kind


def _fits_nested(known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
    """Return whether lists are beside lists and objects beside objects, of what fits; members may be others."""
    are_lists = [not (pa.types.is_struct(each) or pa.types.is_map(each)) for each in (known, own)]
    if are_lists[0] != are_lists[1]:
        return None
    if are_lists[0]:
        within = [(known.value_type, own.value_type)]
    elif pa.types.is_struct(known) and pa.types.is_struct(own):
        names = [each.name for each in known if own.get_field_index(each.name) >= 0]
        within = [(known.field(name).type, own.field(name).type) for name in names]
    else:
        within = []
    return None if any(_fits_json(one, other, schema_mode) is None for one, other in within) else True


#: checks by format whether rows of a type can be read beside existing ones; None: they cannot
_FITS: Final[Mapping[str, Callable[[pa.DataType, pa.DataType, str], bool | None]]] = {
    "parquet": _fits_parquet,
    "ipc": _fits_blocks,
    "orc": _fits_blocks,
    "csv": _fits_csv,
    "json": _fits_json,
}


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield files that readers see, in no order; nothing where there is no folder."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (Path(place, name) for name in names if not is_hidden(name))
