"""Filters that sources apply for operators behind them. RuntimeFilter: it drops rows that a join would drop.

    join ── keys of its complete build side ──► filter ──► source of its probe side: rows without such a key are gone

The same description is with both ends: the join makes the filters that it names, the source applies those that name it.

TopThreshold: rows that a top-n will drop. The source finds out itself, since all of its rows go there.

    source: n rows have come with a key of 7 at most ──► rows with a key above 7 are gone ──► top n

Source: Flink's runtime filters, Impala's, the dynamic filters of Trino; of top-n those of DuckDB and DataFusion.
Held by: tests/optimizer/test_runtime_filters.py
Held by: tests/optimizer/test_top_planning.py
"""

from __future__ import annotations

import msgspec

from engine.graph.sort_key import SortKey


class RuntimeFilter(msgspec.Struct, frozen=True):
    """One key of one join, and the column of a source that its probe rows have it from."""

    #: the join's number in the optimized plan, and its name
    join: int
    join_name: str
    #: index of the join's key
    key: int
    #: column of the source
    column: str
    #: build rows of a subtask with which it is made at most; None: as many as a filter takes
    rows_max: int | None = None


class TopThreshold(msgspec.Struct, frozen=True):
    """The first key of a top-n, which is a column of a source."""

    #: the top's number in the optimized plan
    top: int
    #: sort key; its column is the source's
    key: SortKey
    #: rows that are asked for
    count: int
    #: rows with equal keys are equal to the top, and it takes the first ones
    is_only_key: bool
