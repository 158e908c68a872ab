"""Groups of rows by time: windows that begin at regular times, spans that end at each row, rows at regular times.

    group_by_dynamic("at", "1 hour").agg(n=count())                 [10:00, 11:00), [11:00, 12:00), ...
    group_by_dynamic("at", "1 hour", "2 hours")                     windows that overlap: a row is in two of them
    rolling("at", "7 days", by="shop").agg(mean=avg("x"))           a row for each: of the seven days up to it
    upsample("at", "1 hour")                                        rows in between, with nulls

    dynamic    the starts of a row's windows are computed, exploded where there are several, and grouped by
    rolling    aggregates over frames of ``range=``
    upsample   the sequence of times from first to last of each group, and a left join

The times are dates, timestamps or whole numbers.

Held by: tests/integration/test_time_groups.py
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import pyarrow as pa
from pyarrow import types

from engine.api.calls import Calls
from engine.column_expressions.expression import Expr
from engine.column_expressions.named_columns import column_name
from engine.column_expressions.other_names import ON_GROUPS, HasOtherNames
from engine.errors import NotYetSupportedError, SchemaError
from engine.lowering.projections import free_name

if TYPE_CHECKING:
    from engine.api.row_calls import RowCalls

#: type of the data set
D = TypeVar("D", bound="RowCalls")

_MONTHS: Final = {"mo": 1, "month": 1, "q": 3, "quarter": 3, "y": 12, "year": 12}
_CALENDAR: Final = re.compile(r"\s*(\d+)\s*(mo|q|y|months?|quarters?|years?)\s*")
_WEEKS: Final = re.compile(r"\s*\d+\s*w(eeks?)?\s*")
_UNIT_OF_MONTHS: Final = {1: "month", 3: "quarter", 12: "year"}
_CLOSED: Final = ("left", "right", "both", "none")
#: days from the epoch, a Thursday, to a Monday
_MONDAY: Final = 4
_WORDS: Final = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_TICKS_OF_HOUR: Final = {"s": 3600, "ms": 3600 * 10**3, "us": 3600 * 10**6, "ns": 3600 * 10**9}


class Span(NamedTuple):
    """A length of time: months of the calendar, or ticks of the column's type."""

    months: int
    ticks: int
    is_weeks: bool = False


