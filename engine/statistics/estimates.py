"""Estimates: what is expected of one operator's output, in rows, bytes and columns, and where the numbers come from.

    Estimates(rows, size_bytes, origin, columns)      of an operator, or of a result whose real size is known
    row_width(schema, columns) -> bytes of a row
    stored(estimates, schema) -> Estimates            with the bytes that its rows have where they are stored
    sized, scaled, limited                            estimates from rows, from a share or a number of an input's rows

Bytes may be UNKNOWN, which costs carry on (``costs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

import msgspec

from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import ColumnStatistics, ComputedStatistics
from engine.records.layout import ROW_ALIGNMENT, SIZE_FIELD_BYTES, VARIABLE_SLOT_BYTES, round_up

UNKNOWN = -1.0
#: exponent of the number of groups of n rows when nothing is known of the keys: n ** 0.75
GROUP_EXPONENT = 0.75


class Estimates(msgspec.Struct, frozen=True):
    """The estimates of one operator's output. ``size_bytes`` is UNKNOWN only in those of Flink 1.x."""

    rows: float
    size_bytes: float
    origin: str
    columns: dict[str, ColumnStatistics] = {}
    #: statistics of expressions that a projection will compute
    computed: tuple[ComputedStatistics, ...] = ()

    @property
    def is_size_known(self) -> bool:
        """Whether the size is a number."""
        return self.size_bytes != UNKNOWN

    def distinct(self, name: str) -> float | None:
        """Return the distinct count of a column if it is known, at most the rows."""
        known = self.columns.get(name)
        if known is None or known.distinct_count is None:
            return None
        return max(1.0, min(known.distinct_count, self.rows))

    def domain(self, name: str) -> float | None:
        """Return the number of values a column had before rows were filtered, if it is known.

        Filters take rows, not what keys may be: one order of ten joins one item of ten.
        """
        known = self.columns.get(name)
        return None if known is None or known.distinct_count is None else max(1.0, known.distinct_count)

    def heaviest_share(self, names: Iterable[str]) -> float:
        """Return the largest known share of rows with one value of a column, 0.0 when none is known.

        For several columns the smallest of their shares: a combination is no more frequent than its parts.
        """
        shares = []
        for name in names:
            known = self.columns.get(name)
            shares.append(max((share for _, share in known.heavy_keys), default=0.0) if known is not None else 0.0)
        return min(shares, default=0.0)


def row_width(schema: PlanSchema, columns: Mapping[str, ColumnStatistics]) -> float:
    """Return the bytes of a row: measured widths where there are some, else those of the types."""
    width = 0.0
    for column in schema.columns:
        known = columns.get(column.name)
        measured = None if known is None else known.average_width_bytes
        width += column.width_bytes if measured is None else measured
    return max(1.0, width)


def stored(estimates: Estimates, schema: PlanSchema) -> Estimates:
    """Return estimates in the bytes of stored rows, which have a header, slots of texts and padding (``layout``)."""
    if not estimates.is_size_known:
        return estimates
    width = float(round_up(SIZE_FIELD_BYTES + (len(schema.columns) + 7) // 8, ROW_ALIGNMENT))
    for column in schema.columns:
        if column.width_is_exact:
            width += column.width_bytes
        else:
            known = estimates.columns.get(column.name)
            measured = None if known is None else known.average_width_bytes
            width += VARIABLE_SLOT_BYTES + (column.width_bytes if measured is None else measured)
    whole = ROW_ALIGNMENT * ceil(width / ROW_ALIGNMENT)
    return msgspec.structs.replace(estimates, size_bytes=estimates.rows * whole)


def sized(
    schema: PlanSchema, rows: float, columns: dict[str, ColumnStatistics], origin: str, *, unset: bool = False
) -> Estimates:
    """Return the estimates of so many rows, at least one; ``unset``: their bytes are UNKNOWN."""
    rows = max(1.0, rows)
    return Estimates(rows, UNKNOWN if unset else rows * row_width(schema, columns), origin, columns)


def scaled(source: Estimates, share: float, origin: str) -> Estimates:
    """Return the estimates of a share of rows."""
    rows = max(1.0, source.rows * share)
    size = rows / max(1.0, source.rows) * source.size_bytes if source.is_size_known else UNKNOWN
    return Estimates(rows, size, origin, source.columns, source.computed)


def limited(source: Estimates, count: int, origin: str) -> Estimates:
    """Return the estimates of at most so many rows."""
    if source.rows <= count:
        return msgspec.structs.replace(source, origin="rows of the input")
    return scaled(source, count / source.rows, origin)
