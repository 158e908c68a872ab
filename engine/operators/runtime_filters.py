"""RuntimeFilters: filters that a join makes of its complete build side, and what becomes of them.

    made = make_filters(join, descriptions, buffers)       None: nothing is known, or it does not fit
    made.tests(descriptions) -> KeyTests                    of a source that knows itself by those
    together(parts) -> RuntimeFilters                       of a build side that lies in several subtasks
    beside(own, passed) -> RuntimeFilters                   of several joins
    made.close()                                            their memory is free for others

The bits of a filter lie outside of the join's pages: they are reserved of what the process has for batches, and where
there is no room for them there is no filter. A build side of more than KEYS_MAX rows has none, nor one whose keys are
wider than KEY_BYTES_MAX together.

Held by: tests/operators/test_runtime_filters.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.memory.budget import Kind, process_budget
from engine.records.adaptive_key_filter import AdaptiveKeyFilter
from engine.records.key_filter import KeyFilter, key_filter, merged

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.graph.runtime_filter import RuntimeFilter
    from engine.join.hash_join import HashJoin
    from engine.operators.kept_keys import KeptKeys

KEYS_MAX: Final = 2 << 20
KEY_BYTES_MAX: Final = 32 << 20
FILTER_BYTES_MAX: Final = 8 << 20
#: limit of an exact filter, relative to the memory for batches: a job may have several
EXACT_PART: Final = 1 / 24
#: limit of what a task reads of filters of all consumers of its rows, where these are in several processes
SENT_BYTES_MAX: Final = 16 << 20


#: number of a join in the plan, and index of its key
_Place = tuple[int, int]


class RuntimeFilters:
    """The filters of joins, by their keys."""

    def __init__(self, filters: Mapping[_Place, KeyFilter]) -> None:
        self.filters = dict(filters)
        self._reserved = process_budget.reserve(Kind.ARROW)

    def reserve(self) -> bool:
        """Take the memory of the filters; False: there is none."""
        return self._reserved.resize(sum(each.size_bytes for each in self.filters.values()))

    def tests(self, wanted: Sequence[RuntimeFilter]) -> list[AdaptiveKeyFilter]:
        """Return the tests of those columns of a source for which there is a filter."""
        found = ((each.column, self.filters.get((each.join, each.key))) for each in wanted)
        return [AdaptiveKeyFilter(column, known) for column, known in found if known is not None]

    def close(self) -> None:
        """Release the memory; idempotent. Holders of a filter may still use it."""
        self._reserved.close()


def make_filters(
    join: HashJoin, wanted: Sequence[RuntimeFilter], sharers: int = 1, kept: KeptKeys | None = None
) -> RuntimeFilters | None:
    """Return filters of keys of a join whose build side is complete; None: there are none.

    sharers: number of subtasks of the join whose filters are read by a task in another process; 1: none is.
    kept: keys of the build side as its batches had them.
    """
    from engine.join.build_keys import build_keys

    rows = join.build_rows
    places = sorted({(each.join, each.key) for each in wanted if each.rows_max is None or rows <= each.rows_max})
    values = None
    if places and kept is not None:
        columns = (join.spec.left if join.spec.build_is_left else join.spec.right).keys
        values = kept.arrays([columns[key] for _, key in places])
    if places and values is None:
        values = build_keys(join, [key for _, key in places], KEYS_MAX, KEY_BYTES_MAX)
    if values is None:
        return None
    return filters_of_keys(dict(zip(places, values, strict=True)), sharers)


def filters_of_keys(keys: Mapping[_Place, Sequence[pa.Array]], sharers: int = 1) -> RuntimeFilters | None:
    """Return filters of the values of some keys, to be closed; None: there is no memory. ``sharers`` as above."""
    bytes_max = _bytes_max(sharers)
    return reserved({place: key_filter(arrays, *bytes_max) for place, arrays in keys.items()})


def together(parts: Sequence[RuntimeFilters]) -> RuntimeFilters | None:
    """Return filters of all parts of a build side, to be closed; None: there are none."""
    places = set.intersection(*(set(part.filters) for part in parts))
    return reserved(together_at({place: [part.filters[place] for part in parts] for place in places}))


def together_at(parts: Mapping[_Place, Sequence[KeyFilter]]) -> dict[_Place, KeyFilter | None]:
    """Return the filter of all parts at each place; None where it would be too large."""
    bytes_max = _bytes_max()
    return {place: merged(filters, *bytes_max) for place, filters in parts.items()}


def beside(own: RuntimeFilters | None, passed: RuntimeFilters | None) -> RuntimeFilters | None:
    """Return the filters of several joins, whose memory is theirs; None: there are none."""
    if own is None or passed is None:
        return own or passed
    return RuntimeFilters({**own.filters, **passed.filters})


def reserved(filters: Mapping[_Place, KeyFilter | None]) -> RuntimeFilters | None:
    """Return the filters that there are, with their memory; None where there is none, or no filter."""
    made = RuntimeFilters({place: found for place, found in filters.items() if found is not None})
    if made.filters and made.reserve():
        return made
    made.close()
    return None


def _bytes_max(sharers: int = 1) -> tuple[int, int]:
    """Return the limits of a filter, and of an exact one, in bytes."""
    most = FILTER_BYTES_MAX if sharers == 1 else min(FILTER_BYTES_MAX, SENT_BYTES_MAX // sharers)
    return most, min(most, int(process_budget.limit(Kind.ARROW) * EXACT_PART))
