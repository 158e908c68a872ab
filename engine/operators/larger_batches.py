"""larger: small batches put together, for an operator that gives out many of a few rows.

    for batch in larger(join.finish_probe()): output.process(batch)

Partitions come back from disk page by page, and of a page of wide rows a join may leave ten (``SmallBatches`` says what
that costs whoever follows). The first ones are handed on sooner, for who wants a few rows only.

Limits: a batch is held back until enough have come, so this is for streams that do not wait for anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from engine.records.bounded_batches import SmallBatches


def larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in the same order, in fewer batches where they are small."""
    small = SmallBatches(rows_min=1)
    for batch in batches:
        yield from small.add(batch)
    yield from small.rest()
