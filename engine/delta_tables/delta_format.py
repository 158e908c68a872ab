"""DeltaFormat: what the engine knows of Delta tables that are read.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from engine.delta_tables.library import DELTALAKE_BYTES
from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.expression import Expression
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import FormatSource, SourceSplit, SourceStatistics

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.delta_tables.delta_reader import DeltaReader
    from engine.iomanager.spill_space import SpillSpace


class DeltaFormat(SourceFormat[FormatSource]):
    """Pieces of Parquet files that a version of the table has."""

    name = "delta"
    has_files = False
    takes_filters = True
    is_columnar = True
    is_prunable = True
    library_bytes = DELTALAKE_BYTES
    modules = ("engine.delta_tables.delta_reader",)
    options: ClassVar = {
        "version": "number of a version; the last one without it",
        "timestamp": "a datetime, or a text of ISO 8601: the version that the table had then",
    }

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of a table's folder, the only place."""
        from engine.delta_tables.delta_source import delta_source

        (path,) = request.paths
        return delta_source(path, **request.options)

    def possible(
        self, source: Source, schema: PlanSchema, predicate: Expression | None, ignored: Collection[str] = ()
    ) -> Source:
        """Return a source of the files that may have a row for a predicate, and what readers need to know of those."""
        found = super().possible(source, schema, predicate, ignored)
        spec = found.spec
        if found is source or not isinstance(spec, FormatSource) or not spec.files_ipc:
            return found
        from engine.delta_tables.delta_source import kept_files

        return msgspec.structs.replace(found, spec=kept_files(spec))

    def stamps(self, spec: FormatSource) -> Hashable | None:
        """Return nothing that could differ: the files of a version never change."""
        return ()

    def bounds(self, spec: FormatSource, schema: pa.Schema, names: Sequence[str]) -> pa.Table | None:
        """Return bounds of the files, from the log."""
        from engine.delta_tables.delta_source import file_bounds

        return file_bounds(spec, schema, names)

    def with_sample(
        self,
        source: Source,
        schema: PlanSchema,
        names: Collection[str],
        predicates: Sequence[Expression],
        carried: Collection[str],
    ) -> SourceStatistics:
        """Return statistics with those of a sample of columns."""
        from engine.delta_tables.delta_sample import with_sample

        assert isinstance(source.spec, FormatSource)
        return with_sample(source.spec, source.statistics, schema, names, predicates, carried)

    def details(self, spec: FormatSource) -> list[str]:
        """Return the table's version, how many of its files are read, and the filter."""
        files, left = spec.options["files"], len({split.path for split in spec.splits})
        pruned = f"{left} files" if left == files else f"{left} of {files} files, the log rules out the others"
        by = f", partitioned by {spec.options['partition_by']}" if spec.options["partition_by"] else ""
        return [f"version {spec.options['version']} of {spec.paths[0]}{by}: reads {pruned}", *super().details(spec)]

    def shares_splits(self, spec: FormatSource) -> bool:
        """Return True: no order is promised of the rows."""
        return True

    def reader(
        self, spec: FormatSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> DeltaReader:
        """Return the reader of some pieces."""
        from engine.delta_tables.delta_reader import DeltaReader

        return DeltaReader(spec, splits, new_space)
