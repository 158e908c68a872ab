"""Lists of values from one to another by equal steps: ``sequence(start, stop, step)``.

    integers                       start, start + step, ... up to stop, or down to it where the step is negative
    dates, timestamps              by an interval; of months the day is the month's last one where it has no such day
    option closed="left"           without stop itself

    how many there are in each row ──► start of each row + place * step ──► those that are not beyond stop

Where the first step leads away from stop there is no element, or start alone where it is stop.

Held by: tests/expressions/test_sequences.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import common
from engine.expressions.arithmetic import floor_divide_integers
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.calendar_functions import check_moment, local_parts, moments_of, ticks_per_second
from engine.expressions.calendar_kernels import add_months, month_places
from engine.expressions.list_parts import FlatLists, positions, running_total
from engine.expressions.moments import zone_of
from engine.expressions.nested_functions import over_rows
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64: Final = pa.int64()
_DAY: Final = 86400
#: most elements that all lists of a batch have together
_ELEMENTS_MAX: Final = 2**26


def bind_sequence(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the list of the values from the first operand to the second one."""
    data_type = common(operands[:2])
    is_left = options.get("closed") == "left"
    if pa.types.is_integer(data_type) or pa.types.is_null(data_type):
        for one in operands:
            if not (pa.types.is_integer(one.type) or pa.types.is_null(one.type)):
                raise NoMatchError("a sequence of integers has integers as its bounds and its step")
        return Binding(
            over_rows(lambda *given: _of_integers(given, is_left)), tuple(_INT64 for _ in operands), can_raise=True
        )
    check_moment(data_type)
    months, days, nanoseconds = _step(operands[2:])
    if pa.types.is_date32(data_type) and nanoseconds:
        raise NoMatchError("a sequence of dates by hours: cast to pa.timestamp('us') first")
    if months and (days or nanoseconds):
        raise NoMatchError("a step is of months, or of days and shorter units, and not of both")
    ticks = 0 if pa.types.is_date32(data_type) else nanoseconds * ticks_per_second(data_type) // 10**9
    if not pa.types.is_date32(data_type) and ticks * 10**9 != nanoseconds * ticks_per_second(data_type):
        raise NoMatchError(f"a step of {nanoseconds} nanoseconds does not fit {data_type}: cast to a finer timestamp")

    def listed(start: pa.Array, stop: pa.Array, *_step: pa.Array) -> pa.Array:
        if months:
            return _of_months(start, stop, months, is_left)
        return _of_days(start, stop, days, ticks, is_left)

    return Binding(over_rows(listed), (data_type, data_type, *(None for _ in operands[2:])), can_raise=True)


def _step(operands: Sequence[Operand]) -> tuple[int, int, int]:
    """Return months, days and nanoseconds of a step; without one it is a day."""
    if not operands:
        return 0, 1, 0
    constant = operands[0].constant
    if constant is None or not pa.types.is_interval(operands[0].type) or not constant.is_valid:
        raise NoMatchError("a step of dates and timestamps is a constant interval: interval(days=1)")
    months, days, nanoseconds = constant.as_py()
    if not (months or days or nanoseconds):
        raise NoMatchError("a step of no time leads nowhere")
    return months, days, nanoseconds


def _places(counts: pa.Array, is_valid: pa.Array) -> tuple[FlatLists, pa.Array]:
    """Return lists of so many elements, yet without values, and the place of each element."""
    offsets = running_total(pc.if_else(is_valid, pc.max_element_wise(counts, 0), 0))
    total = offsets[-1].as_py() if len(offsets) else 0
    if total > _ELEMENTS_MAX:
        raise pa.ArrowInvalid(f"sequences of more than {_ELEMENTS_MAX} elements together; take a longer step")
    parents = pc.list_parent_indices(pa.LargeListArray.from_arrays(offsets, pa.nulls(total)))
    flat = FlatLists(pa.nulls(total), offsets, parents, is_valid)
    return flat, pc.subtract(positions(total), pc.take(offsets, parents))


def _counts(distance: pa.Array, step: pa.Array, is_left: bool) -> pa.Array:
    """Return the number of elements from 0 up to a distance, or before it."""
    whole = floor_divide_integers(distance, step)
    if is_left:
        is_exact = pc.equal(pc.multiply(whole, step), distance)
        whole = pc.if_else(is_exact, pc.subtract(whole, 1), whole)
    # at most one more than there may be, so that sums do not overflow
    return pc.add(pc.min_element_wise(whole, _ELEMENTS_MAX), 1)


