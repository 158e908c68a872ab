"""PathFormat: a source of any format with columns that are in the paths of its files.

It answers by the entry of the inner source. What an entry says of rows as they are in files (their order, filters of
the reader, samples) is not passed on: other columns are beside them, and files may have none of some.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING

import msgspec

from engine.formats.registry import format_of, open_source
from engine.formats.source_format import Rejects, SourceFormat
from engine.graph.expression import Expression
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import PathSource, SourceSplit, StoredFile

if TYPE_CHECKING:
    from engine.connectors.path_reader import PathReader
    from engine.iomanager.spill_space import SpillSpace


class PathFormat(SourceFormat[PathSource]):
    """The answers of the inner source's entry, and the columns of paths."""

    name = "paths"
    is_prunable = True

    def kind(self, spec: PathSource) -> str:
        """Return the word for the inner source."""
        return format_of(spec.inner).kind(spec.inner)

    def exact_splits(self, spec: PathSource, subtask_count: int) -> PathSource:
        """Return a source over the inner one with its splits."""
        inner = format_of(spec.inner).exact_splits(spec.inner, subtask_count)
        return spec if inner is spec.inner else msgspec.structs.replace(spec, inner=inner, splits=inner.splits)

    def stored(self, spec: PathSource) -> tuple[StoredFile, ...]:
        """Return the objects of the inner source."""
        return format_of(spec.inner).stored(spec.inner)

    def stamps(self, spec: PathSource) -> Hashable | None:
        """Return the versions of the inner source."""
        return format_of(spec.inner).stamps(spec.inner)

    def rejects(self, spec: PathSource, size_bytes: float) -> Rejects | None:
        """Return the records that the inner source leaves out."""
        return format_of(spec.inner).rejects(spec.inner, size_bytes)

    def possible(
        self, source: Source, schema: PlanSchema, predicate: Expression | None, ignored: Collection[str] = ()
    ) -> Source:
        """Return a source without the folders, and the splits of the inner source, that the predicate rules out."""
        from engine.connectors.path_pruning import possible

        return possible(source, schema, predicate)

    def reader(
        self, spec: PathSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> PathReader:
        """Return the reader that puts the columns of paths beside those of files."""
        from engine.connectors.path_reader import PathReader

        names_paths = format_of(spec.inner).names_paths
        return PathReader(
            spec, splits, lambda inner, some: open_source(inner, some, new_space), names_paths=names_paths
        )
