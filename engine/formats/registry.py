"""The registry of formats: one entry for each format that rows are read from.

    format_of(CsvSource(...)) -> the CsvFormat        by the tag of the source's class
    open_source(spec, splits, new_space) -> its reader of these splits

Planning and tasks ask the entry; none knows the formats by itself. An entry is loaded when a plan has a source of it.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from engine.formats.source_format import SourceFormat
from engine.graph.source_spec import BlockSource, SourceSpec, SourceSplit

if TYPE_CHECKING:
    from engine.formats.source_reader import SourceReader
    from engine.iomanager.spill_space import SpillSpace

#: format: module, class
PLACES: Final = {
    "csv": ("engine.csv.csv_format", "CsvFormat"),
    "parquet": ("engine.parquet.parquet_format", "ParquetFormat"),
    "text": ("engine.connectors.text_format", "TextFormat"),
    "json": ("engine.connectors.json_format", "JsonFormat"),
    "ipc": ("engine.connectors.block_format", "IpcFormat"),
    "orc": ("engine.connectors.block_format", "OrcFormat"),
    "avro": ("engine.connectors.block_format", "AvroFormat"),
    "arrow": ("engine.connectors.arrow_format", "ArrowFormat"),
    "paths": ("engine.connectors.path_format", "PathFormat"),
}


def format_of(spec: SourceSpec) -> SourceFormat[Any]:
    """Return the entry of a source."""
    return format_named(spec.format if isinstance(spec, BlockSource) else str(spec.__struct_config__.tag))


@cache
def format_named(name: str) -> SourceFormat[Any]:
    """Return the entry of a format."""
    module, entry_name = PLACES[name]
    entry: SourceFormat[Any] = getattr(importlib.import_module(module), entry_name)()
    return entry


def open_source(
    spec: SourceSpec, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
) -> SourceReader:
    """Return the reader of some splits of a source."""
    return format_of(spec).reader(spec, splits, new_space)
