"""AT TIME ZONE: what clocks in a zone show at a moment, and the moment when they show a local time.

    ts AT TIME ZONE 'Europe/Berlin'      the moment when clocks there show ts
    tz AT TIME ZONE 'Europe/Berlin'      what clocks there show at a moment

Of a local time that is there twice the later moment is meant, and one that is left out is counted on from the clock
before, as in DuckDB.

Held by: tests/sql/test_zones.py
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import when
from engine.column_expressions.row_functions import greatest
from engine.errors import PlanError
from engine.sql_values.operators import is_moment

_DAY: Final = timedelta(days=1)


def at_zone(value: Expr, data_type: pa.DataType, zone: str) -> Expr:
    """Return a moment as a local time of a zone, or a local time of it as a moment. Raises: PlanError."""
    if not is_moment(data_type):
        raise PlanError("AT TIME ZONE of what is no TIMESTAMP; write CAST(... AS TIMESTAMP) AT TIME ZONE")
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:
        return _shown(value.cast(pa.timestamp("us", "UTC")), zone)
    local = value.cast(pa.timestamp("us"))
    first = _moment(local, zone)
    later = greatest(_moment(local - _DAY, zone) + _DAY, _moment(local + _DAY, zone) - _DAY)
    is_later = (_shown(later, zone) == local) | (_shown(first, zone) != local)
    return when(is_later).then(later).otherwise(first)


def _moment(local: Expr, zone: str) -> Expr:
    return local.dt.with_timezone(zone).dt.to_timezone("UTC")


def _shown(moment: Expr, zone: str) -> Expr:
    return moment.dt.to_timezone(zone).dt.with_timezone(None)
