"""IcebergFormat: what the engine knows of tables of Iceberg that are read.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING

from engine.formats.source_format import SourceFormat
from engine.graph.expression import Expression
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import FormatSource, SourceSplit, SourceStatistics
from engine.iceberg_tables.library import PYICEBERG_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.iceberg_tables.iceberg_reader import IcebergReader
    from engine.iomanager.spill_space import SpillSpace


class IcebergFormat(SourceFormat[FormatSource]):
    """Splits are data files, or row groups of them; bounds come from manifests."""

    name = "iceberg"
    has_files = False
    takes_filters = True
    is_columnar = True
    is_prunable = True
    library_bytes = PYICEBERG_BYTES
    modules = ("engine.iceberg_tables.iceberg_reader",)

    def stamps(self, spec: FormatSource) -> Hashable | None:
        """Return nothing that could differ: the files of a version never change."""
        return ()

    def bounds(self, spec: FormatSource, schema: pa.Schema, names: Sequence[str]) -> pa.Table | None:
        """Return bounds of the splits' files, from manifests."""
        from engine.iceberg_tables.pruning import bounds

        return bounds(spec, names)

    def possible(
        self, source: Source, schema: PlanSchema, predicate: Expression | None, ignored: Collection[str] = ()
    ) -> Source:
        """Return a source without the files that buckets or bounds rule out."""
        from engine.iceberg_tables.pruning import without_other_buckets

        return super().possible(without_other_buckets(source, schema, predicate), schema, predicate, ignored)

    def with_sample(
        self,
        source: Source,
        schema: PlanSchema,
        names: Collection[str],
        predicates: Sequence[Expression],
        carried: Collection[str],
    ) -> SourceStatistics:
        """Return statistics with those of a sample of columns, where files have them as the table does."""
        from engine.iceberg_tables.pruning import with_sample

        return with_sample(source, schema, names, predicates, carried)

    def details(self, spec: FormatSource) -> list[str]:
        """Return the table and its snapshot, the files that are read, and the filter."""
        options = spec.options
        files = len({split.path for split in spec.splits})
        size = sum(split.size_bytes for split in spec.splits)
        lines = [
            f"{options['what']} of {options['table']}, snapshot {options['snapshot']}",
            f"reads {files} of {options['file_count']} files, {size:,} bytes; {options['delete_count']} have deletes",
        ]
        return [*lines, *super().details(spec)]

    def shares_splits(self, spec: FormatSource) -> bool:
        """Return whether no order is promised of the rows."""
        return True

    def reader(
        self, spec: FormatSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> IcebergReader:
        """Return the reader of some splits."""
        from engine.iceberg_tables.iceberg_reader import IcebergReader

        return IcebergReader(spec, splits, new_space)
