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

from engine.graph.exact import Exact
from engine.graph.sort_key import SortKey
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, ResultPartitionId

#: number of the output of a join that its filters are, beside its results
_FILTERS_OUTPUT = 1 << 20


class RuntimeFilter(Exact, frozen=True):
    """One key of one join, and the column of a source that its probe rows have it from."""

    #: number of the join in the optimized plan, and its name
    join: int
    join_name: str
    #: index of the join's key
    key: int
    #: column of the source
    column: str
    #: limit of build rows of a subtask for the filter; None: as many as a filter takes
    rows_max: int | None = None


class TopThreshold(Exact, frozen=True):
    """The first key of a top-n, which is a column of a source."""

    #: number of the top-n in the optimized plan
    top: int
    #: sort key; its column is the source's
    key: SortKey
    #: number of rows of the top-n
    count: int
    #: True if rows with equal keys are equal to the top-n, which takes the first ones
    is_only_key: bool


def filters_made_by(attempt: ExecutionAttemptId) -> ResultPartitionId:
    """Return the id of the partition that an attempt of a join has its filters in, for readers in other processes."""
    return ResultPartitionId(IntermediateDataSetId(attempt.vertex, _FILTERS_OUTPUT), attempt)
