"""RuntimeFilter: rows of a source that a join will drop are left out where they are read.

    join ── keys of its complete build side ──► filter ──► source of its probe side: rows without such a key are gone

The same description is with both ends: the join makes the filters that it names, the source applies those that name it.

Source: Flink's runtime filters, Impala's, the dynamic filters of Trino.
Held by: tests/optimizer/test_runtime_filters.py
"""

from __future__ import annotations

import msgspec


class RuntimeFilter(msgspec.Struct, frozen=True):
    """One key of one join, and the column of a source that its probe rows have it from."""

    #: the join's number in the optimized plan, and its name
    join: int
    join_name: str
    #: which of the join's keys
    key: int
    #: of the source
    column: str
