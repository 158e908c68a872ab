"""Types of values that a column takes without a cast, because none of them loses what is not told.

    value                        column                 where a value does not fit
    text, bytes                  numbers, times         an error of the job, with the row
    integers                     numbers, text          the same
    timestamps of a fine unit    timestamps of seconds  the same
    floats, decimals             integers               refused: a part may be lost
    floats                       decimals, narrower     refused: they are rounded
    decimals over 15 digits      floats (float32: 6)    refused: they are rounded
    timestamps                   dates, times           refused: the other part is lost
    numbers                      dates, times           refused: they do not say of what, such as days
    what is no truth value       booleans               refused, but for text
    durations                    text                   refused: a number without its unit

What is refused stands in the way of a job; a cast that is written says that it is meant. Constants are looked at
themselves. Structs, lists and maps take what their parts take; fields of structs have one name there and here.

Held by: tests/sql/test_assigned_types.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from engine.expressions.common_type import is_number
from engine.lowering.exact_keys import FLOAT_DIGITS

#: digits, by the bits of a float, up to which no two decimals become the same float
_DIGITS: Final = {16: 3, 32: 6, 64: FLOAT_DIGITS}


def is_bare_time(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a number would become a date, a time or a duration, and nothing says of what it is one."""
    return bool(is_number(own) and pa.types.is_temporal(wanted))


def may_lose(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a cast to a column's type may change a value without an error."""
    if own == wanted or pa.types.is_null(own):
        return False
    if pa.types.is_struct(own) and pa.types.is_struct(wanted):
        names = {field.name for field in own}
        is_like = names == {field.name for field in wanted}
        return not is_like or any(may_lose(own.field(name).type, wanted.field(name).type) for name in names)
    if pa.types.is_nested(own) and own.id == wanted.id and own.num_fields == wanted.num_fields:
        return any(may_lose(own.field(part).type, wanted.field(part).type) for part in range(own.num_fields))
    if pa.types.is_boolean(wanted):
        return is_number(own)
    if pa.types.is_temporal(wanted):
        is_part = bool(pa.types.is_timestamp(own) and (pa.types.is_date(wanted) or pa.types.is_time(wanted)))
        return is_bare_time(own, wanted) or is_part
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_floating(own) or (pa.types.is_decimal(own) and own.scale > 0))
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_floating(own))
    if pa.types.is_floating(wanted):
        is_wider = pa.types.is_floating(own) and own.bit_width > wanted.bit_width
        return bool(is_wider or (pa.types.is_decimal(own) and own.precision > _DIGITS[wanted.bit_width]))
    return bool(pa.types.is_duration(own) and (pa.types.is_string(wanted) or pa.types.is_large_string(wanted)))
