"""Arrow files that a job has left, as a source: what ``cache()`` keeps.

    part-00000.arrow, part-00001.arrow ...  ──► splits in the order of the parts, statistics of batches from everywhere

The files are mapped, not read: only how many rows and bytes a batch has is looked up, and some batches are sampled.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from engine.files.native_files import mapped_file, native_file
from engine.graph.source_spec import ArrowSource, ColumnStatistics, SourceSplit, SourceStatistics
from engine.statistics.column_statistics import SpreadSample, sample_statistics
from engine.storage.file_systems import file_system_of, size_of

#: parts of so many bytes are mapped, not copied; their room on disk is freed with the table
MAPPED_BYTES_MIN: Final = 1 << 20
#: a split has as many batches as come to it
_SPLIT_BYTES: Final = 4 << 20
#: batches that are sampled
_SAMPLED_MAX: Final = 32


def arrow_parts(folder: str) -> list[str]:
    """Return the parts in a folder, in the order of their names."""
    entries = file_system_of(folder).entries(folder)
    return sorted(each.path for each in entries if each.name.startswith("part-") and each.name.endswith(".arrow"))


def arrow_batches(path: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a part."""
    open_part = mapped_file if size_of(path) >= MAPPED_BYTES_MIN else native_file
    with open_part(path) as file, pa.ipc.open_file(file) as reader:
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


def arrow_files_source(
    folder: Path, schema: pa.Schema, origin: str, before: ArrowSource | None = None
) -> tuple[ArrowSource, SourceStatistics]:
    """Return a source of the parts in a folder, in the order of their names; ``origin``: of what its numbers are.

    before: a source of the same schema, whose parts come first.
    """
    paths = arrow_parts(os.fspath(folder))
    splits = [split for path in paths for split in _splits(path)]
    if before is not None:
        paths, splits = [*before.paths, *paths], [*before.splits, *splits]
    rows = sum(split.row_count for split in splits)
    size_bytes = sum(split.size_bytes for split in splits if split.row_count)
    columns = _columns(splits, schema, rows)
    statistics = SourceStatistics(float(rows), float(size_bytes), origin, is_exact=True, columns=columns)
    spec = ArrowSource(tuple(paths), tuple(splits), tuple(schema.names))
    return spec, statistics


def _splits(path: str) -> Iterator[SourceSplit]:
    with mapped_file(path) as file, pa.ipc.open_file(file) as reader:
        start = rows = size_bytes = 0
        count = reader.num_record_batches
        for index in range(count):
            batch = reader.get_batch(index)
            rows += batch.num_rows
            size_bytes += batch.nbytes
            if size_bytes >= _SPLIT_BYTES or index + 1 == count:
                yield SourceSplit(path, start, index + 1, max(1, size_bytes), rows)
                start, rows, size_bytes = index + 1, 0, 0


def _columns(splits: Sequence[SourceSplit], schema: pa.Schema, rows: int) -> dict[str, ColumnStatistics]:
    """Return the statistics of columns from a sample of batches."""
    sample = SpreadSample()
    for split in splits[:: max(1, -(-len(splits) // _SAMPLED_MAX))]:
        with mapped_file(split.path) as file, pa.ipc.open_file(file) as reader:
            sample.add(pa.RecordBatch.from_arrays(reader.get_batch(split.start).columns, schema=schema))
    columns = sample_statistics([sample.table(schema)], rows)
    wide = {name: ColumnStatistics(average_width_bytes=width) for name, width in sample.widths.items()}
    return columns | wide
