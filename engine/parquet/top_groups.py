"""TopGroups: row groups of a file, by what their bounds say about the first n rows of an order.

    groups = TopGroups(test, footer, numbers, schema)
    groups.to_look_at(columns, filtered) those whose keys are looked at before any row is read, the best first
    groups.may_have(number)              whether it has a row that is wanted, as far as is known by now

    keys   group 3 ─► group 1 ─► ...     the threshold is known: most of the others have no row that is wanted
    rows   group 0 ─► group 1 ─► ...     in the order of the file: rows with equal keys come out as they would have

Where the columns that the filter looks at are a small part of what is read, they are read of all row groups first:
which rows are among the first is known then, and the others are not decoded further than to the last of them. Where
they are a large part, it is one row group that they are read of twice, if there are enough others to spare.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.parquet.group_bounds import bounds_of
from engine.records.top_keys import TopTest
from engine.statistics.bounds_predicate import highest, lowest, null_count

#: bytes of the columns of the filter in those of all, at most, for reading them twice
_SMALL_SHARE: Final = 0.2
#: row groups for each that is looked at in any case
_GROUPS_TO_SPARE: Final = 4


class TopGroups:
    """Bounds of the first key."""

    def __init__(self, test: TopTest, footer: pq.FileMetaData, groups: Sequence[int], schema: pa.Schema) -> None:
        self._keys = test.keys
        self._footer = footer
        self._places = {group: place for place, group in enumerate(groups)}
        if groups:
            bounds = bounds_of(footer, groups, [test.column], schema)
            self._lows, self._highs = bounds[lowest(test.column)], bounds[highest(test.column)]
            self._nulls = bounds[null_count(test.column)]

    def may_have(self, group: int) -> bool:
        """Return whether a row of a group may be among the first."""
        place = self._places[group]
        columns = (column.slice(place, 1) for column in (self._lows, self._highs, self._nulls))
        return self._keys.may_be_among(*columns)[0]

    def to_look_at(self, columns: Collection[str], looked_at: Collection[str]) -> list[int]:
        """Return the groups whose keys are looked at first, of the columns that are read those that the filter has."""
        if len(self._places) < 2:
            return []
        groups = list(self._places)
        in_order = [groups[place] for place in self._keys.best_first(self._lows, self._highs)]
        sizes = [self._size(group, looked_at) / max(1, self._size(group, columns)) for group in groups]
        if sum(sizes) <= _SMALL_SHARE * len(sizes):
            return in_order
        return in_order[: len(groups) // _GROUPS_TO_SPARE][:1]

    def _size(self, group: int, columns: Collection[str]) -> int:
        """Return the bytes of some columns."""
        metadata = self._footer.row_group(group)
        chunks = (metadata.column(index) for index in range(metadata.num_columns))
        return sum(
            chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns
        )
