"""The table of functions: name in ``Call`` -> arity and how it binds to types.

    add subtract multiply divide floor_divide modulo negate          arithmetic.py
    equal not_equal less less_equal greater greater_equal
    and or not is_null is_not_null is_in between coalesce            comparison.py
    str_length str_upper str_lower str_strip str_lstrip str_rstrip str_contains str_starts_with str_ends_with
    str_replace str_slice str_concat                                 text_functions.py
    dt_year dt_quarter dt_month dt_week dt_day dt_weekday dt_ordinal_day dt_hour dt_minute dt_second
    dt_millisecond dt_microsecond dt_truncate                        time_functions.py

Who adds a function adds a row here, a method in ``engine.api.expressions`` and a line to its oracle test.

Held by: tests/expressions/test_evaluate.py
"""

from __future__ import annotations

from engine.errors import SchemaError
from engine.expressions import arithmetic, comparison, text_functions, time_functions
from engine.expressions.binding import FunctionEntry
from engine.records.arrow_functions import pc

_ENTRIES = (
    FunctionEntry("add", 2, 2, arithmetic.bind_add),
    FunctionEntry("subtract", 2, 2, arithmetic.bind_subtract),
    FunctionEntry("multiply", 2, 2, arithmetic.bind_multiply),
    FunctionEntry("divide", 2, 2, arithmetic.bind_divide),
    FunctionEntry("floor_divide", 2, 2, arithmetic.bind_floor_divide),
    FunctionEntry("modulo", 2, 2, arithmetic.bind_modulo),
    FunctionEntry("negate", 1, 1, arithmetic.bind_negate),
    FunctionEntry("equal", 2, 2, comparison.comparing("equal")),
    FunctionEntry("not_equal", 2, 2, comparison.comparing("not_equal")),
    FunctionEntry("less", 2, 2, comparison.comparing("less")),
    FunctionEntry("less_equal", 2, 2, comparison.comparing("less_equal")),
    FunctionEntry("greater", 2, 2, comparison.comparing("greater")),
    FunctionEntry("greater_equal", 2, 2, comparison.comparing("greater_equal")),
    FunctionEntry("and", 2, 2, comparison.logical(pc.and_kleene)),
    FunctionEntry("or", 2, 2, comparison.logical(pc.or_kleene)),
    FunctionEntry("not", 1, 1, comparison.logical(pc.invert)),
    FunctionEntry("is_null", 1, 1, comparison.any_type(pc.is_null)),
    FunctionEntry("is_not_null", 1, 1, comparison.any_type(pc.is_valid)),
    FunctionEntry("is_in", 1, None, comparison.bind_is_in),
    FunctionEntry("between", 3, 3, comparison.bind_between),
    FunctionEntry("coalesce", 1, None, comparison.bind_coalesce),
    FunctionEntry("str_length", 1, 1, text_functions.bind_length),
    FunctionEntry("str_upper", 1, 1, text_functions.simple(pc.utf8_upper)),
    FunctionEntry("str_lower", 1, 1, text_functions.simple(pc.utf8_lower)),
    FunctionEntry("str_strip", 1, 1, text_functions.stripping(pc.utf8_trim_whitespace, pc.utf8_trim)),
    FunctionEntry("str_lstrip", 1, 1, text_functions.stripping(pc.utf8_ltrim_whitespace, pc.utf8_ltrim)),
    FunctionEntry("str_rstrip", 1, 1, text_functions.stripping(pc.utf8_rtrim_whitespace, pc.utf8_rtrim)),
    FunctionEntry("str_contains", 2, 2, text_functions.bind_contains),
    FunctionEntry("str_starts_with", 2, 2, text_functions.affix(pc.starts_with)),
    FunctionEntry("str_ends_with", 2, 2, text_functions.affix(pc.ends_with)),
    FunctionEntry("str_replace", 3, 3, text_functions.bind_replace),
    FunctionEntry("str_slice", 1, 1, text_functions.bind_slice),
    FunctionEntry("str_concat", 1, None, text_functions.bind_concat),
    FunctionEntry("dt_year", 1, 1, time_functions.date_part(pc.year)),
    FunctionEntry("dt_quarter", 1, 1, time_functions.date_part(pc.quarter)),
    FunctionEntry("dt_month", 1, 1, time_functions.date_part(pc.month)),
    FunctionEntry("dt_week", 1, 1, time_functions.date_part(pc.iso_week)),
    FunctionEntry("dt_day", 1, 1, time_functions.date_part(pc.day)),
    FunctionEntry("dt_weekday", 1, 1, time_functions.date_part(pc.day_of_week)),
    FunctionEntry("dt_ordinal_day", 1, 1, time_functions.date_part(pc.day_of_year)),
    FunctionEntry("dt_hour", 1, 1, time_functions.time_part(pc.hour)),
    FunctionEntry("dt_minute", 1, 1, time_functions.time_part(pc.minute)),
    FunctionEntry("dt_second", 1, 1, time_functions.time_part(pc.second)),
    FunctionEntry("dt_millisecond", 1, 1, time_functions.time_part(pc.millisecond)),
    FunctionEntry("dt_microsecond", 1, 1, time_functions.time_part(pc.microsecond)),
    FunctionEntry("dt_truncate", 1, 1, time_functions.bind_truncate),
)

FUNCTIONS = {entry.name: entry for entry in _ENTRIES}


def find_function(name: str, argument_count: int) -> FunctionEntry:
    """Return the function of that name; an unknown one or a wrong number of arguments raises SchemaError."""
    entry = FUNCTIONS.get(name)
    if entry is None:
        raise SchemaError(f"there is no function {name!r}")
    if argument_count < entry.arity_min or (entry.arity_max is not None and argument_count > entry.arity_max):
        raise SchemaError(f"{name} takes {entry.arity_min} arguments, not {argument_count}")
    return entry