class Axis:
    """A column of times, whose values are counted in ticks of its type."""

    def __init__(self, data: Calls, column: Any, what: str) -> None:
        self.name = column_name(column, what)
        (self.name,) = data._names(self.name, what)
        self.type = data.schema.field(self.name).type
        self._what = what
        if not (types.is_timestamp(self.type) or types.is_date32(self.type) or types.is_integer(self.type)):
            raise SchemaError(f"{what}: {self.name!r} is {self.type}; it takes dates, timestamps and whole numbers")

    @property
    def zone(self) -> str | None:
        """Time zone of the column."""
        return self.type.tz if types.is_timestamp(self.type) else None

    @property
    def day(self) -> int:
        """Ticks of a day."""
        return 24 * _TICKS_OF_HOUR[self.type.unit] if types.is_timestamp(self.type) else 1

    def span(self, value: Any, option: str, *, may_be_negative: bool = False) -> Span:
        """Return a length of time as it is written: a number, a ``timedelta``, "90 min", "1 month"."""
        from engine.column_expressions.windows import plain_distance
        from engine.lowering.window_distances import distance

        text = f"{self._what} {option}={value!r}"
        found = _CALENDAR.fullmatch(value.lower()) if isinstance(value, str) else None
        if found is not None and not types.is_integer(self.type):
            word = found[2] if found[2] in _MONTHS else found[2].removesuffix("s")
            span = Span(int(found[1]) * _MONTHS[word], 0)
        else:
            plain = plain_distance(value, text)
            if plain is None:
                raise SchemaError(f"{text}: a length such as '1 hour', '7 days', '1 month'")
            is_weeks = isinstance(plain, str) and _WEEKS.fullmatch(plain.lower()) is not None
            span = Span(0, int(distance(plain, self.type, text)), is_weeks)
        if not may_be_negative and span.months <= 0 and span.ticks <= 0:
            raise SchemaError(f"{text}: a length above zero")
        return span

    def ticks(self, value: Expr) -> Expr:
        """Return times as numbers of ticks."""
        if types.is_date32(self.type):
            return value.cast(pa.int32()).cast(pa.int64())
        return value.cast(pa.int64())

    def time(self, ticks: Expr) -> Expr:
        """Return times of numbers of ticks."""
        return ticks.cast(pa.int32()).cast(self.type) if types.is_date32(self.type) else ticks.cast(self.type)

    def is_of_clocks(self, span: Span) -> bool:
        """Whether a length is days of a zone, some of which have 23 or 25 hours."""
        return self.zone is not None and span.ticks > 0 and span.ticks % self.day == 0

    def moved(self, value: Expr, span: Span, times: int) -> Expr:
        """Return times so many spans later."""
        if not times:
            return value
        if span.months:
            return value.dt.add(months=span.months * times)
        if self.is_of_clocks(span):
            return value.dt.add(days=span.ticks // self.day * times)
        return self.time(self.ticks(value) + span.ticks * times)

    def begin(self, value: Expr, every: Span, offset: int, is_one: bool) -> Expr:
        """Return the beginning of the regular span in which a time lies; ``is_one``: no other one has it."""
        if every.months:
            unit = _UNIT_OF_MONTHS.get(every.months)
            if unit is None or offset:
                raise NotYetSupportedError(f"{self._what}: windows of {every.months} months, or with an offset")
            return value.dt.truncate(unit)
        if self.zone is not None:
            return self._begin_in_zone(value, every, offset, is_one)
        origin = offset + (_MONDAY * self.day if every.is_weeks else 0)
        ticks = self.ticks(value)
        return self.time((ticks - origin) // every.ticks * every.ticks + origin)

    def _begin_in_zone(self, value: Expr, every: Span, offset: int, is_one: bool) -> Expr:
        """Return the beginning by the clocks of the zone."""
        if not offset and self.is_of_clocks(every):
            days = every.ticks // self.day
            return value.dt.truncate(f"{days // 7} weeks" if every.is_weeks else f"{days} days")
        if _TICKS_OF_HOUR[self.type.unit] % every.ticks:
            if is_one and not offset and not self.day % every.ticks:
                return value.dt.truncate(f"{every.ticks} {_WORDS[self.type.unit]}")
            raise NotYetSupportedError(
                f"{self._what}: clocks change in the zone {self.zone}, where windows of hours are parts of a day, "
                "without period=, offset=, closed= and label=; .dt.with_timezone(None) gives the times of the clocks"
            )
        local = value.dt.with_timezone(None).cast(pa.int64())
        return self.time(self.ticks(value) - (local - offset - (local - offset) // every.ticks * every.ticks))

    def bound(self, ticks: int) -> int | str:
        """Return a distance as frames of ``range=`` take it."""
        if types.is_integer(self.type):
            return ticks
        return f"{ticks} days" if types.is_date32(self.type) else f"{ticks} {self.type.unit}"


class DynamicGroups(HasOtherNames, Generic[D]):
    """Windows that begin at regular times, of each group of rows."""

    _kind = "group_by_dynamic()"
    _other_names = ON_GROUPS

    def __init__(
        self, data: D, axis: Axis, spans: tuple[Span, Span, int], by: list[str], ends: tuple[str, str]
    ) -> None:
        self._data, self._axis, self._by = data, axis, by
        self._every, self._period, self._offset = spans
        self._closed, self._label = ends

    def agg(self, *aggregates: Any, **named: Any) -> D:
        """Return a row for each window that has rows: keys, the window's time, and aggregates by their names."""
        from engine.column_expressions.expressions import col

        axis, data = self._axis, self._data
        held, label = _free(data, "start"), _free(data, "window")
        at = col(axis.name)
        known = at.require(at.is_not_null(), f"group_by_dynamic: {axis.name!r} is null in a row; drop_nulls first")
        is_one = self._closed == "left" and self._period == self._every
        begin = axis.begin(known, self._every, self._offset, is_one and self._label == "left")
        data = data.with_columns(**{held: begin}) if is_one else self._in_several(data, begin, held)
        time = col(held) if self._label == "left" else self._moved(col(held), self._period, 1)
        found = data.with_columns(**{label: time}).drop(held).group_by(*self._by, label).agg(*aggregates, **named)
        return found.rename({label: axis.name})

    def _moved(self, start: Expr, span: Span, times: int) -> Expr:
        """Return the beginnings of windows so many spans later; a day begins at 1:00 where clocks skip midnight."""
        axis = self._axis
        moved = axis.moved(start, span, times)
        is_of_days = bool(times) and axis.is_of_clocks(span) and axis.is_of_clocks(self._every)
        return moved.dt.truncate("day") if is_of_days else moved

    def _in_several(self, data: D, begin: Expr, held: str) -> D:
        """Return rows as often as there are windows that have them, with the beginning of each."""
        from engine.column_expressions.expressions import array, col

        axis, every, period = self._axis, self._every, self._period
        if every.months:
            if period != every:
                raise NotYetSupportedError("group_by_dynamic: windows of months that overlap, or have gaps")
            before = 1
        else:
            # a day on which clocks are set back is longer than others
            longer = 0 if axis.is_of_clocks(every) or not axis.is_of_clocks(period) else 2 * axis.day // 24
            before = -(-(period.ticks + longer) // every.ticks)
        starts = array(*(self._moved(begin, every, -number) for number in range(before + 1)))
        data = data.with_columns(**{held: starts}).explode(held, keep_empty=False)
        at, start = col(axis.name), col(held)
        end = self._moved(start, period, 1)
        is_behind = at >= start if self._closed in ("left", "both") else at > start
        is_before = at <= end if self._closed in ("right", "both") else at < end
        return data.filter(is_behind & is_before)


class RollingGroups(HasOtherNames, Generic[D]):
    """The spans of time that end at each row, of each group of rows."""

    _kind = "rolling()"
    _other_names = ON_GROUPS

    def __init__(self, data: D, axis: Axis, bounds: tuple[int, int], by: list[str]) -> None:
        self._data, self._axis, self._bounds, self._by = data, axis, bounds, by

    def agg(self, *aggregates: Any, **named: Any) -> D:
        """Return a row for each row: its keys, its time, and the aggregates of the rows in its span."""
        from engine.api.grouped_by import group_outputs
        from engine.column_expressions.aggregates import Aggregate

        axis = self._axis
        outputs = group_outputs([*self._by, axis.name], aggregates, named, self._data.schema)
        first, last = (axis.bound(each) for each in self._bounds)
        over = {
            one.name: Aggregate(one.expression).over(self._by or None, order_by=axis.name, range=(first, last))
            for one in outputs
        }
        return self._data.select(*self._by, axis.name, **over)


def dynamic_groups(
    data: D, index: Any, every: Any, period: Any, offset: Any, by: Any, closed: str, label: str
) -> DynamicGroups[D]:
    """Return the windows of ``group_by_dynamic``."""
    axis = Axis(data, index, "group_by_dynamic")
    lengths = axis.span(every, "every")
    whole = lengths if period is None else axis.span(period, "period")
    if bool(whole.months) != bool(lengths.months):
        raise SchemaError("group_by_dynamic: every= and period= are both of the calendar's months, or neither")
    shift = Span(0, 0) if offset is None else axis.span(offset, "offset", may_be_negative=True)
    if shift.months:
        raise SchemaError(f"group_by_dynamic offset={offset!r}: a length of time, no months")
    keys = [] if by is None else data._names(by, "group_by_dynamic by")
    ends = _one_of(closed, "closed", _CLOSED), _one_of(label, "label", ("left", "right"))
    return DynamicGroups(data, axis, (lengths, whole._replace(is_weeks=lengths.is_weeks), shift.ticks), keys, ends)


def rolling_groups(data: D, index: Any, period: Any, offset: Any, by: Any, closed: str) -> RollingGroups[D]:
    """Return the spans of ``rolling``."""
    axis = Axis(data, index, "rolling")
    length = axis.span(period, "period")
    if length.months:
        raise SchemaError(f"rolling period={period!r}: months have no one length; write days")
    begin = -length.ticks if offset is None else axis.span(offset, "offset", may_be_negative=True).ticks
    keep = _one_of(closed, "closed", _CLOSED)
    first = begin if keep in ("left", "both") else begin + 1
    last = begin + length.ticks - (0 if keep in ("right", "both") else 1)
    if first > last:
        raise SchemaError(f"rolling period={period!r}, closed={closed!r}: no time lies within")
    return RollingGroups(data, axis, (first, last), [] if by is None else data._names(by, "rolling by"))


def upsampled(data: D, index: Any, every: Any, by: Any) -> D:
    """Return the rows of a data set at regular times."""
    from engine.column_expressions.aggregates import max_, min_
    from engine.column_expressions.expressions import col, sequence

    axis = Axis(data, index, "upsample")
    step = axis.span(every, "every")
    keys = [] if by is None else data._names(by, "upsample by")
    first, last = (_free(data, each) for each in ("first", "last"))
    at = col(axis.name)
    known = at.require(at.is_not_null(), f"upsample: {axis.name!r} is null in a row; drop_nulls first")
    data = data.with_columns(**{axis.name: known})
    ends = data.group_by(*keys).agg(**{first: min_(axis.name), last: max_(axis.name)}).drop_nulls(first)
    values = sequence(col(first), col(last), step.ticks if types.is_integer(axis.type) else every)
    places = ends.select(*keys, **{axis.name: values}).explode(axis.name, keep_empty=False)
    times = places.with_columns(**{axis.name: at.cast(axis.type)})
    return times.join(data, on=[*keys, axis.name], how="left", null_safe=True).select(*data.schema.names)


def _free(data: Calls, wanted: str) -> str:
    return free_name(f"__{wanted}", data.schema)


def _one_of(value: Any, option: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise SchemaError(f"{option}={value!r}: choose one of {', '.join(choices)}")
    return str(value)