def _of_integers(given: Sequence[pa.Array], is_left: bool) -> pa.Array:
    start, stop = given[:2]
    step = given[2] if len(given) > 2 else pa.repeat(scalar_of(1), len(start))
    if pc.any(pc.equal(step, 0)).as_py():
        raise pa.ArrowInvalid("a step of 0 leads nowhere")
    is_valid = pc.and_(pc.and_(pc.is_valid(start), pc.is_valid(stop)), pc.is_valid(step))
    start, stop, step = (pc.fill_null(one, 1) for one in (start, stop, step))
    distance = pc.subtract_checked(pc.if_else(is_valid, stop, start), start)
    flat, places = _places(_counts(distance, step, is_left), is_valid)
    values = pc.add(pc.take(start, flat.parents), pc.multiply(places, pc.take(step, flat.parents)))
    return flat_of(flat, values, pa.list_(_INT64))


def flat_of(flat: FlatLists, values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return the lists with these elements."""
    every = pa.repeat(scalar_of(True), len(values))
    return FlatLists(values, flat.offsets, flat.parents, flat.is_valid).kept(every, data_type)


def _of_days(start: pa.Array, stop: pa.Array, days: int, ticks: int, is_left: bool) -> pa.Array:
    """Return days and shorter steps: those of whole days by the calendar of the zone, others by elapsed time."""
    data_type, is_valid = start.type, pc.and_(pc.is_valid(start), pc.is_valid(stop))
    per_day = 1 if pa.types.is_date32(data_type) else _DAY * ticks_per_second(data_type)
    if ticks or zone_of(data_type) is None:
        step = days * per_day + ticks
        begins, ends = (pc.fill_null(_numbers(one), 0) for one in (start, stop))
        distance = pc.subtract_checked(pc.if_else(is_valid, ends, begins), begins)
        steps = pa.repeat(scalar_of(step), len(start))
        flat, places = _places(_counts(distance, steps, is_left), is_valid)
        numbers = pc.add(pc.take(begins, flat.parents), pc.multiply(places, step))
        if pa.types.is_date32(data_type):
            numbers = pc.cast(numbers, pa.int32())
        return flat_of(flat, numbers.view(data_type), pa.list_(data_type))
    (own, rest), (last, _) = local_parts(start), local_parts(stop)
    assert rest is not None, "dates have no zone"
    distance = pc.if_else(is_valid, pc.subtract(last, own), 0)
    flat, places = _places(_counts(distance, pa.repeat(scalar_of(days), len(start)), False), is_valid)
    moved = pc.add(pc.take(own, flat.parents), pc.multiply(places, days))
    values = moments_of(moved, pc.take(rest, flat.parents), data_type)
    return _not_beyond(flat, values, stop, days > 0, is_left)


def _numbers(moments: pa.Array) -> pa.Array:
    return pc.cast(moments.view(pa.int32()), _INT64) if pa.types.is_date32(moments.type) else moments.view(_INT64)


def _of_months(start: pa.Array, stop: pa.Array, months: int, is_left: bool) -> pa.Array:
    data_type, is_valid = start.type, pc.and_(pc.is_valid(start), pc.is_valid(stop))
    (own, rest), (last, _) = local_parts(start), local_parts(stop)
    own, last = (pc.fill_null(one, 0) for one in (own, last))
    distance = pc.if_else(is_valid, pc.subtract(month_places(last)[0], month_places(own)[0]), 0)
    flat, places = _places(_counts(distance, pa.repeat(scalar_of(months), len(start)), False), is_valid)
    moved = add_months(pc.take(own, flat.parents), pc.multiply(places, months))
    values = moments_of(moved, None if rest is None else pc.take(rest, flat.parents), data_type)
    return _not_beyond(flat, values, stop, months > 0, is_left)


def _not_beyond(flat: FlatLists, values: pa.Array, stop: pa.Array, is_up: bool, is_left: bool) -> pa.Array:
    """Return the lists without the elements that lie beyond their ends."""
    ends = pc.take(stop, flat.parents)
    before = (pc.less if is_left else pc.less_equal) if is_up else (pc.greater if is_left else pc.greater_equal)
    lists = FlatLists(values, flat.offsets, flat.parents, flat.is_valid)
    return lists.kept(before(values, ends), pa.list_(values.type))
