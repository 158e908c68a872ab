"""ArrowFormat, ArrowSink, HandedSink: Arrow data of the client's process, and rows that it takes when a job has ended.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from engine.commit.output_target import OutputTarget
from engine.commit.targets import target_named
from engine.files.file_stamps import file_stamps
from engine.formats.sink_format import SinkFormat, SinkWriter
from engine.formats.source_format import Origin, SourceFormat
from engine.graph.source_spec import ArrowSource, SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.connectors.arrow_writer import ArrowWriter
    from engine.connectors.handed_writer import HandedWriter

#: bytes of all columns that are read for a sample
_SAMPLE_BYTES: Final = 32 << 20


class ArrowFormat(SourceFormat[ArrowSource]):
    """Batches that travel in the plan, or lie in files of the client."""

    name = "arrow"
    is_columnar = True
    reader_place = ("engine.connectors.arrow_reader", "ArrowReader")

    def origin(self, spec: ArrowSource) -> Origin:
        """Return the plan, or the client's files where there are any."""
        if spec.inline is not None:
            return Origin.PLAN
        return Origin.CLIENT if spec.paths else Origin.FILES

    def stamps(self, spec: ArrowSource) -> Hashable | None:
        """Return the versions of its files; what travels in the plan is part of it."""
        return () if spec.inline is not None else file_stamps(spec.paths)

    def sample_rows(self, spec: ArrowSource, columns: Sequence[str]) -> pa.Table | None:
        """Return rows of batches from everywhere."""
        from engine.parquet.key_sample import spread_splits
        from engine.statistics.column_statistics import SpreadSample

        splits = spread_splits(spec.splits)
        while len(splits) > 1 and sum(split.size_bytes for split in splits) > _SAMPLE_BYTES:
            splits = splits[::2]
        sample = SpreadSample()
        schema = None
        for batch in self.reader(msgspec.structs.replace(spec, columns=tuple(columns)), splits):
            schema = batch.schema
            sample.add(batch)
        return None if schema is None or sample.widths else sample.table(schema)


class ArrowSink(SinkFormat):
    """Arrow files that the client maps."""

    name = "arrow"
    is_passing = True
    is_of_client = True

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> ArrowWriter:
        """Return the writer of a file."""
        from engine.connectors.arrow_writer import ArrowWriter

        return ArrowWriter(schema, path)


class HandedSink(SinkFormat):
    """Rows that a client in the same process takes."""

    name = "handed"
    extension = "arrow"
    is_passing = True
    is_of_client = True

    def target(self, spec: SinkSpec) -> OutputTarget:
        """Return the entry of results in memory."""
        return target_named("handed")

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> HandedWriter:
        """Return the writer of an attempt."""
        from engine.connectors.handed_writer import HandedWriter

        return HandedWriter(schema, path)
