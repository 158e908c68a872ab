"""The page of SQL's dialects, made from the forms that tests compare with the engines themselves. Pure."""

from __future__ import annotations

from typing import Final

from tests.sql.dialects import duckdb_rows, postgres_rows, spark_rows

_HEAD = """# SQL dialects

`env.sql(query, dialect="spark")`, and `--dialect spark` of `bin/flink-run sql`, read a query in the dialect of another
engine: `duckdb`, `postgres`, `spark`, `snowflake`, `bigquery` or `trino`. Without a dialect, a query means what the
guide of [SQL](../guide/sql.md) says.

[sqlglot](https://github.com/tobymao/sqlglot) reads the dialect. What means something else there is translated: the
order of nulls, the division of integers, where lists and texts begin, the order of a function's arguments, the first
day of a week. What has no equal is refused by name. Errors have the line and column of the query as it was written, and
a column without an alias has the name that was written.

Tests compare the forms of this page with the engine of the dialect: the same values, over rows with nulls. Snowflake,
BigQuery and Trino are services; tests compare some forty forms of each with what their documentation says.

* Means and quotients of decimals are doubles, also where the dialect has decimals.
* Division by zero is null in Spark's dialect, as with `try_divide`, and no error.
* Division of doubles by zero is infinite in the other dialects; that of integers is what it is in SQL of ours.
* DATE + INTERVAL is a DATE, also where the dialect has a timestamp.
* Doubles are written as texts without a fraction of zero (`1`, `1e+20`), and timestamps as `2024-02-29 13:05:09`.
* An element beyond the end of a list is null.
* Names are found in any case, and results keep the case of the data.
"""
_DIALECTS: Final = {
    "DuckDB": duckdb_rows,
    "PostgreSQL": postgres_rows,
    "Spark": spark_rows,
}


def dialects_page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for name, rows in _DIALECTS.items():
        forms = [*rows.EXPRESSIONS, *rows.AGGREGATES, *rows.QUERIES]
        answered = [one for one in forms if one not in rows.REFUSED]
        refused = [one for one in forms if one in rows.REFUSED]
        parts.append(f"## {name}\n\nThe same values as {name}'s:\n\n```text\n" + "\n".join(answered) + "\n```\n")
        parts.append("Refused:\n\n```text\n" + "\n".join(refused) + "\n```\n")
    return "\n".join(parts)
