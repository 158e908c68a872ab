"""The registry of formats: an entry for each format that rows are read from, and for each that they are written as.

    format_of(CsvSource(...)) -> the CsvFormat        by the tag of the source's class
    format_named("csv")       -> the CsvFormat         read_by_name("csv")      the same, for env.read
    sink_format_of(SinkSpec("csv", ...)) -> the CsvSink
    add_format(entry)                                 one more that is read, in this process
    open_source(spec, splits, new_space) -> its reader of these splits

Planning and tasks ask the entry; none knows the formats by itself. An entry is loaded when a plan has a source of it.
A format that is not the engine's own is that of an installed package, which names its entry under the entry point group
``drey.formats``, so that all processes of a cluster find it; or it is added by the program, for jobs that run in its
process. Its sources are ``FormatSource`` with its name.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from engine.errors import PlanError
from engine.formats.sink_format import SinkFormat
from engine.formats.source_format import SourceFormat
from engine.graph.source_spec import FormatSource, SinkSpec, SourceSpec, SourceSplit

if TYPE_CHECKING:
    from engine.formats.source_reader import SourceReader
    from engine.iomanager.spill_space import SpillSpace

#: entry point group of formats that other packages bring along
GROUP: Final = "drey.formats"
SINK_GROUP: Final = "drey.sinks"
#: formats that the program added
_ADDED: Final[dict[str, SourceFormat[Any]]] = {}
#: format: module, class
PLACES: Final = {
    "csv": ("engine.csv.csv_format", "CsvFormat"),
    "parquet": ("engine.parquet.parquet_format", "ParquetFormat"),
    "text": ("engine.connectors.text_format", "TextFormat"),
    "json": ("engine.connectors.json_format", "JsonFormat"),
    "ipc": ("engine.connectors.block_format", "IpcFormat"),
    "orc": ("engine.connectors.block_format", "OrcFormat"),
    "excel": ("engine.connectors.excel_format", "ExcelFormat"),
    "avro": ("engine.connectors.block_format", "AvroFormat"),
    "records": ("engine.connectors.records_format", "RecordsFormat"),
    "arrow": ("engine.connectors.arrow_format", "ArrowFormat"),
    "paths": ("engine.connectors.path_format", "PathFormat"),
    "database": ("engine.databases.database_format", "DatabaseFormat"),
    "delta": ("engine.delta_tables.delta_format", "DeltaFormat"),
    "iceberg": ("engine.iceberg_tables.iceberg_format", "IcebergFormat"),
}
#: format of a sink: module, class
SINK_PLACES: Final = {
    "csv": ("engine.csv.csv_format", "CsvSink"),
    "parquet": ("engine.parquet.parquet_format", "ParquetSink"),
    "records": ("engine.connectors.records_format", "RecordsSink"),
    "text": ("engine.connectors.text_format", "TextSink"),
    "json": ("engine.connectors.json_format", "JsonSink"),
    "ipc": ("engine.connectors.block_format", "IpcSink"),
    "ipc_stream": ("engine.connectors.block_format", "IpcStreamSink"),
    "orc": ("engine.connectors.block_format", "OrcSink"),
    "excel": ("engine.connectors.excel_format", "ExcelSink"),
    "arrow": ("engine.connectors.arrow_format", "ArrowSink"),
    "handed": ("engine.connectors.arrow_format", "HandedSink"),
    "stream": ("engine.connectors.passing_format", "StreamSink"),
    "discard": ("engine.connectors.passing_format", "DiscardSink"),
    "database": ("engine.databases.database_sink", "DatabaseSink"),
    "delta": ("engine.delta_tables.delta_sink", "DeltaSink"),
    "iceberg": ("engine.iceberg_tables.iceberg_sink", "IcebergSink"),
}


def format_of(spec: SourceSpec) -> SourceFormat[Any]:
    """Return the entry of a source."""
    return format_named(spec.format if isinstance(spec, FormatSource) else str(spec.__struct_config__.tag))


@cache
def format_named(name: str) -> SourceFormat[Any]:
    """Return the entry of a format that is read; PlanError where this process knows none."""
    found: SourceFormat[Any] = _ADDED.get(name) or _entry(name, PLACES, GROUP)
    return found


def read_by_name(name: str) -> SourceFormat[Any]:
    """Return the entry of a format that ``env.read`` reads; PlanError where this process knows none."""
    entry = format_named(name)
    if not entry.is_read_by_name:
        raise _unknown(name, PLACES)
    return entry


def reading_call(name: str) -> str:
    """Return the call that reads a format, for errors; a format of another package has none of its own."""
    return f"read_{name}" if name in PLACES and name not in _ADDED else f"{name}: read"


def formats_by_ending() -> dict[str, str]:
    """Return the names of formats by the endings of their files, those of installed packages included."""
    from importlib.metadata import entry_points

    installed = {}
    for name in sorted({point.name for point in entry_points(group=GROUP)} - {*PLACES, *_ADDED}):
        with suppress(Exception):  # a package that is broken is told where its format is asked for
            installed.update(dict.fromkeys(format_named(name).endings, name))
    own = {ending: name for name in (*PLACES, *_ADDED) for ending in format_named(name).endings}
    return {**installed, **own}


def sink_format_of(spec: SinkSpec) -> SinkFormat:
    """Return the entry of a sink; PlanError where this process knows none."""
    return _sink_format_named(spec.format)


@cache
def _sink_format_named(name: str) -> SinkFormat:
    found: SinkFormat = _entry(name, SINK_PLACES, SINK_GROUP)
    return found


def _entry(name: str, places: Mapping[str, tuple[str, str]], group: str) -> Any:
    """Return a new entry: one of the engine, or of an installed package."""
    if name in places:
        module, entry_name = places[name]
        return getattr(importlib.import_module(module), entry_name)()
    from importlib.metadata import entry_points

    for point in entry_points(group=group, name=str(name)):
        entry = point.load()()
        _check_entry(entry)
        if entry.name != name:
            raise PlanError(
                f"the package names the format {name!r} in {group}, and {type(entry).__name__} calls itself"
                f" {entry.name!r}: give both one name"
            )
        return entry
    raise _unknown(name, places)


def _unknown(name: object, places: Mapping[str, tuple[str, str]]) -> PlanError:
    if places is PLACES:
        known = [each for each in {*places, *_ADDED} if format_named(each).is_read_by_name]
    else:
        known = [each for each in places if not _sink_format_named(each).is_passing]
    return PlanError(
        f"there is no format {name!r}: this process knows {', '.join(sorted(known))}; a package that has it must be"
        " installed wherever the job is planned and runs"
    )


def _check_entry(entry: Any) -> None:
    """Raise PlanError for an entry that has no name, or options of which it does not say what they mean."""
    kind = type(entry).__name__
    if not isinstance(getattr(entry, "name", None), str) or not entry.name:
        raise PlanError(f"the format {kind} has no name: its class needs one, such as name = {kind.lower()!r}")
    if not isinstance(getattr(entry, "options", {}), Mapping):
        raise PlanError(
            f"the options of the format {kind} are {type(entry.options).__name__}: make them a dict of names and what"
            " each means, such as options = {'times': 'what each number is multiplied by'}"
        )


def add_format(entry: SourceFormat[Any]) -> None:
    """Make one more format known to this process, in place of one of the same name.

    Raises: PlanError: no name, options without their help.
    """
    if not isinstance(entry, SourceFormat):
        raise PlanError(f"add_format({entry!r}): give an object of a class that is derived from SourceFormat")
    _check_entry(entry)
    _ADDED[entry.name] = entry
    format_named.cache_clear()


def open_source(
    spec: SourceSpec, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
) -> SourceReader:
    """Return the reader of some splits of a source."""
    return format_of(spec).reader(spec, splits, new_space)
