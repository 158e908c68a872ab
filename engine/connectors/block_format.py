"""Formats of files in blocks: IpcFormat and IpcSink, OrcFormat and OrcSink, AvroFormat.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

import msgspec

from engine.errors import ConfigurationError
from engine.files.file_stamps import file_stamps
from engine.formats.sink_format import SinkFormat, SinkWriter
from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import FormatSource, SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.connectors.arrow_writer import ArrowWriter
    from engine.connectors.orc_writer import OrcWriter

#: codec of ORC files for which the user names none
_ORC_CODEC: Final = "zlib"


class _BlockFormat(SourceFormat[FormatSource]):
    """Splits are runs of blocks."""

    takes_union = True
    reader_place = ("engine.connectors.block_reader", "BlockReader")

    def stamps(self, spec: FormatSource) -> Hashable | None:
        """Return the versions of its files."""
        return file_stamps(spec.paths)

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of blocks."""
        from engine.connectors.block_source import block_source

        return block_source(self.name, request.paths, request.found_schemas)


class IpcFormat(_BlockFormat):
    """Arrow IPC files and streams."""

    name = "ipc"
    endings = (".arrow", ".arrows", ".feather", ".ipc")


class OrcFormat(_BlockFormat):
    """ORC files, whose blocks are stripes."""

    name = "orc"
    endings = (".orc",)


class AvroFormat(_BlockFormat):
    """Avro files, each read as a whole."""

    name = "avro"
    endings = (".avro",)


class _BlockSink(SinkFormat):
    """Files of which readers take other types in a union only."""

    def found_schema(self, spec: SinkSpec, file: str) -> pa.Schema:
        """Return the columns of a file."""
        from engine.connectors.block_source import block_source

        return block_source(spec.format.partition("_")[0], file)[2]

    def fits(self, known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
        """Return whether types are equal, or united by readers."""
        from engine.parquet.source import united

        return True if known == own or (schema_mode == "union" and united(known, own) is not None) else None


class IpcSink(_BlockSink):
    """Arrow IPC files."""

    name = "ipc"
    extension = "arrow"

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink with a codec that columns have within files."""
        if spec.compression not in ("", "none", "lz4", "zstd"):
            raise ConfigurationError(f"write_ipc: compression={spec.compression!r}: choose lz4, zstd or none")
        return spec if spec.compression != "none" else msgspec.structs.replace(spec, compression="")

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> ArrowWriter:
        """Return the writer of a file."""
        from engine.connectors.arrow_writer import ArrowWriter

        return ArrowWriter(schema, path, spec.compression, is_stream=self.name == "ipc_stream")


class IpcStreamSink(IpcSink):
    """Arrow IPC streams."""

    name = "ipc_stream"
    extension = "arrows"


class OrcSink(_BlockSink):
    """ORC files."""

    name = "orc"

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink of columns that ORC has."""
        from engine.connectors.orc_writer import check_orc_sink

        check_orc_sink(schema, spec.compression or _ORC_CODEC)
        return spec

    def stored_schema(self, spec: SinkSpec, schema: pa.Schema) -> pa.Schema:
        """Return the types that ORC gives back."""
        from engine.connectors.orc_writer import stored_orc_schema

        return stored_orc_schema(schema, spec.compression or _ORC_CODEC)

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> OrcWriter:
        """Return the writer of a file."""
        from engine.connectors.orc_writer import OrcWriter

        return OrcWriter(schema, path, spec.compression or _ORC_CODEC)
