"""Functions of DuckDB, Spark and PostgreSQL that are not here, and what to write in their place.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from typing import Final

from engine.errors import PlanError

_STRFTIME: Final = "write strftime(ts, '%Y-%m-%d')"
REFUSED: Final[dict[str, str]] = {
    "getdate": "write now() or current_date",
    "columns": "write the columns, or data.select(...) in Python",
    "to_char": _STRFTIME,
    "date_format": _STRFTIME,
    "to_timestamp": "write strptime(s, '%Y-%m-%d') of a text, from_unixtime(n) of seconds",
    "age": "write a - b, or date_diff('day', b, a)",
    "months_between": "write datesub('month', b, a), whole months",
    "percentile_disc": "write percentile_cont or approx_quantile",
    "quantile": "write quantile_cont(x, 0.5), which interpolates, or approx_quantile(x, 0.5)",
    "quantile_disc": "write quantile_cont(x, 0.5), which interpolates, or approx_quantile(x, 0.5)",
    "mad": "write median of abs(x - median) in two queries",
    "histogram": "write GROUP BY x and count(*)",
    "entropy": "write it with GROUP BY and log2",
    **dict.fromkeys(
        ("substr_index", "substring_index"),
        "write array_to_string(list_slice(string_split(s, '.'), 1, 2), '.')",
    ),
    "monotonically_increasing_id": "write row_number() OVER (ORDER BY ...)",
    "decode": "write CASE x WHEN 1 THEN 'a' ELSE 'b' END",
    "format_number": "write CAST(round(x, 2) AS VARCHAR), without separators of thousands",
    "sum_distinct": "write sum(DISTINCT x)",
    "count_distinct": "write count(DISTINCT x)",
    "try": "write TRY_CAST(x AS type), or x / nullif(y, 0)",
    "conv": "write hex(i) or bin(i) of a whole number, CAST('0x' || s AS BIGINT) of hexadecimal digits",
    "json_value": "write js ->> '$.a'",
    **dict.fromkeys(("json_object", "json_build_object", "jsonb_build_object"), "write {'a': x, 'b': y}"),
    "hash": "write xxhash64(s) or sha256(s)",
    "try_divide": "write x / nullif(y, 0)",
    "div": "write a // b",
    **dict.fromkeys(
        ("hamming", "jaccard", "damerau_levenshtein", "soundex"),
        "write levenshtein(a, b) or jaro_winkler_similarity(a, b)",
    ),
    "uuidv7": "write uuid()",
    "array_intersect": "write list_intersect(l, m), whose lists have no nulls",
    **dict.fromkeys(("list_median", "list_mode", "list_product"), "write it of FROM t, unnest(l) AS q (x)"),
    **dict.fromkeys(("list_stddev_samp", "list_var_samp"), "write it of FROM t, unnest(l) AS q (x)"),
    "struct_concat": "write struct_insert(s, b := x)",
    "parse_filename": "write regexp_extract(path, '([^/]*)$', 1)",
    "parse_dirname": r"write regexp_replace(path, '^(/).*|^([^/]*)/.*|^.*$', '\1\2')",
    "bit_length": "write octet_length(s) * 8",
    "md5_number": "write md5(s), its digits as a text",
    "from_json": "write js ->> '$.a' to read JSON",
    **dict.fromkeys(("row_to_json", "array_to_json"), "write to_json(x)"),
    "strip_accents": "write replace(s, 'é', 'e')",
    "generate_subscripts": "write generate_series(1, 3)",
    "sem": "write stddev_pop(x) / sqrt(count(x))",
    "approx_top_k": "write GROUP BY x ORDER BY count(*) DESC LIMIT k",
    "kurtosis_pop": "write avg(pow((x - m) / d, 4)) - 3, with FROM t, (SELECT avg(x) AS m, stddev_pop(x) AS d FROM t)",
}

_FIRST: Final = "(list(x ORDER BY {key}) FILTER (WHERE {known} IS NOT NULL))[1:n]"
#: aggregates that DuckDB has of several values, with a number behind them, and what to write in their place
_OF_SEVERAL: Final = {
    "max": (2, _FIRST.format(key="x DESC", known="x")),
    "min": (2, _FIRST.format(key="x", known="x")),
    **dict.fromkeys(("arg_max", "argmax", "max_by"), (3, _FIRST.format(key="y DESC", known="x IS NOT NULL AND y"))),
    **dict.fromkeys(("arg_min", "argmin", "min_by"), (3, _FIRST.format(key="y", known="x IS NOT NULL AND y"))),
}


def wrong_number(name: str, given: int, takes: object) -> PlanError:
    """Return the error for a number of arguments that a function does not take."""
    wanted, instead = _OF_SEVERAL.get(name, (0, ""))
    advice = f"; of several values write {instead}" if given == wanted else ""
    return PlanError(f"{name}() has {given} arguments here and takes {takes}{advice}")
