"""Numbers of buckets and digits of numbers, and what DuckDB calls them.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from typing import Final

#: functions of one row, and what DuckDB calls them
NUMBERS: Final[dict[str, str]] = {
    "width_bucket(i, -20, 20, n)": "CASE WHEN n > 0 THEN CASE WHEN i < -20 THEN 0 WHEN i >= 20 THEN n + 1"
    " ELSE floor((i + 20) * n / 40)::BIGINT + 1 END END",
    "width_bucket(i, 20, -20, 4)": "CASE WHEN i > 20 THEN 0 WHEN i <= -20 THEN 5"
    " ELSE floor((20 - i) * 4 / 40)::BIGINT + 1 END",
    "width_bucket(i, 5, 5, 4)": "NULL::BIGINT",
    "width_bucket(f, 0, 1, -1)": "NULL::BIGINT",
    "bit_count(i)": "bit_count(i)",
    "bin(i)": "",
    "to_binary(i)": "bin(i)",
    "hex(i)": "",
}
