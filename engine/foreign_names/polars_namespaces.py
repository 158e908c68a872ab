"""Names of the namespaces of Polars' expressions: texts, times, lists, structs and the rest.

The notation of answers is described in ``engine.foreign_names``.

Held by: tests/docs/test_names_pages.py
"""

from __future__ import annotations

from typing import Final

from engine.foreign_names.polars_expressions import MICROSECONDS, SIGNED_ZEROS, Rows

STR: Final[Rows] = (
    ("contains", "`x.str.contains('a')`, plain text; `x.str.contains('a+', regex=True)`"),
    ("contains_any", "`x.str.matches('a|b')`"),
    ("count_matches", "`x.str.count_matches('a+', regex=True)`"),
    ("decode", "`x.str.decode('hex')`, `'base64'`"),
    ("encode", "`x.str.encode('hex')`, `'base64'`"),
    ("ends_with starts_with strip_prefix strip_suffix", "`x.str.@('a')`"),
    ("escape_regex", "`re.escape('a.b')` of a constant"),
    ("extract extract_all extract_groups", "`x.str.@('(a)')`"),
    ("extract_many find_many", "`x.str.extract_all('a|b')`"),
    ("find", "`x.str.find('a').nullif(-1)`, plain text; a character's place, not a byte's"),
    ("head", "`x.str.left(3)`"),
    ("tail", "`x.str.right(3)`"),
    ("join", "`string_agg(x, ',')`"),
    ("json_decode", "`x.str.json_parse(pa.struct({'a': pa.int64()}))`"),
    ("json_path_match", "`x.str.json_get('$.a')`"),
    ("len_bytes normalize reverse", "`x.str.@()`"),
    ("len_chars", "`x.str.length()`"),
    ("pad_end", "`x.str.pad_right(10)`"),
    ("pad_start", "`x.str.pad_left(10)`"),
    ("replace", "`x.str.replace('a', 'b')`, each place; `x.str.replace('a+', 'b', regex=True)`"),
    ("replace_all", "`x.str.replace('a+', 'b', regex=True)`; `x.str.replace('a', 'b')`, plain text"),
    ("replace_many", "`x.str.replace('a', 'b').str.replace('c', 'd')`; `x.str.translate('ac', 'bd')` of characters"),
    ("slice", "`x.str.slice(1, 3)`: start and stop"),
    ("split", "`x.str.split(',')`"),
    ("split_exact splitn", "`x.str.split_part(',', 1)`"),
    ("strip_chars", "`x.str.strip()`"),
    ("strip_chars_end", "`x.str.rstrip()`"),
    ("strip_chars_start", "`x.str.lstrip()`"),
    ("strptime to_datetime", "`x.str.to_timestamp('%Y-%m-%d')`"),
    ("to_date", "`x.str.to_date('%Y-%m-%d')`"),
    ("to_time", "`x.str.to_timestamp('%H:%M:%S').dt.time()`"),
    ("to_decimal", "`x.cast(pa.decimal128(18, 2))`"),
    ("to_integer", "`x.str.to_integer(16)`"),
    ("to_lowercase", "`x.str.lower()`"),
    ("to_uppercase", "`x.str.upper()`"),
    ("to_titlecase", "`x.str.title()`"),
    ("zfill", SIGNED_ZEROS),
)

DT: Final[Rows] = (
    ("add_business_days", "`x.dt.add_business_days(3)`"),
    ("base_utc_offset dst_offset", "`x.dt.strftime('%z')`, the offset with daylight saving"),
    ("cast_time_unit", "`x.cast(pa.timestamp('ms'))`"),
    ("century", "`(x.dt.year() + 99) // 100`"),
    ("millennium", "`(x.dt.year() + 999) // 1000`"),
    ("combine", "`make_timestamp(x.dt.year(), x.dt.month(), x.dt.day(), 12, 30)`"),
    ("convert_time_zone", "`x.dt.to_timezone('Europe/Berlin')`"),
    ("replace_time_zone", "`x.dt.with_timezone('Europe/Berlin')`"),
    ("date day hour iso_year is_business_day millisecond", "`x.dt.@()`"),
    ("minute month ordinal_day quarter second time week year", "`x.dt.@()`"),
    ("weekday", "`x.dt.weekday() + 1`: `x.dt.weekday()` is 0 on Monday"),
    ("microsecond", MICROSECONDS),
    ("days_in_month", "`x.dt.last_day().dt.day()`"),
    ("epoch timestamp", "`x.dt.epoch('us')`"),
    ("is_leap_year", "`make_date(x.dt.year(), 2, 1).dt.last_day().dt.day() == 29`"),
    ("month_end", "`x.dt.last_day()`, a date"),
    ("month_start", "`x.dt.truncate('month')`, `x.dt.first_day()`, a date"),
    ("nanosecond", "`x.dt.epoch('ns') % 1_000_000_000`"),
    ("offset_by", "`x.dt.offset_by('3 days')`"),
    ("replace", "`make_date(x.dt.year(), x.dt.month(), 1)`, `make_timestamp` likewise"),
    ("round", "`(x + interval(minutes=30)).dt.truncate('hour')`"),
    ("strftime to_string", "`x.dt.strftime('%Y-%m-%d')`"),
    ("total_days", "`(x / datetime.timedelta(days=1)).trunc().cast('int64')`; `x.dt.diff(y, 'days')` of two moments"),
    (
        "total_hours",
        "`(x / datetime.timedelta(hours=1)).trunc().cast('int64')`; `x.dt.diff(y, 'hours')` of two moments",
    ),
    (
        "total_minutes",
        "`(x / datetime.timedelta(minutes=1)).trunc().cast('int64')`; `x.dt.diff(y, 'minutes')` of two moments",
    ),
    (
        "total_seconds",
        "`(x / datetime.timedelta(seconds=1)).trunc().cast('int64')`; `x.dt.diff(y, 'seconds')` of two moments",
    ),
    (
        "total_milliseconds",
        "`(x / datetime.timedelta(milliseconds=1)).trunc().cast('int64')`; `x.dt.diff(y, 'milliseconds')`",
    ),
    ("total_microseconds", "`x.cast(pa.duration('us')).cast('int64')`; `x.dt.diff(y, 'microseconds')` of two moments"),
    ("total_nanoseconds", "`x.cast(pa.duration('ns')).cast('int64')`"),
    ("truncate", "`x.dt.truncate('15 minutes')`"),
)

