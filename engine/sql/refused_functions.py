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
