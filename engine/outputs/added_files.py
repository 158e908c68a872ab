"""Files that are added to a folder: its readers get them together with existing ones.

    like_what_is_there(spec, schema, writer) -> spec     of a sink with mode="append" or "overwrite_partitions"

Looked at are the names of files, and the columns of one that is there; of a few where columns have no value in it.

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

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import pyarrow as pa

from engine.errors import ConfigurationError, DreyWarning, EngineError, SchemaError
from engine.files.compression import plain_ending
from engine.files.paths import is_hidden
from engine.formats.registry import formats_by_ending, sink_format_of
from engine.formats.sink_format import SinkFormat
from engine.storage.file_systems import file_system_of, size_of
from engine.user_warnings import warn_user

if TYPE_CHECKING:
    from engine.graph.source_spec import SinkSpec

#: limit of file names that are compared
_NAMES_MAX: Final = 10_000
#: limit of files whose columns are looked at
_FILES_MAX: Final = 16


class _There(NamedTuple):
    """A file of the output, and its columns as a reader has them, without those of folders."""

    file: str
    schema: pa.Schema


def like_what_is_there(spec: SinkSpec, schema: pa.Schema, writer: str, *, warns: bool = True) -> SinkSpec:
    """Return a sink that adds files to what is there; ``warns``: tells of other columns.

    Raises: ConfigurationError: files of another format, CSV of which one has a header and the other has none.
        SchemaError: rows of other types.
    """
    what = f"{writer}({spec.path!r}): mode={spec.mode!r}"
    spec = msgspec.structs.replace(spec, text_types_ipc=b"")
    entry, own_format = sink_format_of(spec), spec.format.partition("_")[0]
    own = pa.schema([field for field in schema if field.name not in spec.partition_by])
    formats = formats_by_ending()
    _check_formats(spec, own_format, formats, what)
    endings = [ending for ending, each in formats.items() if each == own_format]
    file = next((file for file in _files_below(spec.path) if plain_ending(_name(file)) in endings), None)
    if file is not None:
        entry.check_added(spec, own, file, what)
    there = _there(spec, entry, endings)
    if there is None or not there.schema.names:
        return spec
    what = f"{what}: what is there ({there.file})"
    differing = entry.check_columns(spec, there.schema, own, what)
    if differing and warns:
        warn_user(differing)
    return _with_types(spec, entry, there.schema, own, what)


def _check_formats(spec: SinkSpec, own_format: str, formats: Mapping[str, str], what: str) -> None:
    for count, file in enumerate(_files_below(spec.path)):
        other = formats.get(plain_ending(_name(file)), own_format)
        if other != own_format:
            raise ConfigurationError(
                f"{what}: there is {file}, and files of {other} and of {own_format} are not read together; write"
                f" {other}, or take a new folder"
            )
        if count == _NAMES_MAX:
            return


def _there(spec: SinkSpec, entry: SinkFormat, endings: Sequence[str]) -> _There | None:
    """Return a file that exists and has columns; None for none, or for one that its readers will warn of.

    Columns without any value in that file, of the type null, have the types of the files that follow.
    """
    there: _There | None = None
    count = 0
    for file in _files_below(spec.path):
        if plain_ending(_name(file)) not in endings or not size_of(file):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DreyWarning)
                found = entry.found_schema(spec, file)
        except (OSError, pa.ArrowException, EngineError):
            return there
        if found is None:
            return there
        there = _There(file, found) if there is None else there._replace(schema=_with_values(there.schema, found))
        count += 1
        if count == _FILES_MAX or pa.null() not in there.schema.types:
            return there
    return there


def _with_values(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return a schema in which columns of the type null have the types of another file."""
    return pa.schema(
        [
            field.with_type(other.field(field.name).type)
            if pa.types.is_null(field.type) and field.name in other.names
            else field
            for field in schema
        ]
    )


def _with_types(spec: SinkSpec, entry: SinkFormat, there: pa.Schema, own: pa.Schema, what: str) -> SinkSpec:
    """Return the sink with the types that its texts must be of; SchemaError for a type that is another one."""
    texts: list[pa.Field] = []
    by_place = entry.is_by_place(spec)
    stored = entry.stored_schema(spec, own)
    for index, field in enumerate(stored):
        place = index if by_place else there.get_field_index(field.name)
        if place < 0:
            continue
        known = there.field(place).type
        fit = entry.fits(known, field.type, spec.schema_mode)
        if fit is None:
            written = own.field(index).type
            raise SchemaError(
                f"{what} has {own.names[index]!r} as {known}, these rows as {written}: cast it, or take a new folder"
                + _union_advice(entry, known, field.type, spec.schema_mode)
            )
        if not fit:
            texts.append(pa.field(own.names[index], known))
    return msgspec.structs.replace(spec, text_types_ipc=pa.schema(texts).serialize().to_pybytes()) if texts else spec


def _union_advice(entry: SinkFormat, known: pa.DataType, own: pa.DataType, schema_mode: str) -> str:
    if schema_mode == "union" or entry.fits(known, own, "union") is None:
        return ""
    return "; schema_mode='union' adds it as it is, for who reads with that mode"


def _files_below(folder: str) -> Iterator[str]:
    """Yield files that readers see, in no order; nothing where there is no folder."""
    for place, folders, names in file_system_of(folder).walk(folder):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (f"{place}/{name}" for name in names if not is_hidden(name))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
