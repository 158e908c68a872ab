"""Small parts of a plan: what runs in one subtask because a second one would cost more than it saves.

    sources whose size is known, each at most small_bytes ─► everything above them, as long as what arrives at it and
                                                             what it makes are at most small_bytes

A source counts with what it holds before any filter, since that is measured and not guessed; an operator with what is
expected to arrive and to come out, so that a join which multiplies rows ends the small part. Guesses go wrong, so all
that the sources of a part hold is bounded too.

What takes a few tenths of a second in one subtask, source and operators in threads of their own, is hardly faster in
two: one more is a thread, its channels and its messages, rows that travel, and turns at the interpreter. Measured with
two processors, TPC-H at scale factor 1, processor time and seconds on the clock of all 22: with 48 MB 5.51 and 4.39,
with 256 MB 4.93 and 3.91, with 384 MB 4.67 and 4.10, with 512 MB 4.56 and 4.37. Of more subtasks each takes as much
work away, so the more there could be, the smaller a part has to be.

A part has no more than fits into the memory of its one slot: what several hold, one would spill. In one process a plan
of one subtask has the memory of all, so memory is no reason there, but for sorts, which read again what they spill.

Where most of what is read would travel between subtasks of one process (``SHUFFLED_SHARE``), parts are larger
(``SHUFFLED_FACTOR``): to write rows into pages, send and read them costs about as much as what is done to them, and
they take turns at it. Of 10 million by 10 million rows, processor seconds and seconds on the clock in one subtask and
in two: within 512 MB 1.6 and 1.35, 2.1 and 1.4; with five columns a side, written out, 5.2 and 4.4, 7.2 and 4.7; within
300 MB 5.3 and 4.5, 9.3 and 5.9; groups of 10 million rows by a million texts within 300 MB 0.7 and 0.5, 1.8 and 1.1.
Where half of it travels, decoding is worth two subtasks: Q18, Q21 and Q13 of TPC-H at scale factor 10 in 1000 MB took
7.2 and 6.9 in one, 8.3 and 4.8 in two. What sorts many rows is worth two always: an as-of join of 10 million with 50
million rows took 18.3 s and 16.7 s on the clock in one subtask, 21.1 and 11.9 in two.

Where less travels (``SENT_SHARE``), parts are larger (``THREADED_FACTOR``) if their sources are read by several threads
(``scan_planning``): what is left to one subtask is what would have to be sent. At scale factor 1 of TPC-H, processor
time and seconds on the clock of all 22 queries: 4.4 and 2.6 in one subtask, 4.5 and 3.1 divided from 96 MB on. Only
sources have threads, filters and projections included: of what arrives at other operators little more than usual is
small (``OPERATOR_FACTOR``). 30 million rows of two columns, grouped and joined with 7.5 million, took 1.41 and 0.99 s
in one subtask, 1.38 and 0.73 in two; Q18 at scale factor 5 1.07 and 0.58, 1.04 and 0.55; Q21 1.00 and 0.55, 1.09 and
0.58.

A source that is only scanned, filters and projections included, for a part that is not small has as many subtasks as
that part where it holds more than ``SCAN_BYTES``: they would all wait for the one, and its rows go from task to task
anyway. With two processors, TPC-H at scale factor 10 and 1000 MB, processor seconds of the eight queries that have such
a scan: 26.1 after 27.0 to 27.6, while one processor stood still for 0.3 to 0.5 s of each. Joins on the way with what is
much smaller, and stays in one subtask, are part of such a scan: all subtasks probe the one table, and no row travels.

On a cluster where ``parallelism.default`` is set, results have the subtasks that were set. What feeds a larger part,
and reads no more than a subtask is given at run time (``small_input_bytes``), still has one: a second one is a task,
and an exchange between them a stage, whose rows are stored before the next one begins. TPC-H at scale factor 5 on two
TaskManagers of one slot, twelve queries that read small tables, processor time and seconds on the clock: 9.20 and 5.25
with two subtasks everywhere, 8.81 and 5.04 with one where up to 16 MB are read.

Not small is what the user had a say in: a parallelism, a partitioning, a join hint, a replicated source or one with a
rate; nor a Python function and all below it, since it has the subtasks of its input and it is unknown how long it
takes.

Held by: tests/optimizer/test_small_parts.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from engine.formats.registry import format_of
from engine.graph.plan import (
    Aggregate,
    AsofJoin,
    Filter,
    Join,
    Limit,
    PartialAggregate,
    Plan,
    PlanNode,
    Project,
    PythonFunction,
    Sink,
    Sort,
    SortedAggregate,
    Source,
    Union,
    Window,
)
from engine.graph.said_operators import JoinHint, JoinType
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.estimates import Estimates

#: limit of the bytes that a part reads, and of those that each of its operators makes of them
SMALL_BYTES = 384e6
#: number of subtasks for which SMALL_BYTES was measured; with more of them parallelism gains more
_MEASURED_SUBTASKS = 2
#: factor on the limit in a plan where at least SHUFFLED_SHARE of the bytes read would travel
SHUFFLED_FACTOR: Final = 8.0
SHUFFLED_SHARE = 3 / 4
#: factor on the limit in a plan where at least SENT_SHARE of the bytes read would travel, whose sources have threads
THREADED_FACTOR: Final = 4.0
SENT_SHARE = 1 / 100
#: largest factor on what arrives at an operator in such a plan, and on what it makes
OPERATOR_FACTOR: Final = 1.2
#: bytes that one subtask reads in hardly any time, while several wait for it
SCAN_BYTES = 48e6
#: sides of a join that several subtasks may read in parts while each has all rows of the other side
_PROBE_SIDES = {
    JoinType.INNER: (0, 1),
    JoinType.LEFT: (0,),
    JoinType.RIGHT: (1,),
    JoinType.SEMI: (0,),
    JoinType.ANTI: (0,),
}
#: factor on the other side's bytes up to which a probe side in several subtasks may read
_BUILD_FACTOR = 8
#: limit of all sources of a part together, as a multiple of the limit of one
_READ_FACTOR = 4
#: bytes that are small in any case, however little memory there is
_ALWAYS_SMALL_BYTES = 48e6

#: operators whose work is proportional to their rows
_PLAIN = (
    Project, Filter, Join, AsofJoin, Aggregate, PartialAggregate, Union, Sort, Window, SortedAggregate, Limit, Sink,
)  # fmt: skip


def small_bytes(settings: OptimizerSettings, factor: float = 1, *, is_alone: bool = False) -> float:
    """Return the limit of a small part: beyond some megabytes, what fits into the memory of its one slot.

    is_alone: whether all of the plan is small, in one process: then that memory is all there is.
    """
    if settings.small_part_bytes is not None:
        return factor * settings.small_part_bytes
    if not settings.has_small_parts:
        return settings.small_input_bytes
    quick = max(_ALWAYS_SMALL_BYTES, factor * SMALL_BYTES * _MEASURED_SUBTASKS / settings.parallelism)
    return quick if is_alone else min(quick, max(_ALWAYS_SMALL_BYTES, float(settings.page_budget.slot_bytes)))


def bytes_read(plan: Plan, estimates: Sequence[Estimates]) -> float:
    """Return the bytes of all sources, at least 1."""
    return max(1.0, sum(estimates[node.id].size_bytes for node in plan.nodes if isinstance(node.operator, Source)))


def is_read_by_threads(plan: Plan) -> bool:
    """Whether all sources are of formats that several threads of a subtask read."""
    return all(
        format_of(node.operator.spec).is_read_by_threads(node.operator.spec)
        for node in plan.nodes
        if isinstance(node.operator, Source)
    )


def small_parts(
    plan: Plan,
    estimates: Sequence[Estimates],
    settings: OptimizerSettings,
    factor: float = 1,
    operator_factor: float = 1,
    *,
    is_alone: bool = False,
) -> list[bool]:
    """Return a flag for each node: whether it belongs to a small part.

    factor, operator_factor: multiples of the limit for what sources hold, filters and projections included, and for
        what other operators take and make.
    """
    if settings.parallelism == 1 or not (settings.has_small_parts or settings.small_input_bytes):
        return [False] * len(plan.nodes)
    #: bytes of the sources below each node
    read: list[float | None] = []
    most = small_bytes(settings, factor, is_alone=is_alone)
    most_taken, most_sorted = small_bytes(settings, operator_factor, is_alone=is_alone), small_bytes(settings)
    for node in plan.nodes:
        is_read = isinstance(node.operator, Source | Filter | Project)
        limit = most if is_read else most_sorted if _sorts(node) else most_taken
        known = _bytes_read(node, estimates, read, limit)
        read.append(known if known is not None and known <= _READ_FACTOR * most else None)
    seen = _seen_by_functions(plan)
    are_small = [known is not None and number not in seen for number, known in enumerate(read)]
    _divide_long_scans(plan, estimates, are_small)
    if not settings.has_small_parts:
        _keep_results(plan, are_small)
    return are_small


def _keep_results(plan: Plan, are_small: list[bool]) -> None:
    """Take the parts that end in results out of the small ones: only what feeds larger parts is left."""
    is_result = [isinstance(node.operator, Sink) for node in plan.nodes]
    for node in reversed(plan.nodes):
        if is_result[node.id] and are_small[node.id]:
            are_small[node.id] = False
            for source in node.inputs:
                is_result[source] = True


def _divide_long_scans(plan: Plan, estimates: Sequence[Estimates], are_small: list[bool]) -> None:
    """Take nodes out of small parts that only scan a source, for a part that is not small, and take long at it."""
    readers = Counter(source for node in plan.nodes for source in node.inputs)
    scanned = _scanned_inputs(plan, estimates)
    for node in reversed(plan.nodes):  # what is divided may read others that are
        for source in () if are_small[node.id] else node.inputs:
            scan = []
            below: int | None = source
            while below is not None and are_small[below] and readers[below] == 1:
                scan.append(below)
                if isinstance(plan.node(below).operator, Source) and estimates[below].size_bytes > SCAN_BYTES:
                    for number in scan:
                        are_small[number] = False
                below = scanned[below]


def _scanned_inputs(plan: Plan, estimates: Sequence[Estimates]) -> list[int | None]:
    """Return the input whose rows each node processes one by one, as they are read; None where there is none."""
    inputs: list[int | None] = []
    #: bytes of the source that a node's rows are read from so, 0 without one
    held: list[float] = []
    for node in plan.nodes:
        operator, found = node.operator, None
        if isinstance(operator, Project | Filter):
            found = node.inputs[0]
        elif isinstance(operator, Join):
            for side in reversed(_PROBE_SIDES.get(operator.how, ())):  # the first of two that may be
                probe, build = node.inputs[side], node.inputs[1 - side]
                if estimates[build].size_bytes * _BUILD_FACTOR <= held[probe]:
                    found = probe
        inputs.append(found)
        if isinstance(operator, Source):
            held.append(estimates[node.id].size_bytes)
        else:
            held.append(0.0 if found is None else held[found])
    return inputs


def _seen_by_functions(plan: Plan) -> set[int]:
    """Return the nodes whose rows come to a Python function that has the subtasks of its input."""
    seen: set[int] = set()
    for node in reversed(plan.nodes):
        if node.id in seen:
            seen.update(node.inputs)
        elif isinstance(node.operator, PythonFunction):
            seen.update(node.inputs[:1])
    return seen


def _bytes_read(
    node: PlanNode, estimates: Sequence[Estimates], read: Sequence[float | None], most: float
) -> float | None:
    """Return the bytes of the sources below a node; None: it is not small."""
    own = estimates[node.id]
    if node.parallelism is not None or not own.is_size_known or own.size_bytes > most:
        return None
    operator = node.operator
    if isinstance(operator, Source):
        return own.size_bytes if _is_measured(operator) else None
    if not isinstance(operator, _PLAIN) or (isinstance(operator, Join) and _has_hint(operator)):
        return None
    total, arriving = 0.0, 0.0
    for source in node.inputs:
        known = read[source]
        if known is None:
            return None
        total += known
        arriving += estimates[source].size_bytes
    return total if arriving <= most else None


def _sorts(node: PlanNode) -> bool:
    operator = node.operator
    always = isinstance(operator, (Window, SortedAggregate, AsofJoin))
    return always or (isinstance(operator, Sort) and operator.limit is None)


def _is_measured(source: Source) -> bool:
    """Whether the size of a source that the user said nothing of is known."""
    if source.is_replicated or source.rate_limit is not None:
        return False
    statistics = source.statistics
    return statistics.row_count is not None or statistics.size_bytes is not None


def _has_hint(join: Join) -> bool:
    return join.hint is not JoinHint.OPTIMIZER_CHOOSES
