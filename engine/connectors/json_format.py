"""JsonFormat: what the engine knows of JSON lines.

Held by: tests/formats/test_registry.py
"""

# ruff: noqa: PLC0415 - the JobManager loads this module, and no Arrow

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import JsonSource, SourceSplit

if TYPE_CHECKING:
    from engine.connectors.json_reader import JsonReader
    from engine.iomanager.spill_space import SpillSpace


class JsonFormat(SourceFormat[JsonSource]):
    """Splits are cut by size alone."""

    name = "json"
    options: ClassVar = {
        "compression": "gzip, zstd, bz2, xz, lz4 or none, where the ending of a file does not say it",
        "on_bad_row": "what becomes of a malformed line: fail, or skip",
    }
    takes_schema = True

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of objects."""
        from engine.connectors.json_source import json_source

        return json_source(request.paths, request.schema, request.parallelism, **request.options)

    def exact_splits(self, spec: JsonSource, subtask_count: int) -> JsonSource:
        """Return a source with splits of its files as large as they are now."""
        from engine.connectors.json_source import with_splits

        return with_splits(spec, subtask_count)

    def reader(
        self, spec: JsonSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> JsonReader:
        """Return the reader of some splits."""
        from engine.connectors.json_reader import JsonReader

        return JsonReader(spec, splits)
