"""ParquetFormat, ParquetSink: what the engine knows of Parquet.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from engine.files.file_stamps import file_stamps
from engine.formats.sink_format import SinkFormat, SinkWriter
from engine.formats.source_format import FoundSource, Layout, ReadRequest, SourceFormat
from engine.graph.expression import Expression
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import (
    ColumnStatistics,
    ParquetSource,
    SinkSpec,
    SourceSplit,
    SourceStatistics,
    StoredFile,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.iomanager.spill_space import SpillSpace
    from engine.parquet.reader import ParquetReader
    from engine.parquet.writer import ParquetWriter


class ParquetFormat(SourceFormat[ParquetSource]):
    """Row groups as splits, columns read one by one, statistics in footers."""

    name = "parquet"
    endings: ClassVar[tuple[str, ...]] = (".parquet",)
    takes_union = True
    takes_filters = True
    takes_first = True
    tells_runs = True
    is_columnar = True
    is_prunable = True
    names_paths = True
    modules = ("engine.parquet.reader",)

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of row groups; of very many files that can wait the first one is looked at."""
        from engine.parquet.source import parquet_source
        from engine.parquet.unread_files import FILES_MAX, first_look

        if request.may_wait and len(request.paths) > FILES_MAX:
            return first_look(request.paths)
        return parquet_source(request.paths, found_schemas=request.found_schemas)

    def possible(
        self, source: Source, schema: PlanSchema, predicate: Expression | None, ignored: Collection[str] = ()
    ) -> Source:
        """Return a source with the row groups in which a row may meet a predicate."""
        from engine.parquet.pruning import possible

        return possible(source, schema, predicate, ignored)

    def bounds(self, spec: ParquetSource, schema: pa.Schema, names: Sequence[str]) -> pa.Table | None:
        """Return bounds of the row groups, from their footers."""
        from engine.parquet.pruning import bounds

        return bounds(spec, schema, names)

    def stored(self, spec: ParquetSource) -> tuple[StoredFile, ...]:
        """Return the files in a store, as they were when their footers were read."""
        return spec.stored

    def stamps(self, spec: ParquetSource) -> Hashable | None:
        """Return the versions of its files; those of a store are part of the source."""
        return () if len(spec.stored) == len(spec.paths) else file_stamps(spec.paths)

    def with_sample(
        self,
        source: Source,
        schema: PlanSchema,
        names: Collection[str],
        predicates: Sequence[Expression],
        carried: Collection[str],
    ) -> SourceStatistics:
        """Return statistics with those of a sample of columns."""
        from engine.parquet.sample import with_sample

        assert isinstance(source.spec, ParquetSource)
        return with_sample(source.spec, source.statistics, schema, names, predicates, carried)

    def key_statistics(self, spec: ParquetSource, column: str, row_count: float) -> ColumnStatistics | None:
        """Return statistics of a key, from whole column chunks."""
        from engine.parquet.key_sample import key_statistics

        return key_statistics(spec, column, row_count)

    def sample_rows(self, spec: ParquetSource, columns: Sequence[str]) -> pa.Table | None:
        """Return rows of column chunks from everywhere."""
        from engine.parquet.key_sample import spread_rows

        return spread_rows(spec, columns)

    def layout(self, spec: ParquetSource) -> Layout:
        """Return the order of rows that a manifest proves, as far as its columns are read."""
        order = itertools.takewhile(lambda key: key.column in spec.columns, spec.sorted_by)
        return Layout(tuple(order), spec.grouped_by if set(spec.grouped_by) <= set(spec.columns) else ())

    def details(self, spec: ParquetSource) -> list[str]:
        """Return the order of the rows, the filter, and how many row groups need not be read for it."""
        lines = []
        if spec.sorted_by:
            keys = ", ".join(key.column for key in spec.sorted_by)
            lines.append(f"rows lie in order of {keys}: manifest, row groups")
        lines += super().details(spec)
        if (
            spec.predicate is not None
            and spec.pruned_groups
            and all(split.end - split.start == 1 for split in spec.splits)
        ):
            groups = spec.pruned_groups + len(spec.splits)
            lines.append(
                f"reads {len(spec.splits)} of {groups} row groups: by their statistics the others have no such row"
            )
        return lines

    def shares_splits(self, spec: ParquetSource) -> bool:
        """Return whether no order is promised of the rows."""
        return not spec.sorted_by

    def is_read_by_threads(self, spec: ParquetSource) -> bool:
        """Return whether it is on this machine, in few files: what is in stores, and small files, are read ahead."""
        from engine.parquet.small_files import has_many_files

        return not spec.stored and not has_many_files(spec.splits)

    def reader(
        self,
        spec: ParquetSource,
        splits: Sequence[SourceSplit],
        new_space: Callable[[], SpillSpace] | None = None,
    ) -> ParquetReader:
        """Return the reader of some row groups."""
        from engine.parquet.reader import ParquetReader

        return ParquetReader(spec, splits, new_space)

    def spark_reader(self, spec: ParquetSource) -> str:
        """Return Spark's reader, where there are no types of other files and no row groups left out."""
        is_plain = not spec.types_ipc and spec.predicate is None and not spec.pruned_groups
        return "parquet" if is_plain else ""


class ParquetSink(SinkFormat):
    """Row groups."""

    name = "parquet"
    modules = ("engine.parquet.writer",)

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink of columns that Parquet has."""
        from engine.parquet.source import stored_schema
        from engine.parquet.writer import check_compression

        stored_schema(schema, self.call)
        check_compression(spec.compression or "snappy", spec.compression_level)
        return spec

    def found_schema(self, spec: SinkSpec, file: str) -> pa.Schema:
        """Return the columns of a file."""
        import pyarrow.parquet as pq

        from engine.files.native_files import path_or_stream
        from engine.parquet.source import plain_file_schema

        return plain_file_schema(pq.read_schema(path_or_stream(file)))

    def stored_schema(self, spec: SinkSpec, schema: pa.Schema) -> pa.Schema:
        """Return the types that Parquet gives back."""
        from engine.parquet.source import stored_schema

        return stored_schema(schema, self.call)

    def fits(self, known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
        """Return whether readers widen one of the types to the other, or unite them."""
        from engine.parquet.source import united, widened

        return None if (widened if schema_mode == "strict" else united)(known, own) is None else True

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> ParquetWriter:
        """Return the writer of a file."""
        from engine.parquet.writer import ParquetWriter

        codec, wanted = spec.compression or "snappy", spec.target_file_bytes
        known = former if isinstance(former, ParquetWriter) else None
        return ParquetWriter(schema, path, codec, spec.compression_level, wanted_bytes=wanted, former=known)
