"""TopGroups: row groups of a file, by what their bounds say about the first n rows of an order.

    groups = TopGroups(test, footer, numbers, schema)
    groups.to_look_at(columns, filtered) those whose keys are looked at before any row is read, the best first
    groups.may_have(number)              whether it has a row that is wanted, as far as its bounds say by now
    seen.may_have((path, number))        the same by the keys that were looked at

    keys   group 3 ─► group 1 ─► ...     the threshold is known: most of the others have no row that is wanted
    rows   group 0 ─► group 1 ─► ...     in the order of the file: rows with equal keys come out as they would have

Where the columns that the filter looks at are a small part of what is read, they are read of all row groups first:
which rows are among the first is known then, and the others are not decoded further than to the last of them. So they
are where they are no more than half of it, and the first rows lie in half of the row groups at most: in whatever order
the file is, all of them would have rows that are among the first of those before them. What was looked at is read twice
in row groups with a row among the first alone. Otherwise it is one row group that is looked at, if there are enough
others to spare.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.parquet.row_group_bounds import bounds_of
from engine.records.top_keys import TopTest
from engine.statistics.bounds_predicate import highest, lowest, null_count

#: bytes of the columns of the filter in those of all, at most, for reading them of all row groups first
_SMALL_SHARE: Final = 0.2
#: limit if the first rows are in few row groups
_LARGER_SHARE: Final = 0.5
#: row groups for each row that is asked for, for these to be few
_GROUPS_A_ROW: Final = 2
#: limit of bytes of keys that were read
_SEEN_BYTES_MAX: Final = 4 << 20
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
        has_few = len(groups) >= _GROUPS_A_ROW * self._keys.count
        if sum(sizes) <= (_LARGER_SHARE if has_few else _SMALL_SHARE) * len(sizes):
            return in_order
        return in_order[: len(groups) // _GROUPS_TO_SPARE][:1]

    def _size(self, group: int, columns: Collection[str]) -> int:
        """Return the bytes of some columns."""
        metadata = self._footer.row_group(group)
        chunks = (metadata.column(index) for index in range(metadata.num_columns))
        return sum(
            chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns
        )


class SeenKeys:
    """Keys of the row groups that were looked at, of rows that could be among the first by then."""

    def __init__(self, test: TopTest) -> None:
        self.test = test
        self._keys: dict[tuple[str, int], list[pa.Array] | None] = {}
        self._bytes = 0

    def __contains__(self, place: tuple[str, int]) -> bool:
        """Whether a row group, by its file and number, was looked at."""
        return place in self._keys

    def add(self, place: tuple[str, int], keys: pa.Array) -> None:
        """Take keys of a row group; where there are too many, any row of it may be among the first."""
        known = self._keys.setdefault(place, [])
        if known is not None:
            self._bytes += keys.nbytes
            self._keys[place] = [*known, keys] if self._bytes <= _SEEN_BYTES_MAX else None

    def may_have(self, place: tuple[str, int]) -> bool:
        """Return whether a row of a row group may be among the first, as far as is known by now."""
        known = self._keys.get(place)
        return known is None or any(self.test.may_have(keys) for keys in known)
