"""Functions of DuckDB, Spark and PostgreSQL that the planner has under another name, or says in other words.

    RENAMED     list(x ORDER BY k)   array_agg(x ORDER BY k)          whatever stands in the parentheses
    CALLS       year(d)              date_part('year', d)             by name and number of arguments
                max_by(x, k)         nth_value(x, -3 ORDER BY k)      see ``aggregates``
    REFUSED     uuid()               what to write in its place

``{0}`` is the first argument as it was written, ``{over}`` the FILTER and OVER behind a call of an aggregate. Texts and
moments are cast to what a function of ``own_functions`` takes: the planner is told of one type for each argument.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from typing import Final

_MOMENT: Final = "CAST({0} AS TIMESTAMP(6))"
_PARTS: Final = {
    **{name: name for name in ("year", "month", "day", "quarter", "week", "hour", "minute", "second", "millisecond")},
    **{name: name for name in ("microsecond", "decade", "century", "millennium", "isodow", "isoyear", "epoch")},
    "dayofmonth": "day",
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "weekofyear": "week",
}

RENAMED: Final[dict[str, str]] = {
    "ceiling": "ceil",
    "ucase": "upper",
    "lcase": "lower",
    "startswith": "starts_with",
    "prefix": "starts_with",
    "endswith": "ends_with",
    "suffix": "ends_with",
    "len": "length",
    "regexp_matches": "regexp_like",
    "rlike": "regexp_like",
    "editdist3": "levenshtein",
    "list_value": "make_array",
    "list_pack": "make_array",
    "array": "make_array",
    "size": "cardinality",
    "array_size": "cardinality",
    "sort_array": "array_sort",
    "list_min": "array_min",
    "list": "array_agg",
    "collect_list": "array_agg",
    "string_agg": "string_agg",
    "group_concat": "string_agg",
    "listagg": "string_agg",
    "mean": "avg",
    "fsum": "sum",
    "kahan_sum": "sum",
    "sumkahan": "sum",
    "favg": "avg",
    "std": "stddev",
    "variance": "var_samp",
    "every": "bool_and",
    "approx_count_distinct": "approx_distinct",
    "first": "first_value",
    "last": "last_value",
}

_SCALARS: Final[dict[tuple[str, int], str]] = {
    **{(name, 1): f"date_part('{part}', {{0}})" for name, part in _PARTS.items()},
    # conditions and nulls
    ("if", 3): "(CASE WHEN {0} THEN {1} ELSE {2} END)",
    ("iif", 3): "(CASE WHEN {0} THEN {1} ELSE {2} END)",
    ("iff", 3): "(CASE WHEN {0} THEN {1} ELSE {2} END)",
    ("isnull", 1): "(({0}) IS NULL)",
    ("isnotnull", 1): "(({0}) IS NOT NULL)",
    ("zeroifnull", 1): "coalesce({0}, 0)",
    ("nullifzero", 1): "nullif({0}, 0)",
    ("equal_null", 2): "(({0}) IS NOT DISTINCT FROM ({1}))",
    # dates and times
    ("date", 1): "CAST({0} AS DATE)",
    ("to_date", 1): "CAST({0} AS DATE)",
    ("to_date", 2): "CAST(strptime({0}, {1}) AS DATE)",
    ("strftime", 2): f"strftime({_MOMENT}, {{1}})",
    ("strptime", 2): "strptime({0}, {1})",
    ("try_strptime", 2): "try_strptime({0}, {1})",
    ("dayname", 1): f"dayname({_MOMENT})",
    ("monthname", 1): f"monthname({_MOMENT})",
    ("last_day", 1): f"last_day({_MOMENT})",
    ("epoch_ms", 1): f"epoch_ms({_MOMENT})",
    ("epoch_us", 1): f"epoch_us({_MOMENT})",
    ("unix_timestamp", 1): f"unix_timestamp({_MOMENT})",
    ("from_unixtime", 1): "from_unixtime(CAST({0} AS BIGINT))",
    ("make_timestamp", 1): "make_timestamp(CAST({0} AS BIGINT))",
    ("datediff", 2): "(CAST({0} AS DATE) - CAST({1} AS DATE))",
    ("date_diff", 2): "(CAST({0} AS DATE) - CAST({1} AS DATE))",
    **{
        (name, 3): f"{into}({{unit}}, CAST({{1}} AS TIMESTAMP(6)), CAST({{2}} AS TIMESTAMP(6)))"
        for name, into in (
            ("datediff", "date_diff"),
            ("date_diff", "date_diff"),
            ("datesub", "date_sub"),
            ("date_sub", "date_sub"),
            ("timestampdiff", "date_sub"),
        )
    },
    ("date_add", 2): "({0} + {1})",
    ("date_sub", 2): "({0} - {1})",
    ("dateadd", 3): "({2} + interval_of({1}, {unit}))",
    ("date_add", 3): "({2} + interval_of({1}, {unit}))",
    ("timestampadd", 3): "({2} + interval_of({1}, {unit}))",
    ("add_months", 2): "(CAST({0} AS DATE) + interval_of({1}, 'month'))",
    **{
        (f"to_{unit}s", 1): f"interval_of({{0}}, '{unit}')"
        for unit in ("year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    },
    # numbers
    ("mod", 2): "(({0}) % ({1}))",
    ("pmod", 2): "(((({0}) % ({1})) + ({1})) % ({1}))",
    ("e", 0): "exp(1)",
    ("xor", 2): "bitwise_xor(CAST({0} AS BIGINT), CAST({1} AS BIGINT))",
    ("bit_not", 1): "bitwise_xor(CAST({0} AS BIGINT), -1)",
    ("shiftleft", 2): "(({0}) << ({1}))",
    ("shiftright", 2): "(({0}) >> ({1}))",
    ("isinf", 1): "isinf(CAST({0} AS DOUBLE))",
    ("isfinite", 1): "isfinite(CAST({0} AS DOUBLE))",
    # texts
    ("locate", 2): "strpos({1}, {0})",
    ("charindex", 2): "strpos({1}, {0})",
    ("space", 1): "repeat(' ', {0})",
    ("regexp_extract", 2): "regexp_extract(CAST({0} AS VARCHAR), {1}, 0)",
    ("regexp_extract", 3): "regexp_extract(CAST({0} AS VARCHAR), {1}, {2})",
    ("regexp_extract_all", 2): "regexp_extract_all(CAST({0} AS VARCHAR), {1})",
    ("regexp_full_match", 2): "regexp_like({0}, '^(?:' || {1} || ')$')",
    **{
        (name, 2): "string_split_regex(CAST({0} AS VARCHAR), {1})"
        for name in ("string_split_regex", "str_split_regex", "regexp_split_to_array")
    },
    ("string_split", 2): "string_to_array({0}, {1})",
    ("str_split", 2): "string_to_array({0}, {1})",
    ("split", 2): "string_to_array({0}, {1})",
    ("json_extract_string", 2): "json_extract_string(CAST({0} AS VARCHAR), {1})",
    ("get_json_object", 2): "json_extract_string(CAST({0} AS VARCHAR), {1})",
    ("sha256", 1): "sha256_hex(CAST({0} AS VARCHAR))",
    ("url_decode", 1): "url_decode(CAST({0} AS VARCHAR))",
    # lists and structs
    ("list_first", 1): "array_element({0}, 1)",
    ("list_last", 1): "array_element({0}, -1)",
    ("list_reverse_sort", 1): "array_sort({0}, 'DESC')",
    ("struct_extract", 2): "get_field({0}, {1})",
}

#: condition on rows in which neither value is null
_PAIR: Final = "({0}) IS NOT NULL AND ({1}) IS NOT NULL"
_SECOND: Final = f"CASE WHEN {_PAIR} THEN {{1}} END"
_FIRST: Final = f"CASE WHEN {_PAIR} THEN {{0}} END"
_AGGREGATES: Final[dict[tuple[str, int], str]] = {
    **{(name, 2): "nth_value({0}, -2 ORDER BY {1}){over}" for name in ("arg_min", "argmin", "min_by")},
    **{(name, 2): "nth_value({0}, -3 ORDER BY {1}){over}" for name in ("arg_max", "argmax", "max_by")},
    ("mode", 1): "nth_value({0}, -1){over}",
    ("count_if", 1): "count(CASE WHEN {0} THEN 1 END){over}",
    ("countif", 1): "count(CASE WHEN {0} THEN 1 END){over}",
    ("count_star", 0): "count(*){over}",
    ("collect_set", 1): "array_agg(DISTINCT {0}){over}",
    ("product", 1): "product(CAST({0} AS DOUBLE)){over}",
    ("skewness", 1): "skewness(CAST({0} AS DOUBLE)){over}",
    ("kurtosis", 1): "kurtosis(CAST({0} AS DOUBLE)){over}",
    ("geomean", 1): "exp(avg(ln({0})){over})",
    ("geometric_mean", 1): "exp(avg(ln({0})){over})",
    ("percentile", 2): "percentile_cont({0}, {1}){over}",
    ("approx_quantile", 2): "approx_percentile_cont({0}, {1}){over}",
    ("approx_percentile", 2): "approx_percentile_cont({0}, {1}){over}",
    ("percentile_approx", 2): "approx_percentile_cont({0}, {1}){over}",
    # of y and x
    ("regr_count", 2): f"count(CASE WHEN {_PAIR} THEN 1 END){{over}}",
    ("regr_avgx", 2): f"avg({_SECOND}){{over}}",
    ("regr_avgy", 2): f"avg({_FIRST}){{over}}",
    ("regr_slope", 2): f"(covar_pop({{0}}, {{1}}){{over}} / nullif(var_pop({_SECOND}){{over}}, 0))",
    ("regr_sxy", 2): f"(covar_pop({{0}}, {{1}}){{over}} * count(CASE WHEN {_PAIR} THEN 1 END){{over}})",
    ("regr_sxx", 2): f"(var_pop({_SECOND}){{over}} * count(CASE WHEN {_PAIR} THEN 1 END){{over}})",
    ("regr_syy", 2): f"(var_pop({_FIRST}){{over}} * count(CASE WHEN {_PAIR} THEN 1 END){{over}})",
    ("regr_intercept", 2): (
        f"(avg({_FIRST}){{over}} - avg({_SECOND}){{over}} * "
        f"(covar_pop({{0}}, {{1}}){{over}} / nullif(var_pop({_SECOND}){{over}}, 0)))"
    ),
    ("regr_r2", 2): (
        f"(CASE WHEN var_pop({_SECOND}){{over}} = 0 THEN NULL WHEN var_pop({_FIRST}){{over}} = 0 THEN 1.0e0 "
        "ELSE power(corr({0}, {1}){over}, 2) END)"
    ),
}

CALLS: Final = {**_SCALARS, **_AGGREGATES}
CALL_NAMES: Final = frozenset((*RENAMED, *(name for name, _ in CALLS)))

_STRFTIME: Final = "write strftime(ts, '%Y-%m-%d')"
_PYTHON: Final = "write data.map(...) or data.with_columns(...) in Python"
#: functions whose arguments are functions, which the planner would take for columns
OF_FUNCTIONS: Final = frozenset(
    ("list_transform", "list_filter", "list_reduce", "transform", "array_transform", "array_filter")
)
REFUSED: Final[dict[str, str]] = {
    "getdate": "write now() or current_date",
    "columns": "write the columns, or data.select(...) in Python",
    "to_char": _STRFTIME,
    "date_format": _STRFTIME,
    "to_timestamp": "write strptime(s, '%Y-%m-%d') of a text, from_unixtime(n) of seconds",
    "date_bin": "write date_trunc('hour', ts)",
    "time_bucket": "write date_trunc('hour', ts)",
    "age": "write date_diff('day', a, b) or a - b",
    "months_between": "write date_diff('month', a, b)",
    "next_day": "write date_trunc('week', d) + INTERVAL '7 days'",
    "percentile_disc": "write percentile_cont or approx_quantile",
    "quantile": "write quantile_cont(x, 0.5) or approx_quantile(x, 0.5)",
    "quantile_disc": "write quantile_cont or approx_quantile",
    "mad": "write median of abs(x - median) in two queries",
    "histogram": "write GROUP BY x and count(*)",
    "entropy": "write it with GROUP BY and ln",
    "list_transform": _PYTHON,
    "list_filter": _PYTHON,
    "list_reduce": _PYTHON,
    "transform": _PYTHON,
    "array_transform": _PYTHON,
    "array_filter": _PYTHON,
    "substr_index": "write split_part(s, ',', 1)",
    "list_position": "write list_contains(l, x)",
    "array_position": "write list_contains(l, x)",
    "typeof": "write DESCRIBE name, or data.schema in Python",
    "pg_typeof": "write DESCRIBE name, or data.schema in Python",
    "uuid": "write data.with_row_index(name) in Python",
    "monotonically_increasing_id": "write row_number() OVER (ORDER BY ...)",
    "json_extract": "write json_extract_string(s, '$.a')",
    "decode": "write CASE x WHEN 1 THEN 'a' ELSE 'b' END",
    "translate": "write replace(replace(s, 'a', 'x'), 'b', 'y')",
    "format_number": "write CAST(round(x, 2) AS VARCHAR)",
    "sum_distinct": "write sum(DISTINCT x)",
    "count_distinct": "write count(DISTINCT x)",
    "hash": "write md5(s) or sha256(s)",
    "try_divide": "write x / nullif(y, 0)",
    "struct_pack": "write {'a': x, 'b': y}",
    "div": "integers divide to integers with /",
    "substring_index": "write split_part(s, ',', 1)",
}
