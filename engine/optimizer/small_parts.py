"""Small parts of a plan: what runs in one subtask because a second one would cost more than it saves.

    sources whose size is known ─► everything above them, as long as all it reads and makes is at most SMALL_BYTES

Counted is what the sources hold before any filter, since that is measured and not guessed, and beside it what each
operator is expected to make of it, so that a join which multiplies rows ends the small part. Some megabytes are read,
joined and grouped in tens of milliseconds; a subtask more is a thread, its channels and its messages, rows that travel,
and turns at the interpreter. Measured with two processors: plans of TPC-H over 20 to 40 MB took a quarter to two
fifths less processor time in one subtask, and no more time.

Not small is what the user had a say in: a parallelism, a partitioning, a join hint, a replicated source or one with a
rate; nor what Python functions see, since nobody knows how long they take.

Held by: tests/optimizer/test_small_parts.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.plan import (
    Aggregate,
    AsofJoin,
    Filter,
    Join,
    JoinHint,
    Limit,
    Plan,
    PlanNode,
    Project,
    Sink,
    Sort,
    SortedAggregate,
    Source,
    Union,
    Window,
)
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.estimates import Estimates

#: what a part may read, and what each of its operators may make of that
SMALL_BYTES = 48e6

#: their work is as large as their rows
_PLAIN = (Project, Filter, Join, AsofJoin, Aggregate, Union, Sort, Window, SortedAggregate, Limit, Sink)


def small_parts(plan: Plan, estimates: Sequence[Estimates], settings: OptimizerSettings) -> list[bool]:
    """Return for each node of a plan whether it belongs to a small part."""
    if not settings.has_small_parts or settings.parallelism == 1:
        return [False] * len(plan.nodes)
    #: bytes that the sources below a node hold; None: not small
    read: list[float | None] = []
    for node in plan.nodes:
        read.append(_bytes_read(node, estimates[node.id], [read[source] for source in node.inputs]))
    return [known is not None for known in read]


def _bytes_read(node: PlanNode, estimates: Estimates, below: list[float | None]) -> float | None:
    if node.parallelism is not None or not estimates.is_size_known or estimates.size_bytes > SMALL_BYTES:
        return None
    operator = node.operator
    if isinstance(operator, Source):
        return estimates.size_bytes if _is_measured(operator) else None
    if not isinstance(operator, _PLAIN) or (isinstance(operator, Join) and _has_hint(operator)):
        return None
    total = 0.0
    for known in below:
        if known is None:
            return None
        total += known
    return total if total <= SMALL_BYTES else None


def _is_measured(source: Source) -> bool:
    """Whether the size of a source that the user said nothing of is known."""
    if source.is_replicated or source.rate_limit is not None:
        return False
    statistics = source.statistics
    return statistics.row_count is not None or statistics.size_bytes is not None


def _has_hint(join: Join) -> bool:
    return join.hint is not JoinHint.OPTIMIZER_CHOOSES
