"""Functions of times and sequences, and what DuckDB calls them: "" is the same.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from typing import Final

TIMES: Final[dict[str, str]] = {
    "make_time(n, n, n + 0.5)": "",
    "make_timestamp(2000 + n, n, n, n, n, n + 0.5)": "",
    "next_day(d, 'mon')": "date_trunc('week', d) + INTERVAL 7 DAY",
    "time_bucket(INTERVAL '15 minutes', ts)": "",
    "time_bucket(INTERVAL '2 months', ts)": "",
    "time_bucket(INTERVAL '7 months', d)": "",
    "time_bucket(INTERVAL '10 days', ts, TIMESTAMP '2001-05-07 00:00:00')": "",
    "time_bucket(INTERVAL '36 hours', ts)": "",
    "date_bin(INTERVAL '1 hour', ts, TIMESTAMP '2001-01-01')": "time_bucket(INTERVAL '1 hour', ts)",
    "generate_series(1, n)": "",
    "range(n)": "",
    "range(i, j, 2)": "CASE WHEN i IS NULL OR j IS NULL THEN NULL ELSE range(i, j, 2) END",
    "len(generate_series(ts, ts + INTERVAL 1 DAY, INTERVAL 1 HOUR))": "CASE WHEN ts IS NOT NULL THEN 25 END",
    "sequence(n, 1, -1)": "generate_series(n, 1, -1)",
}
