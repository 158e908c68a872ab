"""IpcFormat, OrcFormat, AvroFormat: what the engine knows of files in blocks.

Held by: tests/formats/test_registry.py
"""

# ruff: noqa: PLC0415 - the JobManager loads this module, and no Arrow

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import FormatSource, SourceSplit

if TYPE_CHECKING:
    from engine.connectors.block_reader import BlockReader
    from engine.iomanager.spill_space import SpillSpace


class _BlockFormat(SourceFormat[FormatSource]):
    """Splits are runs of blocks."""

    takes_union = True

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of blocks."""
        from engine.connectors.block_source import block_source

        return block_source(self.name, request.paths, request.found_schemas)

    def reader(
        self, spec: FormatSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> BlockReader:
        """Return the reader of some blocks."""
        from engine.connectors.block_reader import BlockReader

        return BlockReader(spec, splits)


class IpcFormat(_BlockFormat):
    """Arrow IPC files and streams."""

    name = "ipc"


class OrcFormat(_BlockFormat):
    """ORC files, whose blocks are stripes."""

    name = "orc"


class AvroFormat(_BlockFormat):
    """Avro files, each read as a whole."""

    name = "avro"
