"""Functions of SQL that make and move moments: from parts, to the next day of a name, to the begin of equal spans.

    time_bucket(INTERVAL '15 minutes', ts)     ts.dt.truncate("15 minutes"), spans counted from 2000-01-03

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.row_functions import make_timestamp
from engine.column_expressions.time_expressions import origin_in
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.sql_values.arguments import constant_of
from engine.sql_values.constants import is_constant, scalar_of
from engine.sql_values.function_handlers import Known, cast_argument, own
from engine.sql_values.operators import in_utc, is_moment, is_text


def timestamp_of_parts(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return the timestamp of microseconds, or of a date's and a time's parts."""
    if len(given) == 1:
        return own("make_timestamp")(known, name, given)
    if len(given) != 6:
        raise PlanError(f"{name}() has {len(given)} arguments here and takes 1 or 6")
    year, month, day, hour, minute = (cast_argument(known, one, pa.int64()) for one in given[:5])
    return make_timestamp(year, month, day, hour, minute, cast_argument(known, given[5], pa.float64()))


def next_day(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return the next day of a name behind a date."""
    moment = cast_argument(known, given[0], pa.date32())
    return moment.dt.next_day(str(constant_of(given[1], "the day of next_day()")))


def time_bucket(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return the begin of the span of an interval that a moment lies in; months from 2000-01-01, others 2000-01-03."""
    width, value = given[:2]
    data_type = known.type_of(value)
    if not is_constant(width) or not pa.types.is_interval(known.type_of(width)):
        raise NotYetSupportedError(f"{name}() whose width is no constant INTERVAL")
    if is_text(data_type):
        value, data_type = cast_argument(known, value, pa.timestamp("us")), pa.timestamp("us")
    if not is_moment(data_type):
        raise SchemaError("no date")
    months, days, nanoseconds = scalar_of(width).as_py()
    if (months and (days or nanoseconds)) or min(months, days, nanoseconds) < 0 or not (months + days + nanoseconds):
        raise PlanError(f"{name}(): a width above 0, of months, or of days and shorter units")
    width_of = {"months": months} if months else {"days": days} if not nanoseconds else {}
    width_of = width_of or {"nanoseconds": days * 86400 * 10**9 + nanoseconds}
    origin = datetime(2000, 1, 1) if months else datetime(2000, 1, 3)
    if len(given) > 2:
        if not is_constant(given[2]) or pa.types.is_interval(known.type_of(given[2])):
            raise NotYetSupportedError(f"{name}() with an offset or an origin of columns; write a constant timestamp")
        origin = scalar_of(cast_argument(known, given[2], pa.timestamp("us"))).as_py()
    moment = in_utc(value, data_type)
    is_date = bool(pa.types.is_date(data_type))
    if is_date and nanoseconds:
        moment = moment.cast(pa.timestamp("us"))
    return moment.call("dt_truncate", **width_of, origin=origin_in(origin, width_of, name))
