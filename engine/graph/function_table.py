"""The table of functions: each function of expressions in one row.

    FUNCTION_TABLE: name -> FunctionRow                     safe_functions(), is_deterministic(expression)

What is driven by a row: how the function binds to types and what it says where it does not (``engine.expressions``),
whether filters with it may move and whether it may be evaluated twice (``engine.optimizer``), its entry in the
reference (``docs/generators/functions.py``) and which tests hold it. There is no pyarrow here: the JobMaster plans with
this table. To add a function, add a row, a method in ``engine.column_expressions`` with an example, and a line to an
oracle test.

Held by: tests/expressions/test_function_table.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.graph.expression import Call, Expression, Literal, children_of
from engine.graph.function_row import BAD_TEXT, VALUES, FunctionRow

Row = FunctionRow

_OPERATORS: Final = (
    Row("add", ("any", "any"), "calendar_functions:summing:add", "-", VALUES),
    Row("subtract", ("any", "any"), "calendar_functions:summing:subtract", "-", VALUES),
    Row("multiply", ("any", "any"), "span_arithmetic:spanning:*", "-", VALUES),
    Row("divide", ("any", "any"), "span_arithmetic:spanning:/", "-", VALUES),
    Row("floor_divide", ("any", "any"), "span_arithmetic:spanning://", "-", VALUES),
    Row("modulo", ("any", "any"), "span_arithmetic:spanning:%", "-", VALUES),
    Row("negate", ("number",), "arithmetic:bind_negate", "first", VALUES),
    Row("equal", ("same", "same"), "comparison:comparing:equal", "bool"),
    Row("not_equal", ("same", "same"), "comparison:comparing:not_equal", "bool"),
    Row("less", ("same", "same"), "comparison:comparing:less", "bool"),
    Row("less_equal", ("same", "same"), "comparison:comparing:less_equal", "bool"),
    Row("greater", ("same", "same"), "comparison:comparing:greater", "bool"),
    Row("greater_equal", ("same", "same"), "comparison:comparing:greater_equal", "bool"),
    Row("between", ("same", "same", "same"), "comparison:bind_between", "bool", nulls="own"),
    Row("is_in", ("same", "constant*"), "comparison:bind_is_in", "bool", nulls="own"),
    Row("and", ("bool", "bool"), "comparison:logical:and_kleene", "bool", nulls="own"),
    Row("or", ("bool", "bool"), "comparison:logical:or_kleene", "bool", nulls="own"),
    Row("not", ("bool",), "comparison:logical:invert", "bool"),
)

_NULLS: Final = (
    Row("is_null", ("any",), "arrow:is_null", "bool", nulls="own"),
    Row("is_not_null", ("any",), "arrow:is_valid", "bool", nulls="own"),
    Row("coalesce", ("same", "same*"), "conditional_functions:bind_coalesce", "same", VALUES, "own"),
    Row("fill_null", ("same", "same"), "conditional_functions:bind_fill_null", "-", VALUES, "own"),
    Row("nullif", ("same", "same"), "conditional_functions:bind_nullif", "first", VALUES, "own"),
    Row("least", ("same", "same*"), "conditional_functions:extreme:less_equal", "same", VALUES, "own"),
    Row("greatest", ("same", "same*"), "conditional_functions:extreme:greater_equal", "same", VALUES, "own"),
    Row("try_cast", ("any", "constant"), "casting:bind_try_cast", "-", nulls="own"),
    Row("eq_null_safe", ("same", "same"), "conditional_functions:bind_eq_null_safe", "bool", VALUES, "own"),
    Row("require", ("any", "bool"), "conditional_functions:bind_require", "first", VALUES, "own"),
    Row("replace", ("any", "constant", "constant", "any?"), "replaced_values:bind_replace", "-", VALUES, "own"),
)

_NUMBERS: Final = (
    Row("abs", ("any",), "span_arithmetic:bind_abs", "-", VALUES),
    Row("sign", ("number",), "number_functions:bind_sign", "-"),
    Row("round", ("number",), "number_functions:bind_round", "-", VALUES),
    Row("floor", ("number",), "number_functions:rounding:floor", "-", VALUES),
    Row("ceil", ("number",), "number_functions:rounding:ceil", "-", VALUES),
    Row("trunc", ("number",), "number_functions:rounding:trunc", "-", VALUES),
    Row("clip", ("number", "number?", "number?"), "number_functions:bind_clip", "same", VALUES),
    Row("sqrt", ("float",), "arrow:sqrt", "first"),
    Row("cbrt", ("float",), "number_functions:bind_cbrt", "first"),
    Row("exp", ("float",), "arrow:exp", "first"),
    Row("ln", ("float",), "arrow:ln", "first"),
    Row("log10", ("float",), "arrow:log10", "first"),
    Row("log2", ("float",), "arrow:log2", "first"),
    Row("log1p", ("float",), "arrow:log1p", "first"),
    Row("expm1", ("float",), "arrow:expm1", "first"),
    Row("power", ("float", "float"), "arrow:power", "same"),
    Row("sin", ("float",), "arrow:sin", "first"),
    Row("cos", ("float",), "arrow:cos", "first"),
    Row("tan", ("float",), "arrow:tan", "first"),
    Row("asin", ("float",), "arrow:asin", "first"),
    Row("acos", ("float",), "arrow:acos", "first"),
    Row("atan", ("float",), "arrow:atan", "first"),
    Row("sinh", ("float",), "arrow:sinh", "first"),
    Row("cosh", ("float",), "arrow:cosh", "first"),
    Row("tanh", ("float",), "arrow:tanh", "first"),
    Row("asinh", ("float",), "arrow:asinh", "first"),
    Row("acosh", ("float",), "arrow:acosh", "first"),
    Row("atanh", ("float",), "arrow:atanh", "first"),
    Row("atan2", ("float", "float"), "arrow:atan2", "same"),
    Row("degrees", ("float",), "number_functions:times:degrees", "first"),
    Row("radians", ("float",), "number_functions:times:radians", "first"),
    Row("is_nan", ("number",), "arrow:is_nan", "bool"),
    Row("is_finite", ("number",), "arrow:is_finite", "bool"),
    Row("is_infinite", ("number",), "arrow:is_inf", "bool"),
    Row("gcd", ("integer", "integer"), "divisors:bind_gcd", "int64", VALUES),
    Row("bit_and", ("integer", "integer"), "arrow:bit_wise_and", "int64", VALUES),
    Row("bit_or", ("integer", "integer"), "arrow:bit_wise_or", "int64", VALUES),
    Row("bit_xor", ("integer", "integer"), "arrow:bit_wise_xor", "int64", VALUES),
    Row("bit_not", ("integer",), "arrow:bit_wise_not", "int64", VALUES),
    Row("bit_count", ("integer",), "number_functions:bind_bit_count", "int64"),
    Row("to_hex", ("integer",), "character_functions:digits:4", "string"),
    Row("to_bin", ("integer",), "character_functions:digits:1", "string"),
    Row("chr", ("integer",), "character_functions:bind_chr", "string", VALUES),
    Row("shift_left", ("integer", "integer"), "arrow:shift_left_checked", "int64", VALUES),
    Row("shift_right", ("integer", "integer"), "arrow:shift_right_checked", "int64", VALUES),
)

_TEXT: Final = (
    Row("str_length", ("text",), "text_functions:bind_length", "int64"),
    Row("str_upper", ("text",), "arrow:utf8_upper", "first", BAD_TEXT),
    Row("str_lower", ("text",), "arrow:utf8_lower", "first", BAD_TEXT),
    Row("str_strip", ("text",), "text_functions:stripping:trim", "first", BAD_TEXT),
    Row("str_lstrip", ("text",), "text_functions:stripping:ltrim", "first", BAD_TEXT),
    Row("str_rstrip", ("text",), "text_functions:stripping:rtrim", "first", BAD_TEXT),
    Row("str_contains", ("text", "constant"), "text_functions:bind_contains", "bool"),
    Row("str_starts_with", ("text", "constant"), "text_functions:affix:starts_with", "bool"),
    Row("str_ends_with", ("text", "constant"), "text_functions:affix:ends_with", "bool"),
    Row("str_replace", ("text", "constant", "constant"), "text_functions:bind_replace", "first", BAD_TEXT),
    Row("str_slice", ("text",), "text_functions:bind_slice", "first"),
    Row("str_concat", ("text", "text*"), "text_functions:bind_concat", "first", BAD_TEXT),
    Row("str_concat_ws", ("text", "text*"), "text_functions:bind_concat_ws", "first", BAD_TEXT, "own"),
    Row("str_title", ("text",), "arrow:utf8_title", "first", BAD_TEXT),
    Row("str_capitalize", ("text",), "arrow:utf8_capitalize", "first", BAD_TEXT),
    Row("str_reverse", ("text",), "arrow:utf8_reverse", "first", BAD_TEXT),
    Row("str_repeat", ("text", "integer"), "text_functions:bind_repeat", "first", VALUES),
    Row("str_pad_left", ("text",), "text_functions:padding:lpad", "first", BAD_TEXT),
    Row("str_pad_right", ("text",), "text_functions:padding:rpad", "first", BAD_TEXT),
    Row("str_strip_prefix", ("text", "constant"), "text_functions:stripping_constant:prefix", "first", BAD_TEXT),
    Row("str_strip_suffix", ("text", "constant"), "text_functions:stripping_constant:suffix", "first", BAD_TEXT),
    Row("str_like", ("text", "constant"), "text_patterns:like:mind_case", "bool"),
    Row("str_ilike", ("text", "constant"), "text_patterns:like:ignore_case", "bool"),
    Row("str_matches", ("text", "constant"), "text_patterns:bind_matches", "bool"),
    Row("str_count_matches", ("text", "constant"), "text_patterns:bind_count_matches", "int64", BAD_TEXT),
    Row("str_extract", ("text", "constant"), "text_patterns:bind_extract", "first", BAD_TEXT, "own"),
    Row("str_extract_all", ("text", "constant"), "text_patterns:bind_extract_all", "-", VALUES),
    Row("str_split", ("text", "constant"), "text_patterns:bind_split", "-", BAD_TEXT),
    Row("str_split_part", ("text", "constant"), "text_patterns:bind_split_part", "first", BAD_TEXT),
    Row("str_to_date", ("text",), "time_texts:parsing:date", "date32[day]", VALUES, "own"),
    Row("str_to_timestamp", ("text",), "time_texts:parsing:timestamp", "timestamp[us]", VALUES, "own"),
    Row("str_json_get", ("text",), "json_texts:bind_json_get", "first", BAD_TEXT),
    Row("str_json_about", ("text",), "json_texts:bind_json_about", "-", BAD_TEXT, is_internal=True),
    Row("str_json_parse", ("text", "constant"), "json_values:bind_json_parse", "-", BAD_TEXT, "own"),
    Row("str_find", ("text", "constant"), "text_patterns:bind_find", "int64", BAD_TEXT),
    Row("str_translate", ("text", "constant", "constant"), "character_functions:bind_translate", "first", BAD_TEXT),
    Row("str_normalize", ("text",), "character_functions:bind_normalize", "first", BAD_TEXT),
    Row("str_len_bytes", ("binary",), "character_functions:bind_len_bytes", "int64"),
    Row("str_ascii", ("text",), "character_functions:bind_ascii", "int64"),
    Row("str_to_integer", ("text",), "character_functions:bind_to_integer", "int64", VALUES, "own"),
    Row("str_extract_groups", ("text", "constant"), "character_functions:bind_extract_groups", "-", BAD_TEXT, "own"),
)

_TIMES: Final = (
    *(
        Row(f"dt_{name}", ("moment",), f"time_functions:date_part:{kernel}", "int64")
        for name, kernel in (
            ("year", "year"),
            ("quarter", "quarter"),
            ("month", "month"),
            ("week", "iso_week"),
            ("day", "day"),
            ("weekday", "day_of_week"),
            ("ordinal_day", "day_of_year"),
            ("day_of_year", "day_of_year"),
            ("iso_year", "iso_year"),
        )
    ),
    *(
        Row(f"dt_{name}", ("moment",), f"time_functions:time_part:{name}", "int64")
        for name in ("hour", "minute", "second", "millisecond", "microsecond")
    ),
    Row("dt_first_day", ("moment",), "time_functions:month_end:first", "date32[day]", VALUES),
    Row("dt_last_day", ("moment",), "time_functions:month_end:last", "date32[day]", VALUES),
    Row("dt_month_name", ("moment",), "time_functions:names:month", "string"),
    Row("dt_day_name", ("moment",), "time_functions:names:day", "string"),
    Row("dt_epoch", ("moment",), "time_functions:bind_epoch", "int64", VALUES),
    Row("dt_strftime", ("moment",), "time_texts:bind_strftime", "string", VALUES),
    Row("dt_date", ("moment",), "time_functions:casting_to:date", "date32[day]", VALUES),
    Row("dt_time", ("moment",), "time_functions:casting_to:time", "-", VALUES),
    Row("dt_with_timezone", ("moment",), "time_functions:bind_with_timezone", "-", VALUES),
    Row("dt_to_timezone", ("moment",), "time_functions:bind_to_timezone", "-"),
    Row("dt_diff", ("moment", "moment"), "calendar_functions:bind_diff", "int64", VALUES),
    Row("dt_truncate", ("moment",), "time_functions:bind_truncate", "first", VALUES),
    Row("dt_next_day", ("moment",), "calendar_days:bind_next_day", "date32[day]", VALUES),
    Row("dt_is_business_day", ("moment",), "calendar_days:bind_is_business_day", "bool"),
    Row("dt_add_business_days", ("moment", "integer"), "calendar_days:bind_add_business_days", "first", VALUES),
    Row("dt_business_day_count", ("moment", "moment"), "calendar_days:bind_business_day_count", "int64"),
    Row("make_date", ("integer",) * 3, "calendar_days:bind_make_date", "date32[day]", VALUES),
    Row("make_time", ("integer", "integer", "number"), "calendar_days:bind_make_time", "time64[us]", VALUES),
    Row("make_timestamp", (*("integer",) * 5, "number"), "calendar_days:bind_make_timestamp", "timestamp[us]", VALUES),
    Row("sequence", ("any", "any", "any?"), "sequences:bind_sequence", "-", VALUES),
)

_NESTED: Final = (
    Row("array", ("same", "same*"), "nested_functions:bind_array", "-", VALUES, "own"),
    Row("struct", ("any", "any*"), "nested_functions:bind_struct", "-", nulls="own"),
    Row("field", ("struct",), "nested_functions:bind_field", "-"),
    Row("map_from", ("list", "list"), "nested_functions:bind_map_from", "-", VALUES),
    Row("list_length", ("list",), "nested_functions:bind_length", "int64"),
    Row("list_get", ("list", "integer"), "nested_functions:bind_get", "-", VALUES),
    Row("list_slice", ("list",), "nested_functions:bind_slice", "-", VALUES),
    Row("list_contains", ("list", "any"), "nested_functions:bind_contains", "bool", VALUES),
    Row("list_sum", ("list",), "nested_functions:aggregate:sum", "-", VALUES),
    Row("list_min", ("list",), "nested_functions:aggregate:min", "-", VALUES),
    Row("list_max", ("list",), "nested_functions:aggregate:max", "-", VALUES),
    Row("list_mean", ("list",), "nested_functions:aggregate:mean", "float64", VALUES),
    Row("list_sort", ("list",), "nested_functions:bind_sort", "-", VALUES),
    Row("list_distinct", ("list",), "nested_functions:bind_distinct", "-", VALUES),
    Row("list_join", ("list",), "nested_functions:bind_join", "-", VALUES),
    Row("list_concat", ("list", "list*"), "nested_functions:bind_concat", "-", VALUES),
    Row("list_flatten", ("list",), "nested_functions:bind_flatten", "-", VALUES),
    Row("list_any", ("list",), "nested_functions:quantifier:any", "bool", VALUES),
    Row("list_all", ("list",), "nested_functions:quantifier:all", "bool", VALUES),
    *(
        Row(f"list_{name}", ("list", "list"), f"list_sets:set_of:{name}", "-")
        for name in ("union", "intersection", "difference", "symmetric_difference")
    ),
    Row("list_reverse", ("list",), "list_sets:bind_reverse", "-"),
    Row("list_position", ("list", "any"), "list_sets:bind_position", "int64", nulls="own"),
    Row("struct_with_fields", ("struct", "any*"), "struct_functions:bind_with_fields", "-", nulls="own"),
    Row("struct_rename_fields", ("struct",), "struct_functions:bind_rename_fields", "-"),
    Row("struct_drop", ("struct",), "struct_functions:bind_drop", "-"),
    Row("map_from_entries", ("list",), "struct_functions:bind_map_from_entries", "-", VALUES),
    Row("map_entries", ("map",), "struct_functions:bind_entries", "-"),
    Row("to_json", ("any",), "json_of_values:bind_to_json", "string", BAD_TEXT),
    Row("map_get", ("map", "constant"), "nested_functions:bind_map_get", "-"),
    Row("map_keys", ("map",), "nested_functions:map_part:keys", "-"),
    Row("map_values", ("map",), "nested_functions:map_part:values", "-"),
)

_DIGESTS: Final = (
    Row("hash64", ("any", "any*"), "digest_functions:bind_hash64", "int64", VALUES, "own"),
    *(
        Row(name, ("binary",), f"digest_functions:digest:{name}", "string")
        for name in ("md5", "sha1", "sha256", "sha512")
    ),
    Row("crc32", ("binary",), "digest_functions:bind_crc32", "int64"),
    Row("str_encode", ("binary",), "digest_functions:bind_encode", "-", VALUES),
    Row("str_decode", ("binary",), "digest_functions:bind_decode", "-", VALUES),
    Row("rand", (), "random_numbers:random_numbers", "float64", nulls="own", is_deterministic=False),
    Row("uuid", (), "random_numbers:uuids", "string", nulls="own", is_deterministic=False),
    Row("now", (), "compile:moment_of_no_job", "timestamp[us, tz=UTC]", nulls="own"),
    Row("row_place", (), "random_numbers:row_places", "int64", nulls="own", is_deterministic=False),
    Row("str_url_decode", ("text",), "digest_functions:bind_url_decode", "first", VALUES),
    Row("str_url_encode", ("text",), "digest_functions:bind_url_encode", "first", BAD_TEXT),
    Row("str_levenshtein", ("text", "text"), "digest_functions:distance:levenshtein", "int64"),
    Row("str_jaro", ("text", "text"), "digest_functions:distance:jaro", "float64"),
    Row("str_jaro_winkler", ("text", "text"), "digest_functions:distance:jaro_winkler", "float64"),
)

_TRANSFORM: Final = "partition_transforms:bind_partition_transform"
_PAIRS: Final = (
    Row("ordered_pair", ("number", "any"), "ordered_pairs:bind_ordered_pair", "-", is_internal=True),
    Row("by_value", ("any", "any*"), "varying_constants:bind_by_value", "-", VALUES, "own", is_internal=True),
    Row("paired_value", ("binary", "constant"), "ordered_pairs:bind_paired_value", "-", nulls="own", is_internal=True),
    Row("sql_text", (), "conditional_functions:bind_sql_text", "-", VALUES, "own", is_internal=True),
    Row("partition_transform", ("any",), _TRANSFORM, "-", nulls="own", is_internal=True),
)

_OF_ELEMENTS: Final = tuple(
    Row(f"list_{name}", ("list", "any*"), f"lambda_functions:bind_{name}", "-", VALUES, "own", is_internal=True)
    for name in ("transform", "filter", "reduce", "zip")
)

_ROWS: Final = (*_OPERATORS, *_NULLS, *_NUMBERS, *_TEXT, *_TIMES, *_NESTED, *_DIGESTS, *_PAIRS, *_OF_ELEMENTS)
FUNCTION_TABLE: Final = {row.name: row for row in _ROWS}

#: functions without errors or nulls of their own, deterministic, over operands of the types they work in
SAFE_FUNCTIONS: Final = frozenset(
    name for name, row in FUNCTION_TABLE.items() if row.fails == "never" and row.is_deterministic
)
_INDETERMINATE: Final = frozenset(name for name, row in FUNCTION_TABLE.items() if not row.is_deterministic)


def with_constants(
    function: str,
    arguments: Sequence[Expression],
    options: dict[str, bool | int | float | str | None],
    computed: Mapping[str, Expression],
) -> Call:
    """Return a call; ``computed``: options that are no constants, by name.

    What the function takes as a constant may be computed: it is called for each value that there is (``by_value``).
    """
    row = FUNCTION_TABLE.get(function)
    places = [] if row is None else [at for at, kind in enumerate(row.arguments) if kind == "constant"]
    varying = {str(at): arguments[at] for at in places if at < len(arguments) and type(arguments[at]) is not Literal}
    varying |= computed
    if not varying:
        return Call(function, tuple(arguments), options)
    fixed = [argument for at, argument in enumerate(arguments) if str(at) not in varying]
    named = {"function": function, "varying": ",".join(varying)}
    return Call("by_value", (*fixed, *varying.values()), {**options, **named})


def is_deterministic(expression: Expression) -> bool:
    """Whether an expression has the same value for a row each time. Does not recurse, so any depth can be asked."""
    stack = [expression]
    while stack:
        one = stack.pop()
        if type(one) is Call and one.function in _INDETERMINATE:
            return False
        stack.extend(children_of(one))
    return True
