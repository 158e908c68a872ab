"""Window functions as plain typed data: what a plan and its operators carry.

    WindowFrame(kind, start, end)      which rows of its partition a function sees for a row; bounds are offsets, None
                                       is unbounded
    WindowCall(function, argument, ..) one function over columns of its node's input

    kind     an offset counts             0 is
    rows     rows                         the row itself
    range    in the order key's values    the row and those that are equal in the order (its peers)
    groups   groups of peers              the same; lowered, a range of their numbers

Offsets of ``range`` are whole units of the key: its integer, days of dates, ticks of times, units in the last place of
decimals; of floats they are floats. They count in the direction of the order: -7 is before, also where it descends.

Held by: tests/column_expressions/test_windows.py
"""

from __future__ import annotations

from engine.graph.exact import Exact

#: functions of a row's position in its partition: no argument, no frame
RANKING_FUNCTIONS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})
#: functions of the value in another row of the partition: no frame
SHIFT_FUNCTIONS = frozenset({"lag", "lead"})
#: functions of the value in a row of the frame
FRAME_VALUE_FUNCTIONS = frozenset({"first_value", "last_value", "nth_value"})
#: functions of the value in the row before: no frame
RUNNING_FUNCTIONS = frozenset({"running_product", "ewm_mean"})
#: rankings that depend only on which rows are equal in the order
PEER_RANKINGS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


#: rows that a frame leaves out: the row itself, it and its peers, its peers alone
CURRENT_ROW = "current row"
GROUP = "group"
TIES = "ties"


class WindowFrame(Exact, frozen=True):
    """The frame of a window function; ``start`` and ``end`` belong to it.

    Text is what a user wrote ("7 days"); in a plan, a whole number that 64 bits do not hold. ``exclude``: rows that it
    leaves out, "" for none. Lowered, it is the ``part`` of the frame "before" these rows, or "behind" them.
    """

    kind: str
    start: int | float | str | None
    end: int | float | str | None
    exclude: str = ""
    part: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the partition."""
        return self.start is None and self.end is None and not self.exclude

    @property
    def slides(self) -> bool:
        """Whether rows leave it."""
        return self.start is not None or self.part == "behind"


#: SQL's default frames: with an order, without
RUNNING_FRAME = WindowFrame("range", None, 0)
WHOLE_FRAME = WindowFrame("range", None, None)


class WindowCall(Exact, frozen=True):
    """One function of a window operator.

    ``order_count``: how many of the operator's order keys are the call's own; rows equal in those are its peers.
    """

    function: str
    #: argument column; None for functions without one
    argument: str | None
    name: str
    #: frame; None for functions without one
    frame: WindowFrame | None = None
    order_count: int = 0
    #: argument n of ntile, lag, lead and nth_value; flags of running functions
    count: int = 0
    #: column with the default of lag and lead
    default: str | None = None
    #: share of a weight that stays from row to row
    factor: float = 0.0


class GroupLimit(Exact, frozen=True):
    """A limit on sorted rows: those whose ``function`` (row_number, rank, dense_rank) is at most ``count``.

    The sort's first keys are those of the partition, the next ``order_count`` say which rows are equal.
    """

    function: str
    count: int
    partition_count: int
    order_count: int


class SortedCall(Exact, frozen=True):
    """One aggregate of the values of a group in their order; ``argument`` and ``where`` are columns.

    ``list``: all of them for which ``where`` is true, null without any. ``quantile``: what lies at ``share`` of those
    that are not null, whatever their order. ``only``: the first that is not null.
    """

    function: str
    argument: str
    name: str
    where: str | None = None
    share: float = 0.0


#: Arrow's names of types, without their units
_WHOLE_TYPES = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool"})
_REAL_TYPES = frozenset({"halffloat", "float", "double"})
_TIME_TYPES = frozenset({"date32", "date64", "time32", "time64", "timestamp", "duration"})


def has_order_of_words(type_text: str) -> bool:
    """Whether values of a type are numbers of at most 8 bytes whose order is that of int64, or of float64."""
    return type_text.partition("[")[0] in _WHOLE_TYPES | _REAL_TYPES | _TIME_TYPES
