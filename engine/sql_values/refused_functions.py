"""Functions of DuckDB, Spark and PostgreSQL that are not here, and what to write in their place.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from typing import Final

_STRFTIME: Final = "write strftime(ts, '%Y-%m-%d')"
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
    "substr_index": "write split_part(s, ',', 1)",
    "uuid": "write data.with_row_index(name) in Python",
    "monotonically_increasing_id": "write row_number() OVER (ORDER BY ...)",
    "decode": "write CASE x WHEN 1 THEN 'a' ELSE 'b' END",
    "format_number": "write CAST(round(x, 2) AS VARCHAR)",
    "sum_distinct": "write sum(DISTINCT x)",
    "count_distinct": "write count(DISTINCT x)",
    "try": "write TRY_CAST(x AS type), or x / nullif(y, 0)",
    "width_bucket": "write floor((x - low) * count / (high - low)) + 1",
    "json_value": "write js ->> '$.a'",
    **dict.fromkeys(("json_object", "json_build_object", "jsonb_build_object"), "write {'a': x, 'b': y}"),
    "hash": "write md5(s) or sha256(s)",
    "try_divide": "write x / nullif(y, 0)",
    "struct_pack": "write {'a': x, 'b': y}",
    "div": "integers divide to integers with /",
    "substring_index": "write split_part(s, ',', 1)",
    **dict.fromkeys(("sha1", "sha", "crc32", "md5_number"), "write md5(s) or sha256(s)"),
    **dict.fromkeys(
        ("hamming", "jaccard", "jaro_similarity", "jaro_winkler_similarity", "damerau_levenshtein", "soundex"),
        "write levenshtein(a, b)",
    ),
    **dict.fromkeys(("gen_random_uuid", "uuidv4", "uuidv7"), "write data.with_row_index(name) in Python"),
    **dict.fromkeys(("list_reverse", "array_reverse"), "write reverse(s) for a text, else a Python function"),
    **dict.fromkeys(("list_intersect", "array_intersect"), "write list_filter(l, x -> list_contains(m, x))"),
    **dict.fromkeys(("list_zip", "arrays_zip", "array_zip"), "write FROM t, unnest(l, m) AS q (a, b)"),
    **dict.fromkeys(("list_median", "list_mode", "list_product"), "write it of FROM t, unnest(l) AS q (x)"),
    **dict.fromkeys(("list_stddev_samp", "list_var_samp"), "write it of FROM t, unnest(l) AS q (x)"),
    **dict.fromkeys(("to_json", "row_to_json", "array_to_json", "from_json"), "write js ->> '$.a' to read JSON"),
    **dict.fromkeys(("struct_insert", "struct_update", "struct_concat"), "write {'a': s.a, 'b': x}"),
    **dict.fromkeys(("map_entries", "map_from_entries"), "write map_keys(m) and map_values(m)"),
    **dict.fromkeys(("octet_length", "bit_length", "strlen"), "write length(hex(s)) / 2"),
    **dict.fromkeys(("parse_filename", "parse_dirname"), "write regexp_extract(path, '([^/]*)$', 1)"),
    "strip_accents": "write replace(s, 'é', 'e')",
    "make_time": "write CAST('13:14:15' AS TIME)",
    "generate_subscripts": "write generate_series(1, 3)",
    "sem": "write stddev(x) / sqrt(count(x))",
    "approx_top_k": "write GROUP BY x ORDER BY count(*) DESC LIMIT k",
    "kurtosis_pop": "write kurtosis(x)",
    "round_even": "write round(x, n), whose halves go away from zero",
}
