"""Functions by name: how many arguments they take, and what they are of ours.

    upper(s)                 _ROWS["upper"]    1 argument        s.str.upper()
    date_diff('month', d, e)                   2 or 3            own_functions.py, its arguments cast to what it takes
    year(d)                                    1                 date_part('year', d)

A function of NULL alone is null, but those that look at nulls.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit
from engine.column_expressions.row_functions import coalesce, hash64, make_date, make_time, map_from_entries
from engine.errors import EngineError, NotYetSupportedError, PlanError, SchemaError
from engine.graph.function_table import is_deterministic
from engine.near_names import did_you_mean
from engine.records.plain_scalars import scalar_of as arrow_scalar
from engine.sql_values.arguments import Function, as_option
from engine.sql_values.composed_functions import (
    chosen_by_place,
    days_in_month,
    decoded,
    divisor,
    drawn_uuid,
    encoded,
    flattened,
    floored_quotient,
    floored_remainder,
    hypotenuse,
    is_key,
    list_aggregate,
    multiple,
    named_struct,
    not_nan,
    of_environment,
    of_lists_by,
    part_of_url,
    place_among,
    repeated,
    year_and_week,
    zipped,
)
from engine.sql_values.constants import is_null
from engine.sql_values.data_types import shown_type
from engine.sql_values.function_guide import FUNCTION_NAMES
from engine.sql_values.function_handlers import (
    Handler,
    Known,
    added,
    alike,
    bit_not,
    byte_length,
    cast_to,
    chosen,
    code_or_nothing,
    cut_to_whole,
    date_part,
    date_trunc,
    difference,
    drawn,
    formatted_text,
    full_match,
    interval,
    joined,
    length,
    map_of,
    modulo,
    moment,
    months_added,
    normalized,
    of_bits,
    of_constants,
    of_list_and_value,
    of_lists,
    of_maps,
    of_texts,
    own,
    part,
    plainly,
    positive_modulo,
    prepended,
    round_to_whole,
    row,
    second,
    separated,
    series,
    text_of,
    to_date,
)
from engine.sql_values.list_functions import LIST_FUNCTIONS
from engine.sql_values.moment_calls import next_day, time_bucket, timestamp_of_parts
from engine.sql_values.operators import compared
from engine.sql_values.refused_functions import REFUSED, wrong_number
from engine.sql_values.scalar_functions import FUNCTIONS
from engine.sql_values.spans import TO_UNITS

_ANY: Final = 255
_OF_TYPES: Final = re.compile(r"; (?:it works on|no |there is no|cast |they )|^(?:no|another) \w+$")


class Row(NamedTuple):
    """A function: the number of its arguments, and what it is."""

    least: int
    most: int
    call: Handler
    over_nulls: bool = False


def row_of(name: str, others: Iterable[str] = ()) -> Row:
    """Return the row of a function. Raises: PlanError, NotYetSupportedError, for a name that none has."""
    if name in _ROWS:
        return _ROWS[name]
    if name in REFUSED:
        raise NotYetSupportedError(f"the function {name}(); {REFUSED[name]}")
    raise PlanError(f"no function {name}{did_you_mean(name, (*others, *FUNCTION_NAMES, *_ROWS))}")


def called(known: Known, name: str, given: list[Expr], others: Iterable[str] = ()) -> Expr:
    """Return a call. Raises: PlanError for a name or arguments that no function has.

    others: further names that may be meant.
    """
    row = row_of(name, others)
    if not row.least <= len(given) <= row.most:
        raise wrong_number(name, len(given), _counts(row))
    types = [known.type_of(one) for one in given]
    if not row.over_nulls and any(map(is_null, given)):
        return lit(None, _type_of_null(known, name, row, given))
    try:
        found = row.call(known, name, given)
        if is_deterministic(found.expression):
            known.type_of(found)
        return found
    except (SchemaError, AttributeError) as error:
        if isinstance(error, SchemaError) and not _is_about_types(error):
            detail = str(error).partition("; ")[2]
            raise PlanError(f"{name}(): {detail}" if detail else str(error)) from None
        shown = ", ".join(map(shown_type, types))
        raise PlanError(f"no function has these types of arguments: {name}({shown})") from None


def _is_about_types(error: SchemaError) -> bool:
    """Return whether an error says that values are of another type: "s is string"."""
    return _OF_TYPES.search(str(error)) is not None


def _counts(row: Row) -> str:
    if row.most == _ANY:
        return f"{row.least} or more"
    return str(row.least) if row.least == row.most else f"{row.least} or {row.most}"


@cache
def _examples() -> tuple[pa.Scalar, ...]:
    """Return a value of each kind of types that functions take."""
    return (
        *(
            arrow_scalar("1"),
            arrow_scalar(1),
            arrow_scalar(1.0),
            arrow_scalar(0, pa.timestamp("us")),
            arrow_scalar(True),
        ),
        *(arrow_scalar(["1"], pa.list_(pa.string())), arrow_scalar([1], pa.list_(pa.int64()))),
    )


def _type_of_null(known: Known, name: str, row: Row, given: Sequence[Expr]) -> pa.DataType:
    """Return the type of a call of NULL: as if that were an example of the first type that fits."""
    for example in _examples():
        try:
            return known.type_of(row.call(known, name, [lit(example) if is_null(one) else one for one in given]))
        except (EngineError, AttributeError, TypeError):  # the example is of another type
            continue
    return pa.null()


_ROWS: Final[dict[str, Row]] = {}


def _method(name: str) -> Function:
    """Return the function that a method of a value is."""
    return lambda given: getattr(given[0], name)()


def add(names: str, least: int, most: int, call: Handler, over_nulls: bool = False) -> None:
    """Add a function under its names."""
    _ROWS.update(dict.fromkeys(names.split(), Row(least, most, call, over_nulls)))


def plain(names: str, count: int, most: int = 0) -> None:
    """Add functions that ``scalar_functions`` has by the same name."""
    for name in names.split():
        add(name, count, most or count, plainly(FUNCTIONS[name]))


def texts(names: str, of: str, count: int, most: int = 0, places: Sequence[int] = (0,)) -> None:
    """Add functions of texts, whose arguments at some places are texts."""
    add(names, count, most or count, of_texts(FUNCTIONS[of], places))


_PARTS: Final = {
    **{name: name for name in ("year", "month", "day", "quarter", "week", "hour", "minute", "second", "millisecond")},
    **{name: name for name in ("microsecond", "decade", "century", "millennium", "isodow", "isoyear", "epoch")},
    "dayofmonth": "day",
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "weekofyear": "week",
}

# conditions and nulls
add("coalesce", 1, _ANY, alike(FUNCTIONS["coalesce"]), True)
add("ifnull nvl", 2, 2, alike(FUNCTIONS["coalesce"]), True)
add("least", 1, _ANY, alike(FUNCTIONS["least"]), True)
add("greatest", 1, _ANY, alike(FUNCTIONS["greatest"]), True)
add("nullif", 2, 2, alike(FUNCTIONS["nullif"]), True)
add("if iif iff", 3, 3, chosen, True)
add("nvl2", 3, 3, second, True)
add("isnull", 1, 1, lambda _b, _n, given: given[0].is_null(), True)
add("isnotnull", 1, 1, lambda _b, _n, given: given[0].is_not_null(), True)
add("zeroifnull", 1, 1, lambda _b, _n, given: coalesce(given[0], 0), True)
add("nullifzero", 1, 1, lambda _b, _n, given: given[0].nullif(0))
add("typeof pg_typeof", 1, 1, lambda b, _n, given: lit(shown_type(b.type_of(given[0]))), True)
add("equal_null", 2, 2, lambda b, _n, given: compared("IS NOT DISTINCT FROM", given[0], given[1], b.type_of), True)
# numbers
plain("abs signum floor ceil sqrt cbrt exp expm1 ln log1p log2 log10 sin cos tan cot asin acos atan degrees radians", 1)
plain("sinh cosh tanh asinh acosh atanh", 1)
plain("atan2 power", 2)
plain("round trunc", 1, 2)
add(
    "bround round_even",
    1,
    2,
    lambda _b, _n, given: given[0].call("round", digits=as_option([*given, lit(0)][1]), to_even=True),
)
add("sign", 1, 1, own("sign"))
add("ceiling", 1, 1, plainly(FUNCTIONS["ceil"]))
add("pow", 2, 2, plainly(FUNCTIONS["power"]))
add("log", 1, 2, lambda _b, _n, given: FUNCTIONS["log"](given[::-1]))
# the casts to integers of dialects that cut numbers off, or round them otherwise
add("cut_to_whole", 1, 1, cut_to_whole, True)
add("round_to_whole", 1, 1, round_to_whole, True)
add("isnan", 1, 1, cast_to(lambda given: given[0].is_nan(), pa.float64()))
add("isinf", 1, 1, own("isinf"))
add("isfinite", 1, 1, own("isfinite"))
add("mod", 2, 2, modulo)
add("pmod", 2, 2, positive_modulo)
add("e", 0, 0, lambda _b, _n, _given: lit(math.e))
add("pi", 0, 0, lambda _b, _n, _given: lit(math.pi))
add("xor", 2, 2, of_bits(lambda one, other: one.bit_xor(other)))
add("bit_not", 1, 1, bit_not)
add("shiftleft", 2, 2, of_bits(lambda one, other: one.shift_left(other)))
add("shiftright", 2, 2, of_bits(lambda one, other: one.shift_right(other)))
add("bit_count", 1, 1, of_bits(lambda number: number.bit_count()))
add("random rand", 0, 0, drawn)
# texts
add("length len char_length character_length", 1, 1, length)
texts("upper ucase", "upper", 1)
texts("lower lcase", "lower", 1)
texts("initcap", "initcap", 1)
texts("reverse", "reverse", 1)
texts("substring substr", "substring", 2, 3)
texts("substring_in_either_way", "substring_in_either_way", 3)
for name in ("left", "right", "repeat", "levenshtein", "contains"):
    texts(name, name, 2)
texts("trim btrim", "btrim", 1, 2)
texts("ltrim", "ltrim", 1, 2)
texts("rtrim", "rtrim", 1, 2)
texts("lpad", "lpad", 2, 3)
texts("rpad", "rpad", 2, 3)
texts("starts_with startswith prefix", "starts_with", 2)
texts("ends_with endswith suffix", "ends_with", 2)
texts("editdist3", "levenshtein", 2)
texts("replace", "replace", 3, 3, (0, 1, 2))
texts("strpos instr", "strpos", 2)
add(
    "position locate charindex",
    2,
    2,
    lambda b, _n, given: FUNCTIONS["strpos"]([text_of(b, given[1]), given[0]]),
)
texts("split_part", "split_part", 3)
add("space", 1, 1, lambda _b, _n, given: FUNCTIONS["repeat"]([lit(" "), given[0]]))
add("concat", 1, _ANY, joined, True)
add("concat_ws", 2, _ANY, separated, True)
add("format printf format_string", 1, _ANY, formatted_text, True)
add("string_split str_split split string_to_array", 2, 2, of_texts(LIST_FUNCTIONS["string_to_array"]))
add("string_split_regex str_split_regex regexp_split_to_array", 2, 2, own("string_split_regex"))
texts("regexp_matches regexp_like rlike", "regexp_like", 2, 3)
texts("regexp_count", "regexp_count", 2)
texts("regexp_replace", "regexp_replace", 3, 4)
add("regexp_full_match", 2, 2, full_match)
add("regexp_extract", 2, 3, lambda b, n, given: own("regexp_extract")(b, n, [*given, lit(0)][:3]))
add("regexp_extract_all", 2, 2, own("regexp_extract_all"))
texts("md5", "md5", 1)
add("sha256", 1, 1, own("sha256_hex"))
for name in ("sha1", "sha512", "crc32"):
    add(name, 1, 1, of_texts(_method(name)))
add("sha", 1, 1, of_texts(_method("sha1")))
add("xxhash64", 1, _ANY, lambda _k, _n, given: hash64(*given), True)
for name in ("jaro_similarity", "jaro_winkler_similarity"):
    texts(name, name, 2)
add("nfc_normalize", 1, 1, of_texts(lambda given: given[0].str.normalize()))
add("normalize", 1, 2, of_texts(normalized))
add("octet_length strlen", 1, 1, byte_length)
add("regexp_extract_groups", 2, 2, of_texts(lambda given: given[0].call("str_extract_groups", given[1])))
add("to_json", 1, 1, lambda _k, _n, given: given[0].to_json())
add("json_extract_string get_json_object", 2, 2, own("json_extract_string"))
add("json_extract", 2, 2, own("json_extract"))
add("json_valid", 1, 1, own("json_valid"))
for name in ("json_type", "json_array_length", "json_keys"):
    add(name, 1, 2, lambda b, n, given: own(n)(b, n, [*given, lit("$")][:2]))
add("url_decode", 1, 1, own("url_decode"))
# dates and times
for name, unit in _PARTS.items():
    add(name, 1, 1, part(unit))
add("date_part datepart", 2, 2, lambda b, _n, given: date_part(b, given[0], given[1]))
add("date_trunc datetrunc", 2, 2, date_trunc)
add("date_diff datediff", 2, 3, difference("date_diff"))
add("date_sub datesub", 2, 3, difference("date_sub"))
add("timestampdiff", 3, 3, difference("timestampdiff"))
add("date_add dateadd timestampadd", 2, 3, added)
add("add_months", 2, 2, months_added)
add(" ".join(TO_UNITS), 1, 1, interval)
for name in ("last_day", "dayname", "monthname", "epoch_ms", "epoch_us", "unix_timestamp"):
    add(name, 1, 1, own(name))
add("from_unixtime", 1, 1, own("from_unixtime"))
add("make_timestamp", 1, 6, timestamp_of_parts)
add("make_date", 3, 3, cast_to(lambda given: make_date(*given), *[pa.int64()] * 3))
add("make_time", 3, 3, cast_to(lambda given: make_time(*given), pa.int64(), pa.int64(), pa.float64()))
add("next_day", 2, 2, next_day)
add("time_bucket", 2, 3, time_bucket)
add("date_bin", 3, 3, time_bucket)
add("to_date date", 1, 2, to_date)
add("strftime", 2, 2, own("strftime"))
for name in ("strptime", "try_strptime"):
    add(name, 2, 2, own(name))
add("now get_current_timestamp transaction_timestamp", 0, 0, moment(pa.timestamp("us", "UTC")))
add("current_date today", 0, 0, moment(pa.date32()))
add("current_time", 0, 0, moment(pa.time64("us")))
# of constants
add("chr", 1, 1, of_bits(lambda number: number.chr()))
add("ascii", 1, 1, of_texts(lambda given: given[0].str.ascii()))
add("ord unicode", 1, 1, of_texts(code_or_nothing))
add("factorial", 1, 1, of_constants(math.factorial))
add("gcd greatest_common_divisor", 2, 2, of_bits(divisor))
add("lcm least_common_multiple", 2, 2, of_bits(multiple))
add("range", 1, 3, series)
add("sequence", 2, 3, series)
add("generate_series", 1, 3, series)
# lists and structs
add("list_value array list_pack make_array", 1, _ANY, alike(LIST_FUNCTIONS["make_array"]), True)
add("list_extract array_extract array_element list_element", 2, 2, of_lists("array_element"))
add("list_slice array_slice", 3, 4, of_lists("array_slice"))
add("array_length cardinality size array_size list_length", 1, 1, length)
add("list_contains list_has array_contains array_has", 2, 2, of_list_and_value("array_contains"))
add("list_has_any array_has_any", 2, 2, of_lists("array_has_any"))
add("list_has_all array_has_all", 2, 2, of_lists("array_has_all"))
add("list_sort array_sort sort_array", 1, 3, of_lists("array_sort"))
add("list_reverse_sort", 1, 1, lambda b, n, given: of_lists("array_sort")(b, n, [*given, lit("DESC")]))
add("list_distinct array_distinct", 1, 1, of_lists("array_distinct"))
add("list_sum array_sum", 1, 1, of_lists("array_sum"))
add("list_avg array_avg", 1, 1, of_lists("array_avg"))
add("list_min array_min", 1, 1, of_lists("array_min"))
add("list_max array_max", 1, 1, of_lists("array_max"))
add("list_concat array_concat list_cat array_cat", 2, 2, of_lists("array_concat", 2))
add("list_append array_append", 2, 2, of_lists("array_append"))
add("list_prepend array_prepend", 2, 2, prepended)
add("list_first", 1, 1, lambda b, n, given: of_lists("array_element")(b, n, [*given, lit(1)]))
add("list_last", 1, 1, lambda b, n, given: of_lists("array_element")(b, n, [*given, lit(-1)]))
add("array_to_string array_join", 2, 2, of_lists("array_to_string"))
add("struct_extract get_field", 2, 2, plainly(LIST_FUNCTIONS["get_field"]))
add("row", 1, _ANY, row, True)
add("map map_from", 2, 2, map_of)
add("map_keys", 1, 1, of_maps(lambda given: given[0].map.keys()))
add("map_values", 1, 1, of_maps(lambda given: given[0].map.values()))
add("map_extract_value element_at", 2, 2, of_maps(lambda given: given[0].map.get(given[1])))
add("list_position list_indexof array_position array_indexof", 2, 2, of_list_and_value("array_position"), True)
add("list_reverse array_reverse", 1, 1, of_lists("array_reverse"))
add("list_intersect", 2, 2, of_lists("array_intersect", 2))
for name in ("array_union", "array_except", "array_symmetric_difference"):
    add(name, 2, 2, of_lists(name, 2))
add("array_compact", 1, 1, of_lists("array_compact"))
add("map_entries", 1, 1, of_maps(lambda given: given[0].map.entries()))
add("map_from_arrays", 2, 2, map_of)
add("map_concat", 2, _ANY, of_maps(lambda given: given[0].map.concat(*given[1:])))
add("list_zip arrays_zip array_zip", 2, _ANY, zipped)
add("array_repeat", 2, 2, repeated, True)
add("array_remove", 2, 2, of_list_and_value("array_remove"))
add("arrays_overlap", 2, 2, of_lists("array_has_any", 2))
add("named_struct", 2, _ANY, named_struct, True)
add("elt", 2, _ANY, chosen_by_place)
add("uuid gen_random_uuid uuidv4", 0, 0, drawn_uuid)
add("rint", 1, 1, cast_to(lambda given: given[0].round(mode="half_to_even"), pa.float64()))
add("map_from_entries", 1, 1, plainly(lambda given: map_from_entries(given[0])))
add("array_push_back", 2, 2, of_lists("array_append"))
add("array_push_front", 2, 2, lambda known, name, given: prepended(known, name, given[::-1]))
add("array_pop_back", 1, 1, lambda _k, _n, given: given[0].list.slice(0, -1))
add("array_pop_front", 1, 1, lambda _k, _n, given: given[0].list.slice(1))
add("flatten", 1, 1, flattened)
add("list_aggregate list_aggr array_aggregate array_aggr", 2, 3, list_aggregate)
for name in ("count", "bool_and", "bool_or", "string_agg"):
    add(f"list_{name}", 1, 1, of_lists_by(name))
add("map_contains map_contains_key", 2, 2, is_key)
# made of others
add("translate", 3, 3, of_texts(lambda given: given[0].call("str_translate", *given[1:])))
add("hex to_hex", 1, 1, encoded("hex"))
add("bin to_binary", 1, 1, of_bits(lambda number: number.to_bin()))
add("url_encode", 1, 1, of_texts(lambda given: given[0].str.url_encode()))
add("unhex from_hex", 1, 1, decoded("hex"))
add("base64 to_base64", 1, 1, encoded("base64"))
add("unbase64 from_base64", 1, 1, decoded("base64"))
add("days_in_month", 1, 1, days_in_month)
add("yearweek", 1, 1, year_and_week)
add("epoch_ns", 1, 1, cast_to(lambda given: given[0].dt.epoch("ns"), pa.timestamp("us")))
add("fdiv", 2, 2, floored_quotient)
add("fmod", 2, 2, floored_remainder)
add("hypot", 2, 2, hypotenuse)
add("nanvl", 2, 2, not_nan)
add("width_bucket", 4, 4, place_among)
add("parse_url", 2, 3, part_of_url)
add("current_database current_catalog", 0, 0, of_environment("drey"))
add("current_schema", 0, 0, of_environment("main"))

#: functions whose first argument, of three, is a unit: a text or a word
OF_UNITS: Final = frozenset(
    ["date_diff", "datediff", "date_sub", "datesub", "timestampdiff", "date_add", "dateadd", "timestampadd"]
)
#: names of all functions of values
SCALAR_NAMES: Final = frozenset(_ROWS)
