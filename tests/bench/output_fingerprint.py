"""Rows of an output and a hash that does not depend on their order, computed by DuckDB."""

import duckdb

from tests.bench.workload import THREADS


def output_fingerprint(query: str) -> tuple[int, int]:
    """Return (rows, sum of the rows' 64-bit hashes) of what ``query`` reads; duplicates count."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}; SET preserve_insertion_order = false")
        names = [row[0] for row in connection.execute(f"DESCRIBE {query}").fetchall()]
        listed = ", ".join(f"c{index}" for index in range(len(names)))
        return connection.execute(
            f"SELECT count(*), coalesce(sum(hash({listed})::HUGEINT), 0) FROM ({query}) AS output({listed})"
        ).fetchone()
