"""The registry of formats: one entry for each format that rows are read from.

    format_of(CsvSource(...)) -> the CsvFormat        by the tag of the source's class
    format_named("csv")       -> the CsvFormat
    add_format(entry)                                 one more, in this process
    open_source(spec, splits, new_space) -> its reader of these splits

Planning and tasks ask the entry; none knows the formats by itself. An entry is loaded when a plan has a source of it.
A format that is not the engine's own is that of an installed package, which names its entry under the entry point group
``drey.formats``, so that all processes of a cluster find it; or it is added by the program, for jobs that run in its
process. Its sources are ``FormatSource`` with its name.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from engine.errors import PlanError
from engine.formats.source_format import SourceFormat
from engine.graph.source_spec import FormatSource, SourceSpec, SourceSplit

if TYPE_CHECKING:
    from engine.formats.source_reader import SourceReader
    from engine.iomanager.spill_space import SpillSpace

#: entry point group of formats that other packages bring along
GROUP: Final = "drey.formats"
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
    "avro": ("engine.connectors.block_format", "AvroFormat"),
    "records": ("engine.connectors.records_format", "RecordsFormat"),
    "arrow": ("engine.connectors.arrow_format", "ArrowFormat"),
    "paths": ("engine.connectors.path_format", "PathFormat"),
}


def format_of(spec: SourceSpec) -> SourceFormat[Any]:
    """Return the entry of a source."""
    return format_named(spec.format if isinstance(spec, FormatSource) else str(spec.__struct_config__.tag))


@cache
def format_named(name: str) -> SourceFormat[Any]:
    """Return the entry of a format; PlanError where this process knows none."""
    if name in _ADDED:
        return _ADDED[name]
    if name in PLACES:
        module, entry_name = PLACES[name]
        found: type[SourceFormat[Any]] = getattr(importlib.import_module(module), entry_name)
        return found()
    from importlib.metadata import entry_points  # noqa: PLC0415 - start-up time

    for point in entry_points(group=GROUP, name=name):
        installed: type[SourceFormat[Any]] = point.load()
        return installed()
    known = ", ".join(sorted({*PLACES, *_ADDED} - {"paths"}))
    raise PlanError(
        f"there is no format {name!r}: this process knows {known}; a package that has it must be installed wherever the"
        " job is planned and runs"
    )


def add_format(entry: SourceFormat[Any]) -> None:
    """Make one more format known to this process, in place of one of the same name."""
    _ADDED[entry.name] = entry
    format_named.cache_clear()


def open_source(
    spec: SourceSpec, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
) -> SourceReader:
    """Return the reader of some splits of a source."""
    return format_of(spec).reader(spec, splits, new_space)
