"""Operators over rows with equal keys as fragments: Spark brings rows together, the engine does the rest.

    left   ─► (side 0, struct of its columns, null)  ─┐  repartition by key
    right  ─► (side 1, null, struct of its columns)  ─┼─► mapInArrow: rows of each side to a file, one plan over both
    marker ─► (side 2, null, null), without keys     ─┘  (so that a task runs where there is no row)

Keys are equal where the engine has them equal: nulls with nulls, NaN with NaN, 0.0 with -0.0; Spark's hash has them so
too. Without keys all rows go to one task, which spills.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine.dataframes.carried_types import carried_schema
from engine.dataframes.fragments import EachPartition, Fragment
from engine.dataframes.frame import Fragments, Frame, spark_schema
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.plan import PlanNode

_MARKER = 2


def keyed(
    fragments: Fragments,
    frames: Sequence[Frame],
    keys: Sequence[Sequence[Column]],
    nodes: Sequence[PlanNode],
    partitions: int,
) -> Frame:
    """Return the rows of nodes, each over the one before it, over inputs whose rows with equal keys are together.

    keys: columns of each input, in pairs; none: all rows are brought together.
    """
    fragment, node = fragments.of([frame.base for frame in frames], nodes), nodes[-1]
    if len(frames) == 1 and keys[0]:
        spread = frames[0].with_data(frames[0].data.repartition(partitions, *keys[0]))
        return spread.mapped(fragments, EachPartition(fragment), node.schema)
    sides = [_side(frame, frames, index, keys[index]) for index, frame in enumerate(frames)]
    rows = sides[0]
    for side in sides[1:]:
        rows = rows.unionAll(side)
    count = len(keys[0])
    if count:
        rows = rows.repartition(partitions, *(F.col(f"k{index}") for index in range(count)))
    else:
        rows = rows.unionAll(_marker(frames)).repartition(1)
    task = _Sides(fragment, tuple(carried_schema(to_arrow_schema(frame.base)) for frame in frames))
    payload = [F.col("side"), *(F.col(f"rows{index}") for index in range(len(frames)))]
    names = fragments.new_names(len(node.schema.names))
    return Frame.of(rows.select(*payload).mapInArrow(task, spark_schema(node.schema, names)), node.schema, names)


def _side(frame: Frame, frames: Sequence[Frame], own: int, keys: Sequence[Column]) -> DataFrame:
    key_columns = [key.alias(f"k{index}") for index, key in enumerate(keys)]
    return frame.data.select(*key_columns, F.lit(own).alias("side"), *_payload(frames, own))


def _payload(frames: Sequence[Frame], own: int) -> list[Column]:
    columns = []
    for index, frame in enumerate(frames):
        rows = F.struct(*map(F.col, frame.names)) if index == own else F.lit(None)
        columns.append(rows.cast(spark_schema(frame.base)).alias(f"rows{index}"))
    return columns


def _marker(frames: Sequence[Frame]) -> DataFrame:
    session = frames[0].data.sparkSession
    return session.range(1).select(F.lit(_MARKER).alias("side"), *_payload(frames, -1))


@dataclass(frozen=True)
class _Sides:
    """A function for ``mapInArrow``: the fragment over the rows of each side of a partition."""

    fragment: Fragment
    schemas: tuple[pa.Schema, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result of a partition."""
        rows = (batch for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:
            return
        # All of the rows are looked at for each side: they go to files as they come.
        yield from self.fragment.run_split(_chain(first, rows), self.schemas)


def _chain(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others
