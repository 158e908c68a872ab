"""larger: small batches put together, for an operator that gives out many of a few rows.

    for batch in larger(join.finish_probe()): output.process(batch)

Partitions come back from disk page by page, and of a page of wide rows a join may leave ten (``SmallBatches`` says what
that costs later operators). The first ones are passed on sooner, for consumers of a few rows.

Limits: a batch is held back until enough have come, so this is for streams that wait for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from engine.records.bounded_batches import SmallBatches


def larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches: equal rows in equal order, in fewer batches."""
    small = SmallBatches(rows_min=1)
    for batch in batches:
        yield from small.add(batch)
    yield from small.rest()