LIST: Final[Rows] = (
    ("agg eval", "`x.list.eval(element() * 2)`"),
    ("all any", "`x.list.@()`"),
    ("arg_max", "`x.list.position(x.list.max())`"),
    ("arg_min", "`x.list.position(x.list.min())`"),
    ("concat", "`x.list.concat(y)`"),
    ("contains", "`x.list.contains(1)`"),
    ("count_matches", "`x.list.filter(element() == 1).list.length()`"),
    ("diff", "`x.list.zip(x.list.slice(1))`, and a function of the pairs"),
    ("drop_nulls first last max mean min reverse sort sum", "`x.list.@()`"),
    ("explode", "`ds.explode('l')`"),
    ("filter", "`x.list.filter(element() > 1)`"),
    ("gather", "`array(x.list.get(0), x.list.get(2))`"),
    ("gather_every", "`sequence(0, x.list.length() - 1, 2)`, whose elements are exploded"),
    ("get", "`x.list.get(0)`, null beyond the end"),
    ("head", "`x.list.slice(0, 3)`"),
    ("tail", "`x.list.slice(-3)`"),
    ("item", "`x.list.get(0).require(x.list.length() == 1, 'more than one element')`"),
    ("join", "`x.list.join(',')`"),
    ("len", "`x.list.length()`"),
    ("median std var sample", "`ds.explode('l')`, and the aggregate in a group"),
    ("n_unique", "`x.list.distinct().list.length()`"),
    ("unique", "`x.list.distinct()`"),
    ("set_difference", "`x.list.difference(y)`"),
    ("set_intersection", "`x.list.intersection(y)`"),
    ("set_symmetric_difference", "`x.list.symmetric_difference(y)`"),
    ("set_union", "`x.list.union(y)`"),
    (
        "shift",
        "`when(x.list.length() > 0).then(array(lit(None, 'int64')).list.concat(x.list.slice(0, -1))).otherwise(x)`",
    ),
    ("slice", "`x.list.slice(1, 3)`: start and stop"),
    ("to_array", "`x.cast(pa.list_(pa.float64(), 3))`"),
    ("to_map", "`map_from_entries(x)`"),
    ("to_struct", "`struct(a=x.list.get(0), b=x.list.get(1))`"),
)

STRUCT: Final[Rows] = (
    ("drop", "`x.struct.drop('a')`"),
    ("eval with_fields", "`x.struct.with_fields(b=x.field('a') + 1)`"),
    ("field", "`x.field('a')`"),
    ("json_encode", "`x.to_json()`"),
    ("rename_fields", "`x.struct.rename_fields({'a': 'b'})`"),
    ("unnest", "`ds.unnest('s')`"),
)

_OF_LISTS_ALONE: Final = frozenset(
    [
        "concat",
        "diff",
        "drop_nulls",
        "filter",
        "gather",
        "gather_every",
        "item",
        "sample",
        "set_difference",
        "set_intersection",
        "set_symmetric_difference",
        "set_union",
        "to_array",
        "to_map",
    ]
)
#: names of lists of one length
ARR: Final[Rows] = (
    *((names, answer) for names, answer in LIST if not {*names.split()} & _OF_LISTS_ALONE),
    ("first last max mean min reverse sort sum", "`x.list.@()`"),
    ("dot", "`x.list.zip(y).list.transform(lambda e: e.field('part0') * e.field('part1')).list.sum()`"),
    ("median std var", "`ds.explode('l')`, and the aggregate in a group"),
    ("to_list", "`x.list.slice(0)`; functions of lists take both"),
)

CAT: Final[Rows] = (
    ("ends_with starts_with", "`x.str.@('a')`: categories are texts"),
    ("len_bytes", "`x.str.len_bytes()`"),
    ("len_chars", "`x.str.length()`"),
    ("slice", "`x.str.slice(1, 3)`"),
    ("physical", "`hash64(x)`, or a join with the distinct texts and their numbers"),
    ("to", "no: categories are texts"),
)

BIN: Final[Rows] = (
    ("contains ends_with starts_with", "`x.str.@('a')`"),
    ("decode", "`x.str.decode('hex')`"),
    ("encode", "`x.str.encode('hex')`"),
    ("head", "`x.str.encode('hex').str.left(6)`"),
    ("tail", "`x.str.encode('hex').str.right(6)`"),
    ("slice get", "`x.str.encode('hex').str.slice(2, 4)`"),
    ("reinterpret", "`x.str.encode('hex').str.to_integer(16)`"),
    ("size", "`x.str.len_bytes()`"),
)
