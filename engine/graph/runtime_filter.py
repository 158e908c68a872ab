"""Filters that sources apply for operators behind them. RuntimeFilter: it drops rows that a join would drop.

    join ── keys of its complete build side ──► filter ──► source of its probe side: rows without such a key are gone

The same description is with both ends: the join makes the filters that it names, the source applies those that name it.
Where rows are stored between the two, the producers of the build side make the filters (``KeyFilterOperator``), as a
result of the form ``FILTER_ROWS`` that the source reads before its first row.

TopThreshold: rows that a top-n will drop. The source finds out itself, since all of its rows go there.

    source: n rows have come with a key of 7 at most ──► rows with a key above 7 are gone ──► top n

Source: Flink's runtime filters, Impala's, the dynamic filters of Trino; of top-n those of DuckDB and DataFusion.
Held by: tests/optimizer/test_runtime_filters.py
Held by: tests/optimizer/test_top_planning.py
"""

from __future__ import annotations

from typing import Final

from engine.graph.exact import Exact
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.sort_key import SortKey
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, ResultPartitionId

#: number of the output of a join that its filters are, beside its results
_FILTERS_OUTPUT: Final = 1 << 20
#: Arrow schema message of one field of bytes, as ``schema_bridge`` makes it
_BYTES_TYPE: Final = bytes.fromhex(
    "ffffffff700000001000000000000a000c000600050008000a000000000104000c0000000800080000000400"
    "08000000040000000100000014000000100014000800060007000c0000001000100000000000010410000000"
    "1800000004000000000000000000000000000000040004000400000000000000"
)
#: rows of a stored result of filters: an Arrow stream with one filter each
FILTER_ROWS: Final = PlanSchema((ColumnInfo("filter", "binary", 16, False, False, True, _BYTES_TYPE),))


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
    #: True if it is a finished result of the build side's tasks: ``join`` is the number of the KeyFilterOperator
    is_stored: bool = False


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
