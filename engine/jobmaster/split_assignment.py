"""Split assignment: each subtask reads a contiguous run of splits, in order, the largest run as small as possible.

    sizes   5 1 1 | 4 3 | 7        parallelism 3: the largest share is 7, and no assignment of runs has a smaller one

Runs keep the order of rows: reading the subtasks one after the other reads the source in order. Where results do not
show that order, subtasks of one process take splits from each other when they have read their own (``shared_splits``).
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.contiguous_runs import contiguous_runs
from engine.graph.source_spec import SourceSplit


def assign_splits(splits: Sequence[SourceSplit], parallelism: int) -> tuple[tuple[SourceSplit, ...], ...]:
    """Return one run of splits for each of ``parallelism`` subtasks (>= 1); some are empty when splits are few."""
    sizes = [split.size_bytes or 1 for split in splits]
    return tuple([tuple(splits[begin:end]) for begin, end in contiguous_runs(sizes, parallelism)])
