"""TextFormat: what the engine knows of lines of text.

Held by: tests/formats/test_registry.py
"""

# ruff: noqa: PLC0415 - the JobManager loads this module, and no Arrow

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import SourceSplit, TextSource

if TYPE_CHECKING:
    from engine.connectors.text_reader import TextReader
    from engine.iomanager.spill_space import SpillSpace


class TextFormat(SourceFormat[TextSource]):
    """Splits are cut by size alone."""

    name = "text"
    options: ClassVar = {"compression": "gzip, zstd, bz2, xz, lz4 or none, where the ending of a file does not say it"}

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of lines."""
        from engine.connectors.text_source import text_source

        return text_source(request.paths, request.parallelism, **request.options)

    def exact_splits(self, spec: TextSource, subtask_count: int) -> TextSource:
        """Return a source with splits of its files as large as they are now."""
        from engine.connectors.text_source import with_splits

        return with_splits(spec, subtask_count)

    def reader(
        self, spec: TextSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> TextReader:
        """Return the reader of some splits."""
        from engine.connectors.text_reader import TextReader

        return TextReader(spec, splits)
